//! The command line.

mod bisect;
mod check;
mod compile;
mod contest;
mod explain;
mod history;
mod kept;
mod ledger;
mod measured;
mod native;
mod pages;
mod queue;
mod selftest;
mod serve;
mod service;
mod task;
mod tune;
mod validate;
mod watch;

pub use bisect::Bisect;
pub use check::{Audit, Check};
pub use compile::Compile;
pub use contest::{
    Compare, Contest, Judge, MAX_PAIRS, RegimeName, Requirement, ScopeName, Setup, Time, more_pairs, pairs,
};
pub use explain::Explain;
pub use history::History;
pub use kept::{JsonFile, LedgerFile, Recording};
pub use ledger::{LedgerArguments, LedgerCommand, WantedVerdicts};
pub use measured::{CudaWorkerArguments, Measured, MeasuredExecutor, WorkerTensors};
pub use native::NativeWorkerArguments;
pub use pages::PagesArguments;
pub use queue::{FarmOptions, ListTickets, QueueArguments, QueueCommand, ShowTicket, Submit, Work};
pub use selftest::Selftest;
pub use serve::{ServeArguments, ServeCommand, TokenCommand};
pub use service::{ErrandArguments, JobArguments, McpArguments};
pub use task::{Kernels, TaskArguments, TaskCommand};
pub use tune::{Replay, Tune, TuneExecutor};
pub use validate::Validate;
pub use watch::{Watch, WatchedSetup};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use gauntlet_judge::ExecutorKind;
use jiff::SignedDuration;

use crate::commands::run::VERSION;

/// Judges kernels for GPUs and CPUs: is yours right, and is it faster? The answer is a verdict with its evidence.
#[derive(Debug, Parser)]
#[command(name = "gauntlet", version = VERSION, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  gauntlet compare softmax.py:slow softmax.py:fast --task softmax.py   is the second one faster?
  gauntlet check softmax.cu:softmax --task softmax.py                  is it right? nothing is measured
  gauntlet audit softmax.py                                            does the task notice a kernel that computes nothing?
  gauntlet judge ./libsoftmax.so:softmax --task softmax.py             by all gates, against the task's own kernel
  gauntlet compare builtin 'stages = 2'                                the same for a built-in kernel
  gauntlet run examples/shark-tank                                     a tournament of proposed changes
  gauntlet doctor                                                      what is here, and what is missing

Exit codes:
  0    done; what was required is shown by evidence
  1    not met: evidence speaks against what --require or --require-goals asks for, or
       `compare`, `judge`, `check`, `audit`, `compile`,
       `schedules`, `selftest` or `ledger verify` found a fault; `bisect`: the code is not to blame
  2    bad input, or a place that was named and cannot be written
  3    something broke: a full disk, a driver, a worker, the ledger
  4    undecided: no evidence either way; `compare`, `judge` and `run` with --require:
       inconclusive, aborted, blocked, void, or nothing to compare; `compare`
       and `judge`: blocked or void; `check`: a pitch that is blocked or aborted;
       `bisect`: a range of commits, or no regression was shown
  130  interrupted; the message says what is kept";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two kernels: are both right, and which is faster?
    #[command(visible_alias = "bench")]
    Compare(Compare),
    /// Time one kernel alone, in fresh processes.
    Time(Time),
    /// Examine without measuring: a kernel, a suite under many schedules, or a round's pitches.
    Check(Check),
    /// Examine a task: which kernels that leave work out would it take as right?
    Audit(Audit),
    /// Examine a kernel by all gates, against the task's own baseline or another.
    Judge(Judge),
    /// Play a round or a tournament: rank, examine, measure, judge.
    Run(Run),
    /// Show a result again: a run of the ledger, or what `--json` wrote.
    Report(Report),
    /// Find the fastest schedule of each problem of a suite.
    Tune(Tune),
    /// Compile every shipped CUDA kernel and hold it against its budgets; needs no GPU.
    Compile(Compile),
    /// Begin a task of your own.
    Task(TaskArguments),
    /// List suites, or show one.
    Suites(Suites),
    /// List devices, or show one with the source of each figure.
    Devices(Devices),
    /// Explain the words of a schedule.
    Schedules(Schedules),
    /// List the JSON Schemas of results and files, or print one.
    Schema(Schema),
    /// Say where the time goes: of measured times, or of a schedule.
    Explain(Explain),
    /// Read the ledger.
    Ledger(LedgerArguments),
    /// Find the commit that made a kernel slower.
    Bisect(Bisect),
    /// Compare the commits since the last time, for a nightly job, and say what moved.
    Watch(Watch),
    /// Show the times of kernels over the commits of this repository, and the verdicts that join them.
    History(History),
    /// Run a ticket once, and publish what is found: one job of a queue or a scheduler.
    Job(JobArguments),
    /// Examine one candidate of a round, as tickets of `run --farm` have it done.
    Errand(ErrandArguments),
    /// Queue judgements, look at them, and run them here or on a cluster.
    Queue(QueueArguments),
    /// Serve the judge to an agent: the Model Context Protocol on standard input and output.
    Mcp(McpArguments),
    /// Serve the judge over HTTP, to everyone with a token.
    Serve(ServeArguments),
    /// Write what the ledger holds as pages, for any web server.
    Pages(PagesArguments),
    /// Say what this machine has and lacks.
    Doctor(Doctor),
    /// Measure how often verdicts err where the truth is known.
    Selftest(Selftest),
    /// Measure how well the model predicts a GPU's times.
    Validate(Validate),
    /// Serve an executor on standard input and output (the worker protocol).
    Worker(Worker),
    /// Print completions for a shell.
    Completions(Completions),
    /// Write a man page for each command into a folder.
    Man(Man),
}

