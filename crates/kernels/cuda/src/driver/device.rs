//! The GPUs of this machine.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};

use gauntlet_device::Arch;
use thiserror::Error;

use super::error::{DriverError, call, check};
use crate::plan::{Code, Target};

/// A GPU, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its number, from 0.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Major and minor.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub processors: u32,
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// Bytes of level-2 cache.
    pub l2_bytes: usize,
    /// Maximum dynamic shared memory of a block in bytes.
    pub block_shared_bytes: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub processor_shared_bytes: u32,
    /// Most resident threads of a multiprocessor.
    pub processor_threads: u32,
    /// Its PCI address, as NVML uses it.
    pub pci_bus: String,
    pub(super) handle: CUdevice,
}

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

/// The driver's version: 1000 × major + 10 × minor.
///
/// # Errors
/// If there is no driver, or one too old for the functions called here.
pub fn driver_version() -> Result<i32, DriverError> {
    static VERSION: OnceLock<Result<i32, DriverError>> = OnceLock::new();
    VERSION.get_or_init(initialise).clone()
}

fn initialise() -> Result<i32, DriverError> {
    // SAFETY: this loads libcuda.so to see whether it exists; its initialisers only set up its own state.
    if !unsafe { sys::is_culib_present() } {
        return Err(DriverError::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the driver is there; both functions are in every driver.
    check("cuDriverGetVersion", unsafe {
        sys::cuDriverGetVersion(&raw mut version)
    })?;
    // Calling a function that the driver lacks makes the loader panic. The newest function called here,
    // cuEventElapsedTime_v2, needs 12.8.
    if version < 12080 {
        return Err(DriverError::TooOld { version });
    }
    // SAFETY: as above.
    check("cuInit", unsafe { sys::cuInit(0) })?;
    Ok(version)
}

impl Device {
    /// All GPUs.
    ///
    /// # Errors
    /// If there is no driver, or it reports an error.
    pub fn all() -> Result<Vec<Self>, DriverError> {
        (0..count()?).map(Self::describe).collect()
    }

    /// The GPU with this number.
    ///
    /// # Errors
    /// If there is no GPU with this number, or no driver.
    pub fn new(ordinal: usize) -> Result<Self, DriverError> {
        match count()? {
            count if ordinal < count => Self::describe(ordinal),
            count => Err(DriverError::NoDevice { ordinal, count }),
        }
    }

    /// What a description of a worker says of its GPU, by name.
    pub fn properties(&self) -> BTreeMap<String, String> {
        let (major, minor) = self.compute_capability;
        let version = driver_version().unwrap_or(0);
        [
            ("gpu", self.name.clone()),
            ("pci-bus", self.pci_bus.clone()),
            ("compute-capability", format!("{major}.{minor}")),
            ("multiprocessors", self.processors.to_string()),
            ("memory-bytes", self.memory_bytes.to_string()),
            ("l2-bytes", self.l2_bytes.to_string()),
            (
                "driver-cuda",
                format!("{}.{}", version / 1000, version % 1000 / 10),
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// What plans need to know of the GPU. Machine code for sm_80 also runs on compute capabilities 8.6 and 8.7 (CUDA C++
    /// Programming Guide, binary compatibility); instructions of `sm_90a` exist in 9.0
    /// only, those of `sm_100a` in 10.0 only. Other GPUs newer than Hopper run the kernels that need nothing of it, planned as
    /// for sm_89 and built for their own compute capability.
    ///
    /// # Errors
    /// If there are no built-in kernels for the GPU's compute capability.
    pub fn target(&self) -> Result<Target, UnsupportedGpu> {
        let arch = match self.compute_capability {
            (10, 0) => Arch::Sm100a,
            (9, 0) => Arch::Sm90a,
            (8, 9) | (10..=12, _) => Arch::Sm89,
            (8, 0..=8) => Arch::Sm80,
            capability => {
                return Err(UnsupportedGpu {
                    ordinal: self.ordinal,
                    name: self.name.clone(),
                    capability,
                });
            }
        };
        Ok(Target {
            arch,
            processors: self.processors,
            block_shared_bytes: self.block_shared_bytes as usize,
            processor_shared_bytes: self.processor_shared_bytes as usize,
        })
    }

    /// What the machine code of a kernel is built for on this GPU.
    ///
    /// # Errors
    /// As [`target`](Self::target).
    pub fn code(&self) -> Result<Code, UnsupportedGpu> {
        let arch = self.target()?.arch;
        Ok(match self.compute_capability {
            (10, 0) | (..=9, _) => arch.into(),
            (major, minor) => Code::Newer(major, minor),
        })
    }

    fn describe(ordinal: usize) -> Result<Self, DriverError> {
        let mut handle = 0;
        let mut memory_bytes = 0;
        let mut name = [0 as c_char; 256];
        let mut bus = [0 as c_char; 32];
        // SAFETY: the driver is initialised, the number is that of a device, and the buffers have the lengths passed.
        unsafe {
            call!(cuDeviceGet(
                &raw mut handle,
                i32::try_from(ordinal).unwrap_or(i32::MAX)
            ))?;
            call!(cuDeviceTotalMem_v2(&raw mut memory_bytes, handle))?;
            call!(cuDeviceGetName(name.as_mut_ptr(), 256, handle))?;
            call!(cuDeviceGetPCIBusId(bus.as_mut_ptr(), 32, handle))?;
        }
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: as above.
            unsafe { call!(cuDeviceGetAttribute(&raw mut value, attribute, handle)) }?;
            Ok::<_, DriverError>(u32::try_from(value).unwrap_or(0))
        };
        Ok(Self {
            ordinal,
            name: text(&name),
            compute_capability: (
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            processors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_bytes,
            l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
            block_shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            processor_shared_bytes: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            processor_threads: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            pci_bus: text(&bus),
            handle,
        })
    }
}

fn count() -> Result<usize, DriverError> {
    driver_version()?;
    let mut count = 0;
    // SAFETY: the driver is initialised.
    unsafe { call!(cuDeviceGetCount(&raw mut count)) }?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// A zero-terminated string.
fn text(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters
        .iter()
        .map(|character| character.cast_unsigned())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With or without a driver: nothing panics, and the error names the missing part.
    #[test]
    fn a_machine_without_a_driver_is_told() {
        match Device::all() {
            Ok(devices) => {
                let error = Device::new(devices.len()).unwrap_err();
                assert!(matches!(error, DriverError::NoDevice { .. }), "{error}");
                assert!(
                    devices
                        .iter()
                        .all(|device| device.processors > 0 && !device.name.is_empty())
                );
            }
            Err(DriverError::NoDriver) => {
                assert_eq!(Device::new(0).unwrap_err(), DriverError::NoDriver);
            }
            // A driver without a device, or one too old.
            Err(error) => {
                assert!(error.to_string().contains("driver") || error.to_string().contains("cuInit"))
            }
        }
    }

    fn gpu(name: &str, compute_capability: (u32, u32)) -> Device {
        Device {
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
            let target = gpu("a GPU", capability).target().unwrap();
            assert_eq!((target.arch, target.processors), (arch, 58), "{capability:?}");
            assert_eq!(target.block_shared_bytes, 99 << 10);
            let code = gpu("a GPU", capability).code().unwrap();
            assert_eq!(code.arch(), arch);
            let newer = matches!(capability, (10, 3) | (12, 0));
            assert_eq!(code.to_string() == arch.to_string(), !newer, "{code}");
        }
        assert_eq!(gpu("RTX 5090", (12, 0)).code().unwrap().to_string(), "sm_120");
    }

    #[test]
    fn a_gpu_that_cannot_run_the_kernels_is_named_with_what_they_need() {
        for (name, capability) in [("Tesla T4", (7, 5)), ("a GPU of the future", (13, 0))] {
            let error = gpu(name, capability).target().unwrap_err();
            let expected = format!(
                "GPU 1, {name}: the built-in CUDA kernels need compute capability 8.0 to 9.0 (A100, L4, RTX 30 and 40, \
                 H100, H200, GH200) or 10.0 to 12.9 (B200, RTX 50); this GPU has {}.{}. ",
                capability.0, capability.1
            );
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn names_end_at_their_zero() {
        let characters = [b'H', b'2', 0, b'x'].map(|byte| byte as c_char);
        assert_eq!(text(&characters), "H2");
    }
}
