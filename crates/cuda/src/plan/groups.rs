//! The products as every kernel sees them.

use gauntlet_problem::{Form, GroupedGemm};

use super::{DEPTH_STEP, Group, PlanError, Weights};

/// Most tiles of a call: their table stays under 128 MiB.
const MOST_TILES: usize = 1 << 22;

/// K as it lies in memory.
pub(crate) fn depth(k: usize) -> usize {
    k.next_multiple_of(DEPTH_STEP)
}

/// Whether there are two products a group.
pub(super) fn is_dual(gemm: &GroupedGemm) -> bool {
    gemm.form == Form::Swiglu
}

/// The table of groups; `workspace` says where a group's converted tokens begin.
pub(crate) fn table(gemm: &GroupedGemm, weights: &[Weights], workspace: impl Fn(usize) -> u64) -> Vec<Group> {
    let (mut tokens, mut token_scales, mut output) = (0, 0, 0);
    let group = |(index, shape): (usize, &gauntlet_problem::GemmShape)| {
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
            reserved: 0,
        };
        tokens += (shape.m * depth / 2) as u64;
        token_scales += (shape.m * depth / 16) as u64;
        output += (shape.m * shape.n) as u64;
        group
    };
    gemm.groups.iter().enumerate().map(group).collect()
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

/// Whether a table can hold so many tiles; to be asked before it is made.
///
/// # Errors
/// If it cannot.
pub(super) fn check_tiles(tiles: usize) -> Result<(), PlanError> {
    within("the number of tiles", tiles, MOST_TILES)
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
