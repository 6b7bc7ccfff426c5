//! Every kernel in its shipped variants, for every architecture that it is built for.

use gauntlet_device::Arch;
use gauntlet_problems::Operation;
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{compiler, narrowed, small, target, wrong};
use crate::plan::{self, Source};
use crate::shipped::{Shipped, shipped};

/// A variant that is also shipped for Hopper has mostly the same code on an older architecture, so only every sixth of them is
/// interpreted there.
const PART: usize = 6;

/// Variants of a kernel that an ordinary test interprets on an architecture; the long tests interpret all.
const FEW: usize = 1;

/// Interprets at most `most` variants of one kernel for an architecture, evenly spread over the list, with the kinds of inputs in
/// turn. Of variants that are also shipped for Hopper, every [`PART`]th counts.
fn interpret(source: Source, arch: Arch, most: usize) {
    let mut tried = shipped(arch);
    tried.retain(|one| source_on(one, arch) == source);
    if source == Source::Native {
        // Tiles of fewer than 64 tokens need groups of one tile each, as the competition's cases have them (native.rs).
        tried.retain(|one| plan::plan(&small(one), &narrowed(&one.schedule), target(arch)).is_ok());
    }
    if arch != Arch::Sm90a {
        let on_hopper = crate::shipped::shipped(Arch::Sm90a);
        let mut number = 0;
        tried.retain(|one| {
            number += 1;
            number % PART == 0 || !on_hopper.contains(one)
        });
    }
    interpret_some(tried, arch, most);
}

/// The kernel of a variant on an architecture.
fn source_on(one: &Shipped, arch: Arch) -> Source {
    let plan = plan::plan(&one.problem, &one.schedule, target(arch)).unwrap();
    plan.variant().source
}

/// Interprets at most `most` of these variants, evenly spread, each from the middle of its share. Which kind of inputs it gets
/// depends on its place, so that all kinds are tried on some kernel.
fn interpret_some(tried: Vec<Shipped>, arch: Arch, most: usize) {
    let Some(compiler) = compiler() else { return };
    let step = tried.len().div_ceil(most).max(1);
    let tried: Vec<_> = tried
        .into_iter()
        .zip(InputKind::ALL.into_iter().cycle())
        .skip(step / 2)
        .step_by(step)
        .collect();
    assert!(!tried.is_empty());
    let wrong: Vec<_> = tried
        .par_iter()
        .filter_map(|(one, inputs)| wrong(&compiler, arch, one, *inputs))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The kernels, each with the architectures that it is interpreted for. Those that need nothing of Hopper are built for
/// the architectures before it too: conversions from e4m3 and products of bf16 are other instructions on sm_80, and launches
/// do not overlap.
const KERNELS: [(Source, &[Arch]); 8] = {
    const HOPPER: &[Arch] = &[Arch::Sm90a];
    const BLACKWELL: &[Arch] = &[Arch::Sm100a];
    const ALL: &[Arch] = &[Arch::Sm80, Arch::Sm89, Arch::Sm90a];
    [
        (Source::Rows, HOPPER),
        (Source::Swapped, HOPPER),
        (Source::Unified, ALL),
        (Source::Narrow, ALL),
        (Source::Native, BLACKWELL),
        (Source::AttentionUnified, ALL),
        (Source::AttentionSpecialised, HOPPER),
        (Source::AttentionResident, HOPPER),
    ]
};

fn interpret_kernels(most: usize) {
    for (source, architectures) in KERNELS {
        for arch in architectures {
            interpret(source, *arch, most);
        }
    }
}

/// Blackwell's attention and 16-bit tokens take the kernels for Ada, built for sm_100a.
fn interpret_on_blackwell(most: usize) {
    let is_taken = |one: &Shipped| match &one.problem {
        Operation::GroupedGemm(gemm) => gemm.tokens.is_half(),
        Operation::Attention(_) => true,
    };
    for source in [Source::Unified, Source::Narrow, Source::AttentionUnified] {
        let mut tried = shipped(Arch::Sm89);
        tried.retain(|one| is_taken(one) && source_on(one, Arch::Sm100a) == source);
        interpret_some(tried, Arch::Sm100a, most);
    }
}

#[test]
fn some_kernels_for_ada_are_right_on_blackwell() {
    interpret_on_blackwell(FEW);
}

#[test]
#[ignore = "minutes: every shipped variant that Blackwell takes from Ada"]
fn all_kernels_for_ada_are_right_on_blackwell() {
    interpret_on_blackwell(usize::MAX);
}

#[test]
fn some_variants_of_each_kernel_are_right() {
    interpret_kernels(FEW);
}

#[test]
#[ignore = "minutes: every shipped variant"]
fn all_variants_of_each_kernel_are_right() {
    interpret_kernels(usize::MAX);
}
