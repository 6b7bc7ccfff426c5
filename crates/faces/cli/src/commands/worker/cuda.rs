//! The CUDA executor, or only its compiler.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gauntlet_cuda::compiler::Compiler;
use gauntlet_host_cuda::CudaService;
use gauntlet_kernels_cuda::plan::{Target, Variant, plan};
use gauntlet_parameters::Parameters;
use gauntlet_problems::Schedule;
use gauntlet_worker::protocol::{CaseRequest, Description, Failure, FailureKind, Resources, Sample, VERSION};
use gauntlet_worker::{Calls, Service};

use crate::arguments::CudaWorkerArguments;
use crate::error::{CliError, say};
use crate::exit::Exit;

/// Serves the executor; if it cannot, prints the reason in one line, which the coordinator repeats.
pub fn serve(arguments: &CudaWorkerArguments) -> Result<Exit, CliError> {
    let served = match (arguments.compile_for, arguments.processors) {
        (Some(_), None) => {
            Err("--compile-for without --processors: a plan depends on their number".to_owned())
        }
        (Some(arch), Some(processors)) => Compiler::new()
            .map(|compiler| {
                super::answer(&mut Compiling {
                    compiler,
                    target: Target::of_arch(arch, processors),
                })
            })
            .map_err(|error| error.to_string()),
        _ => CudaService::new(arguments.ordinal)
            .map(|mut service| super::answer(&mut service))
            .map_err(|error| format!("{error}{}", refused_files(arguments.ordinal))),
    };
    served.unwrap_or_else(|error| {
        say(&format!("{error}\n"));
        Ok(Exit::Broken)
    })
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure {
        kind: FailureKind::Refused,
        message: error.to_string(),
    }
}

/// The driver's files that exist but that this process may not use, as the end of a sentence. If access is refused, the
/// driver itself only reports that there is no device.
fn refused_files(ordinal: usize) -> String {
    let mut files: Vec<PathBuf> = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/proc/self/comm"]
        .map(PathBuf::from)
        .into();
    files.push(PathBuf::from(format!("/dev/nvidia{ordinal}")));
    let refused = files.into_iter().filter_map(|file| {
        let opened = OpenOptions::new().read(true).write(true).open(&file);
        let error = opened.err().filter(|error| error.kind() != ErrorKind::NotFound)?;
        Some(format!("{} ({error})", file.display()))
    });
    let refused: Vec<_> = refused.collect();
    if refused.is_empty() {
        String::new()
    } else {
        format!("; it could not open {}", refused.join(", "))
    }
}

/// Compiles and runs nothing: enough for the gate `compiles` on a machine without a GPU.
struct Compiling {
    compiler: Compiler,
    target: Target,
}

impl Service for Compiling {
    fn describe(&self) -> Description {
        Description {
            protocol: VERSION,
            worker: "gauntlet cuda, compiling only".to_owned(),
            device: format!("none; compiles for {}", self.target.arch),
            details: [(
                "compiler".to_owned(),
                format!("NVRTC {}", self.compiler.version()),
            )]
            .into(),
            ..Description::default()
        }
    }

    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        let sizes = gauntlet_families::open(&case.record()).map_err(refused)?;
        let operation = gauntlet_tiled_family::operation(&sizes)
            .ok_or_else(|| refused(format!("there is no CUDA kernel of the task `{}`", case.task)))?;
        let schedule = Schedule::of(parameters).map_err(refused)?;
        let plan = plan(operation, &schedule, self.target).map_err(refused)?;
        let compile = |variant: &Variant| {
            let compiled = variant.compile(&self.compiler, self.target.arch);
            compiled.map_err(|error| Failure {
                kind: if error.is_of_the_kernel() {
                    FailureKind::Refused
                } else {
                    FailureKind::Broken
                },
                message: error.to_string(),
            })
        };
        let variant = plan.variant();
        let compiled = compile(variant)?;
        plan.preparation().map(compile).transpose()?;
        let shared = compiled.resources.static_shared_bytes + variant.shared_bytes;
        let found = [
            ("registers", compiled.resources.registers),
            ("spills", compiled.resources.spill_bytes),
            ("shared-memory-bytes", shared),
            ("threads", variant.threads),
        ];
        Ok(Resources(
            found
                .into_iter()
                .map(|(name, value)| (name.to_owned(), f64::from(value)))
                .collect(),
        ))
    }

    fn load(&mut self, _inputs: &[PathBuf], _copies: usize) -> Result<u64, Failure> {
        Err(nothing_runs())
    }

    fn run(&mut self, _copy: usize, _poison: u8) -> Result<Sample, Failure> {
        Err(nothing_runs())
    }

    fn time(&mut self, _calls: Calls) -> Result<Vec<Sample>, Failure> {
        Err(nothing_runs())
    }

    fn output(&mut self, _path: &Path, _index: usize) -> Result<u64, Failure> {
        Err(nothing_runs())
    }
}

fn nothing_runs() -> Failure {
    Failure {
        kind: FailureKind::Broken,
        message: "this worker only compiles; there is no GPU to run on".to_owned(),
    }
}
