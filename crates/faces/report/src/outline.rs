//! The contents of a report, independent of text or HTML.

use std::collections::BTreeMap;
use std::fmt;

use gauntlet_judge::{Comparison, Evidence, Finding, Heating, Launching, Regime, Scope, Verdict};
use gauntlet_stats::{Arm, Block, Ground, Interval, Origin, percent, percent_interval};
use gauntlet_tournament::{ClaimOutcome, Judged, RoundReport, TournamentReport};

use crate::bar::phase_order;
use crate::doubts::doubts;
use crate::speedup::bound;

/// The finding that stopped a candidate.
pub fn stop(judged: &Judged) -> Option<&Finding> {
    judged.findings.iter().find(|finding| finding.stops().is_some())
}

/// The suite's interval.
pub fn suite(judged: &Judged) -> Option<&Interval> {
    judged.comparison()?.assessment.suite.as_ref()
}

/// The phases of the baseline's or a candidate's time: the mean over cases of each phase's share.
pub fn phases(findings: &[Finding]) -> Vec<(String, f64)> {
    let cases = findings.iter().find_map(|finding| match &finding.evidence {
        Evidence::Profile { cases, .. } if !cases.is_empty() => Some(cases),
        _ => None,
    });
    let Some(cases) = cases else { return Vec::new() };
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (phase, share) in cases.values().flat_map(|profile| &profile.shares) {
        *sums.entry(phase).or_default() += share / cases.len() as f64;
    }
    let mut phases: Vec<_> = sums
        .into_iter()
        .map(|(phase, share)| (phase.to_owned(), share))
        .collect();
    phases.sort_by_key(|(phase, _)| phase_order(phase));
    phases
}

/// What one process, or one pair of processes, measured of a case, in seconds.
pub struct ProcessTimes {
    pub number: usize,
    pub baseline: Vec<f64>,
    pub candidate: Vec<f64>,
}

/// The times of a case by process, in the order of the processes' numbers.
pub fn processes(blocks: &[Block]) -> Vec<ProcessTimes> {
    let mut processes: BTreeMap<usize, ProcessTimes> = BTreeMap::new();
    for block in blocks {
        let process = processes.entry(block.process).or_insert_with(|| ProcessTimes {
            number: block.process,
            baseline: Vec::new(),
            candidate: Vec::new(),
        });
        process.baseline.extend(&block.baseline);
        process.candidate.extend(&block.candidate);
    }
    processes.into_values().collect()
}

/// The name of a side.
pub fn side_name(side: Arm) -> &'static str {
    match side {
        Arm::Baseline => "baseline",
        Arm::Candidate => "candidate",
    }
}

/// One problem of a comparison with its times in seconds, its interval and its errors.
pub struct CaseLine<'c> {
    pub name: &'c str,
    pub baseline: f64,
    pub candidate: f64,
    pub interval: Option<&'c Interval>,
    pub speedup: String,
    pub floor: Option<Floor>,
}

/// An error of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    Under,
    PerhapsUnder,
}

impl fmt::Display for Floor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Under => "under the floor",
            Self::PerhapsUnder => "perhaps under the floor",
        })
    }
}

/// The problems of a comparison.
pub fn cases(comparison: &Comparison) -> Vec<CaseLine<'_>> {
    use gauntlet_stats::FloorFinding::{Broken, Held, PossiblyBroken, Unknown};
    let findings = &comparison.assessment.problems;
    let line = |times: &'_ gauntlet_judge::CaseTimes| {
        let finding = findings.iter().find(|finding| finding.name == times.case);
        let interval = finding.and_then(|finding| finding.interval.as_ref());
        let ratio = percent(times.baseline / times.candidate - 1.0);
        let floor = finding.and_then(|finding| match finding.floor {
            Broken => Some(Floor::Under),
            PossiblyBroken => Some(Floor::PerhapsUnder),
            Held | Unknown => None,
        });
        (
            interval,
            interval.map_or(format!("{ratio}, no interval"), percent_interval),
            floor,
        )
    };
    let whole = |times| {
        let (interval, speedup, floor) = line(times);
        CaseLine {
            name: &times.case,
            baseline: times.baseline,
            candidate: times.candidate,
            interval,
            speedup,
            floor,
        }
    };
    comparison.cases.iter().map(whole).collect()
}

