//! The CUDA engine behind the worker protocol.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gauntlet_cuda::compiler::Origin;
use gauntlet_cuda::driver::DriverError;
use gauntlet_cuda::nvml;
use gauntlet_kernels_cuda::{BuildError, CallTimes, Engine, Kernel, Operands, RunError, TracingError};
use gauntlet_parameters::Parameters;
use gauntlet_problems::{Inputs, Schedule};
use gauntlet_worker::protocol::{self, CaseRequest, Description, Failure, FailureKind, Resources, Sample};
use gauntlet_worker::{Calls, Service};

use gauntlet_task::Task;

use crate::timeline;

/// The tasks that have CUDA kernels.
const TASKS: [&dyn Task; 2] = [gauntlet_gemm::GEMM, gauntlet_attention::ATTENTION];

/// The exit code when the device becomes unusable for this process: EX_SOFTWARE of sysexits.h.
const EXIT_CODE: i32 = 70;

/// Serves the CUDA executor.
///
/// An illegal address, a failed launch and similar errors leave the process without a usable device. The service then
/// writes the error to standard error and ends the process, since only a new process can continue.
pub struct CudaService {
    engine: Engine,
    built: Option<Built>,
    /// Number of results of the last request to compute.
    kept: usize,
}

/// The kernel built last, with its operands once they are loaded.
struct Built {
    kernel: Kernel,
    operands: Vec<Rc<Operands>>,
}

impl CudaService {
    /// Opens the GPU with this number, counted from 0. Any GPU is accepted, and no compiler is needed: a GPU that
    /// cannot run the built-in kernels causes an error only when one of them is built, so that candidates with their
    /// own workers can be judged on it.
    ///
    /// # Errors
    /// If there is no driver, or no GPU with this number.
    pub fn new(ordinal: usize) -> Result<Self, DriverError> {
        Ok(Self {
            engine: Engine::new(ordinal)?,
            built: None,
            kept: 1,
        })
    }

    fn built(&mut self) -> Result<&mut Built, Failure> {
        self.built
            .as_mut()
            .ok_or_else(|| bad_request("nothing has been built; call build first"))
    }

    fn loaded(&mut self) -> Result<&mut Kernel, Failure> {
        match self.built()? {
            Built { operands, .. } if operands.is_empty() => Err(bad_request("no operands; call load first")),
            Built { kernel, .. } => Ok(kernel),
        }
    }
}

impl Service for CudaService {
    fn describe(&self) -> Description {
        let device = self.engine.device();
        let mut details = device.properties();
        if let Ok(compiler) = self.engine.compiler() {
            details.insert("compiler".to_owned(), format!("NVRTC {}", compiler.version()));
        }
        if let Ok(name) = nvml::driver_name() {
            details.insert("driver".to_owned(), name);
        }
        Description {
            protocol: protocol::VERSION,
            worker: format!("gauntlet cuda {}", env!("CARGO_PKG_VERSION")),
            device: device.name.clone(),
            details,
            ..Description::default()
        }
    }

    /// Operands stay loaded if the sizes are the same as in the previous build.
    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        let task = TASKS.iter().find(|task| task.name() == case.task);
        let task = task.ok_or_else(|| {
            failure(
                FailureKind::Refused,
                format!("there is no CUDA kernel of the task `{}`", case.task),
            )
        })?;
        let sizes = task.open(&case.sizes).map_err(|error| bad_request(&error))?;
        let problem =
            gauntlet_tiled_family::operation(&sizes).ok_or_else(|| bad_request("sizes of another task"))?;
        let schedule = &Schedule::of(parameters).map_err(|error| failure(FailureKind::Refused, error))?;
        // The previous kernel and operands are freed first: old and new together might not fit into memory.
        let before = self.built.take();
        let operands = before
            .filter(|before| before.kernel.problem() == problem)
            .map_or_else(Vec::new, |before| before.operands);
        let mut kernel = self.engine.build(problem, schedule).map_err(build_failure)?;
        if let Origin::NotKept(why) = kernel.origin() {
            eprintln!("{}: {why}", kernel.name());
        }
        for warning in kernel.warnings() {
            eprintln!("{}: {warning}", kernel.name());
        }
        kernel.attach(&operands).map_err(run_failure)?;
        // The outputs still hold a result of the previous kernel.
        kernel.poison().map_err(run_failure)?;
        let resources = resources(&kernel);
        self.kept = 1;
        self.built = Some(Built { kernel, operands });
        Ok(resources)
    }

    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure> {
        let built = self.built()?;
        let problem = built.kernel.problem().clone();
        // The old operands are freed first: old and new together might not fit into memory.
        built.kernel.attach(&[]).map_err(run_failure)?;
        built.operands.clear();
        let sets = inputs
            .iter()
            .take(copies)
            .map(|path| Inputs::load(path, &problem).map_err(|error| bad_request(&error.to_string())))
            .collect::<Result<Vec<_>, _>>()?;
        let operands = self.engine.load(&problem, &sets, copies).map_err(run_failure)?;
        let bytes: usize = operands.iter().map(|one| one.bytes()).sum();
        let built = self.built()?;
        built.kernel.attach(&operands).map_err(run_failure)?;
        built.operands = operands;
        Ok(bytes as u64)
    }

    /// Ignores `_poison`: the engine fills the output with NaN, since all output types are floats.
    fn run(&mut self, copy: usize, _poison: u8) -> Result<Sample, Failure> {
        self.kept = 1;
        self.loaded()?.run(copy).map(sample).map_err(run_failure)
    }

    fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure> {
        self.kept = calls.copies.len();
        let times = self
            .loaded()?
            .time(&calls.copies, calls.phases)
            .map_err(run_failure)?;
        Ok(times.into_iter().map(sample).collect())
    }

    fn trace(&mut self, path: &Path) -> Result<u64, Failure> {
        let kernel = self.loaded()?;
        let (problem, schedule) = (kernel.problem().clone(), kernel.schedule().clone());
        let operands = &self.built()?.operands.clone();
        let trace = self
            .engine
            .trace(&problem, &schedule, operands)
            .map_err(|error| match error {
                TracingError::Build(error) => build_failure(error),
                TracingError::Run(error) => run_failure(error),
                TracingError::Records(error) => broken(error),
            })?;
        let text = serde_json::to_vec(&timeline(&trace)).map_err(broken)?;
        std::fs::write(path, &text)
            .map_err(|error| broken(format!("{} cannot be written: {error}", path.display())))?;
        Ok(text.len() as u64)
    }

    fn output(&mut self, path: &Path, index: usize) -> Result<u64, Failure> {
        if index >= self.kept {
            return Err(bad_request(&format!(
                "there is no call {index} in the last request, which had {}",
                self.kept
            )));
        }
        let output = self.loaded()?.output(index).map_err(run_failure)?;
        output.save(path).map_err(broken)?;
        Ok(output.bytes.len() as u64)
    }
}

