//! The arguments of `explain`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use gauntlet_judge::HostCost;

use super::{CalibrationFile, JsonFile};

/// `explain`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["times", "problem"]))]
#[command(after_help = "\
Examples:
  gauntlet explain --times examples/diagnose/times.csv   what measured times alone say, and what to measure next
  gauntlet explain --problem group-gemm/case-1 --schedule 'stages = 4'   where the model sees the time go
  gauntlet explain --problem 'g=2 m=80,176 n=4096 k=7168' --compare 'stages = 4, order = \"static\"'
  gauntlet explain --problem group-gemm/case-1 --host constant=20us --timeline call.svg
  gauntlet explain --problem group-gemm/case-1 --device h200 --measured run.json   beside it, the same of the kernel itself")]
pub struct Explain {
    /// Measured times: a CSV file with the columns g, m, n, k and time, and variant where there are several.
    #[arg(long, value_name = "FILE")]
    pub times: Option<PathBuf>,
    /// The problem whose schedule is to be explained: a case of a suite, such as group-gemm/case-1; a suite, for all
    /// its benchmark cases; or sizes, such as 'g=2 m="80 176" n=4096 k=7168'.
    #[arg(long, value_name = "PROBLEM")]
    pub problem: Option<String>,
    /// The schedule: `baseline`, words of one, or a TOML file of them.
    #[arg(long, default_value = "baseline", value_name = "WORDS")]
    pub schedule: String,
    /// The device it ran, or would run, on.
    #[arg(long, default_value = "b200")]
    pub device: String,
    /// Another schedule, to be held against the first part by part; words left out are as in the first.
    #[arg(long, value_name = "WORDS", conflicts_with = "times")]
    pub compare: Option<String>,
    /// What a call costs on the host, such as constant=95us,per-group=35us.
    #[arg(long, value_name = "TERMS", conflicts_with = "times")]
    pub host: Option<HostCost>,
    /// Write what happens when: FILE.json for Perfetto and Chrome, FILE.svg as a picture.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["compare", "times"])]
    pub timeline: Option<PathBuf>,
    /// Run it on the GPU that is here, in a build that writes down what each role does when, and show that beside the
    /// model's; the whole of it goes to FILE, as of --timeline.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["compare", "times", "json"])]
    pub measured: Option<Option<PathBuf>>,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
    /// This machine's figures, for the model.
    #[command(flatten)]
    pub calibration: CalibrationFile,
}
