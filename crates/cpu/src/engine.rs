//! The engine: threads and an instruction set, and the kernels built for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gauntlet_executor::protocol::Parameter;
use gauntlet_formats::Nvfp4Tensor;
use gauntlet_problem::{GroupedGemm, Inputs, Output, Problem};
use gauntlet_schedule::{Cluster, Roles, Schedule, Setup};
use serde::{Deserialize, Serialize};

use crate::affinity::Processors;
use crate::attention::AttentionPlan;
use crate::calibration::{self, CalibrationError};
use crate::driver::{Busy, Driver, Space, Team, slot_bytes};
use crate::error::{BuildError, EngineError, RunError, wrong_family};
use crate::family::{Operands, Plan, Setting};
use crate::gemm::{GemmOperands, GemmPlan, PackedWeights, Weights};
use crate::memory::{OutOfMemory, available_bytes};
use crate::order::Assignment;
use crate::pool::Pool;
use crate::recommend;
use crate::simd::{Instructions, SimdPath};

/// More than the processors of any machine. Each thread takes mappings of memory, and one that gets its stack but not
/// what it handles signals on aborts the process, where no error can be told.
const MOST_THREADS: usize = 4096;

/// What an engine runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// The instruction set; the best there is if none.
    pub simd: Option<SimdPath>,
    /// Threads, the caller's included; as many as the processors this process may use if none.
    pub threads: Option<usize>,
    /// Whether each thread stays on a processor of its own, the one that makes the engine among them: for a process
    /// with one engine that is called from one thread. Without effect where there are more threads than processors.
    pub pinned: bool,
}

/// A pool of threads and the loops of one instruction set.
#[derive(Debug)]
pub struct Engine {
    pool: Arc<Pool>,
    instructions: Instructions,
}

/// What a kernel takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Threads that take part.
    pub threads: usize,
    /// Those of them that only prepare panels.
    pub producers: usize,
    /// Bytes of dequantised panels in flight for each multiplying thread, all stages.
    pub panel_bytes_per_thread: usize,
    /// Bytes of all buffers, the panels included.
    pub workspace_bytes: usize,
    /// Tiles, parts of split tiles counted apart.
    pub tiles: usize,
    /// Rows of the register block.
    pub register_rows: usize,
    /// Columns of the register block.
    pub register_columns: usize,
    /// Vector registers that hold the register block.
    pub accumulator_registers: usize,
}

/// The times of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunTimes {
    /// From the first thread's start of work to the end of the last: the time of the device, set-up not included.
    pub kernel: Duration,
    /// Where the time went, of a traced run.
    pub phases: Option<Phases>,
}

