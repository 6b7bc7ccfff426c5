// Repacks weights for tokens of 16 bits: from rows as checkpoints have them to steps, as src/packing/steps.rs describes
// and does on the host, byte for byte. A thread has a chunk of 128 values of one row. Of a warp's 32 chunks, four lie
// side by side in each of eight rows, so that it reads 256 bytes in a row and writes 512.
//
// FORMAT is that of the tokens: 1 for fp16, 2 for bf16.
#include "ptx.cuh"

constexpr u32 THREADS = 256, CHUNKS = 4, ROWS = THREADS / CHUNKS;
constexpr bool BRAIN = FORMAT == 2;
// The bits of e4m3's NaN without a sign, and the code of a scale that is NaN.
constexpr u32 NOT_A_NUMBER = 0x7F, CODED_NOT_A_NUMBER = 0xFF;
// Fifteen in the exponent of a scale's code, which has one more bit than e4m3's.
constexpr u32 CODED_BIAS = 15 << 3;

struct RepackParameter {
    const uint4* values;   // [matrices · rows][chunks][4]
    const uint2* scales;   // [matrices · rows][chunks]
    uint4* packed_values;  // [matrices][chunks][rows][4]
    uint2* packed_scales;  // [matrices][chunks][rows / 16][8][2]
    u64 all_rows;          // of all matrices
    u32 rows;              // of a matrix, a multiple of 16
    u32 chunks;            // of a row
    u32 blocks_a_row;
};

// The size of an e4m3 scale with a bias of 22. Small numbers, which e4m3 has without a leading one, get theirs.
DEVICE u32 coded(u32 scale) {
    u32 size = scale & 0x7F;
    if (size == NOT_A_NUMBER) return CODED_NOT_A_NUMBER;
    if (size >= 8) return size + CODED_BIAS;
    if (size == 0) return 0;
    u32 shift = __clz((int)size) - 28;
    return (size << shift) + CODED_BIAS - (shift << 3);
}

// The two words of the eight pairs of lane `lane` in half `half` of a chunk.
DEVICE uint2 placed(const u32 (&pieces)[16], u32 half, u32 lane) {
    u32 words[2]{};
#pragma unroll
    for (u32 pair = 0; pair < 8; pair++) {
        u32 codes = pieces[half * 8 + pair] >> (8 * lane);
        u32 both = codes & 0xF | (codes & 0xF0) << 12;
        if constexpr (BRAIN) {
            u32 bits = (both & 0x00070007) << 6 | (both & 0x00080008) << 12;
            bits = __funnelshift_l(bits, bits, 2 * pair);
            constexpr u32 ALL = ~0u, SHARED = 0x60306030, IN_FIRST[8]{ALL, 0, ALL, SHARED, 0, ALL, SHARED, 0};
            words[0] |= bits & IN_FIRST[pair];
            words[1] |= bits & ~IN_FIRST[pair];
        } else {
            words[pair / 4] |= both << (pair % 4 * 4);
        }
    }
    return make_uint2(words[0], words[1]);
}

extern "C" __global__ void __launch_bounds__(THREADS) repack(const __grid_constant__ RepackParameter parameter) {
    u64 row = (u64)(blockIdx.x / parameter.blocks_a_row) * ROWS + threadIdx.x / CHUNKS;
    u32 chunk = blockIdx.x % parameter.blocks_a_row * CHUNKS + threadIdx.x % CHUNKS;
    if (row >= parameter.all_rows || chunk >= parameter.chunks) return;
    u64 from = row * parameter.chunks + chunk;
    uint2 scales = parameter.scales[from];
    u32 pieces[16], words[2]{};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        uint4 four = parameter.values[from * 4 + i];
        pieces[4 * i] = four.x, pieces[4 * i + 1] = four.y, pieces[4 * i + 2] = four.z, pieces[4 * i + 3] = four.w;
    }
#pragma unroll
    for (u32 step = 0; step < 8; step++) {
        u32 scale = (step < 4 ? scales.x : scales.y) >> (step % 4 * 8) & 0xFF;
        // A zero has no code; its values vanish instead. The sign of a scale becomes that of its values.
        u32 kept = (scale & 0x7F) == 0 ? 0 : ~0u, sign = scale & 0x80 ? 0x88888888 : 0;
        pieces[2 * step] = (pieces[2 * step] ^ sign) & kept;
        pieces[2 * step + 1] = (pieces[2 * step + 1] ^ sign) & kept;
        u32 code = coded(scale), place = (BRAIN ? 4 : 7) + step % 2 * 16 + step / 2 % 2 * 8;
        words[step / 4] |= __funnelshift_l(code, code, place);
    }
    u64 matrix = row / parameter.rows;
    u32 own = (u32)(row % parameter.rows);
    u64 slice = matrix * parameter.chunks + chunk;
    uint4* values = parameter.packed_values + (slice * parameter.rows + own) * 4;
#pragma unroll
    for (u32 lane = 0; lane < 4; lane++) {
        uint2 first = placed(pieces, 0, lane), second = placed(pieces, 1, lane);
        values[lane] = make_uint4(first.x, first.y, second.x, second.y);
    }
    // Rows g and g + 8 of sixteen lie side by side.
    u32 place = own / 16 * 16 + own % 8 * 2 + own / 8 % 2;
    parameter.packed_scales[slice * parameter.rows + place] = make_uint2(words[0], words[1]);
}
