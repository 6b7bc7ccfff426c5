//! The kernel that converts tokens before the swapped one multiplies them.

use std::collections::BTreeMap;

use gauntlet_problems::TokenFormat;

use super::geometry::Geometry;
use crate::plan::variant::most_registers;
use crate::plan::{Source, Target, Variant};

/// Warps of a block; each converts an item at a time.
const WARPS: usize = 16;
/// Most bytes of shared memory of a block that are used: eight tokens by a chunk a warp, before and after.
const USED_BYTES: usize = WARPS * 2 * 8 * 128 * 2;
/// Bytes of shared memory of a block where launches overlap: more than half of a multiprocessor's 228 KiB (CUDA C++
/// Programming Guide, technical specifications), so that two blocks never share one. `kernels/tokens.cu` gives the reason.
const ALONE_BYTES: usize = 120 << 10;

/// The kernel's variant for a format of tokens, if they are not multiplied as they are: one for NVFP4, and one for both formats
/// of 16 bits, which it only moves. Those of `routed` plans read sizes from memory.
pub(super) fn variant(
    format: TokenFormat,
    geometry: &Geometry,
    target: Target,
    routed: bool,
) -> Option<Variant> {
    if !geometry.prepares_tokens() {
        return None;
    }
    let half = usize::from(format.is_half());
    let mut defines = BTreeMap::from([
        ("OVERLAP", usize::from(target.overlaps()).to_string()),
        ("FORMAT", half.to_string()),
    ]);
    if routed {
        defines.insert("ROUTED", "1".to_owned());
    }
    Some(Variant {
        source: Source::Tokens,
        defines,
        threads: 32 * WARPS as u32,
        shared_bytes: if target.overlaps() {
            ALONE_BYTES
        } else {
            USED_BYTES
        } as u32,
        registers: most_registers(32 * WARPS),
    })
}

/// Blocks for this many items: as many as run at the same time, if each of their warps has an item.
pub(super) fn blocks(items: usize, processors: usize) -> u32 {
    items.div_ceil(WARPS).min(processors) as u32
}