/// `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet run examples/shark-tank
  gauntlet run round.toml --budget 60s --require no-regression --json result.json
  gauntlet run examples/shark-tank --resume     after a crash: go on where it stopped
  gauntlet run examples/arena --farm slurm      candidates are examined by jobs of Slurm
  gauntlet run examples/arena --from-ledger latest   the same decisions from what was recorded
  gauntlet run examples/h200                    on an NVIDIA H200")]
pub struct Run {
    /// A round file, a tournament file, or a folder with a tournament.toml.
    pub path: PathBuf,
    /// What runs the candidates, in place of what the rounds say.
    #[arg(long, value_enum)]
    pub executor: Option<ExecutorName>,
    /// A device (see `gauntlet devices`), in place of the rounds'; a file is looked for here, then beside the round.
    #[arg(long)]
    pub device: Option<String>,
    /// A suite (see `gauntlet suites`), in place of the rounds'; a file is looked for here, then beside the round.
    #[arg(long)]
    pub suite: Option<String>,
    /// Time for each round's comparisons, such as 120s or 5m.
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub budget: Option<SignedDuration>,
    /// Where candidates are examined.
    #[command(flatten)]
    pub farm: FarmOptions,
    /// Go on with the last run of the same files that was cut short; begin one if there is none.
    #[arg(long)]
    pub resume: bool,
    /// Play a run of the ledger once more from its records, with the options of then: nothing is measured and nobody is asked. Fails
    /// if a decision differs.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["resume", "farm", "sbatch", "sbatch_check", "most"])]
    pub from_ledger: Option<String>,
    /// Exit with 0 only if evidence shows this; with 1 if it shows the contrary, with 4 if it decides nothing.
    #[arg(long, value_enum)]
    pub require: Option<Requirement>,
    /// Where results go besides the terminal.
    #[command(flatten)]
    pub files: ReportFiles,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerFile,
}

