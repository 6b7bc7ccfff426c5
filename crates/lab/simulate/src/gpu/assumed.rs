//! Assumed values, for which no source was found. They fit what is known, and are collected here so that they are not
//! mistaken for measurements. Figures with a source are in the device's description and take precedence.

/// Cycles from a signal at a barrier to the first instruction of a waiting warp. A shared-memory round trip takes about
/// 30 cycles on all these parts.
pub const SIGNAL: f64 = 30.0;

/// Cycles for all warps of a block to pass a barrier, after the last has arrived.
pub const SYNCHRONISE: f64 = 30.0;

/// Cycles for a producer to issue one bulk copy; if the first copy of a step has a known cost, for each further one.
/// Not Hopper's 248 ns per transaction (see the description of that device): four of those per step would take more
/// than twice as long as the best times published for a B200.
pub const BULK_ISSUE: f64 = 32.0;

/// Cycles for a warp to issue one `cp.async`: 512 B through a path of 64 B/clk, four warps at the same time.
pub const ASYNCHRONOUS_ISSUE: f64 = 8.0;

/// Bytes per clock into one multiprocessor through its first-level cache, if bulk copies do not exist or are not used.
pub const CACHE_RATE: f64 = 64.0;

/// Cycles for a warp to issue the products of one step.
pub const PRODUCT_ISSUE: f64 = 16.0;

/// NVFP4 values per clock and multiprocessor converted to fp16 in registers. From counting instructions: about one
/// integer instruction per value (a shift and a mask per pair, selecting and loading) at 64 lanes per clock, and in
/// parallel half a multiplication by the scale.
pub const CONVERTED: f64 = 64.0;

/// Speed-up of the conversion for repacked weights. From counting instructions of the measured kernels: 13 for repacked
/// weights, 15 for the canonical order. The canonical order now takes 13 too, but that loop has only been compiled, not
/// measured.
pub const REPACKED: f64 = 15.0 / 13.0;

/// Values of e4m3 converted likewise: one conversion takes two values, at 32 lanes per clock. Transposing values for
/// `wgmma` is assumed to have the same rate.
pub const CONVERTED_E4M3: f64 = 64.0;

/// The number of a block's warps that convert the same operand if fragments are not shared: four warps form two by two.
pub const FRAGMENT_COPIES: f64 = 2.0;

/// Instructions besides the exponential for one score: scale, maximum, sum, rounding; 128 lanes per clock.
pub const SOFTMAX_INSTRUCTIONS: f64 = 4.0;

/// The share of `wgmma`'s rate that `mma.sync` reaches on Hopper: about 63 % on average in reported microbenchmarks of
/// H100s (Luo et al., 2024).
pub const MMA_SYNC_SHARE: f64 = 0.63;

/// The same on a B200, as a share of `tcgen05`'s rate. No measurement was found. The model assumes that `mma.sync` is as fast there
/// as on Hopper, per clock and multiprocessor; the fp16 and fp8 rates of a B200 are twice those of Hopper.
pub const MMA_SYNC_SHARE_OF_BLACKWELL: f64 = MMA_SYNC_SHARE / 2.0;

/// Cycles from the end of a product's time in the unit to its result, for `mma.sync` on a GPU whose description has the figure
/// of another instruction. From an H100, m16n8k16: 25.1 cycles to the result and 6.26 to the next of the same warp.
pub const MMA_SYNC_LATENCY: f64 = 19.0;

/// Instructions per multiply-add in a product by fused multiply-adds: the multiply-add itself, and half a load or
/// conversion, if each operand that is read serves four multiply-adds on average.
pub const SCALAR_INSTRUCTIONS: f64 = 1.5;

/// The share of exponentials computed by a polynomial, if any are: one of four, which leaves neither unit idle.
pub const POLYNOMIAL_SHARE: f64 = 0.25;

/// Counted instructions of such an exponential: two to split off the integer part, three multiply-adds of a cubic, a
/// coefficient to load, a shift and an addition to put the integer part into the exponent.
pub const POLYNOMIAL_INSTRUCTIONS: f64 = 8.0;

/// Instructions of an exponential from a table, besides the exchange: bounds, two to split off the step, the remainder,
/// a linear term and its product, shift and addition of the integer part.
pub const TABLE_INSTRUCTIONS: f64 = 8.0;

/// Lanes per clock that exchange registers (`shfl`) to get a table entry from the lane that holds it: the path of
/// shared memory, 128 B per clock.
pub const EXCHANGED: f64 = 32.0;

/// Bytes per clock that a block reads from the shared memory of another block of its cluster: assumed equal to the
/// cache's rate.
pub const CLUSTER_RATE: f64 = 64.0;

/// Lanes that a multiprocessor issues per clock.
pub const LANES: f64 = 128.0;

/// Bytes per clock that direct stores write if each 32-byte sector is written in halves, one per clock: fragments of
/// `mma.sync` and `wgmma`, and rows of tensor memory.
pub const HALF_SECTORS: f64 = 16.0;

/// The same if lanes write whole sectors.
pub const WHOLE_SECTORS: f64 = 32.0;

/// Cycles from a block's assignment to a multiprocessor to its first instruction for a tile: barriers, tensor memory,
/// descriptors. A kernel of barriers and one store took 0.5 µs longer than an empty one on an H200, store included.
pub const BLOCK_START: f64 = 400.0;

/// Cycles to look at one group in a linear search.
pub const GROUP_LOOKUP: f64 = 30.0;

/// Round trips to memory for a block to set up the tensor maps of a new group: write, fence, fetch.
pub const DESCRIPTOR_TRIPS: f64 = 2.0;

/// The part of the ramp before the first block's work; the rest follows the last block.
pub const RAMP_UP: f64 = 0.5;

/// The maximum number of products in progress that are tracked per group of warps.
pub const PRODUCTS_IN_FLIGHT: usize = 64;
