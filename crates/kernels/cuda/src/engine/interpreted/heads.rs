//! Heads of other sizes than 64 and 128, by the unified kernel.

use gauntlet_device::Arch;
use gauntlet_problems::{
    Arithmetic, Attention, AttentionFormat, Epilogue, Lookup, Operation, OutputFormat, Scaling, Schedule,
    Setup,
};
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{compiler, sequences, wrong_on};
use crate::shipped::Shipped;

/// Rows of them fill 64 bytes, an odd number of times 64 bytes, or no multiple of 64; of 8 bits 80 and 112 are no multiple of
/// what a product takes.
const SIZES: [usize; 6] = [16, 80, 96, 112, 192, 256];

fn cases() -> Vec<Shipped> {
    let formats = [
        (AttentionFormat::F16, Scaling::PerHead, Arithmetic::Fp16),
        (AttentionFormat::E4m3, Scaling::PerHead, Arithmetic::Fp8),
        (AttentionFormat::Int8, Scaling::PerBlock, Arithmetic::Fp16),
        (AttentionFormat::Bf16, Scaling::PerHead, Arithmetic::Fp16),
    ];
    // Few queries in parts that warps share, rows of a warp in parts, and results that are staged.
    let tiles = [
        (16, 3, Epilogue::Direct),
        (64, 2, Epilogue::Direct),
        (64, 1, Epilogue::Staged),
    ];
    let mut cases = Vec::new();
    for (place, size) in SIZES.into_iter().enumerate() {
        for (turn, (format, scaling, arithmetic)) in formats.into_iter().enumerate() {
            let (queries, parts, epilogue) = tiles[(place + turn) % 3];
            let attention = Attention {
                sequences: sequences(if queries == 16 {
                    [(3, 200), (1, 70)]
                } else {
                    [(70, 150), (5, 9)]
                }),
                heads: 4,
                kv_heads: 2,
                head_size: size,
                causal: (place + turn) % 2 == 0,
                format,
                scaling,
                output: [OutputFormat::F16, OutputFormat::F32][turn % 2],
            };
            let schedule = Schedule {
                tile: [queries, 64, size].into(),
                stages: 2,
                split_k: parts,
                epilogue,
                arithmetic,
                lookup: Lookup::Precomputed,
                setup: Setup::Once,
                ..Schedule::baseline()
            };
            cases.push(Shipped {
                name: format!("{attention} by {schedule}"),
                problem: Operation::Attention(attention),
                schedule,
            });
        }
    }
    cases
}

fn check(cases: Vec<Shipped>, architectures: &[Arch]) {
    let Some(compiler) = compiler() else { return };
    let wrong: Vec<_> = cases
        .into_par_iter()
        .enumerate()
        .filter_map(|(place, one)| {
            let arch = architectures[place % architectures.len()];
            wrong_on(&compiler, arch, &one, one.problem.clone(), InputKind::Competition)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each size in one format.
#[test]
fn heads_of_other_sizes_are_right() {
    let cases = cases().into_iter().enumerate();
    let some = cases
        .filter(|(place, _)| place % 4 == (place / 4) % 4)
        .map(|(_, one)| one);
    check(some.collect(), &[Arch::Sm90a]);
}

#[test]
#[ignore = "minutes: each size in each format, on Hopper and on Ada"]
fn heads_of_other_sizes_are_right_in_every_format() {
    check(cases(), &[Arch::Sm90a, Arch::Sm89]);
}
