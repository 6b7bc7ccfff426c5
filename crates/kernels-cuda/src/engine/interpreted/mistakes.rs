//! Mistakes put into the kernels that need nothing of Hopper, one at a time: each has to be seen.

use std::ops::Range;

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_operations::{Attention, GemmShape, GroupedGemm, Operation};
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{Kernels, compiler, read, sequences, target, wrong_kernels};
use crate::compiler::Compiler;
use crate::plan;
use crate::shipped::{Shipped, shipped};

/// A part of a kernel's source, and what stands there by mistake.
struct Mistake {
    what: &'static str,
    right: &'static str,
    wrong: &'static str,
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
        right: "        }\n        copy_commit();      // an empty group",
        wrong: "            copy_commit();\n        }      // an empty group",
    },
    Mistake {
        what: "the next tile takes the results' place while other warps store them",
        right: "        __syncthreads();        // all results have left",
        wrong: "        // all results have left",
    },
    Mistake {
        what: "rows beyond the last are stored",
        right: "token < tile.width && row + of < n",
        wrong: "token < tile.width",
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
        right: "        __syncthreads();\n        work.load_step(memory, step + STAGES - 1);",
        wrong: "        work.load_step(memory, step + STAGES - 1);",
    },
    Mistake {
        what: "a step that is left out",
        right: "work.load_step(memory, step + STAGES - 1)",
        wrong: "work.load_step(memory, step + STAGES)",
    },
];

/// Orders of events in which a mistake is looked for.
const SEEDS: Range<u64> = 0..3;

/// Small problems with several tiles for each block.
fn problem(one: &Shipped) -> Operation {
    match &one.problem {
        Operation::GroupedGemm(gemm) => {
            let groups = [(21, 136, 512), (0, 16, 256), (9, 75, 496)];
            Operation::GroupedGemm(GroupedGemm {
                groups: groups.map(|(m, n, k)| GemmShape { m, n, k }).to_vec(),
                ..gemm.clone()
            })
        }
        Operation::Attention(attention) => Operation::Attention(Attention {
            sequences: sequences([(1, 330), (77, 131)]),
            heads: 2,
            kv_heads: 1,
            ..attention.clone()
        }),
    }
}

/// What is wrong with a shipped variant if its main kernel's source is changed.
fn wrong(compiler: &Compiler, arch: Arch, name: &str, change: impl Fn(&str) -> String) -> Option<String> {
    let shipped = shipped(arch);
    let one = shipped.iter().find(|one| one.name == name).expect(name);
    let problem = problem(one);
    let inputs = InputKind::Wide;
    let sets = [7, 8].map(|seed| operations::generate(&problem, inputs, seed));
    let plan = plan::plan(&problem, &one.schedule, target(arch)).unwrap();
    let main = plan.variant().source;
    let ptx = |variant: &plan::Variant| {
        if variant.source != main {
            return compiler.ptx(variant, arch).unwrap();
        }
        let text = change(variant.source.file().unwrap().text);
        compiler.ptx_of_text(variant, &text, arch).unwrap()
    };
    let kernels = read(plan.as_ref(), ptx);
    let kernels = Kernels::of_plan(plan, &problem, &one.schedule, arch, kernels);
    wrong_kernels(&kernels, one, inputs, &sets, SEEDS)
}

/// Checks that the variants are right as they are, and that each mistake is seen in one of them.
fn check(arch: Arch, names: &[&str], mistakes: &[Mistake]) {
    let Some(compiler) = compiler() else { return };
    let mut unseen: Vec<String> = mistakes
        .par_iter()
        .filter(|mistake| {
            let change = |text: &str| {
                assert_eq!(text.matches(mistake.right).count(), 1, "{}", mistake.what);
                text.replace(mistake.right, mistake.wrong)
            };
            !names
                .iter()
                .any(|name| wrong(&compiler, arch, name, change).is_some())
        })
        .map(|mistake| mistake.what.to_owned())
        .collect();
    unseen.extend(
        names
            .iter()
            .filter_map(|name| wrong(&compiler, arch, name, str::to_owned)),
    );
    assert!(unseen.is_empty(), "{unseen:#?}");
}

#[test]
fn each_of_the_unified_gemm_is_seen() {
    check(Arch::Sm80, &["unified, sorted, dual", "unified, split"], &UNIFIED);
}

#[test]
fn each_of_unified_attention_is_seen() {
    let names = [
        "attention, fused, e4m3, head 64",
        "attention, swizzled, e4m3, head 64",
    ];
    check(Arch::Sm89, &names, &ATTENTION);
}