/// The basis of a comparison's interval, its resolution, the reason for an early end, and the use of the time of its
/// pairs.
pub fn ground(comparison: &Comparison) -> String {
    let assessment = &comparison.assessment;
    let mut parts = Vec::new();
    match assessment.suite.as_ref().map(|interval| &interval.origin) {
        Some(Origin::Measured {
            confidence,
            processes,
        }) => parts.push(format!(
            "{processes} pairs of processes, looks taken: {}, intervals at {} %",
            comparison.looks.len(),
            (confidence * 1e4).round() / 100.0
        )),
        Some(Origin::Declared) => parts.push("declared bounds, no statistics".to_owned()),
        Some(Origin::Calls { confidence, batches }) => parts.push(format!(
            "calls of one process a side in {batches} batches, intervals at {} %",
            (confidence * 1e4).round() / 100.0
        )),
        Some(Origin::Predicted { confidence }) => parts.push(format!(
            "predicted, intervals at {} % by the model's own error",
            (confidence * 1e4).round() / 100.0
        )),
        None => parts.push("no interval".to_owned()),
    }
    let says_little = matches!(assessment.ground, Ground::Design { .. }) || comparison.predicted.is_some();
    if let Some(effect) = assessment.smallest_visible_effect.filter(|_| !says_little) {
        parts.push(format!(
            "smallest effect that could have been seen {:.1} %",
            effect * 100.0
        ));
    }
    if let Ground::BrokenFloor { problems, otherwise } = &assessment.ground {
        let alone = Verdict::from(*otherwise);
        parts.push(format!(
            "by the mean alone {alone}, but {} under the floor",
            problems.join(", ")
        ));
    }
    if let Ground::Design { reason, .. } = &assessment.ground {
        parts.push(reason.clone());
    }
    parts.extend(comparison.trust.sentence().map(str::to_owned));
    if let Ground::SlowPairs { otherwise } = &assessment.ground {
        let alone = Verdict::from(*otherwise);
        parts.push(format!(
            "by the typical pair alone {alone}, but the candidate is slow in more pairs than the baseline, and the mean is not \
             shown to gain as well"
        ));
    }
    parts.extend(assessment.slow_pairs.as_ref().map(ToString::to_string));
    parts.extend(comparison.design.clone());
    parts.extend(comparison.predicted.clone());
    parts.extend(comparison.ended_early.clone());
    parts.extend(device_state(comparison));
    let busy = comparison.conduct.as_ref().and_then(|conduct| conduct.busy);
    parts.extend(busy.map(|busy| busy.sentence(assessment.suite.as_ref())));
    parts.extend(comparison.spent.map(|spent| spent.to_string()));
    parts.extend(doubts(comparison));
    parts.join("; ")
}

/// The regime in which calls were timed, the load before them, and what the GPU's management library said of its state.
fn device_state(comparison: &Comparison) -> Vec<String> {
    let Some(regime) = comparison.regime else {
        return Vec::new();
    };
    let conduct = comparison.conduct.as_ref();
    let heating = conduct.and_then(|conduct| conduct.heating.as_ref());
    let device = conduct.and_then(|conduct| conduct.device_use.as_ref());
    let mut said = vec![format!("calls in the {regime} regime")];
    said.extend(comparison.scope.map(|scope| match scope {
        Scope::Device => "clocked on the device".to_owned(),
        Scope::Call => "whole calls are clocked, with what the host does".to_owned(),
    }));
    let launching = conduct.and_then(|conduct| conduct.launching.as_ref());
    said.extend(launching.and_then(Launching::sentence));
    said.extend(heating.map(Heating::sentence));
    said.extend(device.map(|device| device.sentence(regime)));
    said
}

/// A measured claim of the tournament.
pub struct TestedClaim<'r> {
    pub pitch: &'r str,
    pub claim: ClaimOutcome,
    pub found: f64,
    pub verdict: Verdict,
}

/// The measured claims of a tournament, in the order examined.
pub fn tested_claims(report: &TournamentReport) -> Vec<TestedClaim<'_>> {
    let tested = |judged: &'_ Judged| {
        let claim = judged.claim?;
        Some((claim, claim.found?))
    };
    let all = report.rounds.iter().flat_map(|round| &round.judged);
    all.filter_map(|judged| {
        let (claim, found) = tested(judged)?;
        Some(TestedClaim {
            pitch: &judged.name,
            claim,
            found,
            verdict: judged.verdict,
        })
    })
    .collect()
}

