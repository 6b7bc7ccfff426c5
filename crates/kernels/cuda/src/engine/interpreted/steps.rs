//! Weights in steps, and 16-bit tokens that are multiplied as they lie in memory.

use gauntlet_device::Arch;
use gauntlet_problems::{
    GemmShape, GroupInputs, GroupedGemm, Inputs, Operation, OutputFormat, Packing, Tokens,
};
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{Kernels, compiler, narrowed, operations, wrong, wrong_on};
use crate::shipped::{Shipped, shipped};
use gauntlet_cuda::compiler::Compiler;

/// The variants that are shipped.
fn in_steps() -> Vec<Shipped> {
    let mut shipped = shipped(Arch::Sm90a);
    shipped.retain(|one| one.schedule.packing == Packing::Steps);
    assert!(shipped.len() > 3);
    shipped
}

fn problem(one: &Shipped, groups: &[(usize, usize)], k: usize) -> GroupedGemm {
    let Operation::GroupedGemm(gemm) = &one.problem else {
        panic!("{} is no GEMM", one.name);
    };
    GroupedGemm {
        groups: groups.iter().map(|&(m, n)| GemmShape { m, n, k }).collect(),
        ..gemm.clone()
    }
}

/// Which variants are tried on a list of values.
#[derive(Clone, Copy)]
enum Tried {
    /// One variant on each value, from this variant on: the tests begin at different ones, so that together they try all.
    From(usize),
    /// Every variant on every value.
    All,
}

fn each<T: Copy + Sync>(
    values: &[T],
    tried: Tried,
    check: impl Fn(&Compiler, &Shipped, T) -> Option<String> + Sync,
) {
    let Some(compiler) = compiler() else { return };
    let variants = in_steps();
    let pairs: Vec<(&Shipped, T)> = match tried {
        Tried::From(first) => variants
            .iter()
            .cycle()
            .skip(first)
            .zip(values.iter().copied())
            .collect(),
        Tried::All => variants
            .iter()
            .flat_map(|one| values.iter().map(move |value| (one, *value)))
            .collect(),
    };
    let wrong: Vec<_> = pairs
        .par_iter()
        .filter_map(|(one, value)| check(&compiler, one, *value))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn interpret_kinds_of_inputs(tried: Tried) {
    let kinds = [InputKind::Wide, InputKind::Outliers, InputKind::Adversarial];
    each(&kinds, tried, |compiler, one, inputs| {
        wrong(compiler, Arch::Sm90a, one, inputs)
    });
}

#[test]
fn every_kind_of_inputs() {
    interpret_kinds_of_inputs(Tried::From(0));
}

#[test]
#[ignore = "minutes: every variant with every kind"]
fn every_kind_of_inputs_with_every_variant() {
    interpret_kinds_of_inputs(Tried::All);
}

/// Depths below half a chunk, at its edges and beyond, and token counts next to those of tiles and of boxes.
fn interpret_undivided(tried: Tried) {
    let groups = [(1, 8), (0, 8), (7, 24), (65, 136), (9, 200), (64, 8), (130, 72)];
    each(&[16, 176, 528], tried, |compiler, one, k| {
        let problem = Operation::GroupedGemm(problem(one, &groups, k));
        wrong_on(compiler, Arch::Sm90a, one, problem, InputKind::Wide)
    });
}

#[test]
fn depths_and_tokens_that_no_box_divides() {
    interpret_undivided(Tried::From(2));
}

#[test]
#[ignore = "minutes: every variant with every depth"]
fn depths_and_tokens_that_no_box_divides_with_every_variant() {
    interpret_undivided(Tried::All);
}

/// Numbers that are none in the tokens of one group, the last values of a row among them, change nothing in the results of those
/// beside it, whose tiles and boxes reach into its tokens.
fn interpret_poisoned_groups(tried: Tried) {
    let groups = [(3, 72), (5, 72), (67, 72), (1, 72)];
    each(&[48, 272], tried, |compiler, one, k| {
        let problem = problem(one, &groups, k);
        let operation = Operation::GroupedGemm(problem.clone());
        let kernels = Kernels::new(compiler, &operation, &narrowed(&one.schedule), Arch::Sm90a);
        let Inputs::GroupedGemm(inputs) = operations::generate(&operation, InputKind::Wide, 3) else {
            panic!("the problem is a GEMM");
        };
        let expected = results(&kernels, &problem, &inputs);
        (0..groups.len()).find_map(|poisoned| {
            let mut inputs = inputs.clone();
            poison(&mut inputs[poisoned]);
            let found = results(&kernels, &problem, &inputs);
            (0..groups.len()).find_map(|group| {
                let is_kept = found[group] == expected[group];
                (is_kept == (group == poisoned))
                    .then(|| format!("{}, K {k}: group {group} with {poisoned} poisoned", one.name))
            })
        })
    });
}

#[test]
fn numbers_that_are_none_stay_in_their_group() {
    interpret_poisoned_groups(Tried::From(0));
}

#[test]
#[ignore = "minutes: every variant with both depths"]
fn numbers_that_are_none_stay_in_their_group_with_every_variant() {
    interpret_poisoned_groups(Tried::All);
}

/// Makes every value of a group's tokens an infinity or none.
fn poison(inputs: &mut GroupInputs) {
    let Tokens::Floats(tokens) = &mut inputs.a else {
        panic!("tokens have 16 bits");
    };
    let infinity: u16 = match tokens.format {
        OutputFormat::Bf16 => 0x7F80,
        _ => 0x7C00,
    };
    for (index, value) in tokens.bytes.chunks_exact_mut(2).enumerate() {
        value.copy_from_slice(&(infinity | (index % 2) as u16).to_le_bytes());
    }
}

/// The bytes of each group's results.
fn results(kernels: &Kernels, problem: &GroupedGemm, inputs: &[GroupInputs]) -> Vec<Vec<u8>> {
    let outputs = kernels.run(&[Inputs::GroupedGemm(inputs.to_vec())], 0).unwrap();
    let mut rest = outputs[0].bytes.as_slice();
    let bytes = rest.len()
        / problem
            .groups
            .iter()
            .map(|shape| shape.m * shape.n)
            .sum::<usize>();
    let of_group = |shape: &GemmShape| {
        let (own, after) = rest.split_at(shape.m * shape.n * bytes);
        rest = after;
        own.to_vec()
    };
    problem.groups.iter().map(of_group).collect()
}
