// Merges the parts of a tile's keys that warps of the specialised kernel left in the workspace, and stores the results.
// It has that kernel's definitions and parameter, without the tensor maps. GROUPS is 1 where parts are few: then blocks
// are many, and several run on a multiprocessor.
//
// A block has a warp's sixteen rows, and FOURS_A_BLOCK fours of each lane's sums. GROUPS groups of its threads take a
// share of the parts each, all of whose reads are under way at the same time; the shares are added in their order.
#define WITHOUT_MAPS
#include "attention_specialised_ring.cuh"

constexpr u32 FOURS_A_BLOCK = 4, THREADS = 32 * FOURS_A_BLOCK * GROUPS;
constexpr u32 WARPS = 4 * QUERY_GROUPS, SLICES = WarpParts::FOURS / FOURS_A_BLOCK;
static_assert(WarpParts::FOURS % FOURS_A_BLOCK == 0, "the host counts blocks as the device does");
constexpr u32 AT_ONCE = GROUPS == 1 ? 4 : 8;  // parts

// A thread's share of the parts: a four of sums, and the statistics of its two rows.
struct Share {
    float4 sums, rows;
};

DEVICE float at(const float4& four, u32 index) {
    return index == 0 ? four.x : index == 1 ? four.y : index == 2 ? four.z : four.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, GROUPS == 1 ? 6 : 1)
    attention_merge(const __grid_constant__ Parameter parameter) {
    __shared__ Share shares[GROUPS][32 * FOURS_A_BLOCK];
    grid_launch_dependents();
    u32 number = blockIdx.x / SLICES, warp = number % WARPS, lane = threadIdx.x % 32;
    const Job job = locate(parameter, number / WARPS * parameter.parts);
    // Of a tile that is not split, the block of its first part has stored the results.
    if (16 * warp >= job.queries || job.parts == 1) return;
    grid_wait();
    u32 group = threadIdx.x / (32 * FOURS_A_BLOCK), thread = threadIdx.x % (32 * FOURS_A_BLOCK);
    u32 four = blockIdx.x % SLICES * FOURS_A_BLOCK + thread / 32;
    float sums[4];
    Statistics rows[2];
    auto sum = [&](u32 index) -> float& { return sums[index]; };
    WarpParts(parameter, number)
        .merge<AT_ONCE, 1>(job.parts * group / GROUPS, job.parts * (group + 1) / GROUPS, four, sum, rows);
    shares[group][thread] = {make_float4(sums[0], sums[1], sums[2], sums[3]),
                             make_float4(rows[0].base, rows[0].total, rows[1].base, rows[1].total)};
    __syncthreads();
    if (group > 0) return;
    float value = load_scales(parameter, job.index, job.row_head(parameter, 0)).value;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        float highest = -INFINITE, total = 0.0f, low = 0.0f, high = 0.0f;
#pragma unroll
        for (u32 share = 0; share < GROUPS; share++) highest = fmaxf(highest, at(shares[share][thread].rows, 2 * half));
#pragma unroll
        for (u32 share = 0; share < GROUPS; share++) {
            const Share& of = shares[share][thread];
            float factor = part_factor(at(of.rows, 2 * half), highest);
            total = fmaf(factor, at(of.rows, 2 * half + 1), total);
            low = fmaf(factor, at(of.sums, 2 * half), low);
            high = fmaf(factor, at(of.sums, 2 * half + 1), high);
        }
        u32 row = 16 * warp + lane / 4 + 8 * half, query = job.query + row;
        if (row >= job.queries) continue;
        // A row that sees no key has the result 0.
        float factor = highest == -INFINITE ? 0.0f : value / total;
        u64 element = ((u64)job.sequence.query_row + (u64)job.head * job.sequence.queries + query) * HEAD + 8 * four +
                      lane % 4 * 2;
        store_pair(parameter, element, low * factor, high * factor);
    }
}
