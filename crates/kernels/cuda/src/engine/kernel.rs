//! A problem under a schedule, ready to run.

use std::rc::Rc;

use gauntlet_problems::{Operation, Output};
use gauntlet_problems::{Packing, Schedule, Setup};

use super::operands::Operands;
use super::setup::{OfCall, Scratch, Tables, kept_addresses};
use super::{Loaded, Shared};
use crate::compiler::Compiled;
use crate::error::{BuildError, RunError};
use crate::plan::{self, Addresses, Memory, OPERANDS, Pass, Plan, Target, Weights};
use gauntlet_cuda::compiler::Origin;
use gauntlet_cuda::driver::{DeviceMemory, DriverError, Function, MAP_BYTES};

/// A problem under a schedule, ready to run.
pub struct Kernel {
    pub(super) shared: Rc<Shared>,
    problem: Operation,
    schedule: Schedule,
    plan: Box<dyn Plan>,
    /// As [`Plan::variants`].
    loaded: Vec<Loaded>,
    resources: Resources,
    warnings: Vec<String>,
    origin: Origin,
    /// At least one; call i of [`time`](Self::time) writes to output i.
    outputs: Vec<DeviceMemory>,
    /// None if it is made in each call.
    scratch: Option<Scratch>,
    copies: Vec<Copy>,
}

/// The resources of a kernel. If another kernel prepares its operands, these are those of the one that computes the
/// result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes that a thread spills, stores and loads together.
    pub spills: u32,
    /// Bytes of a thread's stack, spills included.
    pub stack_bytes: u32,
    /// Bytes of shared memory of a block.
    pub shared_memory_bytes: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of its largest launch.
    pub blocks: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Launches of a call, all kernels' together.
    pub launches: usize,
    /// Blocks that a multiprocessor holds at once.
    pub blocks_per_processor: u32,
    /// Share of a multiprocessor's threads that are resident, from 0 to 1.
    pub occupancy: f64,
    /// Bytes of scratch memory: workspace, counters, tables and tensor maps of one copy of the operands.
    pub workspace_bytes: usize,
}

/// One copy of the operands, with the tables that were made once for it.
struct Copy {
    operands: Rc<Operands>,
    /// None if tables are made in each call.
    tables: Option<Tables>,
}

/// A call that is set up and can be launched.
pub(super) struct Ready<'a> {
    plan: PlanOfCall<'a>,
    addresses: Addresses,
    /// Lives until the call is queued.
    _memory: Option<OfCall<'a>>,
}

enum PlanOfCall<'a> {
    Kept(&'a dyn Plan),
    Fresh(Box<dyn Plan>),
}

impl Kernel {
    pub(super) fn new(
        shared: Rc<Shared>,
        problem: &Operation,
        schedule: &Schedule,
        plan: Box<dyn Plan>,
        kernels: Vec<(Compiled, Loaded)>,
    ) -> Result<Self, BuildError> {
        let (compiled, loaded): (Vec<_>, Vec<_>) = kernels.into_iter().unzip();
        let (main, function) = (
            &compiled[Pass::Main as usize],
            &loaded[Pass::Main as usize].function,
        );
        let about = |error: DriverError| error.about(function.name());
        let groups = problem.parts().len();
        let memory = plan.memory(&vec![Weights::default(); groups]);
        let outputs = vec![DeviceMemory::new(&shared.context, problem.output_bytes()).map_err(about)?];
        let scratch = match schedule.setup {
            Setup::Once => Some(Scratch::new(&shared.stream, &memory).map_err(about)?),
            Setup::PerCall => None,
        };
        Ok(Self {
            resources: resources(&shared, plan.as_ref(), &memory, main, function)?,
            problem: problem.clone(),
            schedule: schedule.clone(),
            plan,
            warnings: compiled.iter().flat_map(|one| one.warnings.clone()).collect(),
            origin: origin(&compiled),
            loaded,
            outputs,
            scratch,
            copies: Vec::new(),
            shared,
        })
    }

