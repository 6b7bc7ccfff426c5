//! The description of a launch.

use crate::fault::Fault;
use crate::module::Kernel;

/// Most threads of a block.
const MAX_THREADS: u32 = 1024;

/// How a kernel is launched.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'p> {
    /// The kernel.
    pub kernel: &'p Kernel,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Blocks per cluster, in x.
    pub cluster: u32,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The bytes of the kernel's parameters, each at its offset.
    pub parameter: &'p [u8],
    /// Whether it may begin before the previous launch has ended, as soon as all blocks of that launch allow it
    /// (programmatic dependent launch).
    pub overlaps: bool,
    /// The blocks that run, ascending, in whole clusters: a sample of a grid that is too large. Without it all run.
    pub only: Option<&'p [u32]>,
}

impl<'p> Launch<'p> {
    /// A launch without parameters, clusters and dynamic shared memory.
    pub fn of(kernel: &'p Kernel, grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            kernel,
            grid,
            block,
            cluster: 1,
            shared_bytes: 0,
            parameter: &[],
            overlaps: false,
            only: None,
        }
    }

    /// The blocks of the grid.
    fn blocks(&self) -> u32 {
        self.grid.iter().product()
    }

    /// The blocks that run.
    pub(super) fn running(&self) -> Vec<u32> {
        match self.only {
            Some(only) => only.to_vec(),
            None => (0..self.blocks()).collect(),
        }
    }

    /// The number of threads of a block.
    pub(super) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        let (given, taken) = (self.parameter.len(), self.kernel.parameter_bytes);
        if given != taken {
            return Err(Fault::Launch(format!(
                "parameters of {given} bytes for a kernel that takes {taken}"
            )));
        }
        let whole = (1..=MAX_THREADS).contains(&self.threads())
            && self.cluster > 0
            && self.grid[0].is_multiple_of(self.cluster);
        if !whole {
            return Err(Fault::Launch(format!(
                "{} blocks in clusters of {} with {} threads: clusters are whole, and a block has 1 to {MAX_THREADS} threads",
                self.blocks(),
                self.cluster,
                self.threads()
            )));
        }
        let of_whole_clusters = |only: &[u32]| {
            let ascending = only.is_sorted_by(|one, next| one < next);
            let mut clusters = only.chunks(self.cluster as usize);
            let whole = clusters.all(|blocks| {
                let first = blocks[0];
                first.is_multiple_of(self.cluster) && blocks.iter().copied().eq(first..first + self.cluster)
            });
            ascending && whole && only.last().is_none_or(|last| *last < self.blocks())
        };
        match self.only {
            Some(only) if !of_whole_clusters(only) => Err(Fault::Launch(format!(
                "the blocks that run, {only:?}, are no ascending whole clusters of {} among {} blocks",
                self.cluster,
                self.blocks()
            ))),
            _ => Ok(()),
        }
    }
}
