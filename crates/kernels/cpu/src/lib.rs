//! A library of CPU kernels: NVFP4 grouped GEMM and attention.
//!
//! An [`Engine`] owns a pool of threads and an instruction set. [`Engine::build`] plans a problem under a schedule
//! ([`Engine::recommend`] suggests one for given shapes), and refuses what it does not support. [`Kernel::run`] computes;
//! [`Kernel::run_gemm`] takes operands by reference, and weights that were [packed](Kernel::pack_weights) once. Results are
//! bit-identical from run to run and for any number of threads.
//!
//! ```
//! use gauntlet_nvfp4::Nvfp4Tensor;
//! use gauntlet_kernels_cpu::{Engine, EngineOptions};
//! use gauntlet_problems::{
//!     Form, GemmShape, GroupInputs, GroupedGemm, Inputs, Operation, Output, OutputFormat, TokenFormat,
//! };
//!
//! let engine = Engine::new(EngineOptions::default())?;
//! let gemm = GroupedGemm {
//!     groups: vec![GemmShape { m: 4, n: 64, k: 128 }],
//!     form: Form::Plain,
//!     output: OutputFormat::F32,
//!     tokens: TokenFormat::Nvfp4,
//! };
//! let schedule = engine.recommend(&gemm);
//! let problem = Operation::GroupedGemm(gemm);
//! let mut kernel = engine.build(&problem, &schedule)?;
//!
//! let inputs = Inputs::GroupedGemm(vec![GroupInputs {
//!     a: Nvfp4Tensor::quantise(4, 128, &[1.0; 4 * 128])?.into(),
//!     b: Nvfp4Tensor::quantise(64, 128, &[0.5; 64 * 128])?,
//!     b2: None,
//! }]);
//! let mut output = Output::poisoned(&problem);
//! kernel.run(&inputs, &mut output)?;
//! assert_eq!(output.get(0), 64.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Only the rounding of sums makes results inexact:
//!
//! - **NVFP4 products.** Twice an e2m1 value is an integer, so the products of two blocks of 16 add up to an integer. That
//!   integer times both block scales is exact in f32, and blocks are summed in f32. The integer products use AVX-512 VNNI,
//!   AVX-VNNI, AVX2, NEON or portable 128-bit vectors. With AMX and at least 32 tokens, the tile unit multiplies values
//!   times scales as bf16, in which both are exact.
//! - **Tokens without scales.** A weight times its block scale has at most six significant bits, so its products with bf16
//!   and f16 tokens are exact in f32; those with f32 tokens round. With AVX-512 BF16, bf16 tokens are multiplied in pairs.
//! - **Attention.** Operands are converted to f32 and multiplied by fused multiply-adds.
//!
//! The final scale is applied in f64.
//!
//! What the words of a schedule mean here:
//!
//! | word | on the CPU |
//! |---|---|
//! | tile (m, n, k) | the cache block that one thread computes at a time: m rows by n columns of the result, in steps of depth k (attention: m queries, n keys a step, k the head size). A tile consists of register blocks: of a GEMM 32×32 (AMX), 2×6 (AVX-512), 1×6 (AVX2) or 1×4 (portable), smaller at the edges, over chunks of 32, 256, 128 or 64 of K, to which each step is padded; of attention 8×32 (AVX-512), 6×16 (AVX2) or 4×8 (portable), zero-padded |
//! | stages | panels of depth k of the streamed operand that are packed before they are multiplied. Unified roles: a thread packs that many panels, then multiplies them; with more than one it also prefetches the quantised bytes of the next. Specialised roles: the slots of the bounded queue between producer and consumer |
//! | epilogue | direct: each row of a register block is scaled, rounded and stored to its row of the output. Staged: the tile is finished in a buffer, then whole rows are written by non-temporal stores (plain copies on the portable path) |
//! | roles | unified: every thread packs and multiplies. Specialised: a quarter of the threads, at least one, only packs the streamed operand; the others only multiply. Needs two threads |
//! | order | per-tile: one pass, ended by a barrier, for each wave of as many tiles as there are multiplying threads. Static: one pass, in which each thread takes a contiguous share. Sorted: the most expensive tile first, to the thread with the least work. Dynamic: from a shared counter |
//! | lookup | how the number of a tile is converted to group and position: linear searches the groups, precomputed reads a table |
//! | setup | per-call: plan, tables and buffers are made and freed in each call. Once: when the kernel is built |
//! | swap-ab | the weights (attention: the keys) become the rows of tile and register block, the tokens (queries) the columns; the result is transposed back. With AMX, weights as rows need no transposition while they are packed |
//! | split-k | splits the steps along K (keys) into that many contiguous parts, which are computed as tiles of their own and reduced in order in a separate pass |
//! | cluster | only \[1, 1\] |
//!
//! On a processor with AMX, attention on e4m3 or int8 with one scale per head uses the tile unit if the tile's keys and the
//! head size are multiples of 32. Keys are its rows then, whatever swap-ab says. Scores are exact except for f32 sums, and
//! softmax weights are multiplied as two or three bf16 parts. [`SimdPath::Avx512`] computes the same without AMX.
//!
//! The tokens (A) of a GEMM are packed once per call into panels that all tiles share. Each tile packs the weights that it
//! needs, unless they were packed beforehand. A traced run counts both as load.

mod affinity;
mod attention;
mod barrier;
mod driver;
mod engine;
mod epilogue;
mod error;
mod family;
mod fork;
mod futex;
mod gemm;
mod inner_loop;
mod kernel;
mod memory;
mod moe;
mod order;
mod pool;
mod prepared;
mod recommend;
mod ring;
mod simd;

pub use engine::{Engine, EngineOptions};
pub use error::{BuildError, EngineError, RunError};
pub use fork::PerProcess;
pub use gemm::{FloatRows, GemmOperands, PackedWeights, TokenRows, Weights};
pub use kernel::Kernel;
pub use memory::{OutOfMemory, output_for};
pub use moe::{Expert, MoeError, NO_EXPERT, TopExperts};
pub use prepared::{Phases, Resources, RunTimes};
pub use simd::{SimdError, SimdPath};
