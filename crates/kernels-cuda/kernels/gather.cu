// Copies the tokens of a mixture of experts into the rows that arrange.cu dealt out, for the first product. Each thread copies
// 16 bytes; a block has a part of one row. Rows without a token are left as they are.
#include "mixture.cuh"

constexpr u32 THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ GatherParameter parameter) {
    grid_launch_dependents();
    // Every thread waits: the next launch may rely on it that this one's end is also that of the launch before.
    grid_wait();
    u32 row = blockIdx.x / parameter.blocks_a_row, piece = blockIdx.x % parameter.blocks_a_row * THREADS + threadIdx.x;
    int token = parameter.tokens[row];
    if (token < 0 || piece >= parameter.pieces) return;
    parameter.to[(u64)row * parameter.pieces + piece] = parameter.from[(u64)token * parameter.pieces + piece];
}
