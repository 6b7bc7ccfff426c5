//! Where the tickets of a queue are run.

use std::path::PathBuf;
use std::sync::Arc;

use gauntlet_queue::Queue;
use gauntlet_worker::Program;

use crate::engine::EngineError;
use crate::farm::Farm;
use crate::here::Here;
use crate::slurm::{Slurm, SlurmOptions};

/// Where the tickets of a queue are run.
#[derive(Debug, Clone)]
pub enum Workplace {
    /// On this machine, one at a time.
    Here,
    /// By jobs of Slurm.
    Slurm(SlurmOptions),
}

impl Workplace {
    /// A farm that runs the tickets of a queue there by this program. Jobs on this machine leave their records in this ledger, those of a
    /// cluster in the ledger of their node.
    ///
    /// # Errors
    /// If Slurm's commands are not installed, or its folder beside the queue cannot be made.
    pub fn farm(&self, queue: Arc<Queue>, program: Program, ledger: PathBuf) -> Result<Farm, EngineError> {
        Ok(match self {
            Self::Here => Farm::new(queue, Here::new(program, ledger), 1),
            Self::Slurm(options) => {
                let folder = queue.tickets().with_file_name("slurm");
                let slurm = Slurm::new(program, folder, options.clone())?;
                Farm::new(queue, slurm, options.most)
            }
        })
    }
}
