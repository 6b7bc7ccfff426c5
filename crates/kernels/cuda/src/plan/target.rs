//! What a plan depends on of the GPU that it is for.

use std::fmt;

use gauntlet_device::{Arch, Device};
use gauntlet_problems::Operation;
use gauntlet_problems::resources::{COMMON_KERNELS, kernel_arch};

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

/// What machine code is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// An instruction set for which there are kernels.
    Arch(Arch),
    /// The compute capability, major and minor, of a GPU newer than Hopper. No kernel uses its own instructions; it runs the
    /// kernels that need nothing of Hopper.
    Newer(u32, u32),
}

impl Code {
    /// The instruction set whose kernels are built.
    pub fn arch(self) -> Arch {
        match self {
            Self::Arch(arch) => arch,
            Self::Newer(..) => COMMON_KERNELS,
        }
    }
}

impl From<Arch> for Code {
    fn from(arch: Arch) -> Self {
        Self::Arch(arch)
    }
}

/// As the compiler names it.
impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arch(arch) => write!(formatter, "{arch}"),
            Self::Newer(major, minor) => write!(formatter, "sm_{major}{minor}"),
        }
    }
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

    /// What a problem is planned for on this GPU. Blackwell's native kernel multiplies NVFP4 tokens by weights whose scales lie
    /// as its matrix unit takes them; attention and GEMMs of 16-bit tokens take kernels that need nothing of Hopper.
    pub fn for_problem(self, problem: &Operation) -> Self {
        Self {
            arch: kernel_arch(problem, self.arch),
            ..self
        }
    }

    /// The same GPU; if it is a Blackwell, for the kernels that need nothing of Hopper.
    pub fn for_common_kernels(self) -> Self {
        let arch = match self.arch {
            Arch::Sm100a => COMMON_KERNELS,
            arch => arch,
        };
        Self { arch, ..self }
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