/// Where a run's time went, in thread-seconds; all but `setup` add up to `kernel` × threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// Plans, tables and buffers made by this call, and the check of its operands.
    pub setup: Duration,
    /// Dequantising and packing.
    pub load: Duration,
    /// Multiplying, the softmax included.
    pub multiply: Duration,
    /// Scaling, rounding and writing, and reducing what was split.
    pub epilogue: Duration,
    /// Waiting: for a panel, a free slot, or the slowest thread.
    pub wait: Duration,
}

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// If the processor lacks the instruction set, or the threads cannot be had.
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let instructions = Instructions::detect(options.simd.unwrap_or_else(SimdPath::best))?;
        let threads = match options.threads {
            Some(0) => return Err(EngineError::NoThreads),
            Some(threads @ ..=MOST_THREADS) => threads,
            Some(threads) => {
                return Err(EngineError::TooManyThreads {
                    threads,
                    most: MOST_THREADS,
                });
            }
            None => {
                std::thread::available_parallelism().map_or(1, |there| usize::from(there).min(MOST_THREADS))
            }
        };
        let processors = options.pinned.then(|| Processors::allowed(threads)).flatten();
        let pool = Pool::new(threads, processors.as_ref())
            .map_err(|source| EngineError::Spawn { threads, source })?;
        if let Some(processors) = processors {
            // A thread that is moved about is slower, not wrong.
            let _ = processors.pin(0);
        }
        Ok(Self {
            pool: Arc::new(pool),
            instructions,
        })
    }

    /// The instruction set in use.
    pub fn simd(&self) -> SimdPath {
        self.instructions.path()
    }

    /// The instructions that products of NVFP4 with many tokens are made of: `amx`, `avx512vnni`, `avx512vnni-sums`, `avxvnni`, `avx2` or
    /// `portable`.
    pub fn dots(&self) -> &'static str {
        self.instructions.blocks(usize::MAX).name()
    }

    /// Threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Has the threads sleep now. After a call they stay awake for some 50 µs, for a next one; who knows that none comes says
    /// so here, and leaves the processors to others.
    pub fn rest(&self) {
        self.pool.rest();
    }

    /// Measures what the engine's primitives cost on this machine, in seconds; `quick` takes fewer samples of each.
    ///
    /// # Errors
    ///
    /// If there is no memory for their operands.
    pub fn calibrate(&self, quick: bool) -> Result<Vec<Parameter>, CalibrationError> {
        calibration::measure(&self.pool, self.instructions, quick)
    }

    /// Multiply-adds a second of all threads together in the inner loop of NVFP4 products of so many tokens, on panels that lie
    /// in the first-level cache: what no product exceeds.
    ///
    /// # Errors
    ///
    /// If there is no memory for the panels.
    pub fn inner_loop_rate(&self, tokens: usize) -> Result<f64, CalibrationError> {
        calibration::inner_loop_rate(&self.pool, self.instructions, tokens)
    }

    /// A good schedule for a grouped GEMM of these shapes.
    ///
    /// Panels of a tile stay in a second-level cache while a step of K passes by; a few tokens stay in the first-level cache
    /// while weights pass by in the order of memory. Where blocks of weights leave threads without work they are narrower.
    pub fn recommend(&self, gemm: &GroupedGemm) -> Schedule {
        recommend::schedule(gemm, self.instructions, self.threads())
    }

    /// Plans `problem` under `schedule`.
    ///
    /// # Errors
    ///
    /// If the problem is not valid, or a word of the schedule or a size is one that the CPU cannot do.
    pub fn build(&self, problem: &Problem, schedule: &Schedule) -> Result<Kernel, BuildError> {
        problem.validate()?;
        check_words(schedule)?;
        let threads = self.pool.threads();
        let team = Team::new(schedule.roles, threads).ok_or(BuildError::TooFewThreads { threads })?;
        let builder = Builder {
            instructions: self.instructions,
            schedule: schedule.clone(),
            team,
            pool: Arc::clone(&self.pool),
        };
        let (resources, family) = match problem {
            Problem::GroupedGemm(gemm) => {
                let gemm = gemm.clone();
                let prepared =
                    Prepared::new(builder, Box::new(move |setting| GemmPlan::new(&gemm, setting)))?;
                (prepared.resources, Family::GroupedGemm(prepared))
            }
            Problem::Attention(attention) => {
                let attention = attention.clone();
                let prepared = Prepared::new(
                    builder,
                    Box::new(move |setting| AttentionPlan::new(&attention, setting)),
                )?;
                (prepared.resources, Family::Attention(prepared))
            }
        };
        Ok(Kernel { resources, family })
    }
}

