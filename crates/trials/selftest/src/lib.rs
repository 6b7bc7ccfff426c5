//! The self-test of the judge: how often its verdicts are wrong when the truth is known, whether it catches candidates
//! that cheat, whether it leaves odd but honest ones alone, and what it finds within a given time. It is a program of its own,
//! `gauntlet-selftest`, which `gauntlet selftest` starts.

pub mod burner;
pub mod characteristics;
pub mod cheats;
mod command;
pub mod honest;
pub mod power;
mod tables;

pub use command::main;

use std::io;

use thiserror::Error;

/// Why a worker of the self-test cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// No such worker has this name.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// A cheat, or an honest worker.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] gauntlet_kernels_cpu::EngineError),
    /// Standard input or output broke.
    #[error("the coordinator is gone: {0}")]
    Gone(#[from] io::Error),
}
