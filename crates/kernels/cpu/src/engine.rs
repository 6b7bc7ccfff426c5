//! The engine: threads and an instruction set, for which it builds kernels.

use std::sync::Arc;

use gauntlet_problems::{Attention, Cluster, GroupedGemm, Operation, Schedule, TokenFormat};

use crate::affinity::Processors;
use crate::driver::Team;
use crate::error::{BuildError, EngineError};
use crate::inner_loop;
use crate::kernel::Kernel;
use crate::memory::OutOfMemory;
use crate::pool::Pool;
use crate::prepared::Builder;
use crate::recommend;
use crate::simd::{Instructions, SimdPath};

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

impl EngineOptions {
    /// An upper limit on the threads; no machine has this many processors. Each thread needs several memory mappings. Near
    /// the system's limit a thread can get its stack but not its signal stack, and then aborts the process instead of
    /// returning an error.
    pub const MAX_THREADS: usize = 4096;
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
            Some(threads @ ..=EngineOptions::MAX_THREADS) => threads,
            Some(threads) => {
                return Err(EngineError::TooManyThreads {
                    threads,
                    most: EngineOptions::MAX_THREADS,
                });
            }
            None => std::thread::available_parallelism()
                .map_or(1, |there| usize::from(there).min(EngineOptions::MAX_THREADS)),
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

    /// An upper bound on the speed of any NVFP4 product with this many tokens, in multiply-adds per second of all
    /// threads together: the rate of the inner loop alone, on panels in the first-level cache.
    ///
    /// # Errors
    ///
    /// If memory for the panels runs out.
    pub fn inner_loop_rate(&self, tokens: usize) -> Result<f64, OutOfMemory> {
        inner_loop::rate(&self.pool, self.instructions.blocks(tokens, TokenFormat::Nvfp4))
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
        Kernel::build(problem, builder)
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
