//! The engine (threads and an instruction set) and the kernels that it builds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gauntlet_formats::Nvfp4Tensor;
use gauntlet_operations::{Attention, GroupInputs, GroupedGemm, Inputs, Operation, Output};
use gauntlet_operations::{Cluster, Roles, Schedule, Setup, TokenFormat};
use serde::{Deserialize, Serialize};

use crate::affinity::Processors;
use crate::attention::AttentionPlan;
use crate::calibration::{self, CalibrationError, CalibrationFigure};
use crate::driver::{Busy, Driver, Space, Team, slot_bytes};
use crate::error::{BuildError, EngineError, RunError, wrong_family};
use crate::family::{Operands, Plan, Setting};
use crate::gemm::{GemmOperands, GemmPlan, PackedWeights, Weights};
use crate::memory::{OutOfMemory, available_bytes};
use crate::order::Assignment;
use crate::pool::Pool;
use crate::recommend;
use crate::simd::{Instructions, SimdPath};

/// An upper limit on the threads; no machine has this many processors. Each thread needs several memory mappings. Near
/// the system's limit a thread can get its stack but not its signal stack, and then aborts the process instead of
/// returning an error.
const MOST_THREADS: usize = 4096;

/// The threads and instructions that an engine uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// The instruction set; `None` chooses the best that the processor has.
    pub simd: Option<SimdPath>,
    /// The number of threads, the caller included; `None` takes one for each processor that this process may use.
    pub threads: Option<usize>,
    /// Whether to pin each thread to a processor of its own, including the thread that creates the engine. Use it in a
    /// process with one engine that is called from one thread. It has no effect if there are more threads than processors.
    pub pinned: bool,
}

/// A pool of threads and the loops of one instruction set.
#[derive(Debug)]
pub struct Engine {
    pool: Arc<Pool>,
    instructions: Instructions,
}

/// The resources of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Threads that take part in a call.
    pub threads: usize,
    /// The number of them that only pack panels (`roles = "specialised"`).
    pub producers: usize,
    /// Bytes of packed panels in flight per multiplying thread, over all stages.
    pub panel_bytes_per_thread: usize,
    /// Bytes of all buffers, the panels included.
    pub workspace_bytes: usize,
    /// Tiles; each part of a tile that `split-k` splits counts as one.
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
    /// From the first thread's start to the last thread's end, without set-up.
    pub kernel: Duration,
    /// Where the time went; only traced runs measure it.
    pub phases: Option<Phases>,
}