/// Where results go besides the terminal; `-` in place of a file is standard output, in place of the report.
#[derive(Debug, Clone, Args)]
pub struct ReportFiles {
    /// Write the whole result as JSON (`-`: to standard output, in place of the report; so for the other forms).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as a page with pictures.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the report as Markdown, for a comment under a pull request.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the verdicts as JUnit XML, for a build server.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet report latest                               the last run of the ledger
  gauntlet report 20260314-1509 --samples              a run by the beginning of its name, with the times of each process
  gauntlet report result.json --markdown comment.md    what `gauntlet compare … --json result.json` found
  gauntlet report result.json --junit - --html page.html")]
pub struct Report {
    /// A run of the ledger, by its name, the beginning of its name, or `latest`; or a file that `--json` of `compare`,
    /// `judge` or `run` wrote.
    pub run: String,
    /// Print the times of each process too. Files hold them anyway.
    #[arg(long)]
    pub samples: bool,
    /// Where results go besides the terminal.
    #[command(flatten)]
    pub files: ReportFiles,
    /// Where the runs are.
    #[command(flatten)]
    pub ledger: LedgerFile,
}

/// `suites`.
#[derive(Debug, Args)]
pub struct Suites {
    /// Show this one: a name or a file.
    pub suite: Option<String>,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}

/// `devices`.
#[derive(Debug, Args)]
pub struct Devices {
    /// Show this one: a name, `host`, or a file.
    pub device: Option<String>,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}

/// `schedules`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet schedules
  gauntlet schedules 'tile = [64, 64, 256]' --device b200 --suite group-gemm   is it allowed, and if not, why?")]
pub struct Schedules {
    /// Check these words against a device and a suite.
    pub schedule: Option<String>,
    /// The device.
    #[arg(long, default_value = "host")]
    pub device: String,
    /// The suite.
    #[arg(long, default_value = "group-gemm")]
    pub suite: String,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}

/// `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet schema
  gauntlet schema comparison                 the result of `compare` and `judge`
  gauntlet schema round-file > round.json    for an editor that checks TOML against a schema")]
pub struct Schema {
    /// Print this one, as JSON Schema (draft 2020-12): a name, or the value of a document's field `schema`.
    pub name: Option<String>,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}

pub fn positive_time(text: &str) -> Result<SignedDuration, String> {
    match text.parse() {
        Ok(time) if time > SignedDuration::ZERO => Ok(time),
        Ok(_) => Err("there is no time to measure in; give a time such as 120s or 5m".to_owned()),
        Err(_) => Err("it is no time; give one such as 120s or 5m".to_owned()),
    }
}

/// `worker`.
#[derive(Debug, Args)]
pub struct Worker {
    /// The executor to serve.
    #[arg(value_enum)]
    pub executor: WorkerName,
    /// The kernel: `FILE.py:FUNCTION` or `solution.json` (python), `FILE.so:FUNCTION` or `FILE.c:FUNCTION` (library), `FILE.cu:KERNEL` (nvrtc).
    #[arg(
        value_name = "FILE:KERNEL",
        required_if_eq_any([
            ("executor", "cheat"), ("executor", "zoo"), ("executor", "python"), ("executor", "library"),
            ("executor", "nvrtc")
        ])
    )]
    pub subject: Option<String>,
    /// What only the workers of kernels take.
    #[command(flatten)]
    pub native: NativeWorkerArguments,
    /// What is imported before the kernel, and where the tensors of a built-in task are (python).
    #[arg(long, value_enum, default_value = "cpu")]
    pub tensors: WorkerTensors,
    /// amx, avx512, avx2, neon or portable; the best there is by default.
    #[arg(long, env = "GAUNTLET_SIMD")]
    pub simd: Option<String>,
    /// Threads; as many as there are processors by default.
    #[arg(long, env = "GAUNTLET_THREADS")]
    pub threads: Option<usize>,
    /// What only the CUDA worker takes.
    #[command(flatten)]
    pub cuda: CudaWorkerArguments,
    /// Take longer for each call by this fraction of it: how `selftest` injects effects of known size.
    #[arg(long, hide = true, value_name = "FRACTION", value_parser = fraction)]
    pub slowed_by: Option<f64>,
}

impl Worker {
    /// Whether it is one that only a self-test starts.
    pub fn is_of_the_selftest(&self) -> bool {
        self.slowed_by.is_some() || matches!(self.executor, WorkerName::Cheat | WorkerName::Zoo)
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err("give a fraction between 0 and 1, such as 0.05".to_owned()),
    }
}

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet man ~/.local/share/man/man1    then `man gauntlet-compare`")]
pub struct Man {
    /// The folder, which is made if it does not exist.
    pub folder: PathBuf,
}

/// An executor of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecutorName {
    /// This machine's CPU.
    Cpu,
    /// An NVIDIA GPU of this machine: the one that the rounds name.
    Cuda,
    /// Recorded times; the rounds must name a record.
    Replay,
}

impl From<ExecutorName> for ExecutorKind {
    fn from(name: ExecutorName) -> Self {
        match name {
            ExecutorName::Cpu => Self::Cpu,
            ExecutorName::Cuda => Self::Cuda,
            ExecutorName::Replay => Self::Replay,
        }
    }
}

/// An executor that workers serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkerName {
    /// This machine's CPU.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// A C function of a shared library or of a source.
    Library,
    /// A CUDA C++ kernel, compiled at run time.
    Nvrtc,
    /// A Python function.
    Python,
    /// A candidate that cheats, for the lab to examine itself with.
    #[value(hide = true)]
    Cheat,
    /// An odd but honest worker, for the lab to examine itself with.
    #[value(hide = true)]
    Zoo,
}
