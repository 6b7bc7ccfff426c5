//! The mistakes, and the shipped variants in which they are looked for.

use gauntlet_device::Arch;

/// Mistakes of a kernel, and the variants in which they are looked for.
pub(super) struct Tried {
    pub arch: Arch,
    pub names: &'static [&'static str],
    pub mistakes: &'static [Mistake],
}

pub(super) const UNIFIED_GEMM: Tried = Tried {
    arch: Arch::Sm80,
    names: &["unified, sorted, dual", "unified, split"],
    mistakes: &UNIFIED,
};

pub(super) const SWAPPED_GEMM_IN_STEPS: Tried = Tried {
    arch: Arch::Sm90a,
    names: &[
        "swapped, static, in steps, bf16 tokens, f32",
        "swapped, static, in steps, f16 tokens, dual",
    ],
    mistakes: &STEPS,
};

pub(super) const UNIFIED_ATTENTION: Tried = Tried {
    arch: Arch::Sm89,
    names: &[
        "attention, fused, e4m3, head 64",
        "attention, swizzled, e4m3, head 64",
    ],
    mistakes: &ATTENTION,
};

pub(super) const ATTENTION_WITH_PARTS: Tried = Tried {
    arch: Arch::Sm89,
    names: &[
        "attention, few queries, split, bf16, head 64, decoded, causal",
        "attention, split, f16, head 64, causal",
        "attention, few queries, split, int8, head 128, decoded",
    ],
    mistakes: &ATTENTION_IN_PARTS,
};

pub(super) const NATIVE_GEMM: Tried = Tried {
    arch: Arch::Sm100a,
    names: &["native, static", "native, sorted, dual"],
    mistakes: &NATIVE,
};

pub(super) const NATIVE_GEMM_WITH_OWN_MAPS: Tried = Tried {
    arch: Arch::Sm100a,
    names: &["native, own maps, static", "native, own maps, sorted, dual"],
    mistakes: &OWN_MAPS,
};

/// A part of a kernel's source, and what stands there by mistake.
pub(super) struct Mistake {
    pub what: &'static str,
    pub right: &'static str,
    pub wrong: &'static str,
}

const UNIFIED: [Mistake; 7] = [
    Mistake {
        what: "no wait for copies",
        right: "        copy_wait<STAGES - 2>();\n",
        wrong: "",
    },
    Mistake {
        what: "a wait that leaves a group too many on its way",
        right: "copy_wait<STAGES - 2>()",
        wrong: "copy_wait<STAGES - 1>()",
    },
    Mistake {
        what: "no barrier after the wait",
        right: "        __syncthreads();\n        if (chunk == 0)",
        wrong: "        if (chunk == 0)",
    },
    Mistake {
        what: "a stage that is filled while it is read",
        right: "loader.load_weights(memory + next * STAGE_BYTES)",
        wrong: "loader.load_weights(memory + stage * STAGE_BYTES)",
    },
    Mistake {
        what: "the last chunks' empty groups are not committed",
        right: "        }\n        copy_commit();  // an empty group",
        wrong: "            copy_commit();\n        }  // an empty group",
    },
    Mistake {
        what: "the next tile takes the results' place while other warps store them",
        right: "        __syncthreads();  // all results have left",
        wrong: "        // all results have left",
    },
    Mistake {
        what: "rows beyond the last are stored",
        right: "token < tile.width && row + of < n",
        wrong: "token < tile.width",
    },
];

