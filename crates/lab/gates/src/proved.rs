//! Proved: every interleaving of the candidate's tile programs is explored.

use std::collections::BTreeMap;

use gauntlet_barrier_proofs::recorded::RecordedLoop;
use gauntlet_barrier_proofs::{Flaw, FlawKind, Proof, prove};
use gauntlet_judge::gates::{Examination, Found, Gate};
use gauntlet_judge::{Evidence, ExaminationFailure, Executor, Outcome, Verdict};
use gauntlet_simulate::Subject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Explored interleavings, as evidence ([`Interleavings::read`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interleavings {
    /// Proofs by case.
    pub proofs: BTreeMap<String, Proof>,
    /// The first flaw.
    pub flaw: Option<CaseFlaw>,
}

/// A flaw of a tile program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseFlaw {
    /// The first case whose program has it.
    pub case: String,
    /// What happens, and the steps that lead to it.
    pub flaw: Flaw,
}

impl Interleavings {
    /// The name of this form of evidence.
    pub const KIND: &str = "interleavings";

    /// As the evidence of a finding.
    pub fn evidence(&self) -> Evidence {
        Evidence::other(Self::KIND, self)
    }

    /// The evidence of a finding of [`Proved`]; none for another.
    pub fn read(evidence: &Evidence) -> Option<Self> {
        evidence.read(Self::KIND)
    }
}

/// Stops a candidate whose warps can race or deadlock. A loop without any overlap may continue: it is correct, and
/// measurements show how slow it is.
pub struct Proved;

impl Gate for Proved {
    fn name(&self) -> &'static str {
        "proved"
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        examined(examination)
    }
}

fn examined(examination: &Examination) -> Result<Found, ExaminationFailure> {
    let candidate = examination.candidate;
    if candidate.command.is_some() {
        return Ok(Found::skip("a program of its own: its loops are its own affair"));
    }
    if let Some(name) = &candidate.recorded_loop {
        let Some(recorded) = RecordedLoop::named(name) else {
            let reason = format!("there is no recorded loop `{name}`");
            return Ok(Found::stop(Verdict::Blocked, reason, Evidence::Reason));
        };
        let cases = &examination.setting.benchmark_cases;
        return Ok(cases.first().map_or_else(
            || Found::skip("there is no case"),
            |case| without_kernel(&case.name, recorded),
        ));
    }
    let device = &examination.setting.device;
    // Most cases share one program.
    let mut known: Vec<(_, Result<Proof, Box<Flaw>>)> = Vec::new();
    let mut proofs = BTreeMap::new();
    for case in &examination.setting.benchmark_cases {
        let schedule = candidate.schedule_for(&case.sizes, device);
        let Ok(subject) = Subject::of(&case.sizes, schedule) else {
            return Ok(Found::skip(format!(
                "the kernels of {} are not described as tile programs",
                case.sizes.task().name()
            )));
        };
        let program = subject.program(device);
        let result = match known.iter().find(|(other, _)| *other == program) {
            Some((_, result)) => result.clone(),
            None => {
                examination.observer.progress(&case.name);
                let result = prove(&program);
                known.push((program, result.clone()));
                result
            }
        };
        match result {
            Ok(proof) => {
                proofs.insert(case.name.clone(), proof);
            }
            Err(flaw) => return Ok(flawed(&case.name, *flaw, proofs)),
        }
    }
    let different = known.iter().filter_map(|(_, result)| result.as_ref().ok());
    let states: usize = different.clone().map(|proof| proof.states).sum();
    let stages = different.map(|proof| proof.stages).max().unwrap_or(0);
    let whose = match examination.executor {
        Executor::Live(_) | Executor::Compiled(_) | Executor::Predicted(_) => "its tile program",
        Executor::Recorded(_) => "the tile program its schedule stands for",
    };
    let reason = format!(
        "every interleaving of {whose} is sound: {states} states, at {stages} stage{}",
        if stages == 1 { "" } else { "s" }
    );
    Ok(Found::pass(
        reason,
        Interleavings { proofs, flaw: None }.evidence(),
    ))
}

/// The result for a loop for which no executor has a kernel. It is the same for every case, and this is the last gate:
/// a loop that is correct and merely slow gets no verdict without a time.
fn without_kernel(case: &str, recorded: RecordedLoop) -> Found {
    const NOTHING_TO_MEASURE: &str = "no executor has a kernel of this loop, so nothing is measured";
    let found = match prove(&recorded.program()) {
        Ok(proof) => Found::pass(
            "every interleaving of the recorded loop is sound",
            Interleavings {
                proofs: BTreeMap::from([(case.to_owned(), proof)]),
                flaw: None,
            }
            .evidence(),
        ),
        Err(flaw) => flawed(case, *flaw, BTreeMap::new()),
    };
    match found.outcome {
        Outcome::Pass => Found {
            outcome: Outcome::Stop(Verdict::Blocked),
            reason: format!("{}; {NOTHING_TO_MEASURE}", found.reason),
            ..found
        },
        _ => found,
    }
}

fn flawed(case: &str, flaw: Flaw, proofs: BTreeMap<String, Proof>) -> Found {
    let reason = format!("{case}: {flaw}");
    let verdict = verdict(flaw.kind);
    let flaw = Some(CaseFlaw {
        case: case.to_owned(),
        flaw,
    });
    let evidence = Interleavings { proofs, flaw }.evidence();
    match verdict {
        Some(verdict) => Found::stop(verdict, reason, evidence),
        None => Found::pass(format!("sound, but {reason}"), evidence),
    }
}

/// The verdict on a candidate with this flaw. A deadlock gets the same verdict as a hang at run time.
fn verdict(kind: FlawKind) -> Option<Verdict> {
    match kind {
        FlawKind::NothingOverlaps => None,
        FlawKind::Deadlock | FlawKind::DivergentBarrier => Some(Verdict::Incorrect),
        _ => Some(Verdict::Racy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_faults_end_as_they_should_have() {
        for (recorded, verdict, words) in [
            (RecordedLoop::BarrierRemoved, Verdict::Racy, "softmax of step 0"),
            (RecordedLoop::RacesOnTheLastStep, Verdict::Racy, "missing commit"),
            (
                RecordedLoop::WaitsForTheCopyJustCommitted,
                Verdict::Blocked,
                "no executor has a kernel",
            ),
        ] {
            let found = without_kernel("case", recorded);
            assert_eq!(found.outcome, Outcome::Stop(verdict), "{recorded:?}");
            assert!(found.reason.contains(words), "{}", found.reason);
            let flaw = Interleavings::read(&found.evidence).unwrap().flaw.unwrap();
            assert!(flaw.flaw.interleaving.len() > 5, "{flaw:?}");
        }
    }

    #[test]
    fn a_hang_is_incorrect_and_every_race_is_racy() {
        for kind in FlawKind::ALL {
            let expected = match kind {
                FlawKind::NothingOverlaps => None,
                kind if kind.is_race() => Some(Verdict::Racy),
                _ => Some(Verdict::Incorrect),
            };
            assert_eq!(verdict(kind), expected, "{kind}");
        }
    }
}
