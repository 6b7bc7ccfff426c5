//! The arguments of `selftest`.

use std::path::PathBuf;

use clap::Args;
use jiff::SignedDuration;

use super::{MeasuredExecutor, positive_time};

/// `selftest`, and the program that it starts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet selftest --json result.json               the simulated machines in full, in a minute or two
  gauntlet selftest --comparisons 100                a first impression, in seconds
  gauntlet selftest --comparisons 1 --live 20        real comparisons, up to the last planned look
  gauntlet selftest --cheats                         does every candidate that cheats get caught?
  gauntlet selftest --cheats --device cuda           the same for kernels in Python and CUDA C++, on a GPU
  gauntlet selftest --honest --runs 5 --contested    is an odd but honest worker left alone, beside a busy neighbour?
  gauntlet selftest --power --runs 20 --budget 60s   how often is a difference of 1 or 3 % found within a minute?")]
pub struct Selftest {
    /// Try the corpus of candidates that cheat, and nothing else; fails if one gains by it or an honest one is accused.
    #[arg(long, conflicts_with_all = ["comparisons", "live", "seed", "honest", "power", "runs"])]
    pub cheats: bool,
    /// Compare odd but honest workers with themselves, and nothing else; fails if one is accused or adopted.
    #[arg(long, conflicts_with_all = ["comparisons", "live", "seed", "power"])]
    pub honest: bool,
    /// Count how often real differences are found within a time, and nothing else; fails if a thing is adopted over
    /// itself.
    #[arg(long, conflicts_with_all = ["comparisons", "live", "seed", "only"])]
    pub power: bool,
    /// With --cheats: kernels in Python and CUDA C++ on this device, in place of workers. The Python needs numpy, and torch
    /// for a GPU.
    #[arg(long, value_enum, requires = "cheats")]
    pub device: Option<MeasuredExecutor>,
    /// With --cheats or --honest: only the candidate of this name; may be repeated.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["comparisons", "live", "seed"])]
    pub only: Vec<String>,
    /// With --honest: comparisons of each worker; with --power: of each effect.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = runs)]
    pub runs: usize,
    /// With --power: the most time of one comparison.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_time)]
    pub budget: SignedDuration,
    /// With --power: effects in percent, separated by commas; a negative one slows the candidate.
    #[arg(
        long, value_name = "PERCENT", default_value = "0,1,3", value_delimiter = ',', allow_hyphen_values = true,
        value_parser = effect,
    )]
    pub effects: Vec<f64>,
    /// With --cheats, --honest or --power: beside a process that burns one core for 30 % of the time.
    #[arg(long, conflicts_with_all = ["comparisons", "live", "seed"])]
    pub contested: bool,
    /// Synthetic comparisons of a thing with itself in each kind of noise; a quarter as many with each effect.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = comparisons)]
    pub comparisons: usize,
    /// Comparisons of this machine's kernels with themselves; a quarter as many with each effect.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = live)]
    pub live: usize,
    /// The seed of the synthetic comparisons.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the whole result as JSON (`-`: to standard output, in place of the report).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Synthetic comparisons of each kind of noise: an hour or two.
const MAX_COMPARISONS: usize = 100_000;

/// Real comparisons, each of a minute or so: days.
const MAX_RUNS: usize = 10_000;

fn runs(text: &str) -> Result<usize, String> {
    within(text, 1, MAX_RUNS)
}

fn comparisons(text: &str) -> Result<usize, String> {
    within(text, 1, MAX_COMPARISONS)
}

fn live(text: &str) -> Result<usize, String> {
    within(text, 0, MAX_RUNS)
}

fn within(text: &str, least: usize, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (least..=most).contains(&count) => Ok(count),
        _ => Err(format!("give a whole number from {least} to {most}")),
    }
}

fn effect(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(percent) if percent.abs() <= 100.0 => Ok(percent / 100.0),
        _ => Err("give percents between -100 and 100, such as 0,1,3".to_owned()),
    }
}