/// Where the time of a run went, summed over threads. All phases but `setup` add up to `kernel` × threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// Making plans, tables and buffers in this call, and checking the operands.
    pub setup: Duration,
    /// Dequantising and packing.
    pub load: Duration,
    /// Multiplying, and the softmax.
    pub multiply: Duration,
    /// Scaling, rounding, writing, and reducing the parts of split tiles.
    pub epilogue: Duration,
    /// Waiting for a panel, a free slot, or the slowest thread.
    pub wait: Duration,
}

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// If the processor lacks the instruction set, or the threads cannot be started.
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
            // Pinning is an optimisation: an unpinned thread computes the same results.
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

    /// The instructions that multiply NVFP4 when there are many tokens: `amx`, `avx512vnni`, `avx512vnni-sums`, `avxvnni`,
    /// `avx2`, `neon` or `portable`.
    pub fn dots(&self) -> &'static str {
        self.instructions.blocks(usize::MAX, TokenFormat::Nvfp4).name()
    }

    /// The loops that multiply this many tokens of a format: those of [`dots`](Self::dots), or for tokens without scales
    /// `avx512-bf16`, `avx512-f32`, `avx2-f32` or `portable-f32`.
    pub fn loops(&self, tokens: usize, format: TokenFormat) -> &'static str {
        self.instructions.blocks(tokens, format).name()
    }

    /// The number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Puts the threads to sleep now. After a call they spin for about 50 µs, so that a call that follows immediately
    /// need not wake them. A caller that knows that no call follows can free the processors with this method.
    pub fn rest(&self) {
        self.pool.rest();
    }

    /// Runs `work` once on each thread, with the thread's number, and returns when all threads are done. Kernels outside
    /// this crate share the engine's threads through it.
    ///
    /// # Panics
    ///
    /// If `work` panics on a thread, the panic is raised again here.
    pub fn for_each_thread(&self, work: &(dyn Fn(usize) + Sync)) {
        self.pool.run(work);
    }

    /// Measures what the engine's primitives cost on this machine; `quick` takes fewer samples of each.
    ///
    /// # Errors
    ///
    /// If memory for the operands of a measurement runs out.
    pub fn calibrate(&self, quick: bool) -> Result<Vec<CalibrationFigure>, CalibrationError> {
        calibration::measure(&self.pool, self.instructions, quick)
    }

    /// An upper bound on the speed of any NVFP4 product with this many tokens, in multiply-adds per second of all
    /// threads together: the rate of the inner loop alone, on panels in the first-level cache.
    ///
    /// # Errors
    ///
    /// If memory for the panels runs out.
    pub fn inner_loop_rate(&self, tokens: usize) -> Result<f64, CalibrationError> {
        calibration::inner_loop_rate(&self.pool, self.instructions, tokens)
    }

    /// A good schedule for a grouped GEMM of these shapes.
    ///
    /// The panels of a tile fit the second-level cache during a step along K. If the tokens are few enough to fit the
    /// first-level cache, the weights are read in memory order. Tiles get fewer weights where wide tiles would leave
    /// threads idle.
    pub fn recommend(&self, gemm: &GroupedGemm) -> Schedule {
        recommend::schedule(gemm, self.instructions, self.threads())
    }

    /// A good schedule for attention of these sizes: tiles of 64 queries, fewer if no sequence has as many, by 64 keys.
    pub fn recommend_attention(&self, attention: &Attention) -> Schedule {
        recommend::attention(attention)
    }

    /// Plans `problem` under `schedule`.
    ///
    /// # Errors
    ///
    /// If the problem is invalid, or the CPU does not support a value of the schedule or a size.
    pub fn build(&self, problem: &Operation, schedule: &Schedule) -> Result<Kernel, BuildError> {
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
            Operation::GroupedGemm(gemm) => {
                let gemm = gemm.clone();
                let prepared =
                    Prepared::new(builder, Box::new(move |setting| GemmPlan::new(&gemm, setting)))?;
                (prepared.resources, Family::GroupedGemm(prepared))
            }
            Operation::Attention(attention) => {
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
    /// The resources of the kernel.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Computes `output` from `inputs`.
    ///
    /// # Errors
    ///
    /// If the operands do not fit the problem that the kernel was built for, or (set-up per call) if memory runs out.
    pub fn run(&mut self, inputs: &Inputs, output: &mut Output) -> Result<RunTimes, RunError> {
        self.run_inputs::<false>(inputs, output)
    }

    /// Like [`run`](Self::run), and also measures where the time went, which slows the call a little.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_traced(&mut self, inputs: &Inputs, output: &mut Output) -> Result<RunTimes, RunError> {
        self.run_inputs::<true>(inputs, output)
    }

    /// Computes `output` from the operands of each group, without copying them.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), or if the weights were packed for a different plan.
    pub fn run_gemm(
        &mut self,
        operands: &[GemmOperands<'_>],
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        self.run_operands::<false>(Operands::GroupedGemm(operands), output)
    }

    /// Packs weights, `[n, k]`, once. All kernels with the same tile, `swap_ab` and instructions can use them.
    ///
    /// # Errors
    ///
    /// If memory for them runs out, or the kernel is not a GEMM.
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
                let operands: Vec<_> = groups.iter().map(gemm_operands).collect();
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

/// A group's operands; none if its tokens are not NVFP4.
fn gemm_operands(group: &GroupInputs) -> GemmOperands<'_> {
    GemmOperands {
        a: (&group.a).into(),
        b: Weights::Tensor(&group.b),
        b2: group.b2.as_ref().map(Weights::Tensor),
    }
}

/// The inputs of a plan, except the problem.
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

/// The kernel of one family. With `setup = "once"`, plan and memory are kept; otherwise each call makes them again.
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

    /// Calls `use_plan` with the plan; if set-up is per call, the plan is made again first.
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

    /// Makes plan and memory within a call. The plan was accepted when the kernel was built, so the only possible
    /// failure is that memory runs out.
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
