//! The arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gauntlet_http::Scope;

use super::{FarmOptions, LedgerFile};

/// `serve`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  gauntlet serve token add alice --scope submit    prints a token, once
  gauntlet serve                                   at http://127.0.0.1:8485
  gauntlet serve --farm slurm --sbatch=--gres=gpu:1   jobs of Slurm run the tickets, in place of this machine
  gauntlet serve --no-work                         `gauntlet queue work` runs the tickets

docs/guide/serve.md has the addresses, and how to run the server as a service of the system.

Exit codes:
  0  it was told to end, by an interrupt or by SIGTERM; tickets stay, and jobs that were started go on
  2  the address cannot be listened at
  3  the queue cannot be used, or Slurm is not there"
)]
pub struct ServeArguments {
    /// Where connections are accepted. Beyond this machine, put a server before it that encrypts.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8485")]
    pub listen: SocketAddr,
    /// A further name under which the server may be asked, such as judge.example.org; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Serve agents at /mcp, as `gauntlet mcp` does: the files of this folder are tasks and kernels.
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Leave running tickets to `gauntlet queue work`.
    #[arg(long, conflicts_with_all = ["farm", "sbatch", "sbatch_check", "most"])]
    pub no_work: bool,
    /// Where tickets are run.
    #[command(flatten)]
    pub farm: FarmOptions,
    /// Where tickets, results and tokens are kept; by default the folder `queue` beside the ledger.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub queue: Option<PathBuf>,
    /// The ledger, in which jobs leave their records, and which pages show.
    #[command(flatten)]
    pub ledger: LedgerFile,
    /// What to do in place of serving.
    #[command(subcommand)]
    pub command: Option<ServeCommand>,
}

/// What `serve` does in place of serving.
#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Make, list or remove tokens. A running server heeds it at once.
    Token {
        /// What to do.
        #[command(subcommand)]
        command: TokenCommand,
    },
}

/// `serve token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it: only its digest is kept.
    Add {
        /// Whose it is: the client to whom tries are counted.
        name: String,
        /// What it allows.
        #[arg(long, value_enum)]
        scope: ScopeOfToken,
    },
    /// List the tokens by name.
    List,
    /// Remove a token: it opens nothing any more.
    Remove {
        /// Whose it is.
        name: String,
    },
}

/// What a token allows.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ScopeOfToken {
    /// Look at everything.
    Read,
    /// That, and have kernels judged, and give one's own tickets up.
    Submit,
    /// That, and give up everyone's tickets.
    Admin,
}

impl From<ScopeOfToken> for Scope {
    fn from(scope: ScopeOfToken) -> Self {
        match scope {
            ScopeOfToken::Read => Self::Read,
            ScopeOfToken::Submit => Self::Submit,
            ScopeOfToken::Admin => Self::Admin,
        }
    }
}