fn check_words(schedule: &Schedule) -> Result<(), BuildError> {
    let counts = [
        ("tile.m", schedule.tile.m),
        ("tile.n", schedule.tile.n),
        ("tile.k", schedule.tile.k),
        ("stages", schedule.stages),
        ("split-k", schedule.split_k),
    ];
    if let Some((word, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
        return Err(BuildError::Zero { word });
    }
    match schedule.cluster {
        Cluster { m: 1, n: 1 } => Ok(()),
        Cluster { m, n } => Err(BuildError::Cluster { m, n }),
    }
}

/// A problem under a schedule, ready to run.
#[derive(Debug)]
pub struct Kernel {
    resources: Resources,
    family: Family,
}

#[derive(Debug)]
enum Family {
    GroupedGemm(Prepared<GemmPlan>),
    Attention(Prepared<AttentionPlan>),
}

impl Kernel {
    /// What the kernel takes up.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Computes `output` from `inputs`.
    ///
    /// # Errors
    ///
    /// If the operands are not of the problem the kernel was built for, or (set-up per call) memory runs out.
    pub fn run(&mut self, inputs: &Inputs, output: &mut Output) -> Result<RunTimes, RunError> {
        self.run_inputs::<false>(inputs, output)
    }

    /// As [`run`](Self::run), and finds out where the time went, which costs a little of it.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_traced(&mut self, inputs: &Inputs, output: &mut Output) -> Result<RunTimes, RunError> {
        self.run_inputs::<true>(inputs, output)
    }

    /// Computes `output` from the operands of each group, which stay where they are.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), or if weights were packed by another kernel's plan.
    pub fn run_gemm(
        &mut self,
        operands: &[GemmOperands<'_>],
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        self.run_operands::<false>(Operands::GroupedGemm(operands), output)
    }

    /// Packs weights, `[n, k]`, once for all calls of this kernel and of those with the same tile, `swap_ab`, and
    /// instructions.
    ///
    /// # Errors
    ///
    /// If there is no memory for them, or the kernel is not a GEMM's.
    pub fn pack_weights(&self, weights: &Nvfp4Tensor) -> Result<PackedWeights, RunError> {
        match &self.family {
            Family::GroupedGemm(prepared) => {
                let packed = prepared.with_plan(|plan| PackedWeights::pack(plan, weights))?;
                Ok(packed?)
            }
            Family::Attention(_) => Err(wrong_family("weights", "attention")),
        }
    }

    fn run_inputs<const TRACED: bool>(
        &mut self,
        inputs: &Inputs,
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        match inputs {
            Inputs::GroupedGemm(groups) => {
                let operands: Vec<_> = groups
                    .iter()
                    .map(|group| GemmOperands {
                        a: &group.a,
                        b: Weights::Tensor(&group.b),
                        b2: group.b2.as_ref().map(Weights::Tensor),
                    })
                    .collect();
                self.run_operands::<TRACED>(Operands::GroupedGemm(&operands), output)
            }
            Inputs::Attention(inputs) => self.run_operands::<TRACED>(Operands::Attention(inputs), output),
        }
    }

    fn run_operands<const TRACED: bool>(
        &mut self,
        operands: Operands<'_>,
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        match &mut self.family {
            Family::GroupedGemm(prepared) => prepared.run::<TRACED>(operands, output),
            Family::Attention(prepared) => prepared.run::<TRACED>(operands, output),
        }
    }
}

/// What plans are made from.
#[derive(Debug)]
struct Builder {
    instructions: Instructions,
    schedule: Schedule,
    team: Team,
    pool: Arc<Pool>,
}

/// A plan with its memory.
#[derive(Debug)]
struct Ready<P: Plan> {
    plan: P,
    assignment: Assignment,
    shared: P::Shared,
    space: Space<P::State>,
}

type MakePlan<P> = Box<dyn Fn(&Setting<'_>) -> Result<P, BuildError> + Send>;

/// A family's kernel: ready, if set-up is once, or with what it takes to get ready in each call.
struct Prepared<P: Plan> {
    builder: Builder,
    make_plan: MakePlan<P>,
    ready: Option<Ready<P>>,
    resources: Resources,
}

impl<P: Plan> std::fmt::Debug for Prepared<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Prepared")
            .field("builder", &self.builder)
            .finish_non_exhaustive()
    }
}

