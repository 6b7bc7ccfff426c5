//! The arguments of `explain`.

use std::path::PathBuf;

use clap::Args;

/// `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet explain --times examples/diagnose/times.csv   what measured times alone say, and what to measure next")]
pub struct Explain {
    /// Measured times: a CSV file with the columns g, m, n, k and time, and variant where there are several.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "problem",
        required_unless_present = "problem"
    )]
    pub times: Option<PathBuf>,
    /// The problem whose schedule is to be explained: a case of a suite, such as group-gemm/case-1.
    #[arg(long, value_name = "NAME")]
    pub problem: Option<String>,
    /// The schedule: `baseline`, words of one, or a TOML file of them.
    #[arg(long, default_value = "baseline", value_name = "WORDS")]
    pub schedule: String,
    /// The device it ran, or would run, on.
    #[arg(long, default_value = "b200")]
    pub device: String,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}
