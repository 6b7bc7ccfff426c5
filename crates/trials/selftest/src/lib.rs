//! The self-test of the judge: how often its verdicts are wrong when the truth is known, whether it catches candidates
//! that cheat, whether it leaves odd but honest ones alone, and what it finds within a given time. It is a program of its own,
//! `gauntlet-selftest`, which `gauntlet selftest` starts.
//!
//! ```
//! use gauntlet_selftest::characteristics::effect::Effect;
//! use gauntlet_stats::{Criteria, Decision};
//!
//! // The truth of a trial is known: the baseline's calls are slowed by 5 %, say, or not at all.
//! let criteria = Criteria::default();
//! assert!(Effect::FASTER.is_found_by(Decision::Adopt, &criteria));
//! assert!(Effect::NONE.forbids_adoption(&criteria));
//! assert!(Effect::of(-0.05).log_speedup() < 0.0);
//! ```

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
