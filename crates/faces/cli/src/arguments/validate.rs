//! The arguments of `validate`.

use std::path::PathBuf;

use clap::Args;

use super::Measured;

/// `validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
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
    /// Exit with 1 if a goal is not reached, or with 4 if the machine was too busy for that to count.
    #[arg(long)]
    pub require_goals: bool,
    /// Write the whole result as JSON (`-`: to standard output, in place of the report).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
