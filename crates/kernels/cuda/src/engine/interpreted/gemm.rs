//! GEMMs on Hopper with operands and sizes that the small problems of the variants leave out.

use gauntlet_device::Arch;
use gauntlet_problems::{GemmShape, GroupedGemm, Operation, Packing};
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{compiler, wrong, wrong_on};
use crate::shipped::shipped;

/// Tiles narrow enough that the ring holds more units than the two places of scales serve: first tiles of two chunks,
/// then deep ones, several a block.
fn interpret_waiting_scales(tried: [(&str, &[&[usize]]); 2]) {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped(Arch::Sm90a);
    for (name, depths_tried) in tried {
        let one = shipped.iter().find(|one| one.name == name).unwrap();
        let Operation::GroupedGemm(gemm) = &one.problem else {
            panic!("{name} is no GEMM");
        };
        let group = |k| GemmShape { m: 5, n: 200, k };
        for depths in depths_tried {
            let problem = Operation::GroupedGemm(GroupedGemm {
                groups: depths.iter().map(|&k| group(k)).collect(),
                ..gemm.clone()
            });
            let wrong = wrong_on(&compiler, Arch::Sm90a, one, problem, InputKind::Wide);
            assert_eq!(wrong, None, "{depths:?}");
        }
    }
}

const SORTED: [&str; 2] = ["swapped, sorted", "swapped, sorted, dual"];

#[test]
fn scales_of_weights_wait_for_their_place() {
    interpret_waiting_scales([
        (SORTED[0], &[&[256; 6], &[768, 1792, 256]]),
        (SORTED[1], &[&[2560; 2]]),
    ]);
}

#[test]
#[ignore = "minutes: every depth of both"]
fn scales_of_weights_wait_for_their_place_at_all_depths() {
    let all: &[&[usize]] = &[&[256; 6], &[2560; 2], &[768, 1792, 256]];
    interpret_waiting_scales(SORTED.map(|name| (name, all)));
}

/// Depths that are no multiple of a chunk, and a bf16 range that fp16 does not have; of every `step`th variant, each with
/// `kinds` kinds of inputs in turn.
fn interpret_sixteen_bits(step: usize, kinds: usize) {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped(Arch::Sm90a);
    let half = shipped
        .iter()
        .filter(|one| matches!(&one.problem, Operation::GroupedGemm(gemm) if gemm.tokens.is_half()))
        .filter(|one| one.schedule.packing != Packing::Steps);
    let mut inputs = [InputKind::Wide, InputKind::Outliers, InputKind::Adversarial]
        .into_iter()
        .cycle();
    for one in half.step_by(step) {
        for inputs in inputs.by_ref().take(kinds) {
            assert_eq!(wrong(&compiler, Arch::Sm90a, one, inputs), None, "{}", one.name);
        }
    }
}

#[test]
fn some_tokens_of_sixteen_bits() {
    interpret_sixteen_bits(5, 1);
}

#[test]
#[ignore = "minutes: every variant"]
fn all_tokens_of_sixteen_bits() {
    interpret_sixteen_bits(1, 3);
}

/// Depths that are odd multiples of 16, weight rows that are odd multiples of 8, and token counts next to those of tiles; of
/// every `step`th variant. Weights in steps have tests of their own.
fn interpret_undivided_sizes(step: usize) {
    let Some(compiler) = compiler() else { return };
    let shapes = [(1, 8, 16), (7, 24, 272), (129, 72, 48), (0, 8, 16)];
    let groups = shapes.map(|(m, n, k)| GemmShape { m, n, k }).to_vec();
    let shipped = shipped(Arch::Sm90a);
    let of_halves = shipped.iter().filter_map(|one| match &one.problem {
        Operation::GroupedGemm(gemm) if gemm.tokens.is_half() && one.schedule.packing != Packing::Steps => {
            Some((one, gemm))
        }
        _ => None,
    });
    let tried: Vec<_> = of_halves.step_by(step).collect();
    let wrong: Vec<_> = tried
        .into_par_iter()
        .filter_map(|(one, gemm)| {
            let problem = Operation::GroupedGemm(GroupedGemm {
                groups: groups.clone(),
                ..gemm.clone()
            });
            wrong_on(&compiler, Arch::Sm90a, one, problem, InputKind::Wide)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sizes_that_no_tile_divides() {
    interpret_undivided_sizes(3);
}

#[test]
#[ignore = "minutes: every variant"]
fn sizes_that_no_tile_divides_of_all_variants() {
    interpret_undivided_sizes(1);
}
