//! The CUDA executor for commands: which worker serves it, and whether the named GPU is present.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use gauntlet_cuda::compiler::CACHE_VARIABLE;
use gauntlet_cuda::nvml::{Monitor, Neighbours};
use gauntlet_device::Device;
use gauntlet_judge::instruments::Instruments;
use gauntlet_judge::{CudaWorker, DeviceReading, DeviceWatch, ExecutorKind, Workshop};
use gauntlet_scratch::Scratch;
use gauntlet_tournament::Tournament;
use gauntlet_worker::protocol::Description;
use gauntlet_worker::{Culprits, Limits, WorkerCommand, WorkerError, WorkerProcess, culprits};

use crate::arguments::{Measured, MeasuredExecutor};
use crate::commands::devices;
use crate::commands::run::{cpu_worker, environment, worker};
use crate::environment::timeouts;
use crate::error::{CliError, say_line};

/// The device to measure on, and its workers.
pub struct Place {
    /// The device.
    pub device: Device,
    /// Runs its executor's workers.
    pub workshop: Workshop,
    /// The self-description of a GPU's worker; none for a CPU.
    pub gpu: Option<Description>,
}

impl Place {
    /// This machine's CPU, or the named GPU if it is present.
    pub fn of(measured: &Measured) -> Result<Self, CliError> {
        let timeouts = timeouts()?;
        let workshop = |command| Workshop::new(command, timeouts, Limits::default());
        match (measured.executor(), measured.device.as_deref()) {
            (MeasuredExecutor::Cpu, None | Some("host")) => Ok(Self {
                device: Device::host(),
                workshop: workshop(cpu_worker(None)?)?,
                gpu: None,
            }),
            (MeasuredExecutor::Cpu, Some(name)) => Err(CliError::bad_input(
                format!("`{name}` cannot be measured by the cpu executor, which runs on this machine"),
                "leave --device out, or add --executor cuda for a GPU that is here; `gauntlet tune --executor model` ranks \
                 schedules for others",
            )),
            (MeasuredExecutor::Cuda, None) => Err(CliError::bad_input(
                "`--executor cuda` without a device",
                "name the GPU that is here with --device, such as h200; `gauntlet devices` lists them",
            )),
            (MeasuredExecutor::Cuda, Some(name)) => {
                let device = devices::find(name)?;
                let description = present(&device)?;
                Ok(Self {
                    device,
                    workshop: workshop(live_worker()?)?
                        .with_instruments(Instruments::find())
                        .with_device_watch(watch(&description)),
                    gpu: Some(description),
                })
            }
        }
    }
}

impl Place {
    /// The GPU that is here, whichever it is: enough for kernels that bring their own program. If there is no
    /// description of it, the device says only what its driver tells.
    pub fn of_any_gpu() -> Result<Self, CliError> {
        let description = live_description()?;
        let mut known = Device::builtin_names().filter_map(|name| Device::builtin(name).ok());
        let device = known
            .find(|device| mismatch(device, &description).is_none())
            .unwrap_or_else(|| undescribed(&description));
        Ok(Self {
            device,
            workshop: Workshop::new(live_worker()?, timeouts()?, Limits::default())?
                .with_instruments(Instruments::find())
                .with_device_watch(watch(&description)),
            gpu: Some(description),
        })
    }
}

/// Reads a GPU's state through NVML.
#[derive(Debug)]
struct NvmlWatch(Monitor);

impl DeviceWatch for NvmlWatch {
    fn read(&self) -> Option<DeviceReading> {
        let reading = self.0.read().ok()?;
        Some(DeviceReading {
            clock: f64::from(reading.clock),
            power: reading.power,
            temperature: f64::from(reading.temperature),
            throttling: reading.throttling.into_iter().map(str::to_owned).collect(),
            processes: reading.processes,
        })
    }
}

/// A watch over the GPU that a worker describes; none without NVML, which `gauntlet doctor` says.
fn watch(gpu: &Description) -> Option<Arc<dyn DeviceWatch>> {
    let monitor = Monitor::at(gpu.details.get("pci-bus")?).ok()?;
    Some(Arc::new(NvmlWatch(monitor)))
}

fn undescribed(description: &Description) -> Device {
    let detail = |name: &str| description.details.get(name).map(String::as_str);
    let number = |name: &str| detail(name).and_then(|text| text.parse().ok());
    let capability = detail("compute-capability")
        .and_then(|text| text.split_once('.'))
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    Device::undescribed(
        &description.device,
        capability.unwrap_or_default(),
        number("multiprocessors").unwrap_or(1.0),
        number("l2-bytes"),
    )
}

/// The workers of the CUDA executor for a set of rounds.
#[derive(Default)]
pub struct Gpus {
    /// By device name.
    pub workers: BTreeMap<String, CudaWorker>,
    /// The self-descriptions of the workers, for the record.
    pub environment: BTreeMap<String, String>,
}

