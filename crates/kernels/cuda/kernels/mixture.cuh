// The binary interface of the kernels around the products of a mixture of experts: count.cu, arrange.cu and combine.cu.
// A slot is one of the experts of one token, in the order of the tokens. The other half is src/plan/mixture.rs.
#pragma once
#include "ptx.cuh"

// In place of the row of a slot whose expert is elsewhere, or which is padding, and of one whose id stands for no
// expert.
constexpr int ROW_OF_NONE = -1, ROW_OF_WRONG = -2;

struct ArrangeParameter {
    const void* ids;         // [slots], the expert of each
    const void* expert_map;  // [map_size], the place of each expert among those here
    u32* counts;             // [blocks][experts], the slots of each block; used only if `counted`
    int* ends;               // [experts], of each expert's rows
    int* row_experts;        // [slots], the expert of each row, or 0 for a row without one
    int* rows;               // [slots], the row of each slot, or ROW_OF_NONE or ROW_OF_WRONG
    const uint4* from;       // [tokens][pieces], the tokens
    uint4* to;               // [slots][pieces], the tokens by rows
    u32 slots, slots_a_token;
    u32 experts;  // that are here
    u32 map_size;
    u32 id_bytes, map_bytes;  // of an entry, 4 or 8; without a map 0, and ids are places
    u32 pieces;               // of a row, 16 bytes each
    u32 block_slots;          // of a block's part of the slots, a multiple of 32
    // 1: an earlier launch counted each block's slots; 0: every block sorts all slots, and copies its share.
    u32 counted;
    u32 reserved;
};

constexpr u32 ELSEWHERE = 0xFFFF, WRONG = 0xFFFE;  // in place of an expert

DEVICE long long load_index(const void* from, u32 index, u32 bytes) {
    return bytes == 8 ? ((const long long*)from)[index] : ((const int*)from)[index];
}

// The place of a slot's expert among those here, or ELSEWHERE, also for padding, or WRONG.
DEVICE u32 expert_of(const ArrangeParameter& parameter, u32 slot) {
    long long id = load_index(parameter.ids, slot, parameter.id_bytes);
    if (parameter.map_bytes != 0 && id != -1) {
        if (id < 0 || id >= parameter.map_size) return WRONG;
        id = load_index(parameter.expert_map, (u32)id, parameter.map_bytes);
    }
    if (id == -1) return ELSEWHERE;
    return id < 0 || id >= parameter.experts ? WRONG : (u32)id;
}

struct CombineParameter {
    const float* results;  // [slots][columns], by rows
    const int* rows;       // as in ArrangeParameter
    const void* weights;   // [slots]
    u8* output;            // [tokens][columns]
    u32 slots_a_token;
    u32 columns;  // a multiple of 4
    u32 blocks_a_token;
    u32 weight_format;  // 0: fp16, 1: bf16, 2: fp32
};
