//! GEMMs on Hopper with operands and sizes that the small problems of the variants leave out.

use gauntlet_device::Arch;
use gauntlet_operations::{GemmShape, GroupedGemm, Operation, Packing};
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{compiler, wrong, wrong_on};
use crate::shipped::shipped;

/// Tiles narrow enough that the ring holds more units than the two places of scales serve: first tiles of two chunks,
/// then deep ones, several a block.
#[test]
fn scales_of_weights_wait_for_their_place() {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped(Arch::Sm90a);
    for name in ["swapped, sorted", "swapped, sorted, dual"] {
        let one = shipped.iter().find(|one| one.name == name).unwrap();
        let Operation::GroupedGemm(gemm) = &one.problem else {
            panic!("{name} is no GEMM");
        };
        let group = |k| GemmShape { m: 5, n: 200, k };
        for depths in [&[256; 6][..], &[2560; 2], &[768, 1792, 256]] {
            let problem = Operation::GroupedGemm(GroupedGemm {
                groups: depths.iter().map(|&k| group(k)).collect(),
                ..gemm.clone()
            });
            let wrong = wrong_on(&compiler, Arch::Sm90a, one, problem, InputKind::Wide);
            assert_eq!(wrong, None, "{depths:?}");
        }
    }
}

/// Depths that are no multiple of a chunk, and a bf16 range that fp16 does not have; of every `step`th variant.
fn interpret_sixteen_bits(step: usize) {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped(Arch::Sm90a);
    let half = shipped
        .iter()
        .filter(|one| matches!(&one.problem, Operation::GroupedGemm(gemm) if gemm.tokens.is_half()))
        .filter(|one| one.schedule.packing != Packing::Steps);
    for one in half.step_by(step) {
        for inputs in [InputKind::Wide, InputKind::Outliers, InputKind::Adversarial] {
            assert_eq!(wrong(&compiler, Arch::Sm90a, one, inputs), None, "{}", one.name);
        }
    }
}

#[test]
fn some_tokens_of_sixteen_bits() {
    interpret_sixteen_bits(5);
}

#[test]
#[ignore = "minutes: every variant"]
fn all_tokens_of_sixteen_bits() {
    interpret_sixteen_bits(1);
}

/// Weights in steps have tests of their own. Depths that are odd multiples of 16, weight rows that are odd multiples of 8, and token counts next to those of tiles.
#[test]
fn sizes_that_no_tile_divides() {
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
    let tried: Vec<_> = of_halves.collect();
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