    /// The problem.
    pub fn problem(&self) -> &Operation {
        &self.problem
    }

    /// How it is computed.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The variant, as messages name it.
    pub fn name(&self) -> &str {
        self.main().name()
    }

    /// Its resources.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The compiler's warnings, of all kernels.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether it, or the one that prepares for it, was compiled now.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The kernel that computes the result, on the device.
    fn main(&self) -> &Function {
        &self.loaded[Pass::Main as usize].function
    }

    /// All kernels of the plan, on the device.
    pub(super) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.loaded.iter().map(|loaded| &loaded.function)
    }

    /// Blocks of the largest launch.
    pub(super) fn most_blocks(&self) -> u32 {
        let launches = self.plan.launches(&NOWHERE);
        launches.iter().map(|launch| launch.grid).max().unwrap_or(0)
    }

    /// Whether a call does its set-up itself.
    pub(super) fn sets_up_in_each_call(&self) -> bool {
        self.schedule.setup == Setup::PerCall
    }

    /// How many copies of the operands it runs on.
    pub fn copies(&self) -> usize {
        self.copies.len()
    }

    /// Attaches copies of the operands, which must be for this problem, and makes what is made only once: tables, maps,
    /// and repacked weights if the schedule asks for them.
    ///
    /// # Errors
    /// If there is no memory for tables, or a tensor map is refused.
    pub fn attach(&mut self, copies: &[Rc<Operands>]) -> Result<(), RunError> {
        // The old ones' tables go first.
        self.copies.clear();
        for operands in copies {
            let operands = match (self.schedule.packing, &self.problem) {
                (Packing::Canonical, _) | (_, Operation::Attention(_)) => Rc::clone(operands),
                (packing, Operation::GroupedGemm(gemm)) => {
                    Rc::new(operands.repacked(&self.shared.stream, gemm, packing)?)
                }
            };
            let tables = match self.schedule.setup {
                Setup::Once => {
                    let memory = self.plan.memory(&operands.weights);
                    Some(Tables::new(&self.shared.context, &memory, &operands)?)
                }
                Setup::PerCall => None,
            };
            self.copies.push(Copy { operands, tables });
        }
        Ok(())
    }

    /// Makes every element of the first output NaN.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn poison(&self) -> Result<(), RunError> {
        // 0xFF in every byte is a NaN in all formats of results.
        self.outputs[0].fill(0xFF, &self.shared.stream)?;
        Ok(self.finish()?)
    }

    /// Allocates outputs until there are `calls`, and writes to each once.
    pub(super) fn keep(&mut self, calls: usize) -> Result<(), RunError> {
        while self.outputs.len() < calls {
            let output = DeviceMemory::new(&self.shared.context, self.problem.output_bytes())?;
            output.fill(0xFF, &self.shared.stream)?;
            self.outputs.push(output);
        }
        Ok(self.finish()?)
    }

    /// The result of call `index` of the last [`time`](Self::time), or of the last [`run`](Self::run) with 0.
    ///
    /// # Errors
    /// If there was no such call, or the copy to the host fails.
    pub fn output(&self, index: usize) -> Result<Output, RunError> {
        let output = self.outputs.get(index).ok_or(RunError::NoCall { index })?;
        let bytes = output.read(&self.shared.stream)?;
        Ok(Output {
            bytes,
            ..Output::poisoned(&self.problem)
        })
    }

    /// Does what a call needs before its launches: nothing, or (set-up per call) everything that does not depend on the
    /// operands' values.
    /// The result goes to the output of this index.
    pub(super) fn ready(&self, copy: usize, output: usize) -> Result<Ready<'_>, RunError> {
        let output = &self.outputs[output];
        let copy = match self.copies.len() {
            0 => return Err(RunError::NoOperands),
            copies => &self.copies[copy % copies],
        };
        if let (Some(tables), Some(scratch)) = (&copy.tables, &self.scratch) {
            return Ok(Ready {
                plan: PlanOfCall::Kept(self.plan.as_ref()),
                addresses: kept_addresses(&copy.operands, output, tables, scratch),
                _memory: None,
            });
        }
        let target = Target::of_gpu(self.shared.context.device())?;
        let plan = plan::plan(&self.problem, &self.schedule, target)?;
        let memory = plan.memory(&copy.operands.weights);
        let memory = OfCall::new(&self.shared.stream, &memory, &copy.operands)
            .map_err(|error| error.about(self.name()))?;
        Ok(Ready {
            plan: PlanOfCall::Fresh(plan),
            addresses: memory.addresses(&copy.operands, output),
            _memory: Some(memory),
        })
    }

    /// Queues the launches of a call. Memory that they need stays valid until the stream has run them: kept memory
    /// belongs to the kernel, and memory of this call is freed in stream order.
    pub(super) fn launch(&self, ready: &Ready<'_>) -> Result<(), DriverError> {
        let plan = match &ready.plan {
            PlanOfCall::Kept(plan) => *plan,
            PlanOfCall::Fresh(plan) => plan.as_ref(),
        };
        for launch in plan.launches(&ready.addresses) {
            // Without work (all groups have no tokens) there is nothing to launch.
            if launch.grid == 0 {
                continue;
            }
            // SAFETY: the plan made the parameter for this kernel and determined the sizes of the memory that it points
            // to.
            unsafe { self.loaded[plan.place(launch.pass)].launch(&launch, &self.shared.stream) }?;
        }
        Ok(())
    }

    /// Waits for all queued work; a fault in a kernel is reported here.
    pub(super) fn finish(&self) -> Result<(), DriverError> {
        self.shared
            .stream
            .synchronise()
            .map_err(|error| error.about(self.name()))
    }
}