/// Finds the workers for the rounds on the CUDA executor. If nothing is to be `measured`, a missing GPU is not an
/// error: candidates are compiled anyway.
pub fn workers(tournament: &Tournament, measured: bool) -> Result<Gpus, CliError> {
    let mut gpus = Gpus::default();
    for round in &tournament.rounds {
        let device = &round.setting.device;
        if round.file().executor != ExecutorKind::Cuda || gpus.workers.contains_key(&device.name) {
            continue;
        }
        let worker = match present(device) {
            Ok(description) => {
                gpus.environment.extend(told(&description));
                CudaWorker {
                    command: live_worker()?,
                    is_here: true,
                    instruments: Instruments::find(),
                    device_watch: watch(&description),
                }
            }
            Err(failure) if measured => return Err(failure),
            Err(failure) => {
                say_line(format_args!(
                    "note: {failure}; here candidates are compiled and not run"
                ));
                CudaWorker {
                    command: compiling_worker(device)?,
                    is_here: false,
                    instruments: Instruments::default(),
                    device_watch: None,
                }
            }
        };
        gpus.workers.insert(device.name.clone(), worker);
    }
    Ok(gpus)
}

/// The properties that figures depend on, including those of a GPU.
pub fn environment_with(gpu: Option<&Description>) -> BTreeMap<String, String> {
    environment()
        .into_iter()
        .chain(gpu.into_iter().flat_map(told))
        .collect()
}

/// The name in an environment of what no other GPU has.
pub const GPU_UUID: &str = "gpu-uuid";

/// The name in an environment of what the machine's other GPUs did.
pub const GPU_NEIGHBOURS: &str = "gpu-neighbours";

fn told(description: &Description) -> BTreeMap<String, String> {
    let details = description.details.iter();
    let mut told: BTreeMap<String, String> = details
        .map(|(name, value)| (format!("gpu-{name}"), value.clone()))
        .collect();
    told.insert("gpu".to_owned(), description.device.clone());
    let neighbours = description
        .details
        .get("pci-bus")
        .and_then(|own| Neighbours::of(own).ok());
    if let Some(Neighbours { busy, all }) = neighbours {
        let sentence = format!("{busy} of {all} computed when this began");
        told.insert(GPU_NEIGHBOURS.to_owned(), sentence);
    }
    told
}

/// This program as a worker of the CUDA executor. Compiled kernels are cached across its processes.
fn live_worker() -> Result<WorkerCommand, CliError> {
    let mut command = worker(["worker".into(), "cuda".into()])?;
    command.allowances.may_share_processes = true;
    Ok(with_caches(command, CACHE_VARIABLE))
}

/// The same command with the user's folder of caches: by default a worker's own folder is its folder of caches, but the
/// compiler may be in the user's. `variable` names the folder of compiled kernels, which is shared by all workers.
pub fn with_caches(mut command: WorkerCommand, variable: &str) -> WorkerCommand {
    let Some(caches) = caches() else {
        return command;
    };
    let cubins = std::env::var_os(variable).map_or_else(|| caches.join("gauntlet/cubins"), PathBuf::from);
    if std::fs::create_dir_all(&cubins).is_ok() {
        let text = |path: &PathBuf| path.display().to_string();
        command.environment.extend([
            ("XDG_CACHE_HOME".to_owned(), text(&caches)),
            (variable.to_owned(), text(&cubins)),
        ]);
        command.allowances.folders.push(cubins);
    }
    command
}

/// The same worker, but only compiling, without a GPU.
fn compiling_worker(device: &Device) -> Result<WorkerCommand, CliError> {
    let mut command = live_worker()?;
    command.arguments.extend([
        "--compile-for".into(),
        device.arch.to_string().into(),
        "--processors".into(),
        (device.processors.get() as u32).to_string().into(),
    ]);
    Ok(command)
}

/// The user's folder of caches (XDG base directory specification).
fn caches() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    named.filter(|path| path.is_absolute()).or_else(usual)
}

/// The self-description of the GPU's worker.
fn live_description() -> Result<Description, CliError> {
    let command = live_worker()?;
    let workers_folder =
        Scratch::new().map_err(|error| CliError::broken(format!("no temporary folder: {error}")))?;
    let (timeouts, limits) = (timeouts()?, Limits::default());
    match WorkerProcess::start_within(&command, workers_folder.path(), timeouts, limits) {
        Ok((_, description)) => Ok(description),
        Err(error) => {
            let culprits = culprits(&command, workers_folder.path(), timeouts, limits);
            Err(absent(&error, &culprits))
        }
    }
}

