//! The arguments of `compare` and `judge`.

use clap::{Args, ValueEnum};
use gauntlet_judge::{Regime, Scope};
use jiff::SignedDuration;

use super::{JsonFile, Measured, Recording, ReportFiles, positive_time};

/// `compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet compare softmax.py:slow softmax.py:fast --task softmax.py
  gauntlet compare softmax.py:slow softmax.py:fast --task softmax.py --quick   your own two versions, in seconds
  gauntlet compare softmax.py:slow softmax.py:fast softmax.py:third --task softmax.py --quick   a table of several
  gauntlet compare builtin 'stages=2' --task group-gemm
  gauntlet compare builtin 'command: python3 examples/worker/rms_norm.py' --task rms-norm --case prefill
  gauntlet compare plain.toml tuned.toml --task dual-gemm --budget 60s
  gauntlet compare builtin 'tile=64x64x256, order=dynamic' --require adopt
  gauntlet compare builtin 'stages=4' --executor cuda --device h200
  gauntlet compare --samples before.json after.json       what another benchmark program measured
  gauntlet compare --more 20 result.json                  20 more pairs for an undecided result

Exit codes:
  0  both kernels are right and were compared; with --require, the verdict shows what is required
  1  one of them is wrong; with --require, the verdict shows the contrary (for no-regression: a regression)
  4  one of them is blocked, for example because times are void; with --require, the verdict is inconclusive")]
pub struct Compare {
    /// A kernel: a Python function, such as softmax.py:fast; a function in C or of a shared library, such as softmax.c:fast or libsoftmax.so:fast; a
    /// CUDA kernel, such as softmax.cu:fast; a solution of FlashInfer-Trace, such as solution.json; 'command: PROGRAM
    /// ARGUMENTS', a worker of your own; `builtin`; parameters of the built-in one, such as 'stages=2', or a TOML file of
    /// them; `dispatch:FILE` with a table from `gauntlet tune`.
    pub baseline: String,
    /// Another kernel. Parameters that are not named are as in the baseline.
    #[arg(required_unless_present_any = ["samples", "more"])]
    pub candidate: Option<String>,
    /// More kernels, each compared with BASELINE. They share the budget, and their intervals hold for all of them together.
    #[arg(value_name = "CANDIDATE", conflicts_with_all = ["samples", "more", "resume", "dry_run"])]
    pub others: Vec<String>,
    /// Judge the measurements of another program: BASELINE and CANDIDATE are its files, in place of kernels, several for a
    /// side separated by commas; BASELINE alone is a file that holds both sides. Reads nvbench, hyperfine, pytest-benchmark,
    /// google-benchmark, criterion and CSV.
    #[arg(long, conflicts_with_all = ["task", "cases", "executor", "device", "budget", "pairs", "warm", "regime", "scope", "activity", "quick", "resume", "dry_run"])]
    pub samples: bool,
    /// Add pairs to a comparison that ended undecided: at least N, and on to the next look of its plan, which judges all
    /// pairs together; fewer only if an earlier look decides. BASELINE is the file that `--json` of `compare` or `judge`
    /// wrote, and is brought up to date. Kernels, task, machine and program must be the same.
    #[arg(long, value_name = "N", value_parser = more_pairs, conflicts_with_all = [
        "candidate", "samples", "task", "cases", "executor", "device", "budget", "pairs", "warm", "regime", "scope",
        "activity", "quick", "resume", "dry_run",
    ])]
    pub more: Option<usize>,
    /// With --samples of one process a side: the percentage within which the typical call of any other process would lie.
    /// Without it such measurements decide nothing.
    #[arg(long, value_name = "PERCENT", requires = "samples", value_parser = percentage)]
    pub between_processes: Option<f64>,
    /// What both are measured with, and how.
    #[command(flatten)]
    pub contest: Contest,
}

/// `time`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet time softmax.py:fast --task softmax.py
  gauntlet time builtin --task rms-norm --case decode --json

Exit codes:
  0  the kernel is right and was timed
  1  it is wrong
  4  it is blocked, for example because it needs a device that is not here")]
pub struct Time {
    /// The kernel, in a form that `gauntlet compare` takes.
    pub kernel: String,
    /// The task, by name or file (see `gauntlet suites`); group-gemm for a built-in kernel if no file is named.
    #[arg(long, visible_alias = "suite")]
    pub task: Option<String>,
    /// Only these of its benchmark cases.
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Where it is measured.
    #[command(flatten)]
    pub measured: Measured,
    /// The most time for it.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_time)]
    pub budget: SignedDuration,
    /// Let operands stay in the caches between calls.
    #[arg(long)]
    pub warm: bool,
    /// Which part of a call on a GPU is timed.
    #[arg(long, value_enum, default_value_t = ScopeName::Device)]
    pub scope: ScopeName,
    /// Where the result goes besides the terminal.
    #[command(flatten)]
    pub json: JsonFile,
}

/// `judge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet judge softmax.py:fast --task softmax.py --baseline softmax.py:slow
  gauntlet judge 'stages=2' --task group-gemm --html report.html

Exit codes:
  0  both kernels are right and were compared; with --require, the verdict shows what is required
  1  one is wrong, or a gate stopped the kernel before; with --require, the verdict shows the contrary
  4  it or the baseline is blocked, for example because times are void; with --require, the verdict is inconclusive")]
