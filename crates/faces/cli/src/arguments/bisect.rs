//! The arguments of `bisect`.

use clap::Args;

use super::{JsonFile, Recording, Setup};

/// `bisect`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet bisect v1.0 HEAD --kernel libnorm.so:norm --task norm.py --build make
  gauntlet bisect HEAD~64 HEAD --kernel src/norm.py:fast --task norm.py --quick --budget 60s
  gauntlet bisect v1.0 HEAD --kernel libnorm.so:norm --task norm.py --build make --dry-run   what it would take
  gauntlet bisect v1.0 HEAD --kernel libnorm.so:norm --task norm.py --build make --resume    after an interrupt

Exit codes:
  0  a commit is named: it is shown to be slower than the one just before it
  1  BAD is shown not to be slower than GOOD: the code is not to blame
  4  undecided: a range of commits, or no regression was shown

docs/guide/history.md says how it decides.")]
pub struct Bisect {
    /// A commit before the regression, an ancestor of BAD.
    pub good: String,
    /// A commit with the regression.
    pub bad: String,
    /// The kernel in a file, as it is named at the root of the repository, such as libnorm.so:norm.
    #[arg(long)]
    pub kernel: String,
    /// What builds a commit: a command of the shell, run at the root of a checkout of it.
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// The least slowdown that counts, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub least: f64,
    /// Go on with the same bisection that was interrupted; begin if there is none.
    #[arg(long)]
    pub resume: bool,
    /// Say how many comparisons it would take and how long, and measure nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// What each comparison is measured with, and how; `--task` is the file as it is in this folder, for all commits.
    #[command(flatten)]
    pub setup: Setup,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
    /// Where the comparisons are recorded.
    #[command(flatten)]
    pub recording: Recording,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse() {
        Ok(percent) if (0.1..=1000.0).contains(&percent) => Ok(percent),
        _ => Err("give a percentage from 0.1 to 1000, such as 2".to_owned()),
    }
}