const STEPS: [Mistake; 11] = [
    Mistake {
        what: "a box above another",
        right: "(half * width + done) * 128",
        wrong: "half * width * 128",
    },
    Mistake {
        what: "both halves of a chunk are the first",
        right: "column + half * 64",
        wrong: "column",
    },
    Mistake {
        what: "each group begins with the first token of all",
        right: "row((u32)(SHAPE(tile.group, tokens) / 16) / (SHAPE(tile.group, columns) / 8) + tile.token)",
        wrong: "row(tile.token)",
    },
    Mistake {
        what: "chunks that overlap",
        right: "next_chunk() { column += CHUNK; }",
        wrong: "next_chunk() { column += CHUNK / 2; }",
    },
    Mistake {
        what: "the stride of converted tokens",
        right: "(STEPS ? 0 : (u64)(1024 >> 4) << 32)",
        wrong: "((u64)(1024 >> 4) << 32)",
    },
    Mistake {
        what: "the second half of tokens where converted ones have it",
        right: "STEPS ? COLUMNS * 128 : 1024",
        wrong: "1024",
    },
    Mistake {
        what: "scales of the first four steps for all eight",
        right: "scales.words[row][chunk][step / 4]",
        wrong: "scales.words[row][chunk][0]",
    },
    Mistake {
        what: "a step with the scale of its neighbour",
        right: "return step % 2 == 1;",
        wrong: "return step % 2 == 0;",
    },
    Mistake {
        what: "a bit that both words have for the other pair",
        right: "0x60306030u",
        wrong: "0x60306020u",
    },
    Mistake {
        what: "a bit of the exponent that all scales have",
        right: "0x70007000u",
        wrong: "0x70006000u",
    },
    Mistake {
        what: "scales of rows eight too far up",
        right: "from += at.row / 8 % 2 * 8;",
        wrong: "",
    },
];

const ATTENTION: [Mistake; 4] = [
    Mistake {
        what: "no wait for copies",
        right: "if constexpr (STAGES > 1) copy_wait<LATER_STEPS>();",
        wrong: "",
    },
    Mistake {
        what: "a wait that leaves a group too many on its way",
        right: "copy_wait<LATER_STEPS>()",
        wrong: "copy_wait<LATER_STEPS + 1>()",
    },
    Mistake {
        what: "no barrier after the wait",
        right: "        __syncthreads();\n        work.load_step(parameter, memory, step + STAGES - 1);",
        wrong: "        work.load_step(parameter, memory, step + STAGES - 1);",
    },
    Mistake {
        what: "a step that is left out",
        right: "work.load_step(parameter, memory, step + STAGES - 1)",
        wrong: "work.load_step(parameter, memory, step + STAGES)",
    },
];

const ATTENTION_IN_PARTS: [Mistake; 8] = [
    Mistake {
        what: "a block merges that is not the last",
        right: "if (load_shared(memory + LAST_AT) == 0) return;",
        wrong: "if (load_shared(memory + LAST_AT) != 0) return;",
    },
    Mistake {
        what: "warps merge before all parts are there",
        right: "if (!parts.leave(work.part, work.parts, sum, rows)) return false;",
        wrong: "parts.leave(work.part, work.parts, sum, rows);",
    },
    Mistake {
        what: "parts of warps take the place of operands that other warps read",
        right: "    __syncthreads();  // all warps are done",
        wrong: "    // all warps are done",
    },
    Mistake {
        what: "parts of warps are merged before all are there",
        right: "memory + warp * PART_BYTES, lane);\n    __syncthreads();\n",
        wrong: "memory + warp * PART_BYTES, lane);\n",
    },
    Mistake {
        what: "a part that leaves out its first step",
        right: "first_step = SPLIT ? min((u32)((u64)steps * part / parts), steps) : 0;",
        wrong: "first_step = SPLIT ? min((u32)((u64)steps * part / parts) + (part == 1), steps) : 0;",
    },
    Mistake {
        what: "a part that ends with another's first step",
        right: "end_step = SPLIT ? min((u32)((u64)steps * (part + 1) / parts), steps) : steps;",
        wrong: "end_step = SPLIT ? min((u32)((u64)steps * (part + 1) / parts) + 1, steps) : steps;",
    },
    Mistake {
        what: "packed rows see as many keys as those of the first head",
        right: "(tile.query + min(row, rows - 1)) % sequence.queries : tile.query + row;",
        wrong: "(tile.query + min(row, rows - 1)) : tile.query + row;",
    },
    Mistake {
        what: "packed rows have the scales of the first head",
        right: "tile.head * heads + (tile.query + min(row, rows - 1)) / sequence.queries : tile.head;",
        wrong: "tile.head * heads : tile.head;",
    },
];

