//! The arguments of `ledger`.

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
    /// Walk the chain of digests and say whether every record is as it was written.
    Verify,
}
