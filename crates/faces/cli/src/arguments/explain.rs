//! The arguments of `explain`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use gauntlet_simulate::HostTerm;
use jiff::SignedDuration;

use super::JsonFile;

/// `explain`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["kernel", "times", "problem"]))]
#[command(after_help = "\
Examples:
  gauntlet explain softmax.cu:softmax_warp --task task.py   what bounds a kernel on the GPU that is here, by its counters
  gauntlet explain --times examples/diagnose/times.csv   what measured times alone say, and what to measure next
  gauntlet explain --problem group-gemm/case-1 --schedule 'stages = 4'   where the model sees the time go
  gauntlet explain --problem 'g=2 m=80,176 n=4096 k=7168' --compare 'stages = 4, order = \"static\"'
  gauntlet explain --problem group-gemm/case-1 --host constant=20us --timeline call.svg
  gauntlet explain --problem group-gemm/case-1 --device h200 --measured run.json   beside it, the same of the kernel itself")]
pub struct Explain {
    /// A kernel, in a form that `gauntlet compare` takes: what bounds it on the GPU that is here, by Nsight Compute's counters.
    pub kernel: Option<String>,
    /// The kernel's task, by name or file (see `gauntlet suites`).
    #[arg(long, visible_alias = "suite", conflicts_with_all = ["times", "problem"])]
    pub task: Option<String>,
    /// Only these of the task's benchmark cases.
    #[arg(long = "case", value_name = "NAME", conflicts_with_all = ["times", "problem"])]
    pub cases: Vec<String>,
    /// Measured times: a CSV file with the columns g, m, n, k and time, and variant where there are several.
    #[arg(long, value_name = "FILE")]
    pub times: Option<PathBuf>,
    /// The problem whose schedule is to be explained: a case of a suite, such as group-gemm/case-1; a suite, for all
    /// its benchmark cases; or sizes, such as 'g=2 m="80 176" n=4096 k=7168'.
    #[arg(long, value_name = "PROBLEM")]
    pub problem: Option<String>,
    /// The schedule: `baseline`, words of one, or a TOML file of them.
    #[arg(
        long,
        default_value = "baseline",
        value_name = "WORDS",
        conflicts_with = "kernel"
    )]
    pub schedule: String,
    /// The device it ran, or would run, on; b200 if it is left out. A kernel runs on the GPU that is here, whose name only a built-in
    /// kernel needs.
    #[arg(long)]
    pub device: Option<String>,
    /// Another schedule, to be held against the first part by part; words left out are as in the first.
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["kernel", "times"])]
    pub compare: Option<String>,
    /// What a call costs on the host, such as constant=95us,per-group=35us.
    #[arg(long, value_name = "TERMS", value_parser = host_term, conflicts_with_all = ["kernel", "times"])]
    pub host: Option<HostTerm>,
    /// Write what happens when: FILE.json for Perfetto and Chrome, FILE.svg as a picture.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "compare", "times"])]
    pub timeline: Option<PathBuf>,
    /// Run it on the GPU that is here, in a build that writes down what each role does when, and show that beside the
    /// model's; the whole of it goes to FILE, as of --timeline.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["kernel", "compare", "times", "json"])]
    pub measured: Option<Option<PathBuf>>,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}

impl Explain {
    /// The device of a prediction or of measured times.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap_or("b200")
    }
}

/// Parses `constant=95us,per-group=35us`, in any order, with a comma or a blank between; a missing figure is zero.
fn host_term(text: &str) -> Result<HostTerm, String> {
    let wrong = || "it is no cost of the host; write constant=95us,per-group=35us, or one of them".to_owned();
    let mut term = HostTerm::default();
    if text.trim().is_empty() {
        return Err(wrong());
    }
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        let time: SignedDuration = value.parse().map_err(|_| wrong())?;
        if time.is_negative() {
            return Err(format!("{name} is negative; a host takes no time or some"));
        }
        match name {
            "constant" => term.constant = time.as_secs_f64(),
            "per-group" => term.per_group = time.as_secs_f64(),
            _ => return Err(wrong()),
        }
    }
    Ok(term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_of_the_host_is_read_in_seconds_and_nonsense_is_refused() {
        let term = host_term("per-group=35us constant=95us").unwrap();
        assert_eq!([term.constant, term.per_group], [95e-6, 35e-6]);
        assert_eq!(host_term("per-group=1ms").unwrap().constant, 0.0);
        for text in ["", "95us", "constant=95", "fixed=95us", "constant=-1us"] {
            assert!(host_term(text).is_err(), "{text}");
        }
    }
}
