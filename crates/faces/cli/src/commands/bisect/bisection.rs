//! The result of a bisection.

use gauntlet_history::git::{Revision, short};
use gauntlet_history::search::{Slowdown, Standing, Step, Why};
use gauntlet_history::surroundings::{Changed, Layer, only_layer};
use gauntlet_report::duration;
use gauntlet_stats::percent;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Bisect;
use crate::documents::Document;
use crate::error::CliError;
use crate::exit::Exit;
use crate::{listing, sink};

/// Which commit made a kernel slower, and by which comparisons that is known.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Bisection {
    /// The kernel as it is named at the root of the repository.
    kernel: String,
    /// The good commit.
    good: String,
    /// The bad one.
    bad: String,
    /// How many commits there are after the good one.
    commits: usize,
    /// What was found.
    conclusion: Conclusion,
    /// The comparisons in order.
    steps: Vec<Compared>,
}

/// What a bisection found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "found", rename_all = "kebab-case")]
pub enum Conclusion {
    /// A commit that is slower than the one just before it.
    Culprit {
        /// The commit.
        commit: String,
        /// The first line of its message.
        subject: String,
        /// By how much.
        slowdown: Slowdown,
    },
    /// One or several of these commits.
    Range {
        /// The commits, the oldest first.
        commits: Vec<String>,
        /// Why it is no single one.
        why: Why,
    },
    /// The bad commit is not slower: the code is not to blame.
    NoRegression {
        /// What beside the code has changed since one of the two was first compared; none if the ledger holds no comparison of them.
        changed: Option<Vec<Changed>>,
        /// The same code then and now: the times of the two commits when they were first compared, and in this bisection.
        #[serde(default)]
        again: Vec<Again>,
    },
    /// The first comparison shows neither a regression nor its absence.
    Unshown,
}

/// A commit's time on a case when it was first compared, and now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Again {
    /// The commit.
    pub commit: String,
    /// The case.
    pub case: String,
    /// The median then, in seconds.
    pub was: f64,
    /// The median now, in seconds.
    pub is: f64,
}

/// A comparison of a bisection.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Compared {
    /// The commit.
    commit: String,
    /// What it was compared with.
    against: String,
    /// How much longer it takes; none if that is not known.
    slowdown: Option<Slowdown>,
    /// The slowdown that the interval had to lie above or below.
    threshold: f64,
    /// How many times pairs were added.
    rounds: usize,
    /// What was shown.
    standing: Standing,
}

impl Document for Bisection {
    const NAME: &'static str = "bisection";
    const VERSION: u32 = 1;
}

impl Bisection {
    /// The result of these steps.
    pub fn new(arguments: &Bisect, commits: &[Revision], conclusion: Conclusion, steps: &[Step]) -> Self {
        let id = |commit: usize| commits[commit].id.clone();
        let compared = |step: &Step| Compared {
            commit: id(step.question.commit),
            against: id(step.question.base),
            slowdown: step.slowdown,
            threshold: step.question.threshold,
            rounds: step.question.round,
            standing: step.standing.clone(),
        };
        Self {
            kernel: arguments.kernel.clone(),
            good: id(0),
            bad: id(commits.len() - 1),
            commits: commits.len() - 1,
            conclusion,
            steps: steps.iter().map(compared).collect(),
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self.conclusion {
            Conclusion::Culprit { .. } => Exit::Done,
            Conclusion::NoRegression { .. } => Exit::NotReached,
            Conclusion::Range { .. } | Conclusion::Unshown => Exit::Undecided,
        }
    }

    /// Prints it.
    pub fn tell(&self) -> Result<(), CliError> {
        let rows = self.steps.iter().map(|step| {
            vec![
                short(&step.commit).to_owned(),
                short(&step.against).to_owned(),
                step.slowdown.as_ref().map_or("–".to_owned(), told),
                match &step.standing {
                    Standing::Good => "as fast".to_owned(),
                    Standing::Bad => "slower".to_owned(),
                    Standing::Undecided => "undecided".to_owned(),
                    Standing::Unusable(why) => format!("passed over: {why}"),
                },
            ]
        });
        listing::print(&["commit", "against", "time", "shown"], rows)?;
        match &self.conclusion {
            Conclusion::Culprit {
                commit,
                subject,
                slowdown,
            } => sink::line(format_args!(
                "{commit} is to blame ({subject}): it takes {} of time against the commit just before it.",
                told(slowdown)
            )),
            Conclusion::Range { commits, why } => {
                sink::line(format_args!(
                    "The regression lies in one or several of {} commits, because {}:",
                    commits.len(),
                    match why {
                        Why::PassedOver => "those between could not be decided",
                        Why::Unconfirmed =>
                            "the last one is not shown to be slower than the one just before it",
                        Why::Contradicted =>
                            "the last one is as fast as the one just before it, which an earlier comparison contradicts",
                    }
                ))?;
                commits
                    .iter()
                    .try_for_each(|commit| sink::line(format_args!("  {commit}")))
            }
            Conclusion::NoRegression { changed, again } => {
                tell_surroundings(&self.bad, changed.as_deref())?;
                tell_again(changed.as_deref().unwrap_or_default(), again)
            }
            Conclusion::Unshown => sink::line(
                "No regression is shown, and neither is its absence; nobody is blamed. A larger --budget gives more pairs.",
            ),
        }
    }
}

/// Says where else a slowdown may come from.
fn tell_surroundings(bad: &str, changed: Option<&[Changed]>) -> Result<(), CliError> {
    sink::line(format_args!(
        "{} is not slower: the code is not to blame.",
        short(bad)
    ))?;
    let Some(changed) = changed else {
        return sink::line(
            "The ledger holds no earlier comparison of these commits that would tell what else has changed.",
        );
    };
    if changed.is_empty() {
        return sink::line(
            "By the ledger nothing else has changed since these commits were first compared; times of two days differ by themselves.",
        );
    }
    sink::line("Since these commits were first compared, by the ledger:")?;
    changed.iter().try_for_each(|one| {
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "not told".to_owned());
        sink::line(format_args!(
            "  {}: {} was {} and is {}",
            name(one.layer),
            one.name,
            or_nothing(&one.was),
            or_nothing(&one.is)
        ))
    })
}

fn name(layer: Layer) -> &'static str {
    match layer {
        Layer::Stack => "stack",
        Layer::Machine => "machine",
        Layer::Method => "method",
    }
}

/// Says how long the same code took then and takes now, and what that leaves to blame.
fn tell_again(changed: &[Changed], again: &[Again]) -> Result<(), CliError> {
    if again.is_empty() {
        return Ok(());
    }
    sink::line("The same code, when it was first compared and now:")?;
    let rows = again.iter().map(|one| {
        vec![
            short(&one.commit).to_owned(),
            one.case.clone(),
            duration(one.was),
            duration(one.is),
            percent(one.is / one.was - 1.0),
        ]
    });
    listing::print(&["commit", "case", "then", "now", "time"], rows)?;
    match only_layer(changed) {
        Some(layer) => sink::line(format_args!(
            "Only the {} has changed since, so that a difference of these times comes from there, or from the day.",
            name(layer)
        )),
        None if changed.is_empty() => Ok(()),
        None => sink::line(
            "More than one layer has changed since: to tell them apart, judge one of these commits where only one of them is another.",
        ),
    }
}

/// A slowdown between its bounds.
fn told(slowdown: &Slowdown) -> String {
    listing::between(slowdown.estimate, slowdown.lower, slowdown.upper)
}
