//! What a plan depends on of the GPU that it is for.

use gauntlet_device::{Arch, Device};

/// What a plan depends on of the GPU that it is for: the instruction set, and the sizes of its multiprocessors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The instruction set that kernels are built for.
    pub arch: Arch,
    /// Multiprocessors.
    pub processors: u32,
    /// Most bytes of shared memory of a block.
    pub block_shared_bytes: usize,
    /// Bytes of shared memory of a multiprocessor.
    pub processor_shared_bytes: usize,
}

/// Bytes of shared memory that a multiprocessor keeps for itself of each block (CUDA C++ Programming Guide, technical
/// specifications of compute capabilities 8.0 to 9.0).
pub(super) const RESERVED_BYTES: usize = 1024;

impl Target {
    /// A GPU of an architecture with this many multiprocessors; shared memory is that of the architecture's own compute
    /// capability (CUDA C++ Programming Guide, technical specifications): a block may have all of it but 1 KiB.
    pub fn of_arch(arch: Arch, processors: u32) -> Self {
        let processor_shared_bytes = match arch {
            Arch::Sm80 => 164 << 10,
            Arch::Sm89 => 100 << 10,
            Arch::Cpu | Arch::Sm90a | Arch::Sm100a => 228 << 10,
        };
        Self {
            arch,
            processors,
            block_shared_bytes: processor_shared_bytes - RESERVED_BYTES,
            processor_shared_bytes,
        }
    }

    /// A Hopper GPU with this many multiprocessors.
    pub fn hopper(processors: u32) -> Self {
        Self::of_arch(Arch::Sm90a, processors)
    }

    /// The GPU of a description; none if the description has no figures of shared memory, as that of a CPU.
    pub fn of(device: &Device) -> Option<Self> {
        let gpu = device.gpu.as_ref()?;
        Some(Self {
            arch: device.arch,
            processors: device.processors.get() as u32,
            block_shared_bytes: gpu.shared_memory_block.get() as usize,
            processor_shared_bytes: gpu.shared_memory.get() as usize,
        })
    }

    /// Whether a launch may begin before the previous one has ended, which began with Hopper (CUDA C++ Programming Guide,
    /// programmatic dependent launch).
    pub(super) fn overlaps(self) -> bool {
        !matches!(self.arch, Arch::Sm80 | Arch::Sm89)
    }

    /// Blocks with this many bytes of shared memory that fit a multiprocessor.
    pub(super) fn blocks_with(self, shared_bytes: usize) -> usize {
        self.processor_shared_bytes / (shared_bytes + RESERVED_BYTES)
    }
}
