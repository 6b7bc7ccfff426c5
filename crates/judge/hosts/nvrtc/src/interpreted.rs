//! The host of one kernel on a machine without a GPU: compiles for an architecture, and interprets small cases.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use gauntlet_cuda::compiler::Compiler;
use gauntlet_host_native::{Addresses, Host, Planned, bad_request, broken, racy, refused};
use gauntlet_parameters::Parameters;
use gauntlet_ptx::{Kernel, Launch, Memory, watch};
use gauntlet_tensors::{Tensor, TensorSpec};
use gauntlet_worker::protocol::{self, CaseRequest, Description, Failure, Resources, Sample};

use crate::compiled::{compile_failure, compiled, planned, resources};
use crate::error::KernelError;
use crate::file::KernelFile;
use crate::launch::LaunchPlan;

/// Most threads of a launch that is interpreted. The interpreter executes some million instructions a second.
pub const MAX_THREADS: u64 = 1 << 16;

/// Most bytes of the tensors of a case that is interpreted.
pub const MAX_BYTES: usize = 4 << 20;

/// Orders of events in which each call is interpreted: of three that follow one another, one is drawn, one starves a warp of each
/// block, and one delivers copies late.
const ORDERS: u64 = 3;

/// Compiles a kernel for an architecture and runs small cases in the PTX interpreter, in several orders of events, and
/// watches them for races.
pub struct InterpretedHost {
    file: KernelFile,
    compiler: Compiler,
    architecture: String,
    built: Option<Built>,
    /// Calls so far: each is interpreted in other orders of events.
    calls: u64,
}

struct Built {
    case: CaseRequest,
    plan: LaunchPlan,
    /// The kernel, or what the interpreter does not know in it.
    kernel: Result<Kernel, String>,
}

impl InterpretedHost {
    /// The host of a kernel for an architecture such as `sm_80`.
    ///
    /// # Errors
    /// If there is no compiler.
    pub fn new(file: KernelFile, architecture: &str) -> Result<Self, KernelError> {
        Ok(Self {
            file,
            compiler: Compiler::new()?,
            architecture: architecture.to_owned(),
            built: None,
            calls: 0,
        })
    }

    /// What the interpreter does not know of the kernel built last; none if it knows all of it.
    pub fn unknown(&self) -> Option<&str> {
        let built = self.built.as_ref()?;
        built.kernel.as_ref().err().map(String::as_str)
    }

    fn read(&self, parameters: &Parameters) -> Result<Result<Kernel, String>, Failure> {
        let virtual_architecture = self.architecture.replacen("sm_", "compute_", 1);
        let ptx = self.file.with_source(parameters, |source| {
            self.compiler.ptx_of_user(source, &virtual_architecture)
        });
        let ptx = ptx.map_err(|error| compile_failure(&error))?;
        Ok(Kernel::read(&ptx.text, &ptx.entry).map_err(|error| {
            format!(
                "unsupported: the PTX interpreter does not know all of {}: {error}",
                self.file.name()
            )
        }))
    }
}

