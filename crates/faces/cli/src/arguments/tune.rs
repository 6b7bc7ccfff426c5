//! The arguments of `tune`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use super::{LedgerFile, positive_time};

/// `tune`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet tune --suite attention --budget 5m --output attention.toml
  gauntlet tune --case case-3 --keep 4 --quick
  gauntlet tune --executor cuda --device h200        measured on the GPU of this machine
  gauntlet tune --kernel rms_norm.cu:rms_norm --suite rms-norm --executor cuda --device h200
                                                     the parameters of a kernel of your own
  gauntlet tune --kernel softmax.c:softmax --suite task.py
  gauntlet tune --executor model --device b200       a device that is not here: the model's ranking, not measured
  gauntlet tune --replay A100_T4.json.gz             how fast the search comes near the optimum of recorded times
  gauntlet compare 'tile = [64, 64, 64]' dispatch:attention.toml --suite attention    what the table is worth

The table is written after each case, so that an interruption loses only the case at hand.")]
pub struct Tune {
    /// A suite, by name or file; each of its benchmark cases is tuned.
    #[arg(long, default_value = "group-gemm")]
    pub suite: String,
    /// A kernel of your own, in CUDA C++ (`--executor cuda`), C, C++ or Python: tunes the parameters that the table beside its
    /// file declares.
    #[arg(long, value_name = "FILE:FUNCTION", group = "searched")]
    pub kernel: Option<String>,
    /// Only these of its benchmark cases.
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// What decides.
    #[arg(long, value_enum, default_value = "cpu")]
    pub executor: TuneExecutor,
    /// The device to tune for (`--executor model` or `cuda`, for which it must be the GPU that is here).
    #[arg(long)]
    pub device: Option<String>,
    /// What all is compared with: `baseline`, words of a schedule, or a TOML file of them.
    #[arg(long, default_value = "baseline", value_name = "SCHEDULE")]
    pub baseline: String,
    /// How many schedules at the head of the model's ranking, or of the screening, are measured.
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub keep: u16,
    /// Points that a search looks at, at most: of a kernel's parameters, or of recorded times.
    #[arg(long, value_name = "N", default_value = "128", requires = "searched", value_parser = clap::value_parser!(u16).range(1..))]
    pub evaluations: u16,
    /// What the choices at random of the search over a kernel's parameters follow from.
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        requires = "kernel",
        conflicts_with = "file"
    )]
    pub seed: u64,
    /// Measure in quick pairs, which are not watched for cheats: the schedules and parameters of kernels of your own.
    #[arg(long)]
    pub quick: bool,
    /// Time for all cases together, ranking included; one that decides nothing is refused, and the needed one named.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = positive_time)]
    pub budget: SignedDuration,
    /// Where the dispatch table goes.
    #[arg(long, value_name = "FILE", default_value = "dispatch.toml")]
    pub output: PathBuf,
    /// Write all that was found as JSON (`-`: to standard output, in place of the report).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Go on with the same tuning that was interrupted, by the ledger; begin if there is none.
    #[arg(long)]
    pub resume: bool,
    /// Leave no record of the result in the ledger.
    #[arg(long)]
    pub no_ledger: bool,
    /// A search over recorded times in place of measurements.
    #[command(flatten)]
    pub replay: Replay,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerFile,
}

/// A search over recorded times.
#[derive(Debug, Args)]
pub struct Replay {
    /// Search these recorded times, a T4 or cache file of Kernel Tuner, plain or compressed with gzip; nothing runs.
    #[arg(long = "replay", value_name = "FILE", group = "searched", conflicts_with_all = ["suite", "kernel", "cases", "executor", "device", "baseline", "keep", "quick", "budget", "output", "resume"])]
    pub file: Option<PathBuf>,
    /// Searches, of which the medians are shown.
    #[arg(long, value_name = "N", default_value = "50", requires = "file", value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: u16,
    /// Write the points that the first search evaluates as a T4 file.
    #[arg(long, value_name = "FILE", requires = "file")]
    pub t4: Option<PathBuf>,
}

/// What decides between schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TuneExecutor {
    /// Measurements on this machine's CPU.
    Cpu,
    /// Measurements on an NVIDIA GPU of this machine.
    Cuda,
    /// The model alone: for devices that are not here.
    Model,
}
