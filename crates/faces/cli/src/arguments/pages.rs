//! The arguments of `pages`.

use std::path::PathBuf;

use clap::Args;

use super::LedgerFile;

/// `pages`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet pages --out site                       then open site/index.html
  gauntlet pages --out site --newest 1000         the newest thousand verdicts on the first page

docs/guide/pages.md says what is on them; examples/ci publishes them.")]
pub struct PagesArguments {
    /// Where the pages are written; made if it does not exist. Pages of the same names are replaced, and nothing is removed.
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// How many verdicts the first page lists, the newest ones. Whatever a page links to is written too.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub newest: usize,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerFile,
}
