//! Requirements for running on a GPU, and their origins.

use std::borrow::Cow;
use std::path::PathBuf;

use gauntlet_cuda::compiler::Compiler;
use gauntlet_cuda::driver::{Device, DriverError, driver_version};
use gauntlet_cuda::nvml::{self, Monitor};
use gauntlet_kernels_cuda::plan::Target;

use super::{Item, State};

const DRIVER: &str = "runs kernels on a GPU (all but `--executor cuda` does without): Ubuntu: `ubuntu-drivers install \
                      --gpgpu`; others: nvidia.com/drivers, 580 or newer";
const NO_KERNELS: &str = "the built-in kernels need compute capability 8.0 to 9.0 (A100, L4, RTX 30 and 40, H100, H200, \
                          GH200) or 10.0 to 12.9 (B200, RTX 50); kernels of your own run on it";
const COMPILER: &str = "compiles kernels, also where there is no GPU: `scripts/install-cuda-compiler`";
const MANAGEMENT: &str = "reads clocks, throttling and power; comes with the driver (Debian, Ubuntu: \
                          libnvidia-compute-580)";
const SANITIZER: &str = "the race-free gate's race checker: `apt-get install cuda-sanitizer-13-0` from NVIDIA's \
                         repository, or the CUDA toolkit";
const PROFILER: &str = "reads hardware counters for the profiled gate: `apt-get install cuda-nsight-compute-13-0` from \
                        NVIDIA's repository, or the CUDA toolkit";

/// Examines all of them. A missing one is not an error: the CPU executor needs none of them.
pub(super) fn examine() -> Vec<Item> {
    let devices = Device::all();
    let mut items = vec![driver()];
    items.extend(devices.iter().flatten().map(device));
    items.push(compiler());
    items.push(management(devices.as_deref().unwrap_or_default()));
    items.push(tool("compute-sanitizer", SANITIZER));
    items.push(tool("ncu", PROFILER));
    items
}

fn driver() -> Item {
    match driver_version() {
        Ok(version) => {
            let name = nvml::driver_name().map_or_else(|_| String::new(), |name| format!("{name}, "));
            let found = format!("{name}CUDA {}.{}", version / 1000, version % 1000 / 10);
            item("NVIDIA driver", State::Good, found, "")
        }
        Err(DriverError::NoDriver) => item("NVIDIA driver", State::Missing, "not found".to_owned(), DRIVER),
        Err(error) => item("NVIDIA driver", State::Missing, error.to_string(), DRIVER),
    }
}

fn device(device: &Device) -> Item {
    let (major, minor) = device.compute_capability;
    let found = format!(
        "{}: compute capability {major}.{minor}, {} multiprocessors, {:.0} GiB, L2 {:.0} MiB",
        device.name,
        device.processors,
        device.memory_bytes as f64 / f64::from(1 << 30),
        device.l2_bytes as f64 / f64::from(1 << 20),
    );
    let what = format!("GPU {}", device.ordinal);
    if Target::of_gpu(device).is_ok() {
        item(what, State::Good, found, "")
    } else {
        item(what, State::Worse, found, NO_KERNELS)
    }
}

fn compiler() -> Item {
    match Compiler::new() {
        Ok(compiler) => {
            let found = format!("{}, {}", compiler.version(), compiler.path().display());
            match driver_version() {
                Ok(version) if version / 1000 < compiler.major_version() => item(
                    "NVRTC",
                    State::Worse,
                    found,
                    "newer than the driver, which may refuse its machine code: update the driver",
                ),
                _ => item("NVRTC", State::Good, found, ""),
            }
        }
        Err(error) => {
            let found = match error {
                gauntlet_cuda::CompileError::NoCompiler { .. } => "not found".to_owned(),
                error => error.to_string(),
            };
            item("NVRTC", State::Missing, found, COMPILER)
        }
    }
}

fn management(devices: &[Device]) -> Item {
    if let Err(error) = nvml::driver_name() {
        return item("NVML", State::Missing, error.to_string(), MANAGEMENT);
    }
    let readings: Vec<_> = devices
        .iter()
        .map(
            |device| match Monitor::new(device).and_then(|monitor| monitor.read()) {
                Ok(reading) => {
                    let held = match reading.throttling.join(", ") {
                        held if held.is_empty() => held,
                        held => format!(", held down by {held}"),
                    };
                    format!(
                        "GPU {}: {} of {} MHz, {:.0} W, {} °C{held}",
                        device.ordinal,
                        reading.clock,
                        reading.highest_clock,
                        reading.power,
                        reading.temperature
                    )
                }
                Err(error) => format!("GPU {}: {error}", device.ordinal),
            },
        )
        .collect();
    item("NVML", State::Good, readings.join("; "), "")
}

fn tool(name: &'static str, remedy: &'static str) -> Item {
    match program(name) {
        Some(path) => item(name, State::Good, path.display().to_string(), ""),
        None => item(name, State::Missing, "not found".to_owned(), remedy),
    }
}

/// Finds a program on `PATH`, or where the CUDA toolkit puts its programs.
fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let toolkit = std::env::var_os("CUDA_HOME").map(PathBuf::from);
    std::env::split_paths(&paths)
        .chain(toolkit.into_iter().map(|folder| folder.join("bin")))
        .chain([PathBuf::from("/usr/local/cuda/bin")])
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn item(what: impl Into<Cow<'static, str>>, state: State, found: String, remedy: &'static str) -> Item {
    Item {
        what: what.into(),
        state,
        found,
        remedy,
    }
}
