//! The GPUs of this machine.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};

use super::error::{DriverError, call, check};

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
    /// What no other GPU has, as NVIDIA's tools write it: `GPU-8932f937-d72c-4106-c12f-20bd9faed9f6`.
    pub uuid: String,
    /// The driver's name of it.
    pub handle: CUdevice,
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
            ("uuid", self.uuid.clone()),
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

    fn describe(ordinal: usize) -> Result<Self, DriverError> {
        let mut handle = 0;
        let mut memory_bytes = 0;
        let mut name = [0 as c_char; 256];
        let mut bus = [0 as c_char; 32];
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the driver is initialised, the number is that of a device, and the buffers have the lengths passed.
        unsafe {
            call!(cuDeviceGet(
                &raw mut handle,
                i32::try_from(ordinal).unwrap_or(i32::MAX)
            ))?;
            call!(cuDeviceTotalMem_v2(&raw mut memory_bytes, handle))?;
            call!(cuDeviceGetName(name.as_mut_ptr(), 256, handle))?;
            call!(cuDeviceGetPCIBusId(bus.as_mut_ptr(), 32, handle))?;
            call!(cuDeviceGetUuid_v2(&raw mut uuid, handle))?;
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
            uuid: written(uuid.bytes.map(c_char::cast_unsigned)),
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

/// A UUID as NVIDIA's tools write it.
fn written(bytes: [u8; 16]) -> String {
    let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let [a, b, c, d, e] = [0..4, 4..6, 6..8, 8..10, 10..16].map(|range| hex(&bytes[range]));
    format!("GPU-{a}-{b}-{c}-{d}-{e}")
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

    #[test]
    fn a_uuid_is_written_as_by_other_tools() {
        let bytes = [
            0x89, 0x32, 0xf9, 0x37, 0xd7, 0x2c, 0x41, 0x06, 0xc1, 0x2f, 0x20, 0xbd, 0x9f, 0xae, 0xd9, 0x0a,
        ];
        assert_eq!(written(bytes), "GPU-8932f937-d72c-4106-c12f-20bd9faed90a");
    }

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

    #[test]
    fn names_end_at_their_zero() {
        let characters = [b'H', b'2', 0, b'x'].map(|byte| byte as c_char);
        assert_eq!(text(&characters), "H2");
    }
}
