//! The arguments of `queue`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gauntlet_farm::{SlurmOptions, Workplace};
use gauntlet_queue::JudgementKind;

use super::{JsonFile, LedgerFile};

/// `queue`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet queue submit compare kernels.py:slow kernels.py:fast --task task.py
  gauntlet queue work                         run tickets on this machine, one at a time
  gauntlet queue work --farm slurm --sbatch=--gres=gpu:1 --until-empty
  gauntlet queue show TICKET --wait 10m

docs/guide/farm.md explains how a cluster runs a queue.")]
pub struct QueueArguments {
    /// Where tickets and results are kept; by default the folder `queue` beside the ledger. A cluster's nodes must all see it.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub queue: Option<PathBuf>,
    /// The ledger, beside which the queue is.
    #[command(flatten)]
    pub ledger: LedgerFile,
    /// What to do.
    #[command(subcommand)]
    pub command: QueueCommand,
}

/// What `queue` does.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// Queue a judgement; prints its ticket.
    Submit(Submit),
    /// List tickets, the newest first.
    List(ListTickets),
    /// Show where a ticket stands, and what was found.
    Show(ShowTicket),
    /// Give a ticket up.
    Cancel(CancelTicket),
    /// Run tickets: here, one at a time, or as jobs of a cluster.
    Work(Work),
}

/// `queue submit`.
#[derive(Debug, Args)]
pub struct Submit {
    /// Which command judges.
    #[arg(value_enum)]
    pub command: Judges,
    /// The kernels as that command takes them, in files of this folder.
    #[arg(value_name = "KERNEL")]
    pub kernels: Vec<String>,
    /// The task, by name or file.
    #[arg(long)]
    pub task: String,
    /// Only this benchmark case; may be repeated.
    #[arg(long = "case", value_name = "CASE")]
    pub cases: Vec<String>,
    /// Time for it, such as 60s.
    #[arg(long, value_name = "DURATION")]
    pub budget: Option<String>,
    /// At most this many pairs of processes.
    #[arg(long, value_name = "COUNT")]
    pub pairs: Option<usize>,
    /// Compare two kernels of your own in seconds, not watched for cheats.
    #[arg(long)]
    pub quick: bool,
    /// `cpu` or `cuda`.
    #[arg(long)]
    pub executor: Option<String>,
    /// The GPU.
    #[arg(long)]
    pub device: Option<String>,
    /// Whose ticket it is: tickets of several take turns.
    #[arg(long, env = "USER", default_value = "command", value_name = "NAME")]
    pub client: String,
    /// A name of your own for it: the same once more is the same ticket.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// A command that a ticket may name.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Judges {
    /// Is one kernel right?
    Check,
    /// Are two right, and which is faster?
    Compare,
    /// One kernel by all gates.
    Judge,
    /// The fastest parameters of each case.
    Tune,
}

impl From<Judges> for JudgementKind {
    fn from(name: Judges) -> Self {
        match name {
            Judges::Check => Self::Check,
            Judges::Compare => Self::Compare,
            Judges::Judge => Self::Judge,
            Judges::Tune => Self::Tune,
        }
    }
}

/// `queue list`.
#[derive(Debug, Args)]
pub struct ListTickets {
    /// Only tickets of this client.
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// Only tickets of this task.
    #[arg(long)]
    pub task: Option<String>,
    /// List the newest COUNT.
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    pub last: usize,
    /// Where the list goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}

/// `queue show`.
#[derive(Debug, Args)]
pub struct ShowTicket {
    /// The ticket.
    pub ticket: String,
    /// Wait so long for its end, such as 10m.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub wait: jiff::SignedDuration,
    /// Where it goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}

/// `queue cancel`.
#[derive(Debug, Args)]
pub struct CancelTicket {
    /// The ticket.
    pub ticket: String,
}

/// Where tickets are run.
#[derive(Debug, Args)]
pub struct FarmOptions {
    /// Start a job of this scheduler for each ticket, in place of running them here.
    #[arg(long, value_enum, value_name = "SCHEDULER")]
    pub farm: Option<Scheduler>,
    /// An option of sbatch for jobs that time something, as in --sbatch=--gres=gpu:1; may be repeated.
    #[arg(long, value_name = "OPTION", requires = "farm", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// The same for checks, which need no card, as in --sbatch-check=--partition=cpu.
    #[arg(long, value_name = "OPTION", requires = "farm", allow_hyphen_values = true)]
    pub sbatch_check: Vec<String>,
    /// The highest number of jobs that wait or run there at a time.
    #[arg(long, default_value_t = 64, value_name = "COUNT", requires = "farm")]
    pub most: usize,
}

/// What starts jobs on a cluster.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Scheduler {
    /// Slurm, by its commands sbatch, squeue and scancel.
    Slurm,
}

impl FarmOptions {
    /// The place.
    pub fn workplace(&self) -> Workplace {
        match self.farm {
            None => Workplace::Here,
            Some(Scheduler::Slurm) => Workplace::Slurm(SlurmOptions {
                timed: self.sbatch.clone(),
                checks: self.sbatch_check.clone(),
                most: self.most,
            }),
        }
    }
}

/// `queue work`.
#[derive(Debug, Args)]
pub struct Work {
    /// Where they are run.
    #[command(flatten)]
    pub farm: FarmOptions,
    /// End when no ticket waits or runs any more.
    #[arg(long)]
    pub until_empty: bool,
}
