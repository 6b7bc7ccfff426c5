// The schedule's parameters as compile-time constants, and the launch parameter, of kernels whose blocks each compute
// one tile of any group at a time.
#pragma once
#include "results.cuh"
#include "trace.cuh"

// Choices; definitions give the first four by name.
enum class Order { PerTile, Static, Sorted, Dynamic };
enum class Lookup { Linear, Precomputed };
enum class Epilogue { Direct, Staged };
enum class Roles { Unified, Specialised };

constexpr u32 ROWS = TILE_M, COLUMNS = TILE_N, DEPTH = TILE_K;
constexpr Order order = Order::ORDER;
constexpr Lookup lookup = Lookup::LOOKUP;
constexpr Epilogue epilogue = Epilogue::EPILOGUE;
constexpr Roles roles = Roles::ROLES;
// Whether the weights are the rows of a tile, and the tokens its columns.
constexpr bool SWAPPED = SWAP_AB;
// Blocks of a cluster that compute a tile together.
constexpr u32 BLOCKS_A_TILE = PAIRED ? 2 : 1;
constexpr bool SPECIALISED = roles == Roles::Specialised;
// Weight matrices a tile multiplies with.
constexpr u32 MATRICES = DUAL ? 2 : 1;
constexpr u32 ELEMENT_BYTES = output == Output::F32 ? 4 : 2;
// Tiles in the order of their costs, by a table.
constexpr bool BY_COST = order == Order::Sorted || order == Order::Dynamic;

struct Parameter {
    const u8* tokens;
    const u8* token_scales;
    void* output;
    const Group* groups;
    // Precomputed: a Tile for each. Linear, where tiles go by cost: their numbers (u32).
    const void* order;
    const TensorMap* maps;
    float* workspace;
    u32* counters;
    u32 tiles;
};

// Sizes of a group along the rows and the columns of tiles.
DEVICE u32 rows_of(const Group& group) { return SWAPPED ? group.n : group.m; }

DEVICE u32 columns_of(const Group& group) { return SWAPPED ? group.m : group.n; }

// Bytes of a description of work in shared memory (work.cuh).
constexpr u32 WORK_BYTES = 32;

// A slot of a ring, and the parity of its turn.
template <u32 SLOTS>
struct RingCursor {
    u32 slot = 0, turn = 0;

    DEVICE void next() {
        if (++slot == SLOTS) {
            slot = 0;
            turn ^= 1;
        }
    }

    DEVICE void advance(u32 count) {
        slot += count;
        turn ^= slot / SLOTS % 2;
        slot %= SLOTS;
    }
};
