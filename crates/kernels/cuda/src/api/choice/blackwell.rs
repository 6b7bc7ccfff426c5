//! The choice on Blackwell. It follows from sizes alone; nothing of it has been measured.

use gauntlet_problems::resources::fewest_steps;
use gauntlet_problems::{Form, GroupedGemm, Lookup, Operation, Order, Roles, Schedule, Setup, Tile};

use crate::plan::{self, Target};

/// Weight rows of a tile: what `tcgen05.mma` multiplies for one block.
const ROWS: usize = 128;
const DEPTH: usize = 256;
/// Most tokens of a tile, so that tensor memory has room for the scales of some stages.
const WIDEST: usize = 256;
const WIDEST_DUAL: usize = 128;
/// Most and fewest stages: memory is far away, so as many as fit are loaded ahead.
const STAGES: std::ops::RangeInclusive<usize> = 2..=6;
/// Fewest steps of a part of a split depth.
const STEPS_OF_A_PART: usize = 4;

/// Weights are the rows of a tile, so that few tokens waste little of it; its columns are all tokens of the largest group, if they
/// fit, so that weights are read once. The depth is split where there are fewer tiles than multiprocessors.
pub(super) fn automatic(gemm: &GroupedGemm, target: Target) -> Schedule {
    let widest = match gemm.form {
        Form::Plain => WIDEST,
        Form::Swiglu => WIDEST_DUAL,
    };
    let most = gemm.groups.iter().map(|shape| shape.m).max().unwrap_or(0);
    let width = most.next_multiple_of(8).clamp(8, widest);
    let tiles: usize = gemm
        .groups
        .iter()
        .map(|shape| shape.m.div_ceil(width) * shape.n.div_ceil(ROWS))
        .sum();
    let schedule = |stages| Schedule {
        tile: Tile::from([ROWS, width, DEPTH]),
        stages,
        roles: Roles::Specialised,
        order: Order::Sorted,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let problem = Operation::GroupedGemm(gemm.clone());
    let parts = target.processors as usize / tiles.max(1);
    let longest = fewest_steps(&schedule(1), &problem) / STEPS_OF_A_PART;
    let split_k = parts.min(longest).max(1);
    let whole = |stages| Schedule {
        split_k,
        ..schedule(stages)
    };
    let fits = |schedule: &Schedule| plan::plan(&problem, schedule, target).is_ok();
    STAGES
        .rev()
        .map(whole)
        .find(fits)
        .unwrap_or_else(|| whole(*STAGES.start()))
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;

    use super::*;
    use crate::api::Choice;
    use crate::api::choice::tests::gemm;
    use crate::plan::Source;

    #[test]
    fn blackwell_has_the_native_kernel_for_every_call_with_nvfp4_tokens() {
        let target = Target::of(&Device::builtin("b200").unwrap()).unwrap();
        for form in [Form::Plain, Form::Swiglu] {
            for (tokens, shape, parts) in [
                ([0, 1], [4096, 7168], 4),
                ([3, 16], [16384, 64], 1),
                ([80, 248], [16384, 7168], 1),
                ([0, 5000], [512, 256], 1),
            ] {
                let gemm = gemm(&tokens, shape, form);
                let schedule = Choice::Automatic.schedule(&gemm, target);
                let plan = plan::plan(&Operation::GroupedGemm(gemm), &schedule, target);
                let plan = plan.unwrap_or_else(|error| panic!("{schedule}: {error}"));
                assert_eq!(plan.variant().source, Source::Native);
                assert_eq!(schedule.split_k, parts, "{tokens:?}");
            }
        }
    }
}