impl<P: Plan> Prepared<P> {
    fn new(builder: Builder, make_plan: MakePlan<P>) -> Result<Self, BuildError> {
        let plan = make_plan(&builder.setting())?;
        let resources = builder.resources(&plan);
        let (bytes, available) = (resources.workspace_bytes, available_bytes());
        if bytes > available {
            return Err(BuildError::WorkspaceTooLarge { bytes, available });
        }
        let ready = match builder.schedule.setup {
            Setup::Once => Some(builder.ready(plan)?),
            Setup::PerCall => None,
        };
        Ok(Self {
            builder,
            make_plan,
            ready,
            resources,
        })
    }

    /// What `use_plan` makes of the plan, which is planned again if set-up is per call.
    fn with_plan<R>(&self, use_plan: impl FnOnce(&P) -> R) -> Result<R, RunError> {
        match &self.ready {
            Some(ready) => Ok(use_plan(&ready.plan)),
            None => match (self.make_plan)(&self.builder.setting()) {
                Ok(plan) => Ok(use_plan(&plan)),
                Err(error) => Err(RunError::Plan(error)),
            },
        }
    }

    fn run<const TRACED: bool>(
        &mut self,
        operands: Operands<'_>,
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        let start = Instant::now();
        let mut fresh;
        let ready = match &mut self.ready {
            Some(ready) => ready,
            None => {
                fresh = self.builder.ready_again(&self.make_plan)?;
                &mut fresh
            }
        };
        let work = ready.plan.work(&mut ready.shared, operands, output)?;
        let driver = Driver {
            pool: &self.builder.pool,
            team: self.builder.team,
            assignment: &ready.assignment,
            work: &work,
            space: &ready.space,
        };
        let setup = start.elapsed();
        let (kernel, busy) = driver.run::<TRACED>();
        let phases = TRACED.then(|| phases(setup, kernel, busy, self.builder.team.threads()));
        Ok(RunTimes { kernel, phases })
    }
}

fn phases(setup: Duration, kernel: Duration, busy: Busy, threads: usize) -> Phases {
    let Busy {
        load,
        multiply,
        epilogue,
    } = busy;
    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
    let wait = kernel
        .saturating_mul(threads)
        .saturating_sub(load + multiply + epilogue);
    Phases {
        setup,
        load,
        multiply,
        epilogue,
        wait,
    }
}

impl Builder {
    fn setting(&self) -> Setting<'_> {
        Setting {
            instructions: self.instructions,
            schedule: &self.schedule,
        }
    }

    fn ready<P: Plan>(&self, plan: P) -> Result<Ready<P>, OutOfMemory> {
        Ok(Ready {
            assignment: Assignment::new(self.schedule.order, &plan.costs(), self.team.workers()),
            shared: plan.allocate_shared()?,
            space: plan.allocate_space(&self.team, self.schedule.stages)?,
            plan,
        })
    }

    /// Gets ready within a call. The plan was accepted when the kernel was built, so only memory can be wanting.
    fn ready_again<P: Plan>(&self, make_plan: &MakePlan<P>) -> Result<Ready<P>, RunError> {
        match make_plan(&self.setting()) {
            Ok(plan) => Ok(self.ready(plan)?),
            Err(error) => Err(RunError::Plan(error)),
        }
    }

    fn resources<P: Plan>(&self, plan: &P) -> Resources {
        let team = &self.team;
        let ([register_rows, register_columns], accumulator_registers) = plan.register_block();
        let stages = |bytes: usize| bytes.saturating_mul(self.schedule.stages);
        let panel_bytes = stages(plan.panel_values().saturating_mul(size_of::<f32>()));
        let slots = stages(slot_bytes(plan.panel_values()));
        let (shared, state) = plan.workspace_bytes();
        Resources {
            threads: team.threads(),
            producers: match self.schedule.roles {
                Roles::Unified => 0,
                Roles::Specialised => team.producers(),
            },
            panel_bytes_per_thread: panel_bytes,
            workspace_bytes: shared
                .saturating_add(state.saturating_mul(team.threads()))
                .saturating_add(slots.saturating_mul(team.workers())),
            tiles: plan.tiles(),
            register_rows,
            register_columns,
            accumulator_registers,
        }
    }
}