fn sample(times: CallTimes) -> Sample {
    Sample {
        call: times.call.as_secs_f64(),
        kernel: times.kernel.map(|time| time.as_secs_f64()),
        clock: times.clock,
        phases: BTreeMap::new(),
    }
}

fn resources(kernel: &Kernel) -> Resources {
    let resources = kernel.resources();
    let named = [
        ("registers", f64::from(resources.registers)),
        ("spills", f64::from(resources.spills)),
        ("stack-bytes", f64::from(resources.stack_bytes)),
        ("shared-memory-bytes", f64::from(resources.shared_memory_bytes)),
        ("threads", f64::from(resources.threads)),
        ("blocks", f64::from(resources.blocks)),
        ("cluster", f64::from(resources.cluster)),
        ("launches", resources.launches as f64),
        (
            "blocks-per-multiprocessor",
            f64::from(resources.blocks_per_processor),
        ),
        ("occupancy", resources.occupancy),
        ("workspace-bytes", resources.workspace_bytes as f64),
        ("compiler-warnings", kernel.warnings().len() as f64),
    ];
    Resources(named.map(|(name, value)| (name.to_owned(), value)).into())
}

/// A GPU that cannot run the kernel, or a kernel that cannot be planned, does not compile or does not fit, counts as a
/// refusal. A missing compiler, or an internal error of the driver or the compiler, is a failure of the worker itself.
fn build_failure(error: BuildError) -> Failure {
    match &error {
        BuildError::Driver(driver) if driver.is_sticky() => end(&error),
        BuildError::Driver(_) => broken(error),
        BuildError::Compile(compile) if !compile.is_of_the_kernel() => broken(error),
        _ => failure(FailureKind::Refused, error),
    }
}

fn run_failure(error: RunError) -> Failure {
    match &error {
        error if error.is_sticky() => end(error),
        RunError::Inputs(_) | RunError::NoOperands | RunError::NoCall { .. } => {
            bad_request(&error.to_string())
        }
        _ => broken(error),
    }
}

/// Ends the process. The coordinator finds the message at the end of the worker's standard error.
fn end(error: &dyn Display) -> ! {
    eprintln!("the GPU can compute nothing more for this process: {error}");
    std::process::exit(EXIT_CODE)
}

fn bad_request(message: &str) -> Failure {
    failure(FailureKind::BadRequest, message)
}

fn broken(message: impl Display) -> Failure {
    failure(FailureKind::Broken, message)
}

fn failure(kind: FailureKind, message: impl Display) -> Failure {
    Failure {
        kind,
        message: message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_cuda::CompileError;
    use gauntlet_kernels_cuda::plan::PlanError;
    use gauntlet_kernels_cuda::plan::UnsupportedGpu;

    use super::*;

    #[test]
    fn the_kernels_faults_are_refusals_and_the_machines_are_not() {
        let rejected = CompileError::Rejected {
            variant: "rows".to_owned(),
            place: "rows.cu:1".to_owned(),
            message: "no".to_owned(),
            log: String::new(),
        };
        let missing = CompileError::NoCompiler { looked: Vec::new() };
        let other_gpu = UnsupportedGpu {
            ordinal: 0,
            name: "NVIDIA L4".to_owned(),
            capability: (8, 9),
        };
        for (error, kind) in [
            (BuildError::Gpu(other_gpu), FailureKind::Refused),
            (
                BuildError::Plan(PlanError::HeadSize { size: 80 }),
                FailureKind::Refused,
            ),
            (BuildError::Compile(rejected), FailureKind::Refused),
            (BuildError::Compile(missing), FailureKind::Broken),
        ] {
            let text = error.to_string();
            let failure = build_failure(error);
            assert_eq!((failure.kind, failure.message), (kind, text));
        }
        assert_eq!(run_failure(RunError::NoOperands).kind, FailureKind::BadRequest);
    }
}
