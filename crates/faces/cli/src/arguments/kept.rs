//! Arguments for the places where data is kept, shared by several commands.

use std::path::{Path, PathBuf};

use clap::Args;

/// The usual place of the ledger.
const USUAL: &str = ".gauntlet/ledger.sqlite";

/// Where everything that happens is kept.
#[derive(Debug, Args)]
pub struct LedgerFile {
    /// The ledger, in which `run` keeps everything that happens, and commands that judge what they find.
    #[arg(
        id = "ledger",
        long,
        global = true,
        env = "GAUNTLET_LEDGER",
        default_value = USUAL,
        value_name = "FILE"
    )]
    pub path: PathBuf,
}

impl LedgerFile {
    /// Whether nobody has named another place for the ledger than the usual one.
    pub fn is_usual(&self) -> bool {
        self.path == Path::new(USUAL)
    }
}

/// Where the result is recorded.
#[derive(Debug, Args)]
pub struct Recording {
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerFile,
    /// Leave no record of the result in the ledger.
    #[arg(long)]
    pub no_ledger: bool,
}

/// Where a result goes as JSON.
#[derive(Debug, Args)]
pub struct JsonFile {
    /// Write the result as JSON (`-`, or nothing at the end of the line: to standard output, in place of the report).
    #[arg(id = "json", long = "json", value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub path: Option<PathBuf>,
}
