//! The arguments of `watch`.

use std::path::PathBuf;

use clap::{Args, Parser};

use super::{JsonFile, LedgerFile, Setup};

/// `watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet watch watched.toml                              each commit since the last time against the one before it
  gauntlet watch watched.toml --tip --markdown moved.md    only the newest commit, and what moved as the text of an issue

Exit codes:
  0  nothing is slower or wrong
  1  a commit made a kernel slower, or wrong
  4  something was not decided or does not build, and nothing is slower or wrong

docs/guide/history.md has an example of the list, and says what is compared.")]
pub struct Watch {
    /// The list of what is watched, as TOML.
    pub list: PathBuf,
    /// Only compare the newest commit with the last one whose times are known, and not each of those between them.
    #[arg(long)]
    pub tip: bool,
    /// Write what moved as Markdown, for an issue; to standard output unless this is given.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
    /// Where the comparisons are recorded, by which it is known up to which commit was watched.
    #[command(flatten)]
    pub ledger: LedgerFile,
}

/// How an entry of the list is compared, in the words of `compare`.
#[derive(Debug, Parser)]
pub struct WatchedSetup {
    /// How.
    #[command(flatten)]
    pub setup: Setup,
}
