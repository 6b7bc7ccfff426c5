//! What no source at hand tells, put at values that fit what is known, and gathered here so that nobody takes them
//! for measured. Figures with a source are in the device's description, and stand in for those here where it has them.

/// Cycles from a signal at a barrier to the first instruction of whoever waits there. A shared-memory round trip is
/// about 30 cycles on all these parts.
pub(super) const SIGNAL: f64 = 30.0;

/// Cycles in which all warps of a block meet, once the last has come.
pub(super) const SYNCHRONISE: f64 = 30.0;

/// Cycles that issuing one bulk copy takes a producer; where the first of a step is known, each further one. Not Hopper's
/// 248 ns a transaction (see the description of that device): four of those a step would take more than twice as long as
/// the best times published for a B200.
pub(super) const BULK_ISSUE: f64 = 32.0;

/// Cycles that issuing one `cp.async` takes a warp: 512 B through a path of 64 B/clk, four warps at once.
pub(super) const ASYNCHRONOUS_ISSUE: f64 = 8.0;

/// Bytes a clock into one multiprocessor through its first-level cache, where there is no bulk copy or none is used.
pub(super) const CACHE_RATE: f64 = 64.0;

/// Cycles that issuing the products of one step takes a warp.
pub(super) const PRODUCT_ISSUE: f64 = 16.0;

/// NVFP4 values a clock and multiprocessor converted to fp16 in registers. From counting instructions: about one
/// integer instruction a value (a shift and a mask a pair, selecting and loading) at 64 lanes a clock, and half a
/// multiplication by the scale beside it.
pub(super) const CONVERTED: f64 = 64.0;

/// How many times as many of weights that were repacked. From counting instructions of the kernels that were measured: 13 where the
/// canonical order took 15. Since then it takes 13 too, but its loop has been compiled only.
pub(super) const REPACKED: f64 = 15.0 / 13.0;

/// Values of e4m3 converted likewise: one conversion takes two values, at 32 lanes a clock. Turning values for `wgmma` is put at as many.
pub(super) const CONVERTED_E4M3: f64 = 64.0;

/// Warps of a block that convert the same operand where fragments are not shared: four warps as two by two.
pub(super) const FRAGMENT_COPIES: f64 = 2.0;

/// Instructions beside the exponential for one score: scale, maximum, sum, rounding; 128 lanes a clock.
pub(super) const SOFTMAX_INSTRUCTIONS: f64 = 4.0;

/// The share of `wgmma`'s rate that `mma.sync` reaches on Hopper: about 63 %, as microbenchmarks of H100s are reported
/// to have found on average (Luo et al., 2024).
pub(super) const MMA_SYNC_SHARE: f64 = 0.63;

/// Instructions of a product by fused multiply-adds for each of them: its own, and half a load or conversion, if each
/// operand that is read serves four of them on average.
pub(super) const SCALAR_INSTRUCTIONS: f64 = 1.5;

/// The share of exponentials that a polynomial takes, where it takes some: one of four, which leaves neither unit idle.
pub(super) const POLYNOMIAL_SHARE: f64 = 0.25;

/// Instructions of such an exponential, by counting: two to split off the whole part, three multiply-adds of a cubic, a
/// coefficient to load, a shift and an addition to put the whole part into the exponent.
pub(super) const POLYNOMIAL_INSTRUCTIONS: f64 = 8.0;

/// Instructions of an exponential from a table beside the exchange: bounds, two to split off the step, the rest, a
/// straight line and its product, shift and addition of the whole part.
pub(super) const TABLE_INSTRUCTIONS: f64 = 8.0;

/// Lanes a clock that exchange registers (`shfl`), by which an entry of the table comes from the lane that has it: the
/// path of shared memory, 128 B a clock.
pub(super) const EXCHANGED: f64 = 32.0;

/// Bytes a clock that a block reads from the shared memory of another of its cluster: as from the cache, for want of a
/// figure.
pub(super) const CLUSTER_RATE: f64 = 64.0;

/// Lanes that issue at once on a multiprocessor.
pub(super) const LANES: f64 = 128.0;

/// Bytes a clock that direct stores write where each 32-byte sector is written in halves, one a clock: fragments of
/// `mma.sync` and `wgmma`, and rows of tensor memory.
pub(super) const HALF_SECTORS: f64 = 16.0;

/// The same where lanes write whole sectors.
pub(super) const WHOLE_SECTORS: f64 = 32.0;

/// Cycles from a block's place on a multiprocessor to its first instruction for a tile: barriers, tensor memory,
/// descriptors. A kernel of barriers and one store took 0.5 µs longer than an empty one on an H200, store included.
pub(super) const BLOCK_START: f64 = 400.0;

/// Cycles to look at one group in a linear search.
pub(super) const GROUP_LOOKUP: f64 = 30.0;

/// Round trips to memory in which a block makes the tensor maps of a new group its own: write, fence, fetch.
pub(super) const DESCRIPTOR_TRIPS: f64 = 2.0;

/// Part of the ramp that comes before the first block's work; the rest follows the last.
pub(super) const RAMP_UP: f64 = 0.5;

/// Products of one group of warps that are kept in mind.
pub(super) const PRODUCTS_IN_FLIGHT: usize = 64;
