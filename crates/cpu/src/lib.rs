//! NVFP4 grouped GEMM and attention on the CPU.
//!
//! An [`Engine`] owns a pool of threads and an instruction set; [`Engine::build`] plans a problem under a schedule
//! ([`Engine::recommend`] gives one for shapes) and refuses what it cannot do; [`Kernel::run`] computes, or
//! [`Kernel::run_gemm`] with operands that stay where they are and weights [packed](Kernel::pack_weights) once. Results are
//! the same bits from run to run and for any number of threads.
//!
//! Both families are exact up to the rounding of sums:
//!
//! - **NVFP4 products.** Twice an e2m1 value is an integer, so the products of two blocks of 16 add up to an integer, which
//!   times both scales is exact in f32; blocks are added up in f32. Byte products do it: of AVX-512 VNNI, AVX-VNNI, AVX2, or
//!   those of any 128-bit vectors. With AMX and 32 tokens or more its tiles multiply values times scales as bf16, in which
//!   both are exact.
//! - **Attention.** Operands are widened to f32 and multiplied by fused multiply-adds.
//!
//! Both are scaled in f64.
//!
//! What the words of a schedule mean here:
//!
//! | word | on the CPU |
//! |---|---|
//! | tile (m, n, k) | the cache block that one thread computes at a time: m rows by n columns of the result, depth k a stage (attention: m queries, n keys a step, k the head size). Inside it register blocks: of a GEMM 32×32 (AMX), 2×6 (AVX-512), 1×6 (AVX2) or 1×4 (portable), smaller at the tails, over chunks of 32, 256, 128 or 64 of K to which each stage is filled up; of attention 8×32 (AVX-512), 6×16 (AVX2) or 4×8 (portable), zero-padded |
//! | stages | panels of depth k of the streamed operand that are packed before they are multiplied. Unified: a thread prepares so many, then multiplies them, prefetching the quantised bytes that come next if there is more than one. Specialised: the slots of the bounded queue between producer and consumer |
//! | epilogue | direct: each run of a register block is scaled, rounded and stored to its row of the output. Staged: the tile is finished in a buffer, then whole rows leave by non-temporal stores (plain copies on the portable path) |
//! | roles | unified: every thread packs and multiplies. Specialised: a quarter of the threads, at least one, only packs the streamed operand; the others only multiply. Needs two threads |
//! | order | per-tile: a pass of its own, ended by a barrier, for each wave of as many tiles as multiplying threads. Static: one pass, each thread a contiguous share. Sorted: the dearest tile first to the thread with the least. Dynamic: from a shared counter |
//! | lookup | how a tile's number becomes group and position: linear walks the groups, precomputed reads a table |
//! | setup | per-call: plan, tables and buffers are made and freed in each call. Once: when the kernel is built |
//! | swap-ab | the weights (attention: the keys) take the rows of tile and register block, the tokens (queries) the columns; the result is turned back. With AMX weights that are rows need not be turned as they are packed |
//! | split-k | the steps along K (keys) in so many contiguous parts, computed as tiles of their own and reduced in order in a pass of its own |
//! | cluster | only \[1, 1\] |
//!
//! On a processor with AMX, attention on e4m3 or int8 whose heads have one scale each goes to its tiles if the
//! tile's keys and the head size are multiples of 32, with keys as their rows whatever swap-ab says: scores are exact there but for f32 sums, and weights
//! are multiplied in two or three parts of bf16. `--simd avx512` computes the same without.
//!
//! The tokens (A) of a GEMM are packed once a call into panels that all tiles share; the weights are packed by each tile that
//! needs them, unless they were beforehand. The phases of a traced run count both as load.

mod affinity;
mod attention;
mod barrier;
mod calibration;
mod driver;
mod engine;
mod epilogue;
mod error;
mod family;
mod futex;
mod gemm;
mod memory;
mod order;
mod pool;
mod recommend;
mod ring;
mod service;
mod simd;

pub use calibration::CalibrationError;
pub use engine::{Engine, EngineOptions, Kernel, Phases, Resources, RunTimes};
pub use error::{BuildError, EngineError, RunError};
pub use gemm::{GemmOperands, PackedWeights, Weights};
pub use memory::OutOfMemory;
pub use service::CpuService;
pub use simd::{SimdError, SimdPath};
