//! The arguments of `calibrate` and `validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CalibrationFile, JsonFile, Measured};

/// `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet calibrate                 half a minute; the machine should have nothing else to do
  gauntlet calibrate --quick --json  a few seconds; the figures on standard output as well

Exit codes:
  0  calibrated, and the calibration is kept
  4  other processes took a tenth of the processors' time or more: nothing is kept without --keep-anyway")]
pub struct Calibrate {
    /// What to calibrate.
    #[arg(long, value_enum, default_value = "cpu")]
    pub executor: CalibratedExecutor,
    /// A few processes and samples only.
    #[arg(long)]
    pub quick: bool,
    /// Calibrate and keep the result even if other processes keep the machine busy.
    #[arg(long)]
    pub keep_anyway: bool,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
    /// This machine's figures, for the model.
    #[command(flatten)]
    pub calibration: CalibrationFile,
}

/// `validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet calibrate && gauntlet validate --quick
  gauntlet validate --json results/validation.json --calibration my-machine.toml
  gauntlet validate --executor cuda --device h200 --quick    kernels of the GPU that is here, by its description
  gauntlet validate --executor cuda --device h200 --from results/h200/model-validation/2026-11-22.json
                                                             the model as it is now against times of then; no GPU needed")]
pub struct Validate {
    /// Where it is measured.
    #[command(flatten)]
    pub measured: Measured,
    /// Fewer processes.
    #[arg(long)]
    pub quick: bool,
    /// Measure nothing: hold the model against the times in a file that `--json` wrote for a GPU.
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub from: Option<PathBuf>,
    /// Note the result in the calibration even if other processes keep the machine busy.
    #[arg(long, conflicts_with = "from")]
    pub keep_anyway: bool,
    /// Exit with 1 if a goal is not reached, or with 4 if the machine was too busy for that to count.
    #[arg(long)]
    pub require_goals: bool,
    /// Write the whole result as JSON (`-`: to standard output, in place of the report).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// This machine's figures, for the model.
    #[command(flatten)]
    pub calibration: CalibrationFile,
}

/// An executor with a model that can be calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CalibratedExecutor {
    /// This machine's CPU.
    Cpu,
}
