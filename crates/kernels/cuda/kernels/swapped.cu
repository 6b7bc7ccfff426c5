// Weights are the rows of a tile, tokens its columns (swap-AB). Each weight is converted once, in registers, and a tile
// is as wide as its group has tokens; a previous launch converts the tokens (tokens.cu). One persistent block a
// multiprocessor: two warp groups multiply, two warps load.
//
// Definitions: FORMAT, that of the tokens; WIDTH, the most columns of a tile; MIXED 1, tiles of different widths, by
// falling width in a worker's list, in steps of 8 columns up to FINE and of 16 beyond, or 0, all computed at WIDTH;
// DUAL 1, silu(A·B₁ᵀ) ∘ (A·B₂ᵀ); OUTPUT 0 fp16, 1 bf16, 2 fp32; REPACKED 1, weights lie as src/packing.rs packs them,
// 2, as src/packing/steps.rs does, and then tokens are not converted, or 0, row by row; RING, the bytes of operand
// buffers; ROUTED, see swapped_problem.cuh.
#include "swapped_loads.cuh"
#include "swapped_routed.cuh"
#include "swapped_products.cuh"
#include "swapped_results.cuh"

constexpr u32 PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;

DEVICE void produce(const Parameter& parameter, u32 ring_base, Control* control, Recorder& recorder) {
    u32 warp = __shfl_sync(~0u, threadIdx.x / 32 - CONSUMER_WARPS, 0);
    if (warp == 0) {
        recorder.begin(Role::WeightLoader, 0, threadIdx.x % 32 == 0);
        load_weights(parameter, ring_base, control, recorder);
    } else if (warp == 1) {
        recorder.begin(Role::TokenLoader, 0, threadIdx.x % 32 == 0);
        load_tokens(parameter, ring_base, control, recorder);
    }
}

template <u32 COLUMNS>
DEVICE void compute_tile(const Parameter& parameter, const Announced& announced, u32 ring_base, Control* control,
                         Ring& ring, u32& scale_pair, Recorder& recorder, u32 number) {
    float sums[COLUMNS / 2];
    const Biases biases(parameter, announced.tile);
    u32 unit = multiply_tile<COLUMNS>(announced.tile, ring_base, ring, scale_pair, sums, recorder, number);
    finish_tile<COLUMNS>(parameter, announced, control, unit, sums, biases, recorder, number);
    fence_async();  // data staged there, before the copies that take its place
    barrier_arrive(ring_base + ring.empty_before(1));
}

// One loop a width, from the widest down: a switch inside one loop makes ptxas serialise wgmma (C7512). The tests are
// nested so that few far jumps are taken.
DEVICE void compute_tiles(const Parameter& parameter, u32 width, u32 ring_base, Control* control, Recorder& recorder) {
    Ring ring;
    u32 count = 0, scale_pair = SCALE_COPY_BYTES;
    // Biases are loaded before a tile's first unit is waited for, and of the first tile nothing has been announced yet.
    if (EPILOGUE && width > 0) barrier_wait(ring_base + ring.full(0), ring.parity);
    auto next_width = [&]() -> u32 {
        if (control->tiles[count++ % ANNOUNCED].tile.is_last()) return 0;
        barrier_wait(ring_base + ring.full(0), ring.parity);
        return computed_width(control->tiles[count % ANNOUNCED].tile.width);
    };
#define LOOP(COLUMNS)                                                                                                 \
    if constexpr (has_code(COLUMNS))                                                                                  \
        while (width == COLUMNS) {                                                                                    \
            u32 number = tile_number(parameter, count);                                                               \
            compute_tile<COLUMNS>(parameter, control->tiles[count % ANNOUNCED], ring_base, control, ring, scale_pair, \
                                  recorder, number);                                                                  \
            width = next_width();                                                                                     \
        }
#define LOOPS(COLUMNS)                                                        \
    if (width + 24 >= COLUMNS) {                                              \
        LOOP(COLUMNS) LOOP(COLUMNS - 8) LOOP(COLUMNS - 16) LOOP(COLUMNS - 24) \
    }
    LOOPS(256) LOOPS(224) LOOPS(192) LOOPS(160) LOOPS(128) LOOPS(96) LOOPS(64) LOOPS(32)
#undef LOOPS
#undef LOOP
}

extern "C" __global__ void __launch_bounds__(CONSUMER_THREADS + 128, 1)
    swapped(const __grid_constant__ Parameter parameter) {
    extern __shared__ __align__(1024) u8 memory[];
    Recorder recorder;
    Control* control = (Control*)(memory + CONTROL_AT);
    if (threadIdx.x == 0) {
        for (u32 slot = 0; slot < SLOTS; slot++) {
            barrier_init(shared_address(&control->full[slot]), 1);
            barrier_init(shared_address(&control->empty[slot]), CONSUMER_THREADS);
        }
        barrier_init_fence();
    }
#if ROUTED
    Planner planner(parameter, memory);
    __syncthreads();
    // Where another launch lies between this one and that which wrote the ends, they are what they will be.
#pragma unroll 1
    for (bool sure = parameter.ends_are_ready;; sure = true) {
        planner.plan(control);
        if (sure) break;
        grid_wait();
        grid_launch_dependents();
        if (!planner.changed()) break;
    }
#else
    __syncthreads();
    grid_launch_dependents();
#endif
    u32 ring_base = shared_address(memory);
    if (threadIdx.x >= CONSUMER_THREADS) {
        registers_decrease<PRODUCER_REGISTERS>();
        produce(parameter, ring_base, control, recorder);
    } else {
        registers_increase<CONSUMER_REGISTERS>();
        Tile first = worker_tile(parameter, control, 0);  // early: nothing has announced it yet
        u32 width = first.chunks == 0 ? 0 : computed_width(first.width);
        recorder.begin(Role::Multiplier1, threadIdx.x / 128, threadIdx.x % 128 == 0);
        named_barrier_sync(3, CONSUMER_THREADS);  // for ptxas, which must see that all threads go one way
        compute_tiles(parameter, width, ring_base, control, recorder);
    }
}
