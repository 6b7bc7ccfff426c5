//! The arguments of `history`.

use clap::Args;

use super::{JsonFile, LedgerFile};

/// `history`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet history                                    every kernel of this repository that the ledger knows
  gauntlet history --task norm --kernel src/norm.py:fast
  gauntlet history --json history.json

docs/guide/history.md says how to read it.")]
pub struct History {
    /// Only on this task.
    #[arg(long)]
    pub task: Option<String>,
    /// Only on this case.
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Only of this kernel, as it is named at the root of the repository, such as src/softmax.py:fast.
    #[arg(long)]
    pub kernel: Option<String>,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerFile,
}
