//! The arguments of `job` and `mcp`.

use std::path::PathBuf;

use clap::Args;

use super::LedgerFile;

/// `job`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet job ticket.json --out results
  gauntlet schema ticket-file                what a ticket holds

What is found is published as FOLDER/ID.json by a link, whole or not at all. If another attempt has published before, nothing is run
and the exit code is that of its result. FOLDER/attempts holds what is known of every attempt.

Exit codes:
  0, 1, 4  as of the command that judged; its result is published
  2        the ticket's words or sources are wrong; that is published too, unless the file is no ticket
  3        the attempt died and published nothing: another may succeed
  130      it was interrupted and published nothing")]
pub struct JobArguments {
    /// The ticket: a JSON file.
    pub ticket: PathBuf,
    /// Where the result is published; made if it does not exist.
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Where the contents of the ticket's files are, by their SHA-256 digests; by default the folder `blobs` beside the ticket's.
    #[arg(long, value_name = "FOLDER")]
    pub blobs: Option<PathBuf>,
}

/// `errand`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0    the gates have found something of it
  2    this machine sees other files of the round than the one that plays it
  3    something broke
  130  it was interrupted")]
pub struct ErrandArguments {
    /// What to do: a JSON file.
    pub file: PathBuf,
    /// Where the findings go.
    #[arg(long, value_name = "FILE")]
    pub json: PathBuf,
}

/// `mcp`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet mcp --folder kernels                               tasks and kernels are files of this folder
  claude mcp add gauntlet -- gauntlet mcp --folder kernels    the same as a server of an agent

docs/guide/agents.md explains the tools, and what counts as a win.")]
pub struct McpArguments {
    /// The folder whose files are tasks and kernels; others cannot be named.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// Where tickets and results are kept; by default the folder `queue` beside the ledger. Servers may share one.
    #[arg(long, value_name = "FOLDER")]
    pub queue: Option<PathBuf>,
    /// A round that agents may pitch into: one whose `pitches` names a folder.
    #[arg(long, value_name = "FILE")]
    pub round: Vec<PathBuf>,
    /// Leave running tickets to `gauntlet queue work`.
    #[arg(long)]
    pub no_work: bool,
    /// The client to whom tries are counted; by default the name that it gives itself.
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// The ledger, from which `next` reads what rounds left open.
    #[command(flatten)]
    pub ledger: LedgerFile,
}