/// The self-description of the GPU's worker, if it is the named GPU.
fn present(device: &Device) -> Result<Description, CliError> {
    let description = live_description()?;
    match mismatch(device, &description) {
        None => Ok(description),
        Some(why) => Err(CliError::bad_input(
            why,
            "name the device that is here (`gauntlet devices` lists those known), or another of this machine's GPUs with \
             GAUNTLET_GPU",
        )),
    }
}

/// Why there is no worker, including the part of its confinement that stops it, if that is the cause.
fn absent(error: &WorkerError, culprits: &Culprits) -> CliError {
    let words = match error {
        WorkerError::Died { stderr_tail, .. } if !stderr_tail.trim().is_empty() => {
            stderr_tail.trim().to_owned()
        }
        error => error.to_string(),
    };
    let stopped_by = match culprits {
        Culprits::None => {
            let remedy = "`gauntlet doctor` says what is missing; without a GPU, `gauntlet check` and `gauntlet compile` \
                          compile, `gauntlet tune` ranks schedules with --executor model, and `gauntlet explain` does without \
                          --measured";
            return CliError::broken(format!("the cuda executor cannot run here: {words}"))
                .with_remedy(remedy);
        }
        Culprits::Any(measures) => {
            let names: Vec<_> = measures.iter().map(|measure| measure.name()).collect();
            format!("it starts without {}", names.join(", or without "))
        }
        Culprits::Several => "it starts unconfined, and not with any one measure left out".to_owned(),
    };
    CliError::broken(format!(
        "the cuda executor is stopped by what confines workers: {stopped_by}. It says: {words}"
    ))
    .with_remedy("docs/explanation/isolation.md says what a worker on a GPU may do; this is a fault of Gauntlet's, so please report it")
}

/// Why the GPU is not the named one; none if it is.
fn mismatch(device: &Device, description: &Description) -> Option<String> {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        words
            .map(str::to_lowercase)
            .filter(|word| !word.is_empty())
            .collect()
    };
    let here = &description.device;
    if words(&device.name).is_disjoint(&words(here)) {
        return Some(format!(
            "the GPU here is an {here}, and not the {} that is asked for",
            device.name
        ));
    }
    let processors = description.details.get("multiprocessors")?;
    let expected = device.processors.get();
    (processors.parse() != Ok(expected)).then(|| {
        format!(
            "the GPU here, an {here}, has {processors} multiprocessors, and the {} that is asked for has {expected}",
            device.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, processors: &str) -> Description {
        Description {
            protocol: gauntlet_worker::protocol::VERSION,
            worker: "gauntlet cuda".to_owned(),
            device: name.to_owned(),
            details: BTreeMap::from([("multiprocessors".to_owned(), processors.to_owned())]),
            ..Description::default()
        }
    }

    #[test]
    fn a_gpu_is_known_by_its_name_and_its_processors() {
        let (h200, h100) = (Device::builtin("h200").unwrap(), Device::builtin("h100").unwrap());
        assert_eq!(mismatch(&h200, &gpu("NVIDIA H200", "132")), None);
        assert_eq!(mismatch(&h100, &gpu("NVIDIA H100 80GB HBM3", "132")), None);
        let other = mismatch(&h200, &gpu("NVIDIA H100 80GB HBM3", "132")).unwrap();
        assert!(
            other.contains("NVIDIA H100") && other.contains("not the h200"),
            "{other}"
        );
        let fewer = mismatch(&h100, &gpu("NVIDIA H100 PCIe", "114")).unwrap();
        assert!(fewer.contains("114") && fewer.contains("132"), "{fewer}");
    }

    #[test]
    fn a_gpu_without_a_description_is_what_its_driver_tells() {
        let mut other = gpu("NVIDIA GeForce RTX 4090", "128");
        let details = [("compute-capability", "8.9"), ("l2-bytes", "75497472")];
        other
            .details
            .extend(details.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let device = undescribed(&other);
        assert_eq!(device.name, "NVIDIA GeForce RTX 4090 (not described)");
        assert_eq!(
            (device.arch.to_string().as_str(), device.processors.get()),
            ("sm_89", 128.0)
        );
        assert_eq!(device.memory.l2_size.map(|size| size.get()), Some(75_497_472.0));
    }

    #[test]
    fn what_stops_a_worker_is_named() {
        let died = WorkerError::Died {
            call: "describe",
            status: None,
            stderr_tail: "cuInit: CUDA_ERROR_OPERATING_SYSTEM".to_owned(),
        };
        let own = absent(&died, &Culprits::None).to_string();
        assert!(
            own.ends_with("cannot run here: cuInit: CUDA_ERROR_OPERATING_SYSTEM"),
            "{own}"
        );
        let files = Culprits::Any(vec![gauntlet_worker::Measure::Files]);
        let confined = absent(&died, &files).to_string();
        assert!(
            confined.contains("without rules for files (Landlock)"),
            "{confined}"
        );
    }
}
