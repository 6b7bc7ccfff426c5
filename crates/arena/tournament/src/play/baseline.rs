//! The baseline of a round: where it comes from, and the gates that it passes itself.

use gauntlet_gates::GATES;
use gauntlet_judge::gates::{Examination, metrics_of_profile};
use gauntlet_judge::{Candidate, Executor, Finding, Metrics};
use gauntlet_parameters::Parameters;

use super::Player;
use crate::error::TournamentError;
use crate::outcome::{BaselineReport, RoundReport};
use crate::records::{BASELINE, fault};
use crate::round::Round;
use crate::source::Builds;

/// The baseline of a round: the one that it names, or else the result of the round before. A round on a source begins with what
/// earlier rounds on the same source made of it.
pub(super) fn baseline_of(
    round: &Round,
    results: &[(&Round, Candidate)],
    builds: &Builds,
) -> Result<Option<Candidate>, TournamentError> {
    let (Some(source), Some(tree)) = (&round.file().source, &round.tree) else {
        let before = results.last().map(|(_, carried)| carried.clone());
        return Ok(own_baseline(round).or(before));
    };
    let is_same = |earlier: &Round| {
        let (one, other) = (earlier.file(), round.file());
        earlier.tree.as_ref() == Some(tree) && one.source == other.source && one.executor == other.executor
    };
    if let Some((_, carried)) = results.iter().rev().find(|(earlier, _)| is_same(earlier)) {
        return Ok(Some(carried.clone()));
    }
    let built = builds.candidate(BASELINE, round, tree, &source.kernel, &Parameters::new());
    built.map(Some).map_err(|fault| {
        round
            .source
            .error_at(
                &source.kernel,
                format!("the baseline cannot be built: {}", fault.reason),
                "the source as it stands is the baseline: see that it builds",
            )
            .into()
    })
}

/// The baseline that a round names.
fn own_baseline(round: &Round) -> Option<Candidate> {
    if let Some(kernel) = round.kernels.get(BASELINE) {
        return Some(kernel.clone());
    }
    let baseline = round.file().baseline.as_ref()?;
    Some(Candidate {
        command: round.command(&baseline.command),
        dispatch: round.dispatch(&baseline.dispatch),
        ..Candidate::new(BASELINE, round.baseline_schedule()?)
    })
}

/// The baseline of the round after this one: the adopted candidate, if there is one.
pub(super) fn next_baseline(report: &RoundReport, baseline: Candidate) -> Candidate {
    let adopted = report
        .adopted
        .as_ref()
        .and_then(|name| report.judged.iter().find(|judged| judged.name == *name))
        .and_then(|judged| judged.candidate.as_ref());
    match adopted {
        Some(candidate) => Candidate {
            name: BASELINE.to_owned(),
            ..candidate.clone()
        },
        None => baseline,
    }
}

impl Player<'_> {
    /// Takes the baseline through the gates that apply to it.
    pub(super) fn qualify(
        &self,
        baseline: &Candidate,
        executor: &Executor,
    ) -> Result<BaselineReport, TournamentError> {
        let found = match self.elsewhere() {
            Some(elsewhere) => self.qualified_elsewhere(elsewhere, baseline)?,
            None => {
                let mut examination =
                    Examination::new(&self.round.setting, [baseline; 2], executor, self.observer);
                let gates = GATES.iter().copied().filter(|gate| gate.examines_baselines());
                // No gate that examines baselines needs pairs.
                let _complete = self.pass_gates(&mut examination, gates)?;
                Ok(examination.findings)
            }
        };
        let (findings, lost) = match found {
            Ok(findings) => (findings, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        Ok(BaselineReport {
            described: self.round.described(baseline),
            schedule: baseline.schedule.clone(),
            fault: lost.or_else(|| fault(&findings)),
            findings,
        })
    }
}

/// A baseline's figures from its findings, for abort rules.
pub(super) fn metrics_of(findings: &[Finding]) -> Metrics {
    findings
        .iter()
        .flat_map(|finding| metrics_of_profile(&finding.evidence, BASELINE))
        .collect()
}
