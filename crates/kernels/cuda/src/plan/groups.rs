//! The products as every kernel sees them.

use gauntlet_problems::{Form, GemmShape, GroupedGemm};

use super::{DEPTH_STEP, Group, PlanError, ScaleLayout, Weights};

/// Most tiles of a call: their table stays under 128 MiB.
const MAX_TILES: usize = 1 << 22;

/// Where a table begins: at a multiple of a line of L2.
const TABLE_ALIGNMENT: usize = 128;

/// K as it lies in memory.
pub(crate) fn depth(k: usize) -> usize {
    k.next_multiple_of(DEPTH_STEP)
}

/// Values of a row of tokens as they lie in memory: NVFP4 rows are padded like weights, rows of 16-bit floats are not.
pub(crate) fn token_columns(gemm: &GroupedGemm, shape: &GemmShape) -> usize {
    match gemm.tokens.is_half() {
        true => shape.k,
        false => depth(shape.k),
    }
}

/// Whether the tokens of all groups have the same number of values.
pub(crate) fn has_one_depth(gemm: &GroupedGemm) -> bool {
    let mut groups = gemm.groups.iter();
    groups
        .next()
        .is_none_or(|first| groups.all(|shape| shape.k == first.k))
}

/// Matrices of weights a group.
pub(crate) fn matrices(gemm: &GroupedGemm) -> usize {
    1 + usize::from(is_dual(gemm))
}

/// Whether there are two products a group.
pub(super) fn is_dual(gemm: &GroupedGemm) -> bool {
    gemm.form == Form::Swiglu
}

/// The table of groups; `workspace` says where a group's converted tokens begin.
pub(crate) fn table(
    gemm: &GroupedGemm,
    scales: ScaleLayout,
    weights: &[Weights],
    workspace: impl Fn(usize) -> u64,
) -> Vec<Group> {
    let (mut tokens, mut token_scales, mut output) = (0, 0, 0);
    let group = |(index, shape): (usize, &GemmShape)| {
        let depth = depth(shape.k);
        let addresses = weights.get(index).copied().unwrap_or_default();
        let group = Group {
            tokens,
            token_scales,
            output,
            workspace: workspace(index),
            weights: addresses.packed,
            weight_scales: addresses.scales,
            scale: addresses.scale,
            m: shape.m as u32,
            n: shape.n as u32,
            k: depth as u32,
            columns: token_columns(gemm, shape) as u32,
        };
        tokens += (shape.m * gemm.tokens.row_bytes(token_columns(gemm, shape))) as u64;
        token_scales += scales.bytes(shape.m, depth) as u64;
        output += (shape.m * shape.n) as u64;
        group
    };
    gemm.groups.iter().enumerate().map(group).collect()
}

/// The offset of the table that follows the table of groups.
pub(super) fn table_end(gemm: &GroupedGemm) -> usize {
    (gemm.groups.len() * size_of::<Group>()).next_multiple_of(TABLE_ALIGNMENT)
}

/// The bytes of the table of groups, and after it those of another.
pub(super) fn table_and(
    gemm: &GroupedGemm,
    scales: ScaleLayout,
    weights: &[Weights],
    other: &[u8],
) -> Vec<u8> {
    let groups = table(gemm, scales, weights, |_| 0);
    let mut tables = bytemuck::cast_slice(&groups).to_vec();
    tables.resize(table_end(gemm), 0);
    tables.extend_from_slice(other);
    tables
}

/// How a group is cut into tiles: two of its sizes, each with the size of a tile.
pub(super) type Cuts = [(usize, usize); 2];

/// The first corners of all tiles, group after group; in each the second of the cuts runs faster.
pub(super) fn corners(
    gemm: &GroupedGemm,
    cuts: impl Fn(&GemmShape) -> Cuts,
) -> impl Iterator<Item = (usize, &GemmShape, [usize; 2])> {
    let groups = gemm.groups.iter().enumerate();
    groups.flat_map(move |(group, shape)| {
        let [(slow, slow_step), (fast, fast_step)] = cuts(shape);
        let corners = (0..slow).step_by(slow_step);
        corners.flat_map(move |slow| {
            let corners = (0..fast).step_by(fast_step);
            corners.map(move |fast| (group, shape, [slow, fast]))
        })
    })
}

/// How many [`corners`] there are, without walking over them.
pub(super) fn corner_count(gemm: &GroupedGemm, cuts: impl Fn(&GemmShape) -> Cuts) -> usize {
    let of_group = |shape: &GemmShape| {
        let [slow, fast] = cuts(shape).map(|(size, step)| size.div_ceil(step));
        slow.saturating_mul(fast)
    };
    gemm.groups.iter().map(of_group).fold(0, usize::saturating_add)
}

/// Whether the sizes fit the kernels' 32-bit numbers.
///
/// # Errors
/// Names the first that does not.
pub(super) fn check_sizes(gemm: &GroupedGemm) -> Result<(), PlanError> {
    let most = i32::MAX as usize;
    within("the number of groups", gemm.groups.len(), most)?;
    for (index, shape) in gemm.groups.iter().enumerate() {
        for (name, value) in [("M", shape.m), ("N", shape.n), ("K", depth(shape.k))] {
            within(format!("{name} of group {index}"), value, most)?;
        }
    }
    Ok(())
}

/// Whether a table can hold this many tiles; called before the table is made.
///
/// # Errors
/// If it cannot.
pub(super) fn check_tiles(tiles: usize) -> Result<(), PlanError> {
    within("the number of tiles", tiles, MAX_TILES)
}

/// Whether a number is small enough.
///
/// # Errors
/// If it is not.
pub(super) fn within(what: impl Into<String>, value: usize, most: usize) -> Result<(), PlanError> {
    if value <= most {
        return Ok(());
    }
    Err(PlanError::TooLarge {
        what: what.into(),
        value,
        most,
    })
}