const NATIVE: [Mistake; 14] = [
    Mistake {
        what: "a stage that is never given back",
        right: "            tensor_commit(memory + EMPTY + stage.slot * 8);\n",
        wrong: "",
    },
    Mistake {
        what: "sums that are never handed over",
        right: "        tensor_commit(memory + SUMS_FULL + sums.slot * 8);\n",
        wrong: "",
    },
    Mistake {
        what: "a stage that is given back before its products have read it",
        right: "            tensor_commit(memory + EMPTY + stage.slot * 8);\n",
        wrong: "            barrier_arrive(memory + EMPTY + stage.slot * 8);\n",
    },
    Mistake {
        what: "sums that are handed over before their products are complete",
        right: "        tensor_commit(memory + SUMS_FULL + sums.slot * 8);\n",
        wrong: "        barrier_arrive(memory + SUMS_FULL + sums.slot * 8);\n",
    },
    Mistake {
        what: "sums that are read too early",
        right: "        barrier_wait(memory + SUMS_FULL + sums.slot * 8, sums.turn);\n",
        wrong: "",
    },
    Mistake {
        what: "sums that are overwritten while they are read",
        right: "        wait_for_sums(memory + SUMS_EMPTY + sums.slot * 8, sums.turn ^ 1);\n",
        wrong: "",
    },
    Mistake {
        what: "products of a stage that is not there yet",
        right: "            barrier_wait(memory + FULL + stage.slot * 8, stage.turn);\n            if constexpr",
        wrong: "            if constexpr",
    },
    Mistake {
        what: "a tile that goes on with the sums of the one before",
        right: "work.tile.column, step == 0);\n            tensor_commit",
        wrong: "work.tile.column, false);\n            tensor_commit",
    },
    Mistake {
        what: "tensor memory that is not given back",
        right: "    if (warp == 0) tensor_memory_return<TENSOR_COLUMNS>(tensor);\n",
        wrong: "",
    },
    Mistake {
        what: "tensor memory that is given back while sums are read",
        right: "may still signal it.\n    synchronise();\n",
        wrong: "may still signal it.\n",
    },
    Mistake {
        what: "scales of the block beside",
        right: "operands.tile_column / BLOCK_ROWS + block",
        wrong: "operands.tile_column / BLOCK_ROWS + block + 1",
    },
    Mistake {
        what: "scales of the next step",
        right: "operands.block_row_bytes + step * STEP_SCALES",
        wrong: "operands.block_row_bytes + (step + 1) * STEP_SCALES",
    },
    Mistake {
        what: "the first half of a block of scales for a tile that begins in the second",
        right: "ROW_MATRICES + column_matrix * COLUMN_BLOCKS) + within",
        wrong: "ROW_MATRICES + column_matrix * COLUMN_BLOCKS)",
    },
    Mistake {
        what: "sums that are used before they are loaded",
        right: "tensor_load_wait(sums[matrix]);",
        wrong: ";",
    },
];

/// In blocks that make their tensor maps.
const OWN_MAPS: [Mistake; 10] = [
    Mistake {
        what: "changes of a map that are not released",
        right: "        map_release();\n",
        wrong: "",
    },
    Mistake {
        what: "a map that is not acquired after its change",
        right: "++matrix) map_acquire(own + matrix);",
        wrong: "++matrix);",
    },
    Mistake {
        what: "only the first map is acquired",
        right: "map_acquire(own + matrix)",
        wrong: "map_acquire(own)",
    },
    Mistake {
        what: "a map that changes under copies",
        right: "            wait_for_copies(memory, next);\n",
        wrong: "",
    },
    Mistake {
        what: "a wait for the copies of the turn before",
        right: "stage < next.slot ? next.turn : next.turn ^ 1",
        wrong: "stage < next.slot ? next.turn ^ 1 : next.turn ^ 1",
    },
    Mistake {
        what: "the tokens of the first group",
        right: "parameter.tokens + group.tokens : group.weights",
        wrong: "parameter.tokens : group.weights",
    },
    Mistake {
        what: "as many rows as the group of the host's maps has",
        right: "            map_set_size<1>(own + matrix, matrix == 0 ? group.m : group.n);\n",
        wrong: "",
    },
    Mistake {
        what: "rows as long as those of the group of the host's maps",
        right: "            map_set_row_bytes(own + matrix, row_bytes);\n",
        wrong: "",
    },
    Mistake {
        what: "the maps of the group before",
        right: "            group = wanted;\n        }\n        return own;",
        wrong: "            group = wanted;\n        }\n        return wanted == 0 ? own : own - MAPS_A_GROUP;",
    },
    Mistake {
        what: "one place for the maps of all blocks",
        right: " + MAPS_A_GROUP * blockIdx.x",
        wrong: "",
    },
];