impl Host for InterpretedHost {
    fn describe(&self) -> Description {
        let details = [
            ("kernel", self.file.name()),
            ("compiler", format!("NVRTC {}", self.compiler.version())),
            ("architecture", self.architecture.clone()),
        ];
        Description {
            protocol: protocol::VERSION,
            worker: format!("gauntlet nvrtc {}, interpreted", env!("CARGO_PKG_VERSION")),
            device: format!(
                "none; compiles for {} and interprets small cases",
                self.architecture
            ),
            details: details
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..Description::default()
        }
    }

    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        self.built = None;
        let file = &self.file;
        // Every worker is told the parameters of the task's built-in kernels too; they mean nothing here.
        let parameters = &file.parameters().table().restrict(parameters);
        let plan = planned(file, case, parameters)?;
        let compiled = compiled(file, &self.compiler, &self.architecture, parameters)?;
        let kernel = self.read(parameters)?;
        if let Ok(kernel) = &kernel {
            let sizes: Vec<usize> = kernel.parameters().iter().map(|one| one.bytes).collect();
            plan.check_parameters(&sizes)
                .map_err(|message| refused(file.in_table("arguments", &message)))?;
        }
        let resources = resources(&compiled, &plan);
        self.built = Some(Built {
            case: case.clone(),
            plan,
            kernel,
        });
        Ok(resources)
    }

    fn compute(&mut self, planned: &Planned<'_>, results: &mut Vec<u8>) -> Result<Vec<Sample>, Failure> {
        let Some(built) = &self.built else {
            return Err(bad_request("nothing has been built; call build first"));
        };
        if planned.is_timed {
            return Err(broken(
                "there is no GPU here: kernels are compiled and interpreted, and an interpreter's times say nothing",
            ));
        }
        let [_, y, z] = built.plan.cluster;
        if y * z > 1 {
            return Err(broken(
                "the PTX interpreter knows clusters in x only; try a cluster in x, or a GPU",
            ));
        }
        let kernel = built.kernel.as_ref().map_err(|unknown| broken(unknown.clone()))?;
        let threads = built.plan.blocks() * u64::from(built.plan.threads());
        let bytes =
            planned.operands.bytes() + built.case.outputs.iter().map(TensorSpec::bytes).sum::<usize>();
        if threads > MAX_THREADS || bytes > MAX_BYTES {
            return Err(broken(format!(
                "{threads} threads and {bytes} bytes of tensors are too many for the PTX interpreter, which takes at most \
                 {MAX_THREADS} and {MAX_BYTES}; use a smaller case"
            )));
        }
        let mut samples = Vec::with_capacity(planned.copies.len());
        for copy in planned.copies {
            let inputs = planned.operands.copy(*copy);
            let begun = Instant::now();
            let first = ORDERS * (seed_of(&built.case) + self.calls);
            self.calls += 1;
            results.extend(interpret_in_orders(built, kernel, inputs, planned.poison, first)?);
            samples.push(Sample {
                call: begun.elapsed().as_secs_f64(),
                kernel: None,
                clock: None,
                phases: BTreeMap::new(),
            });
        }
        Ok(samples)
    }
}

/// A number that differs from case to case.
fn seed_of(case: &CaseRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    case.sizes.to_string().hash(&mut hasher);
    hasher.finish() >> 8
}

/// The outputs of a launch, which must be the same in all orders of events: unless threads change memory atomically, where the order in
/// which they do it may show.
fn interpret_in_orders(
    built: &Built,
    kernel: &Kernel,
    inputs: &[Tensor],
    poison: u8,
    first: u64,
) -> Result<Vec<u8>, Failure> {
    let outputs = interpret(built, kernel, inputs, poison, first)?;
    for seed in first + 1..first + ORDERS {
        let others = interpret(built, kernel, inputs, poison, seed)?;
        let differs = outputs.iter().zip(&others).position(|(one, other)| one != other);
        if let Some(byte) = differs.filter(|_| !kernel.changes_atomically()) {
            return Err(racy(format!(
                "in the PTX interpreter: byte {byte} of the outputs depends on the order in which threads run, though no two accesses were seen that race"
            )));
        }
    }
    Ok(outputs)
}

/// The outputs of one launch, one after the other.
fn interpret(
    built: &Built,
    kernel: &Kernel,
    inputs: &[Tensor],
    poison: u8,
    seed: u64,
) -> Result<Vec<u8>, Failure> {
    let mut memory = Memory::new();
    let outputs = &built.case.outputs;
    let addresses = Addresses {
        inputs: inputs
            .iter()
            .map(|tensor| memory.allocate(tensor.bytes.clone()))
            .collect(),
        outputs: outputs
            .iter()
            .map(|spec| memory.allocate_poisoned(vec![poison; spec.bytes()]))
            .collect(),
    };
    for (address, spec) in addresses.inputs.iter().zip(&built.case.inputs) {
        memory.call(*address, &spec.name);
    }
    for (address, spec) in addresses.outputs.iter().zip(outputs) {
        memory.call(*address, &spec.name);
    }
    let parameters = kernel.parameters();
    let mut bytes = vec![0; parameters.last().map_or(0, |last| last.offset + last.bytes)];
    for (parameter, value) in parameters.iter().zip(built.plan.values(&addresses)) {
        bytes[parameter.offset..][..parameter.bytes].copy_from_slice(&value[..parameter.bytes]);
    }
    let launch = Launch {
        cluster: built.plan.cluster.iter().product(),
        shared_bytes: built.plan.shared_bytes,
        parameter: &bytes,
        ..Launch::of(kernel, built.plan.grid, built.plan.block)
    };
    // What the kernel does is forbidden on a GPU too.
    watch(&[launch], &mut memory, seed).map_err(|fault| {
        let told = format!("in the PTX interpreter: {fault}");
        if fault.is_race() {
            racy(told)
        } else {
            bad_request(told)
        }
    })?;
    let outputs = addresses.outputs.iter();
    let bytes = outputs.flat_map(|address| memory.contents(*address).unwrap_or_default());
    Ok(bytes.copied().collect())
}
