//! Comparisons of two commits on this machine.

use std::path::Path;

use gauntlet_history::git::{Checkout, Revision};
use gauntlet_history::search::{Answer, Comparer, Question, Slowdown};
use gauntlet_history::worktree::Worktree;
use gauntlet_judge::{ComparisonReport, Verdict};

use crate::arguments::Bisect;
use crate::commands::contest::Contest;
use crate::error::{CliError, say_line};
use crate::listing::between;
use crate::progress::Progress;

/// The commits between which it is searched.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// What was asked.
    pub arguments: &'a Bisect,
    /// The commits, the good one first.
    pub commits: &'a [Revision],
    /// How many comparisons the search is planned to take.
    pub planned: usize,
}

/// Builds commits in worktrees and compares their kernels.
pub struct Live<'a> {
    row: Row<'a>,
    /// One for the commit that is compared with, and one for the other.
    worktrees: [Worktree; 2],
    /// What was found so far of the two commits that are being compared.
    before: Option<((usize, usize), ComparisonReport)>,
    begun: usize,
}

impl<'a> Live<'a> {
    /// With worktrees in this folder.
    pub fn new(row: Row<'a>, checkout: &Checkout, folder: &Path) -> Result<Self, CliError> {
        let worktree = |name: &str| Worktree::at(checkout, &folder.join(name));
        Ok(Self {
            row,
            worktrees: [worktree("base")?, worktree("other")?],
            before: None,
            begun: 0,
        })
    }

    /// Removes the worktrees.
    pub fn end(self) -> Result<(), CliError> {
        let [base, other] = self.worktrees;
        base.remove()?;
        Ok(other.remove()?)
    }

    fn told(&self, commit: usize) -> String {
        let revision = &self.row.commits[commit];
        format!("{} ({})", revision.short(), revision.subject)
    }

    /// Why a commit is passed over: its kernel cannot be read. What is wrong with the first comparison is wrong with the command.
    fn unusable<T>(&self, question: &Question, error: CliError) -> Result<Result<T, String>, CliError> {
        let is_first = (question.base, question.commit) == (0, self.row.commits.len() - 1);
        match error.is_of_input() && !is_first {
            true => Ok(Err(error.text())),
            false => Err(error),
        }
    }

    /// Both commits built, and their kernels read; or why there is nothing to compare.
    fn contest(&mut self, question: &Question) -> Result<Result<Contest, String>, CliError> {
        let Row {
            arguments, commits, ..
        } = self.row;
        let mut texts = Vec::new();
        for (worktree, commit) in self.worktrees.iter_mut().zip([question.base, question.commit]) {
            let held = worktree.hold(&commits[commit].id, arguments.build.as_deref())?;
            if let Err(error) = held {
                return Ok(Err(error.to_string()));
            }
            let text = format!("{}/{}", worktree.folder().display(), arguments.kernel);
            match gauntlet_entrants::read(&text).map_err(CliError::from) {
                Ok(text) => texts.push(text),
                Err(error) => return self.unusable(question, error),
            }
        }
        let [Some(other), Some(base)] = [texts.pop(), texts.pop()] else {
            return Err(CliError::broken("two commits have two kernels"));
        };
        // The older code is the candidate, so that a slowdown of the newer one is a gain that the judge is asked to show.
        let mut contest = match Contest::of(&arguments.setup, [other, base]) {
            Ok(contest) => contest,
            Err(error) => return self.unusable(question, error),
        };
        let criteria = &mut contest.setting.criteria;
        criteria.confidence = question.confidence;
        criteria.target = question.threshold;
        // What lies under the threshold need not be told apart.
        criteria.practically_zero = (0.999 * question.threshold).min(0.99);
        Ok(Ok(contest))
    }
}

impl Comparer for Live<'_> {
    type Error = CliError;

    fn compare(&mut self, question: &Question) -> Result<Answer, CliError> {
        let pair = (question.base, question.commit);
        let before = self.before.take().filter(|(known, _)| *known == pair);
        if question.round == 0 {
            self.begun += 1;
            say_line(format_args!(
                "Comparison {} of about {}: {} against {}",
                self.begun,
                self.row.planned,
                self.told(question.commit),
                self.told(question.base)
            ));
        }
        let contest = match self.contest(question)? {
            Ok(contest) => contest,
            Err(why) => {
                say_line(format_args!("  passed over: {why}"));
                return Ok(Answer::Unusable(why));
            }
        };
        let recorder = contest.recorder(&self.row.arguments.recording)?;
        let report = {
            let _hold = contest.hold()?;
            let progress = Progress::new();
            match before {
                Some((_, before)) if before.comparison.is_some() => {
                    // As many pairs again as there are.
                    let pairs = before.kept.as_ref().map_or(0, |kept| kept.observations.pairs());
                    contest.going_on(&before, Some(pairs.max(1)), &progress)?
                }
                _ => contest.compared(&progress)?,
            }
        };
        recorder.record_comparison(&report)?;
        let answer = answer_of(&report);
        if let Answer::Unusable(why) = &answer {
            say_line(format_args!("  passed over: {why}"));
        } else {
            say_line(format_args!("  {}", told(&answer)));
        }
        self.before = Some((pair, report));
        Ok(answer)
    }
}

/// What a comparison of the newer code, as the baseline, with the older one says of the newer.
fn answer_of(report: &ComparisonReport) -> Answer {
    match (&report.comparison, report.verdict) {
        // Times that cannot be believed say nothing, and more of them may.
        (Some(_), Verdict::Blocked) => Answer::Measured(None),
        (Some(found), _) => Answer::Measured(found.assessment.suite.as_ref().map(|interval| Slowdown {
            lower: interval.lower.exp_m1(),
            estimate: interval.estimate.exp_m1(),
            upper: interval.upper.exp_m1(),
        })),
        (None, verdict) => Answer::Unusable(format!("{verdict}: {}", report.reason)),
    }
}

fn told(answer: &Answer) -> String {
    match answer {
        Answer::Measured(Some(slowdown)) => format!(
            "takes {} of time",
            between(slowdown.estimate, slowdown.lower, slowdown.upper)
        ),
        _ => "the times say nothing yet".to_owned(),
    }
}
