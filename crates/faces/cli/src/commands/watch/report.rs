//! What was found of the commits that were watched.

use gauntlet_history::git::short;
use gauntlet_judge::ledger::{RunId, Speedup};
use gauntlet_judge::{ComparisonReport, Verdict};
use gauntlet_report::visible;
use schemars::JsonSchema;
use serde::Serialize;

use crate::documents::Document;
use crate::exit::Exit;
use crate::listing::between;

/// The comparisons of the commits since the last time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Watching {
    /// The comparisons, in the order of the list and of the commits.
    pub compared: Vec<Compared>,
}

/// A commit against the last one before it whose times are known.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Compared {
    /// The kernel as it is named at the root of the repository.
    pub kernel: String,
    /// The task.
    pub task: String,
    /// What builds a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The commit that it was compared with.
    pub before: String,
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// The run in the ledger; none if nothing was compared.
    pub run: Option<RunId>,
    /// What was found.
    pub standing: Standing,
}

/// What was found of a commit.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It was compared.
    Judged {
        /// The verdict on the newer commit.
        verdict: Verdict,
        /// Its reason.
        reason: String,
        /// Its speed-up; none without an interval.
        speedup: Option<Speedup>,
    },
    /// It was not.
    NotCompared {
        /// Why.
        why: String,
    },
}

impl Document for Watching {
    const NAME: &'static str = "watching";
    const VERSION: u32 = 1;
}

/// What a watch says of a commit that got this verdict.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Move {
    Better,
    Worse,
    Still,
    Open,
}

impl Standing {
    /// What a comparison found.
    pub fn of(report: &ComparisonReport) -> Self {
        let interval = report
            .believed()
            .and_then(|found| found.assessment.suite.as_ref());
        Self::Judged {
            verdict: report.verdict,
            reason: report.reason.clone(),
            speedup: interval.map(|interval| Speedup {
                lower: interval.lower_fraction(),
                estimate: interval.estimate_fraction(),
                upper: interval.upper_fraction(),
            }),
        }
    }

    /// Whether the times of the commit are known.
    pub fn is_measured(&self) -> bool {
        matches!(self, Self::Judged { speedup: Some(_), .. })
    }

    fn moved(&self) -> Move {
        match self {
            Self::NotCompared { .. } => Move::Open,
            Self::Judged { verdict, .. } => match verdict {
                Verdict::Adopt | Verdict::Marginal => Move::Better,
                Verdict::ValidNegative => Move::Still,
                Verdict::Inconclusive | Verdict::Aborted | Verdict::Blocked => Move::Open,
                Verdict::Regression
                | Verdict::Infeasible
                | Verdict::OverBudget
                | Verdict::DoesNotCompile
                | Verdict::Incorrect
                | Verdict::Racy => Move::Worse,
            },
        }
    }

    fn told(&self) -> String {
        match self {
            Self::NotCompared { why } => format!("not compared: {}", visible(why)),
            Self::Judged {
                verdict,
                speedup: Some(found),
                ..
            } => format!("{verdict}: {}", between(found.estimate, found.lower, found.upper)),
            Self::Judged { verdict, reason, .. } => format!("{verdict}: {}", visible(reason)),
        }
    }
}

impl Watching {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        let any = |wanted: Move| self.compared.iter().any(|one| one.standing.moved() == wanted);
        if any(Move::Worse) {
            Exit::NotReached
        } else if any(Move::Open) {
            Exit::Undecided
        } else {
            Exit::Done
        }
    }

    /// What moved, as the text of an issue.
    pub fn markdown(&self) -> String {
        let of = |wanted: Move| {
            self.compared
                .iter()
                .filter(move |one| one.standing.moved() == wanted)
        };
        let mut text = format!(
            "# Kernels by commit\n\n{} compared: {} slower or wrong, {} faster, {} as fast, {} undecided.\n",
            self.compared.len(),
            of(Move::Worse).count(),
            of(Move::Better).count(),
            of(Move::Still).count(),
            of(Move::Open).count(),
        );
        for (title, wanted) in [
            ("Slower or wrong", Move::Worse),
            ("Faster", Move::Better),
            ("Undecided", Move::Open),
        ] {
            if of(wanted).next().is_some() {
                text += &format!("\n## {title}\n");
            }
            for one in of(wanted) {
                text += &one.markdown(wanted == Move::Worse);
            }
        }
        text
    }
}

impl Compared {
    fn markdown(&self, is_worse: bool) -> String {
        let mut text = format!(
            "\n**`{}`** at {} (`{}`) against {}: {}\n",
            visible(&self.kernel).replace('`', "'"),
            short(&self.commit),
            visible(&self.subject).replace('`', "'"),
            short(&self.before),
            self.standing.told(),
        );
        let Some(run) = &self.run else { return text };
        text += &format!("\n```sh\ngauntlet ledger repeat {run} --into FOLDER\n");
        if is_worse {
            let words = [
                "gauntlet",
                "bisect",
                &self.before,
                &self.commit,
                "--kernel",
                &self.kernel,
            ];
            let task = ["--task", &self.task];
            let build = self.build.iter().flat_map(|build| ["--build", build]);
            let words = words.into_iter().chain(task).chain(build);
            text += &shlex::try_join(words).unwrap_or_default();
            text.push('\n');
        }
        text + "```\n"
    }
}
