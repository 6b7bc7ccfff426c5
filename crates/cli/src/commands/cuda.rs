//! The CUDA executor as commands need it: which worker serves it, and whether the GPU that is named is here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gauntlet_device::Device;
use gauntlet_judge::instruments::Instruments;
use gauntlet_judge::{CudaWorker, ExecutorKind, Workshop};
use gauntlet_kernels_cuda::compiler::CACHE_VARIABLE;
use gauntlet_tournament::Tournament;
use gauntlet_worker::protocol::Description;
use gauntlet_worker::{Culprits, Limits, Patience, WorkerCommand, WorkerError, WorkerProcess, culprits};

use crate::arguments::{Measured, MeasuredExecutor};
use crate::commands::devices;
use crate::commands::run::{cpu_worker, environment};
use crate::trouble::{Trouble, say};

/// What is measured on, and what measures there.
pub struct Place {
    /// The device.
    pub device: Device,
    /// Runs its executor's workers.
    pub workshop: Workshop,
    /// What a GPU's worker told of itself; none of a CPU's.
    pub gpu: Option<Description>,
}

impl Place {
    /// This machine's CPU, or the GPU named if it is the one that is here.
    pub fn of(measured: &Measured) -> Result<Self, Trouble> {
        let workshop = |command| Workshop::new(command, Patience::default(), Limits::default());
        match (measured.executor, measured.device.as_deref()) {
            (MeasuredExecutor::Cpu, None | Some("host")) => Ok(Self {
                device: Device::host(),
                workshop: workshop(cpu_worker(None)?)?,
                gpu: None,
            }),
            (MeasuredExecutor::Cpu, Some(name)) => Err(Trouble::bad_input(
                format!("`{name}` cannot be measured by the cpu executor, which runs on this machine"),
                "leave --device out, or add --executor cuda for a GPU that is here; what the model expects of others, \
                 --executor model of `gauntlet run` and `gauntlet tune` tells",
            )),
            (MeasuredExecutor::Cuda, None) => Err(Trouble::bad_input(
                "`--executor cuda` without a device",
                "name the GPU that is here with --device, such as h200; `gauntlet devices` lists them",
            )),
            (MeasuredExecutor::Cuda, Some(name)) => {
                let device = devices::find(name)?;
                let description = present(&device)?;
                Ok(Self {
                    device,
                    workshop: workshop(live_worker()?)?.with_instruments(Instruments::find()),
                    gpu: Some(description),
                })
            }
        }
    }
}

/// What serves the CUDA executor of some rounds.
#[derive(Default)]
pub struct Gpus {
    /// By the name of the device.
    pub workers: BTreeMap<String, CudaWorker>,
    /// What their workers told, for the record.
    pub environment: BTreeMap<String, String>,
}

/// What serves the CUDA executor in the rounds that ask for it. Where nothing is to be `measured`, a GPU that is not here is no obstacle: candidates are compiled all the same.
pub fn workers(tournament: &Tournament, measured: bool) -> Result<Gpus, Trouble> {
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
                }
            }
            Err(trouble) if measured => return Err(trouble),
            Err(trouble) => {
                say(&format!("note: {trouble}; candidates are compiled and not run\n"));
                CudaWorker {
                    command: compiling_worker(device)?,
                    is_here: false,
                    instruments: Instruments::default(),
                }
            }
        };
        gpus.workers.insert(device.name.clone(), worker);
    }
    Ok(gpus)
}

/// What figures depend on, those of a GPU too.
pub fn environment_with(gpu: Option<&Description>) -> BTreeMap<String, String> {
    environment()
        .into_iter()
        .chain(gpu.into_iter().flat_map(told))
        .collect()
}

fn told(description: &Description) -> BTreeMap<String, String> {
    let details = description.details.iter();
    let mut told: BTreeMap<String, String> = details
        .map(|(name, value)| (format!("gpu-{name}"), value.clone()))
        .collect();
    told.insert("gpu".to_owned(), description.device.clone());
    told
}

/// This very program, serving the CUDA executor. Compiled kernels are kept from one of its processes to the next.
fn live_worker() -> Result<WorkerCommand, Trouble> {
    let mut command = WorkerCommand {
        arguments: vec!["worker".into(), "cuda".into()],
        ..cpu_worker(None)?
    };
    // A worker's own folder is its folder of caches otherwise, and the compiler may be in the user's.
    let Some(caches) = caches() else {
        return Ok(command);
    };
    let cubins =
        std::env::var_os(CACHE_VARIABLE).map_or_else(|| caches.join("gauntlet/cubins"), PathBuf::from);
    if std::fs::create_dir_all(&cubins).is_ok() {
        let text = |path: &PathBuf| path.display().to_string();
        command.environment.extend([
            ("XDG_CACHE_HOME".to_owned(), text(&caches)),
            (CACHE_VARIABLE.to_owned(), text(&cubins)),
        ]);
        command.allowances.folders.push(cubins);
    }
    Ok(command)
}

/// The same without a GPU.
fn compiling_worker(device: &Device) -> Result<WorkerCommand, Trouble> {
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

/// What the GPU's worker tells of itself, if it is the GPU named.
fn present(device: &Device) -> Result<Description, Trouble> {
    let command = live_worker()?;
    let yard =
        tempfile::tempdir().map_err(|error| Trouble::broken(format!("no temporary folder: {error}")))?;
    let (patience, limits) = (Patience::default(), Limits::default());
    let description = match WorkerProcess::start_within(&command, yard.path(), patience, limits) {
        Ok((_, description)) => description,
        Err(error) => {
            let culprits = culprits(&command, yard.path(), patience, limits);
            return Err(absent(&error, &culprits));
        }
    };
    match mismatch(device, &description) {
        None => Ok(description),
        Some(why) => Err(Trouble::bad_input(
            why,
            "name the device that is here (`gauntlet devices` lists those known), or another of this machine's GPUs with \
             GAUNTLET_GPU",
        )),
    }
}

/// Why there is no worker, and what of its confinement stops it if that does.
fn absent(error: &WorkerError, culprits: &Culprits) -> Trouble {
    let words = match error {
        WorkerError::Died { last_words, .. } if !last_words.trim().is_empty() => last_words.trim().to_owned(),
        error => error.to_string(),
    };
    let stopped_by = match culprits {
        Culprits::None => {
            let remedy = "`gauntlet doctor` says what is missing; without a GPU, `gauntlet check` and `gauntlet compile` \
                          compile, `gauntlet run` and `gauntlet tune` predict with --executor model, and `gauntlet explain` \
                          does without --measured";
            return Trouble::broken(format!("the cuda executor cannot run here: {words}"))
                .with_remedy(remedy);
        }
        Culprits::Any(measures) => {
            let names: Vec<_> = measures.iter().map(|measure| measure.name()).collect();
            format!("it starts without {}", names.join(", or without "))
        }
        Culprits::Several => "it starts unconfined, and not with any one measure left out".to_owned(),
    };
    Trouble::broken(format!(
        "the cuda executor is stopped by what confines workers: {stopped_by}. It says: {words}"
    ))
    .with_remedy("docs/isolation.md says what a worker on a GPU may do; this is a fault of Gauntlet's, so please report it")
}

/// Why the GPU is not the one named; none if it is.
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
    fn what_stops_a_worker_is_named() {
        let died = WorkerError::Died {
            call: "describe",
            status: None,
            last_words: "cuInit: CUDA_ERROR_OPERATING_SYSTEM".to_owned(),
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
