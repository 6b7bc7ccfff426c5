//! Workers that only a self-test starts.

use clap::Subcommand;
use gauntlet_cli::error::CliError;
use gauntlet_cli::exit::Exit;
use gauntlet_cli::{answer, cpu_host};

use crate::characteristics::slowed::Slowed;
use crate::{ServeError, cheats, honest};

/// A worker to serve on standard input and output.
#[derive(Debug, Subcommand)]
pub enum Worker {
    /// A candidate that cheats.
    Cheat {
        /// Its name, as `--cheats` lists it.
        name: String,
    },
    /// An odd but honest worker.
    Zoo {
        /// Its name, as `--honest` lists it.
        name: String,
    },
    /// This machine's CPU.
    Cpu {
        /// Take longer for each call by this fraction of it.
        #[arg(long, value_name = "FRACTION", value_parser = fraction)]
        slowed_by: Option<f64>,
        /// amx, avx512, avx2, neon or portable; the best there is by default.
        #[arg(long, env = "GAUNTLET_SIMD")]
        simd: Option<String>,
        /// Threads; as many as there are processors by default.
        #[arg(long, env = "GAUNTLET_THREADS")]
        threads: Option<usize>,
    },
}

impl Worker {
    /// Answers requests until standard input ends.
    pub fn serve(self) -> Result<Exit, CliError> {
        match self {
            Self::Cheat { name } => ended(cheats::serve(&name), "--cheats"),
            Self::Zoo { name } => ended(honest::serve(&name), "--honest"),
            Self::Cpu {
                slowed_by,
                simd,
                threads,
            } => {
                let mut honest = cpu_host(simd.as_deref(), threads)?;
                match slowed_by {
                    None => answer(&mut honest),
                    Some(share) => answer(&mut Slowed::new(honest, share)),
                }
            }
        }
    }
}

/// How serving a worker ended; `option` lists the names.
fn ended(served: Result<(), ServeError>, option: &str) -> Result<Exit, CliError> {
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error @ ServeError::Unknown { .. }) => Err(CliError::bad_input(
            error.to_string(),
            format!("`gauntlet selftest {option}` names them"),
        )),
        Err(error) => Err(CliError::broken(error.to_string())),
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err("give a fraction between 0 and 1, such as 0.05".to_owned()),
    }
}
