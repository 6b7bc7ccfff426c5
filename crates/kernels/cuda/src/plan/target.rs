//! What a plan depends on of the GPU that it is for.

use std::fmt;

use gauntlet_cuda::driver::Device as Gpu;
use gauntlet_device::{Arch, Device};
use gauntlet_problems::Operation;
use gauntlet_problems::resources::{COMMON_KERNELS, kernel_arch};
use thiserror::Error;

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
    /// What the machine code of a kernel is built for on a GPU.
    ///
    /// # Errors
    /// As [`Target::of_gpu`].
    pub fn of_gpu(gpu: &Gpu) -> Result<Self, UnsupportedGpu> {
        let arch = Target::of_gpu(gpu)?.arch;
        Ok(match gpu.compute_capability {
            (10, 0) | (..=9, _) => arch.into(),
            (major, minor) => Self::Newer(major, minor),
        })
    }

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

/// The GPU cannot run the built-in kernels.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "GPU {ordinal}, {name}: the built-in CUDA kernels need compute capability 8.0 to 9.0 (A100, L4, RTX 30 and 40, H100, \
     H200, GH200) or 10.0 to 12.9 (B200, RTX 50); this GPU has {}.{}. Choose another GPU with CUDA_VISIBLE_DEVICES; kernels of your own run on any GPU",
    capability.0, capability.1
)]
pub struct UnsupportedGpu {
    /// The GPU's number.
    pub ordinal: usize,
    /// The GPU's name.
    pub name: String,
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
}

impl Target {
    /// A GPU of this machine. Machine code for sm_80 also runs on compute capabilities 8.6 and 8.7 (CUDA C++
    /// Programming Guide, binary compatibility); instructions of `sm_90a` exist in 9.0
    /// only, those of `sm_100a` in 10.0 only. Other GPUs newer than Hopper run the kernels that need nothing of it, planned as
    /// for sm_89 and built for their own compute capability.
    ///
    /// # Errors
    /// If there are no built-in kernels for the GPU's compute capability.
    pub fn of_gpu(gpu: &Gpu) -> Result<Self, UnsupportedGpu> {
        let arch = match gpu.compute_capability {
            (10, 0) => Arch::Sm100a,
            (9, 0) => Arch::Sm90a,
            (8, 9) | (10..=12, _) => Arch::Sm89,
            (8, 0..=8) => Arch::Sm80,
            capability => {
                return Err(UnsupportedGpu {
                    ordinal: gpu.ordinal,
                    name: gpu.name.clone(),
                    capability,
                });
            }
        };
        Ok(Self {
            arch,
            processors: gpu.processors,
            block_shared_bytes: gpu.block_shared_bytes as usize,
            processor_shared_bytes: gpu.processor_shared_bytes as usize,
        })
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, compute_capability: (u32, u32)) -> Gpu {
        Gpu {
            ordinal: 1,
            name: name.to_owned(),
            compute_capability,
            processors: 58,
            memory_bytes: 24 << 30,
            l2_bytes: 48 << 20,
            block_shared_bytes: 99 << 10,
            processor_shared_bytes: 100 << 10,
            processor_threads: 1536,
            pci_bus: "0000:00:03.0".to_owned(),
            uuid: "GPU-8932f937-d72c-4106-c12f-20bd9faed90a".to_owned(),
            handle: 0,
        }
    }

    #[test]
    fn code_is_built_for_what_the_gpu_runs() {
        for (capability, arch) in [
            ((8, 0), Arch::Sm80),
            ((8, 6), Arch::Sm80),
            ((8, 9), Arch::Sm89),
            ((9, 0), Arch::Sm90a),
            ((10, 0), Arch::Sm100a),
            ((10, 3), Arch::Sm89),
            ((12, 0), Arch::Sm89),
        ] {
            let target = Target::of_gpu(&gpu("a GPU", capability)).unwrap();
            assert_eq!((target.arch, target.processors), (arch, 58), "{capability:?}");
            assert_eq!(target.block_shared_bytes, 99 << 10);
            let code = Code::of_gpu(&gpu("a GPU", capability)).unwrap();
            assert_eq!(code.arch(), arch);
            let newer = matches!(capability, (10, 3) | (12, 0));
            assert_eq!(code.to_string() == arch.to_string(), !newer, "{code}");
        }
        assert_eq!(
            Code::of_gpu(&gpu("RTX 5090", (12, 0))).unwrap().to_string(),
            "sm_120"
        );
    }

    #[test]
    fn a_gpu_that_cannot_run_the_kernels_is_named_with_what_they_need() {
        for (name, capability) in [("Tesla T4", (7, 5)), ("a GPU of the future", (13, 0))] {
            let error = Target::of_gpu(&gpu(name, capability)).unwrap_err();
            let expected = format!(
                "GPU 1, {name}: the built-in CUDA kernels need compute capability 8.0 to 9.0 (A100, L4, RTX 30 and 40, \
                 H100, H200, GH200) or 10.0 to 12.9 (B200, RTX 50); this GPU has {}.{}. ",
                capability.0, capability.1
            );
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }
}
