//! Errands: what a round has examined elsewhere, as on the nodes of a cluster.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gauntlet_gates::GATES;
use gauntlet_judge::gates::Examination;
use gauntlet_judge::session::{examine, resume};
use gauntlet_judge::{
    AbortRule, Candidate, Comparison, ExaminationFailure, Executor, Finding, Metrics, PairedComparison,
    Proposal, Workshop,
};
use serde::{Deserialize, Serialize};

use crate::error::TournamentError;
use crate::observer::RoundObserver;
use crate::play::{Settings, WATCHED, Watching, executor_of, measured};
use crate::round::{Overrides, Round};
use crate::tournament::Tournament;

/// A candidate of a round, or its baseline, to be taken through the gates on another machine, which sees the same files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Errand {
    /// The folder in which the tournament is played.
    pub folder: PathBuf,
    /// The tournament, as it was named there.
    pub tournament: PathBuf,
    /// What replaces values of its files.
    pub overrides: Overrides,
    /// The round.
    pub round: String,
    /// The digest of what the round says, whatever the device.
    pub content: String,
    /// What the candidate is compared with.
    pub baseline: Candidate,
    /// What is examined.
    pub candidate: Candidate,
    /// What its author fixed beforehand; none for a baseline, which is not compared.
    pub promise: Option<Promise>,
    /// The baseline's figures.
    pub metrics: Metrics,
    /// Time for the comparison.
    pub budget: Duration,
}

/// What a candidate's author fixed beforehand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Promise {
    /// When to give the candidate up.
    pub abort: Vec<AbortRule>,
    /// The median of the speed-up, in the author's view.
    pub claim: f64,
}

/// Where the candidates of rounds are examined in place of this machine.
pub trait Elsewhere {
    /// A folder that it sees, where sources lie as they were built.
    fn builds(&self) -> PathBuf;

    /// Has errands run at the same time. `done` gets the place of each in the list as it ends, with what the gates found, or why nothing was.
    ///
    /// # Errors
    /// If nothing can be run there, or `done` fails.
    fn run(
        &self,
        errands: &[Errand],
        observer: &dyn RoundObserver,
        done: &mut Done<'_>,
    ) -> Result<(), TournamentError>;
}

/// What is told of an errand that has ended.
pub type Done<'d> = dyn FnMut(usize, Result<Vec<Finding>, String>) -> Result<(), TournamentError> + 'd;

impl Errand {
    /// The round of a tournament that was read on this machine; none if it has another one, or says something else.
    pub fn round_of<'t>(&self, tournament: &'t Tournament) -> Option<&'t Round> {
        let is_it = |round: &&Round| round.file().name == self.round && round.content == self.content;
        tournament.rounds.iter().find(is_it)
    }

    /// Takes the candidate through the gates: a baseline through those that apply to it.
    ///
    /// # Errors
    /// If the judge itself fails.
    pub fn run(
        &self,
        round: &Round,
        settings: &Settings,
        observer: &dyn RoundObserver,
    ) -> Result<Vec<Finding>, TournamentError> {
        let executor = executor_of(round, settings)?;
        let proposal = self.promise.as_ref().map(|promise| Proposal {
            abort: &promise.abort,
            claim: promise.claim,
        });
        let mut examination = Examination {
            proposal,
            metrics: self.metrics.clone(),
            ..Examination::new(
                &round.setting,
                [&self.baseline, &self.candidate],
                &executor,
                observer,
            )
        };
        let gates = GATES.iter().copied();
        for gate in gates.filter(|gate| self.promise.is_some() || gate.examines_baselines()) {
            let finding = match &executor {
                Executor::Live(workshop) if examination.lacks_pairs_for(gate) => {
                    let begun = Instant::now();
                    let compared = self.compared(round, workshop, observer);
                    resume(gate, &mut examination, compared, begun.elapsed())?
                }
                _ => examine(gate, &examination)?,
            };
            let stops = finding.stops().is_some();
            examination.add(finding);
            if stops {
                break;
            }
        }
        Ok(examination.findings)
    }

    /// Measures pairs within the budget, of which a quick round keeps a part for judging once more what it would adopt.
    fn compared(
        &self,
        round: &Round,
        workshop: &Workshop,
        observer: &dyn RoundObserver,
    ) -> Result<Comparison, ExaminationFailure> {
        let watching = Watching::of(round, observer);
        let kept = watching
            .as_ref()
            .map_or(Duration::ZERO, |_| self.budget / WATCHED);
        let (baseline, candidate) = (self.baseline.clone(), self.candidate.clone());
        let comparison =
            PairedComparison::new(workshop, &round.setting, baseline, candidate, rand::random())?;
        let (compared, _) = measured(comparison, self.budget.saturating_sub(kept), observer);
        match watching {
            Some(watching) => {
                let arms = [&self.baseline, &self.candidate];
                watching.judge_again(workshop, arms, compared, kept).0
            }
            None => compared,
        }
    }
}
