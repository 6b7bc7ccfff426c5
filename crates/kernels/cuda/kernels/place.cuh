// Where the results of a warp lie, and how whole rows of them leave that the warp has written to shared memory.
#pragma once
#include "schedule.cuh"

// A part of a group's results.
struct Place {
    u8* first;
    u64 row_bytes;
    u32 rows, columns;  // that there are: tokens, and weight rows

    // At most `tokens` rows from row `token`, and `weights` columns from column `weight`.
    DEVICE Place(const Parameter& parameter, const Group& group, u32 token, u32 tokens, u32 weight, u32 weights) {
        row_bytes = (u64)group.n * ELEMENT_BYTES;
        first = (u8*)parameter.output + (group.output + (u64)token * group.n + weight) * ELEMENT_BYTES;
        rows = token < group.m ? min(group.m - token, tokens) : 0;
        columns = weight < group.n ? min(group.n - weight, weights) : 0;
    }

    DEVICE bool aligned(u32 bytes) const { return ((u64)first | row_bytes | columns * ELEMENT_BYTES) % bytes == 0; }
};

// Called by a whole warp when all of its lanes have written. Rows on 16 bytes leave by bulk stores, in one group of
// each lane, the others by plain ones.
DEVICE void store_staged_rows(const Place& place, u32 staged, u32 staged_row, u32 lane) {
    fence_async();
    __syncwarp();
    if (place.aligned(16)) {
        for (u32 row = lane; row < place.rows; row += 32)
            store_bulk(place.first + row * place.row_bytes, staged + row * staged_row, place.columns * ELEMENT_BYTES);
        store_bulk_commit();
        return;
    }
    for (u32 row = 0; row < place.rows; ++row)
        for (u32 column = lane; column < place.columns; column += 32) {
            u32 from = staged + row * staged_row + column * ELEMENT_BYTES;
            u8* to = place.first + row * place.row_bytes + column * ELEMENT_BYTES;
            if constexpr (output == Output::F32) *(u32*)to = load_shared(from);
            else *(u16*)to = load_shared_2(from);
        }
}