/// The number of claims without a measured speed-up.
pub fn untested_claims(report: &TournamentReport) -> usize {
    let claims = report
        .rounds
        .iter()
        .flat_map(|round| &round.judged)
        .filter_map(|judged| judged.claim);
    claims.filter(|claim| claim.found.is_none()).count()
}

/// The number of times that each verdict occurred; verdicts that did not occur are left out.
pub fn verdict_counts(report: &TournamentReport) -> Vec<(Verdict, usize)> {
    let count = |verdict: Verdict| {
        let all = report.rounds.iter().flat_map(|round| &round.judged);
        (verdict, all.filter(|judged| judged.verdict == verdict).count())
    };
    Verdict::ALL
        .into_iter()
        .map(count)
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The adopted candidates, each with its round.
pub fn adoptions(report: &TournamentReport) -> Vec<(&RoundReport, &str)> {
    report
        .rounds
        .iter()
        .filter_map(|round| Some((round, round.adopted.as_deref()?)))
        .collect()
}

/// The executor, the device and the suite.
pub fn setting(round: &RoundReport) -> String {
    let executor = match round.executor {
        gauntlet_judge::ExecutorKind::Cpu => "cpu",
        gauntlet_judge::ExecutorKind::Cuda => "cuda",
        gauntlet_judge::ExecutorKind::Replay => "replay of recorded times",
    };
    let mut setting = format!("{executor} · {} · suite {}", round.device, round.file.suite);
    if !round.file.cases.is_empty() {
        setting += &format!(" ({})", round.file.cases.join(", "));
    }
    if round.file.measurement.regime == Regime::Sustained {
        setting += " · under sustained load";
    }
    if round.file.research {
        setting += " · research round";
    }
    setting
}

/// An outcome against another program, in a sentence.
pub fn peer(outcome: &gauntlet_tournament::PeerOutcome) -> String {
    let claimed = crate::speedup::times(outcome.claimed);
    match outcome.found {
        Some(found) => {
            let found = crate::speedup::times(found);
            let end = if outcome.contradicted {
                ": contradicted"
            } else {
                ""
            };
            format!(
                "claimed {claimed} as fast as {}, the record says {found}{end}",
                outcome.peer
            )
        }
        None => format!(
            "claimed {claimed} as fast as {}; nothing recorded of it",
            outcome.peer
        ),
    }
}

/// The criteria in a line.
pub fn criteria(criteria: &gauntlet_stats::Criteria) -> String {
    format!(
        "adopted from {}, no difference within {}, no case below {}, {} % confidence",
        bound(criteria.target),
        bound(criteria.practically_zero).replace('+', "±"),
        bound(criteria.floor),
        (criteria.confidence * 1e4).round() / 100.0
    )
}

/// The mark on everything that the model predicts and that was not measured.
pub const PREDICTED: &str = "predicted";

#[cfg(test)]
mod tests {
    use gauntlet_stats::{Criteria, without_interval};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_of_the_gpu_is_said_beside_the_regime() {
        let side = |held_back: usize| {
            json!({
                "slots": 48, "clock": [1755.0, 1980.0], "power": 690.0, "temperature": 61.0, "held-back": held_back,
                "reasons": { "power limit": held_back }, "others": 0
            })
        };
        let conduct = json!({
            "by-coordinator": null, "own-clock": null, "memory": null, "idle-baseline": null, "idle-candidate": null,
            "suspicion": null, "device-use": { "baseline": side(4), "candidate": side(8) }
        });
        let mut comparison = Comparison {
            assessment: without_interval(&["one".to_owned()], &Criteria::default()),
            cases: Vec::new(),
            regime: Some(Regime::Isolated),
            scope: Some(Scope::Device),
            looks: Vec::new(),
            seed: 0,
            conduct: serde_json::from_value(conduct).unwrap(),
            declared: None,
            design: None,
            trust: gauntlet_judge::Trust::Watched,
            predicted: None,
            ended_early: None,
            spent: None,
        };
        assert_eq!(
            ground(&comparison),
            "no interval; calls in the isolated regime; clocked on the device; clock 1755 to 1980 MHz; held back by its power \
             limit in 12 of 96 slots"
        );
        comparison.scope = Some(Scope::Call);
        assert!(ground(&comparison).contains("; whole calls are clocked, with what the host does;"));
        // Results of earlier versions do not name a regime.
        comparison.regime = None;
        assert_eq!(ground(&comparison), "no interval");
    }
}