impl Drop for Kernel {
    /// Memory must not be freed while a kernel uses it, even if the call failed.
    fn drop(&mut self) {
        let _ = self.shared.stream.synchronise();
    }
}

/// Placeholder addresses, for properties of launches that do not depend on addresses.
const NOWHERE: Addresses = Addresses {
    operands: [0; OPERANDS],
    scales: [0; OPERANDS],
    factors: [1.0; OPERANDS],
    output: 0,
    tables: 0,
    maps: 0,
    workspace: 0,
    counters: 0,
    rows: 0,
};

/// The most noteworthy origin of several kernels: one that could not be kept, then one compiled now, then the cache.
fn origin(compiled: &[Compiled]) -> Origin {
    let origins = || compiled.iter().map(|one| &one.origin);
    let not_kept = origins().find(|origin| matches!(origin, Origin::NotKept(_)));
    let found = not_kept.or_else(|| origins().find(|origin| **origin != Origin::Cache));
    found.cloned().unwrap_or(Origin::Cache)
}

fn resources(
    shared: &Shared,
    plan: &dyn Plan,
    memory: &Memory,
    compiled: &Compiled,
    function: &Function,
) -> Result<Resources, DriverError> {
    let launches = plan.launches(&NOWHERE);
    let own = launches.iter().filter(|launch| launch.pass == Pass::Main);
    let largest = own.max_by_key(|launch| launch.grid);
    let attributes = function.attributes()?;
    let threads = plan.variant().threads;
    let resident = attributes.blocks_per_processor * threads;
    Ok(Resources {
        registers: attributes.registers,
        spills: compiled.resources.spill_bytes,
        stack_bytes: attributes.local_bytes,
        shared_memory_bytes: attributes.static_shared_bytes + plan.variant().shared_bytes,
        threads,
        blocks: largest.map_or(0, |launch| launch.grid),
        cluster: largest.map_or(1, |launch| launch.cluster),
        launches: launches.len(),
        blocks_per_processor: attributes.blocks_per_processor,
        occupancy: f64::from(resident) / f64::from(shared.context.device().processor_threads.max(1)),
        workspace_bytes: memory.workspace_bytes
            + memory.counter_bytes
            + memory.tables.len()
            + memory.maps.len() * MAP_BYTES,
    })
}
