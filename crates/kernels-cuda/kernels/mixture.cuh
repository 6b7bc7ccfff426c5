// The binary interface of the kernels around the products of a mixture of experts: arrange.cu, gather.cu and combine.cu. A
// slot is one of the experts of one token, in the order of the tokens. The other half is src/plan/mixture.rs.
#pragma once
#include "ptx.cuh"

// In place of the row of a slot: its expert is elsewhere, or it is padding; and its id stands for no expert.
constexpr int ROW_OF_NONE = -1, ROW_OF_WRONG = -2;

struct ArrangeParameter {
    const void* ids;            // [slots], the expert of each
    const void* expert_map;     // [map_size], the place of each expert among those here
    int* ends;                  // [experts], of each expert's rows
    int* tokens;                // [slots], the token of each row, or -1 for a row without one
    int* row_experts;           // [slots], the expert of each row, or 0 for a row without one
    int* rows;                  // [slots], the row of each slot, or one of the two above
    u32 slots, slots_a_token;
    u32 experts;                // that are here
    u32 map_size;
    u32 id_bytes, map_bytes;    // of an entry, 4 or 8; without a map 0, and ids are places
};

struct GatherParameter {
    const uint4* from;          // [tokens][pieces]
    uint4* to;                  // [slots][pieces]
    const int* tokens;          // as in ArrangeParameter
    u32 pieces;                 // of a row, 16 bytes each
    u32 blocks_a_row;
};

struct CombineParameter {
    const float* results;       // [slots][columns], by rows
    const int* rows;            // as in ArrangeParameter
    const void* weights;        // [slots]
    u8* output;                 // [tokens][columns]
    u32 slots_a_token;
    u32 columns;                // a multiple of 4
    u32 blocks_a_token;
    u32 weight_format;          // 0: fp16, 1: bf16, 2: fp32
};
