//! Mistakes put into the kernels that need nothing of Hopper, into Blackwell's, and into what the swapped kernel does with weights
//! in steps, one at a time: each has to be seen.

mod lists;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_problems::{Attention, GemmShape, GroupedGemm, Operation};
use gauntlet_ptx::Kernel;
use gauntlet_task::InputKind;
use rayon::prelude::*;

use self::lists::{
    ATTENTION_WITH_PARTS, Mistake, NATIVE_GEMM, NATIVE_GEMM_WITH_OWN_MAPS, SWAPPED_GEMM_IN_STEPS, Tried,
    UNIFIED_ATTENTION, UNIFIED_GEMM,
};

use super::{Kernels, compiler, kernel, sequences, target, wrong_kernels};
use crate::plan;
use crate::shipped::{Shipped, shipped};
use crate::source::headers;
use gauntlet_cuda::compiler::{Compiler, File};

/// Orders of events in which a mistake is looked for.
const SEEDS: Range<u64> = 0..3;

/// Small problems with several tiles for each block.
fn problem(arch: Arch, one: &Shipped) -> Operation {
    match &one.problem {
        Operation::GroupedGemm(gemm) => {
            // On Blackwell all four warps of a block have rows of the last tile.
            let groups = match arch {
                Arch::Sm100a => [(3, 300, 768), (0, 16, 256), (121, 136, 512)],
                // Weights in steps are for one depth.
                Arch::Sm90a => [(21, 136, 496), (0, 16, 496), (9, 75, 496)],
                _ => [(21, 136, 512), (0, 16, 256), (9, 75, 496)],
            };
            Operation::GroupedGemm(GroupedGemm {
                groups: groups.map(|(m, n, k)| GemmShape { m, n, k }).to_vec(),
                ..gemm.clone()
            })
        }
        Operation::Attention(attention) => Operation::Attention(Attention {
            sequences: sequences(match attention.sequences.iter().all(|one| one.queries < 16) {
                true => [(1, 330), (5, 131)],
                false => [(1, 330), (77, 131)],
            }),
            heads: 2,
            kv_heads: 1,
            ..attention.clone()
        }),
    }
}

/// What is wrong with a shipped variant, with a mistake in its main kernel's source or as it is.
fn wrong(compiler: &Compiler, arch: Arch, name: &str, mistake: Option<&Mistake>) -> Option<String> {
    let shipped = shipped(arch);
    let one = shipped.iter().find(|one| one.name == name).expect(name);
    let problem = problem(arch, one);
    let inputs = InputKind::Wide;
    let sets = [7, 8].map(|seed| operations::generate(&problem, inputs, seed));
    let plan = plan::plan(&problem, &one.schedule, target(arch)).unwrap();
    let main = plan.variant().source;
    let read = |variant: &plan::Variant| {
        let mistake = match mistake {
            Some(mistake) if variant.source == main => mistake,
            _ => return kernel(compiler, variant, arch),
        };
        let file = variant.source.file().unwrap();
        let changed = whole(file).replace(mistake.right, mistake.wrong);
        let file = File {
            text: &changed,
            ..file
        };
        let ptx = variant.ptx_of(file, compiler, arch).unwrap();
        Arc::new(Kernel::read(&ptx, variant.source.entry()).unwrap())
    };
    let kernels = plan.variants().into_iter().map(read).collect();
    let kernels = Kernels::of_plan(plan, &problem, &one.schedule, arch, kernels);
    wrong_kernels(&kernels, one, inputs, &sets, SEEDS)
}

/// The source of a shipped variant's main kernel.
fn source_of(arch: Arch, name: &str) -> String {
    let shipped = shipped(arch);
    let one = shipped.iter().find(|one| one.name == name).expect(name);
    let plan = plan::plan(&problem(arch, one), &one.schedule, target(arch)).unwrap();
    whole(plan.variant().source.file().unwrap())
}

/// A kernel's file with its own headers, those that are named after it, in place of their first mention.
fn whole(file: File<'_>) -> String {
    let stem = file.name.trim_end_matches(".cu");
    let mut seen = BTreeSet::new();
    with_headers(file.text, &format!("#include \"{stem}_"), &mut seen)
}

fn with_headers(text: &str, own: &str, seen: &mut BTreeSet<String>) -> String {
    let mut line = |line: &str| -> String {
        if !line.starts_with(own) {
            return format!("{line}\n");
        }
        let name = line.trim_start_matches("#include \"").trim_end_matches('"');
        if !seen.insert(name.to_owned()) {
            return String::new();
        }
        let header = headers().iter().find(|header| header.name == name).expect(name);
        with_headers(&header.text.replace("#pragma once\n", ""), own, seen)
    };
    text.lines().map(&mut line).collect()
}

/// An ordinary test interprets every third mistake; the long test interprets all.
const PART: usize = 3;

/// Checks that the variants are right as they are, and that each of every `step` mistakes is seen in one of them.
fn check(tried: &Tried, step: usize) {
    let Some(compiler) = compiler() else { return };
    let Tried {
        arch,
        names,
        mistakes,
    } = *tried;
    let text = source_of(arch, names[0]);
    for mistake in mistakes {
        assert_eq!(text.matches(mistake.right).count(), 1, "{}", mistake.what);
    }
    let chosen: Vec<&Mistake> = mistakes.iter().step_by(step).collect();
    let mut unseen: Vec<String> = chosen
        .par_iter()
        .filter(|mistake| {
            let is_seen = |name: &&str| wrong(&compiler, arch, name, Some(mistake)).is_some();
            !names.iter().any(is_seen)
        })
        .map(|mistake| mistake.what.to_owned())
        .collect();
    unseen.extend(names.iter().filter_map(|name| wrong(&compiler, arch, name, None)));
    assert!(unseen.is_empty(), "{unseen:#?}");
}

#[test]
fn some_of_the_unified_gemm_are_seen() {
    check(&UNIFIED_GEMM, PART);
}

#[test]
fn some_of_the_swapped_gemm_in_steps_are_seen() {
    check(&SWAPPED_GEMM_IN_STEPS, PART);
}

#[test]
fn some_of_unified_attention_are_seen() {
    check(&UNIFIED_ATTENTION, PART);
}

#[test]
fn some_of_attention_in_parts_are_seen() {
    check(&ATTENTION_WITH_PARTS, PART);
}

#[test]
fn some_of_the_native_gemm_are_seen() {
    check(&NATIVE_GEMM, PART);
}

#[test]
fn some_of_the_native_gemm_s_own_maps_are_seen() {
    check(&NATIVE_GEMM_WITH_OWN_MAPS, PART);
}

#[test]
#[ignore = "half a minute: every mistake"]
fn each_mistake_is_seen() {
    for tried in [
        UNIFIED_GEMM,
        SWAPPED_GEMM_IN_STEPS,
        UNIFIED_ATTENTION,
        ATTENTION_WITH_PARTS,
        NATIVE_GEMM,
        NATIVE_GEMM_WITH_OWN_MAPS,
    ] {
        check(&tried, 1);
    }
}
