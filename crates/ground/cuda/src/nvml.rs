//! Clocks, throttling, power, temperature and the processes on a device, from NVIDIA's management library where there is one.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use thiserror::Error;

use crate::driver::Device;

/// The names under which the library is installed; the second comes with development packages only.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// Why a device cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("NVML: {message}")]
pub struct MonitorError {
    message: String,
}

/// Watches one device.
#[derive(Debug)]
pub struct Monitor {
    device: nvml_wrapper::Device<'static>,
}

/// The state of a device at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Clock of the multiprocessors in MHz.
    pub clock: u32,
    /// The highest they have, in MHz.
    pub highest_clock: u32,
    /// In watts.
    pub power: f64,
    /// In degrees Celsius.
    pub temperature: u32,
    /// Reasons why the clock is limited; empty if nothing limits it.
    pub throttling: Vec<&'static str>,
    /// The ids of the processes that compute on it, as the driver counts them: in a container they may be those of the
    /// machine. None if the device does not tell.
    pub processes: Option<Vec<u32>>,
}

impl Monitor {
    /// Watches a device.
    ///
    /// # Errors
    /// If there is no NVML, or it does not know the device.
    pub fn new(device: &Device) -> Result<Self, MonitorError> {
        Self::at(&device.pci_bus)
    }

    /// Watches the device at this address of the PCI bus, such as `0000:00:03.0`.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn at(pci_bus: &str) -> Result<Self, MonitorError> {
        let device = library()?.device_by_pci_bus_id(pci_bus).map_err(told)?;
        Ok(Self { device })
    }

    /// Clock of the multiprocessors now, in MHz; none if it cannot be read.
    pub fn clock(&self) -> Option<f64> {
        self.device.clock_info(Clock::SM).ok().map(f64::from)
    }

    /// All there is.
    ///
    /// # Errors
    /// If the device does not tell one of them but its processes.
    pub fn read(&self) -> Result<Reading, MonitorError> {
        let device = &self.device;
        Ok(Reading {
            clock: device.clock_info(Clock::SM).map_err(told)?,
            highest_clock: device.max_clock_info(Clock::SM).map_err(told)?,
            power: f64::from(device.power_usage().map_err(told)?) / 1e3,
            temperature: device.temperature(TemperatureSensor::Gpu).map_err(told)?,
            throttling: names(device.current_throttle_reasons().map_err(told)?),
            processes: device
                .running_compute_processes()
                .ok()
                .map(|processes| processes.iter().map(|process| process.pid).collect()),
        })
    }
}

/// The other GPUs of a machine, as far as this process may see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours {
    /// Those on which a process has a context for computing.
    pub busy: u32,
    /// All of them.
    pub all: u32,
}

impl Neighbours {
    /// The GPUs beside the one at this address of the PCI bus.
    ///
    /// # Errors
    /// If there is no NVML, or it does not count the devices.
    pub fn of(pci_bus: &str) -> Result<Self, MonitorError> {
        let library = library()?;
        let own = library.device_by_pci_bus_id(pci_bus).map_err(told)?.uuid();
        let count = library.device_count().map_err(told)?;
        let mut found = Self { busy: 0, all: 0 };
        for device in (0..count).filter_map(|index| library.device_by_index(index).ok()) {
            if device.uuid().ok() == own.as_ref().ok().cloned() {
                continue;
            }
            found.all += 1;
            let processes = device.running_compute_processes();
            found.busy += u32::from(processes.is_ok_and(|processes| !processes.is_empty()));
        }
        Ok(found)
    }
}

/// NVML's version of the driver, such as `580.95.05`.
///
/// # Errors
/// If there is no NVML.
pub fn driver_name() -> Result<String, MonitorError> {
    library()?.sys_driver_version().map_err(told)
}

/// Loaded once and kept, as what it hands out refers to it.
fn library() -> Result<&'static Nvml, MonitorError> {
    static LIBRARY: OnceLock<Result<Nvml, MonitorError>> = OnceLock::new();
    let open = || {
        let [installed, development] = NAMES.map(|name| Nvml::builder().lib_path(name.as_ref()).init());
        installed.or(development).map_err(told)
    };
    LIBRARY.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn told(error: NvmlError) -> MonitorError {
    let message = match error {
        // The dynamic linker's message names only the last name tried.
        NvmlError::LibloadingError(_) => format!("{} is not found", NAMES[0]),
        error => error.to_string(),
    };
    MonitorError { message }
}

/// The reasons that limit the clock under load. An idle device and clocks fixed by a user are left out: they do not
/// throttle a running kernel.
fn names(reasons: ThrottleReasons) -> Vec<&'static str> {
    [
        (ThrottleReasons::SW_POWER_CAP, "power limit"),
        (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
        (ThrottleReasons::SYNC_BOOST, "sync boost"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "temperature"),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "temperature, by hardware"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "external power brake"),
    ]
    .into_iter()
    .filter(|(reason, _)| reasons.contains(*reason))
    .map(|(_, name)| name)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_do_not_slow_a_kernel_are_not_named() {
        assert!(names(ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING).is_empty());
        let both = ThrottleReasons::SW_POWER_CAP | ThrottleReasons::SW_THERMAL_SLOWDOWN;
        assert_eq!(
            names(both | ThrottleReasons::GPU_IDLE),
            ["power limit", "temperature"]
        );
    }

    #[test]
    fn a_machine_without_nvml_is_told() {
        if let Err(error) = driver_name() {
            assert!(error.to_string().starts_with("NVML: "), "{error}");
        }
    }
}
