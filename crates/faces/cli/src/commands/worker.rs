//! `gauntlet worker`.

mod cuda;
mod native;
mod python;

use gauntlet_host_cpu::CpuHost;
use gauntlet_kernels_cpu::EngineOptions;
use gauntlet_selftest::characteristics::slowed::Slowed;
use gauntlet_selftest::{ServeError, cheats, honest};
use gauntlet_worker::{Service, serve};

use crate::arguments::{Worker, WorkerName};
use crate::error::CliError;
use crate::exit::Exit;

/// Serves an executor until standard input ends.
pub fn worker(arguments: &Worker) -> Result<Exit, CliError> {
    match (arguments.executor, &arguments.subject) {
        (WorkerName::Cheat, name) => ended(cheats::serve(name.as_deref().unwrap_or_default()), "--cheats"),
        (WorkerName::Zoo, name) => ended(honest::serve(name.as_deref().unwrap_or_default()), "--honest"),
        (WorkerName::Library, _) => native::library(arguments),
        (WorkerName::Nvrtc, _) => native::nvrtc(arguments),
        (WorkerName::Python, kernel) => {
            python::serve(kernel.as_deref().unwrap_or_default(), arguments.tensors)
        }
        (WorkerName::Cpu, None) => cpu(arguments),
        (WorkerName::Cuda, None) => cuda::serve(&arguments.cuda),
        (WorkerName::Cpu | WorkerName::Cuda, Some(stray)) => Err(CliError::bad_input(
            format!("`{stray}` says nothing to this executor"),
            "leave it out",
        )),
    }
}

/// How serving a worker of the self-test ended; `option` lists its names.
fn ended(served: Result<(), ServeError>, option: &str) -> Result<Exit, CliError> {
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error @ ServeError::Unknown { .. }) => Err(CliError::bad_input(
            error.to_string(),
            format!("`gauntlet selftest {option}` names them"),
        )),
        Err(error) => Err(CliError::broken(error.to_string())),
    }
}

fn cpu(arguments: &Worker) -> Result<Exit, CliError> {
    let simd = arguments
        .simd
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error| {
            CliError::bad_input(
                format!("--simd: {error}"),
                "`gauntlet doctor` lists the SIMD paths of this machine",
            )
        })?;
    let options = EngineOptions {
        simd,
        threads: arguments.threads,
        pinned: true,
    };
    let honest = CpuHost::new(options, gauntlet_families::cpu_families()).map_err(|error| {
        CliError::bad_input(error.to_string(), "`gauntlet doctor` lists what this machine has")
    })?;
    let mut service: Box<dyn Service> = match arguments.slowed_by {
        None => Box::new(honest),
        Some(share) => Box::new(Slowed::new(honest, share)),
    };
    answer(service.as_mut())
}

/// Answers requests until standard input ends.
fn answer(service: &mut dyn Service) -> Result<Exit, CliError> {
    serve(service, std::io::stdin().lock(), std::io::stdout().lock())
        .map_err(|error| CliError::broken(format!("the coordinator is gone: {error}")))?;
    Ok(Exit::Done)
}
