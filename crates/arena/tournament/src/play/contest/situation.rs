//! What every question says of the round so far.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use gauntlet_judge::{Candidate, Executor, Measurement, Session, Setting};
use serde_json::{Value, json};

use super::super::baseline::metrics_of;
use super::super::history::History;
use super::Player;
use crate::error::TournamentError;
use crate::outcome::BaselineReport;
use crate::round::lasting;

/// Pairs of processes in which the baseline is timed for those who are asked.
const PAIRS: usize = 2;

/// What is known when a round begins. It is put together when somebody is asked: a replay asks nobody.
pub struct Situation<'s> {
    baseline: &'s Candidate,
    report: &'s BaselineReport,
    executor: &'s Executor,
    verdicts: Value,
    known: OnceCell<Value>,
}

impl<'s> Situation<'s> {
    /// A round's beginning.
    pub fn new(
        baseline: &'s Candidate,
        report: &'s BaselineReport,
        executor: &'s Executor,
        history: &History,
    ) -> Self {
        Self {
            baseline,
            report,
            executor,
            verdicts: json!(history.past()),
            known: OnceCell::new(),
        }
    }

    /// The baseline.
    pub(super) fn baseline(&self) -> &'s Candidate {
        self.baseline
    }

    /// What runs candidates.
    pub(super) fn executor(&self) -> &'s Executor {
        self.executor
    }

    /// In the form of the protocol.
    pub(super) fn value(&self, player: &Player) -> Result<Value, TournamentError> {
        if let Some(known) = self.known.get() {
            return Ok(known.clone());
        }
        let value = self.put_together(player)?;
        Ok(self.known.get_or_init(|| value).clone())
    }

    fn put_together(&self, player: &Player) -> Result<Value, TournamentError> {
        let round = player.round;
        let cases = round.setting.benchmark_cases.iter();
        let cases: Vec<Value> = cases
            .map(|case| json!({ "name": case.name, "sizes": case.sizes.record() }))
            .collect();
        let source = player.builds.source_of(self.baseline).map(|(tree, kernel)| {
            let build = round.file().source.as_ref().map(|source| &source.build);
            json!({
                "kernel": kernel,
                "build": build,
                "files": tree.texts().collect::<BTreeMap<_, _>>(),
                "protected": round.protected.paths().collect::<Vec<_>>(),
            })
        });
        let findings = self.report.findings.iter();
        let findings: Vec<Value> = findings
            .map(|finding| json!({ "gate": finding.gate, "reason": finding.reason }))
            .collect();
        Ok(json!({
            "task": {
                "name": round.suite.name,
                "description": round.suite.description,
                "cases": cases,
            },
            "source": source,
            "baseline": {
                "kernel": round.described(self.baseline),
                "described": self.report.described,
                "times": self.times(&round.setting, player)?,
                "findings": findings,
                "figures": metrics_of(&self.report.findings),
            },
            "device": lasting(&round.setting.device),
            "verdicts": self.verdicts,
            "rules": {
                "criteria": round.setting.criteria,
                "budgets": round.setting.budgets,
                "notes": [
                    "A change that was refuted is not judged again without new evidence.",
                    "A contestant whose kernel was not right mends it before pitching again.",
                    "Three rounds without an adoption are followed by research.",
                ],
            },
        }))
    }

    /// Seconds that a call of the baseline takes, by case.
    fn times(&self, setting: &Setting, player: &Player) -> Result<BTreeMap<String, f64>, TournamentError> {
        // What this machine measures says nothing of the one that judges.
        let is_here = player.elsewhere().is_none();
        if !is_here || self.report.fault.is_some() || !matches!(self.executor, Executor::Live(_)) {
            return Ok(BTreeMap::new());
        }
        let setting = Setting {
            measurement: Measurement {
                looks: vec![PAIRS],
                open_ended: false,
                budget: setting.measurement.budget,
                ..Measurement::quick()
            },
            ..setting.clone()
        };
        let arms = [self.baseline; 2];
        let found = Session::new(&setting, self.executor, arms)
            .seen_by(player.observer)
            .compare()?;
        let cases = found.comparison.iter().flat_map(|comparison| &comparison.cases);
        Ok(cases.map(|case| (case.case.clone(), case.baseline)).collect())
    }
}
