//! The arguments of `ledger`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{JsonFile, LedgerFile};

/// `ledger`.
#[derive(Debug, Args)]
pub struct LedgerArguments {
    /// Where it is.
    #[command(flatten)]
    pub file: LedgerFile,
    /// What to do with it.
    #[command(subcommand)]
    pub command: LedgerCommand,
}

/// What to do with the ledger.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// The runs, newest first.
    List {
        /// How many.
        #[command(flatten)]
        newest: Newest,
        /// Where the result goes as JSON.
        #[command(flatten)]
        json: JsonFile,
    },
    /// The records of a run, or one record whole.
    Show {
        /// A run, by its name, the beginning of its name, or `latest`; or a record's number.
        what: String,
        /// Where the result goes as JSON, with the body of every record. A lone record is always JSON.
        #[command(flatten)]
        json: JsonFile,
    },
    /// All records as JSON lines.
    Export {
        /// Only this run's: its name, the beginning of its name, or `latest`.
        #[arg(long)]
        run: Option<String>,
    },
    /// How good everyone's forecasts were: odds and speed-ups, skill against a constant forecast.
    Forecasters {
        /// Where the result goes as JSON.
        #[command(flatten)]
        json: JsonFile,
    },
    /// What to try next: what a run left open, by the speed-up that an hour of work is expected to bring.
    Next {
        /// The run, by its name or the beginning of its name; the last run by default.
        run: Option<String>,
        /// Where the result goes as JSON.
        #[command(flatten)]
        json: JsonFile,
    },
    /// The verdicts of commands and of rounds, newest first.
    Verdicts(WantedVerdicts),
    /// Write the sources of a verdict into a folder, and print the command that gave it.
    Repeat {
        /// The run, by its name, the beginning of its name, or `latest`.
        run: String,
        /// The folder, which is made if it does not exist, and must be empty otherwise.
        #[arg(long, value_name = "FOLDER")]
        into: PathBuf,
    },
    /// Add the records of another machine's ledger, with its chain of digests and the sources beside it. What is here is not
    /// added again.
    Import {
        /// The other ledger.
        other: PathBuf,
    },
    /// Walk the chain of digests, and those of imported ledgers, and say whether every record is as it was written.
    Verify,
}

/// How many are listed.
#[derive(Debug, Args)]
pub struct Newest {
    /// List the newest N.
    #[arg(long, value_name = "N", default_value_t = 50)]
    newest: usize,
    /// All of them.
    #[arg(long, conflicts_with = "newest")]
    all: bool,
}

impl Newest {
    /// The highest number that is listed.
    pub fn most(&self) -> usize {
        if self.all { usize::MAX } else { self.newest }
    }
}

/// `ledger verdicts`.
#[derive(Debug, Args)]
pub struct WantedVerdicts {
    /// Only those on this task or suite.
    #[arg(long)]
    pub task: Option<String>,
    /// Only those on this kernel: its digest, or the beginning of it.
    #[arg(long, value_name = "DIGEST")]
    pub kernel: Option<String>,
    /// Only those for this client, as GAUNTLET_CLIENT said.
    #[arg(long)]
    pub client: Option<String>,
    /// How many.
    #[command(flatten)]
    pub newest: Newest,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}