pub struct Judge {
    /// The kernel, in a form that `gauntlet compare` takes.
    pub candidate: String,
    /// The kernel that it is compared with; if it is left out, the reference of a task in Python, or the built-in kernel.
    #[arg(long)]
    pub baseline: Option<String>,
    /// What both are measured with, and how.
    #[command(flatten)]
    pub contest: Contest,
}

/// What `compare` and `judge` share.
#[derive(Debug, Args)]
pub struct Contest {
    /// What both kernels are measured with, and how.
    #[command(flatten)]
    pub setup: Setup,
    /// Exit with 0 only if evidence shows this; with 1 if it shows the contrary, with 4 if it decides nothing.
    #[arg(long, value_enum)]
    pub require: Option<Requirement>,
    /// Let evidence that was not watched for cheats (--quick) meet the requirement.
    #[arg(long, requires = "require")]
    pub require_quick: bool,
    /// Go on with the same comparison that was interrupted, by the ledger or by the file of --json; begin if there is none.
    #[arg(long)]
    pub resume: bool,
    /// Read task and kernels, say what is wrong with them, and measure nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Where results go besides the terminal.
    #[command(flatten)]
    pub files: ReportFiles,
    /// Where the result is recorded.
    #[command(flatten)]
    pub recording: Recording,
}

/// What two kernels are measured with, and how.
#[derive(Debug, Args)]
pub struct Setup {
    /// The task, by name or file (see `gauntlet suites`); group-gemm if both are built-in kernels and no file is named.
    #[arg(long, visible_alias = "suite")]
    pub task: Option<String>,
    /// Only these of its benchmark cases.
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Where it is measured.
    #[command(flatten)]
    pub measured: Measured,
    /// Time for the comparison.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = positive_time)]
    pub budget: SignedDuration,
    /// At most this many pairs of processes, fixed before the first, with looks after a third, a half and all of
    /// them. Without it twelve are planned, and an undecided comparison goes on while there is time.
    #[arg(long, value_name = "N", value_parser = pairs)]
    pub pairs: Option<usize>,
    /// Let operands stay in the caches between calls.
    #[arg(long)]
    pub warm: bool,
    /// The state of the device while calls are timed. A change may help in one state and not in the other.
    #[arg(long, value_enum, default_value_t = RegimeName::Isolated)]
    pub regime: RegimeName,
    /// Which part of a call on a GPU is timed.
    #[arg(long, value_enum, default_value_t = ScopeName::Device)]
    pub scope: ScopeName,
    /// After the last pair, trace what a GPU does in calls of each side (CUPTI): kernels, copies, gaps, and work outside of the
    /// call. Takes a process more of each side.
    #[arg(long, conflicts_with = "quick")]
    pub activity: bool,
    /// Compare two kernels of your own in seconds: nothing is done against a kernel that wants to deceive. Both are right on
    /// inputs that they have not seen, run in confined processes, and get an interval as always.
    #[arg(long)]
    pub quick: bool,
}

impl Setup {
    /// Of one kernel alone, which is not watched for cheats.
    pub fn alone(task: Option<String>, cases: Vec<String>, measured: Measured) -> Self {
        Self {
            task,
            cases,
            measured,
            budget: SignedDuration::from_secs(30),
            pairs: None,
            warm: false,
            regime: RegimeName::Isolated,
            scope: ScopeName::Device,
            activity: false,
            quick: true,
        }
    }
}

/// A regime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RegimeName {
    /// Short requests with pauses between them: latency, at the clock of a cool device.
    Isolated,
    /// Each timed request follows at once on half a second of load or more: the clock that the power limit and heat leave.
    Sustained,
}

impl From<RegimeName> for Regime {
    fn from(name: RegimeName) -> Self {
        match name {
            RegimeName::Isolated => Self::Isolated,
            RegimeName::Sustained => Self::Sustained,
        }
    }
}

/// From where to where calls on a GPU are clocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    /// On the device, with launches that do not wait for the host, as in a captured graph. If one of the kernels is timed
    /// by a worker that cannot, such as the built-in kernels', both are clocked as with `call`.
    Device,
    /// From the call of the function until its results are there, with what the host does: an eager call.
    Call,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Device => Self::Device,
            ScopeName::Call => Self::Call,
        }
    }
}

/// What a script may insist on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Requirement {
    /// At least one candidate is measured to be faster than the baseline by the target, and adopted.
    Adopt,
    /// Every candidate is right and measured not to be slower: adopt, marginal or valid negative.
    NoRegression,
}

pub fn pairs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(pairs) if (6..=1000).contains(&pairs) => Ok(pairs),
        _ => Err("give a whole number from 6 to 1000".to_owned()),
    }
}

/// The most pairs that are added at once.
pub const MAX_PAIRS: usize = 1000;

pub fn more_pairs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(pairs) if (1..=MAX_PAIRS).contains(&pairs) => Ok(pairs),
        _ => Err(format!("give a whole number from 1 to {MAX_PAIRS}")),
    }
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches('%').trim_end().parse() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent),
        _ => Err("give a percentage between 0 and 100, such as 2".to_owned()),
    }
}
