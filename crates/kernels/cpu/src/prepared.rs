//! A plan with its threads and its memory: made once, or again in each call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gauntlet_problems::{Output, Roles, Schedule, Setup};
use serde::{Deserialize, Serialize};

use crate::driver::{Busy, Driver, Space, Team, slot_bytes};
use crate::error::{BuildError, RunError};
use crate::family::{Operands, Plan, Setting};
use crate::memory::OutOfMemory;
use crate::order::Assignment;
use crate::pool::Pool;
use crate::simd::Instructions;
use gauntlet_device::available_bytes;

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

/// The inputs of a plan, except the problem.
#[derive(Debug)]
pub struct Builder {
    pub instructions: Instructions,
    pub schedule: Schedule,
    pub team: Team,
    pub pool: Arc<Pool>,
}

/// A plan with its memory.
#[derive(Debug)]
struct Ready<P: Plan> {
    plan: P,
    assignment: Assignment,
    shared: P::Shared,
    space: Space<P::State>,
}

/// Makes the plan of a problem.
type MakePlan<P> = Box<dyn Fn(&Setting<'_>) -> Result<P, BuildError> + Send>;

/// The kernel of one family. With `setup = "once"`, plan and memory are kept; otherwise each call makes them again.
pub struct Prepared<P: Plan> {
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
    /// Plans the problem, and allocates the memory if that is done once.
    pub fn new(builder: Builder, make_plan: MakePlan<P>) -> Result<Self, BuildError> {
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

    /// The resources of the kernel.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Calls `use_plan` with the plan; if set-up is per call, the plan is made again first.
    pub fn with_plan<R>(&self, use_plan: impl FnOnce(&P) -> R) -> Result<R, RunError> {
        match &self.ready {
            Some(ready) => Ok(use_plan(&ready.plan)),
            None => match (self.make_plan)(&self.builder.setting()) {
                Ok(plan) => Ok(use_plan(&plan)),
                Err(error) => Err(RunError::Plan(error)),
            },
        }
    }

    /// Computes `output` from the operands.
    pub fn run<const TRACED: bool>(
        &mut self,
        operands: Operands<'_>,
        output: &mut Output,
    ) -> Result<RunTimes, RunError> {
        let start = Instant::now();
        let pool = &self.builder.pool;
        pool.start().map_err(|_| RunError::Spawn {
            threads: pool.threads(),
        })?;
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
