//! A plan on a device.

use std::rc::Rc;

use super::{Library, ServeError};
use crate::engine::Loaded;
use crate::plan::{Memory, Plan};
use gauntlet_cuda::driver::DeviceMemory;

/// The kernels and tables of a plan on a device, and the scratch memory that its calls need.
pub(super) struct Ready {
    /// As [`Plan::variants`].
    pub kernels: Vec<Rc<Loaded>>,
    pub tables: DeviceMemory,
    /// The number of the GPU.
    pub ordinal: usize,
    pub workspace_bytes: usize,
    pub counter_bytes: usize,
}

impl Ready {
    /// Loads the kernels, side by side, and copies the tables. During a capture, work of the host has to be
    /// [relaxed](gauntlet_cuda::driver::RelaxedCapture).
    pub fn new(library: &Library, plan: &dyn Plan, memory: &Memory) -> Result<Self, ServeError> {
        let variants = plan.variants();
        library.load_variants(variants.iter().copied())?;
        Ok(Self {
            kernels: variants
                .into_iter()
                .map(|variant| library.kernel(variant))
                .collect::<Result<_, _>>()?,
            tables: DeviceMemory::from_bytes(library.context(), &memory.tables)?,
            ordinal: library.device().ordinal,
            workspace_bytes: memory.workspace_bytes,
            counter_bytes: memory.counter_bytes,
        })
    }
}
