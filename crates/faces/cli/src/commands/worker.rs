//! `gauntlet worker`.

mod cuda;
mod native;
mod python;

use gauntlet_host_cpu::CpuHost;
use gauntlet_kernels_cpu::EngineOptions;
use gauntlet_worker::{Service, serve};

use crate::arguments::{Worker, WorkerName};
use crate::error::CliError;
use crate::exit::Exit;

/// Serves an executor until standard input ends.
pub fn worker(arguments: &Worker) -> Result<Exit, CliError> {
    match (arguments.executor, &arguments.subject) {
        (WorkerName::Library, _) => native::library(arguments),
        (WorkerName::Nvrtc, _) => native::nvrtc(arguments),
        (WorkerName::Python, kernel) => {
            python::serve(kernel.as_deref().unwrap_or_default(), arguments.tensors)
        }
        (WorkerName::Cpu, None) => answer(&mut cpu_host(arguments.simd.as_deref(), arguments.threads)?),
        (WorkerName::Cuda, None) => cuda::serve(&arguments.cuda),
        (WorkerName::Cpu | WorkerName::Cuda | WorkerName::Cheat | WorkerName::Zoo, stray) => {
            let stray = stray.as_deref().unwrap_or_default();
            Err(CliError::bad_input(
                format!("`{stray}` says nothing to this executor"),
                "leave it out",
            ))
        }
    }
}

/// The service of this machine's CPU.
///
/// # Errors
/// If this machine lacks the SIMD path that is named.
pub fn cpu_host(simd: Option<&str>, threads: Option<usize>) -> Result<CpuHost, CliError> {
    let simd = simd.map(str::parse).transpose().map_err(|error| {
        CliError::bad_input(
            format!("--simd: {error}"),
            "`gauntlet doctor` lists the SIMD paths of this machine",
        )
    })?;
    let options = EngineOptions {
        simd,
        threads,
        pinned: true,
    };
    CpuHost::new(options, gauntlet_families::cpu_families()).map_err(|error| {
        CliError::bad_input(error.to_string(), "`gauntlet doctor` lists what this machine has")
    })
}

/// Answers requests until standard input ends.
pub fn answer(service: &mut dyn Service) -> Result<Exit, CliError> {
    serve(service, std::io::stdin().lock(), std::io::stdout().lock())
        .map_err(|error| CliError::broken(format!("the coordinator is gone: {error}")))?;
    Ok(Exit::Done)
}
