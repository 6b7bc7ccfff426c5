//! A problem with its family's knowledge of its kernels.

use std::fmt;
use std::sync::Arc;

use gauntlet_device::Arch;
use gauntlet_operations::{Operation, Schedule};
use gauntlet_task::Sizes;
use gauntlet_task::program::TileProgram;

/// A family's knowledge of the kernels that compute one problem.
pub trait Model: fmt::Debug + Send + Sync {
    /// What a block does under a schedule on an instruction set.
    fn program(&self, schedule: &Schedule, arch: Arch) -> TileProgram;
}

/// A problem whose kernels can be simulated: an operation, and the model that its family has of it.
#[derive(Debug, Clone)]
pub struct Problem {
    operation: Operation,
    model: Arc<dyn Model>,
}

impl Problem {
    /// The problem of an operation with a model of the same sizes.
    pub fn new(operation: Operation, model: impl Model + 'static) -> Self {
        let model = Arc::new(model);
        Self { operation, model }
    }

    /// The problem of sizes of a task; none if no model covers its kernels.
    pub fn of(sizes: &Sizes) -> Option<&Self> {
        sizes.as_any().downcast_ref()
    }

    /// The family's model.
    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// What is computed.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }
}
