//! Attention whose keys are split into parts, of warps and of blocks, and whose heads are packed into tiles.

use gauntlet_device::Arch;
use gauntlet_problems::{
    Arithmetic, Attention, AttentionFormat, Exponential, Lookup, Operation, Order, OutputFormat, Roles,
    Scaling, Schedule, Sequence, Setup,
};
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{compiler, wrong_on};
use crate::shipped::Shipped;

/// Numbers of parts; the last is more than most sequences have steps.
const PARTS: [usize; 4] = [1, 2, 3, 8];

/// Queries and keys: one key, fewer keys than parts have steps, an uneven last part, no queries, and more queries than keys.
const LENGTHS: [[[usize; 2]; 3]; 4] = [
    [[1, 530], [1, 1], [1, 129]],
    [[3, 257], [7, 60], [5, 2]],
    [[13, 200], [16, 7], [0, 70]],
    [[70, 301], [65, 40], [1, 64]],
];

fn attention(format: AttentionFormat, scaling: Scaling, lengths: [[usize; 2]; 3], causal: bool) -> Attention {
    Attention {
        sequences: lengths.map(|[queries, keys]| Sequence { queries, keys }).to_vec(),
        heads: 4,
        kv_heads: 2,
        head_size: 64,
        causal,
        format,
        scaling,
        output: OutputFormat::F16,
    }
}

fn schedule(tile: [usize; 3], stages: usize, parts: usize) -> Schedule {
    Schedule {
        tile: tile.into(),
        stages,
        split_k: parts,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..Schedule::baseline()
    }
}

fn check(cases: Vec<(Attention, Schedule)>) {
    let Some(compiler) = compiler() else { return };
    let wrong: Vec<_> = cases
        .into_par_iter()
        .zip(InputKind::ALL.into_iter().cycle().take(1000).collect::<Vec<_>>())
        .filter_map(|((attention, schedule), inputs)| {
            let one = Shipped {
                name: format!("{attention} by {schedule}"),
                problem: Operation::Attention(attention),
                schedule,
            };
            wrong_on(&compiler, Arch::Sm90a, &one, one.problem.clone(), inputs)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The cases at these places of a list.
fn some<T>(cases: Vec<T>, taken: impl Fn(usize) -> bool) -> Vec<T> {
    let placed = cases.into_iter().enumerate();
    placed
        .filter(|(place, _)| taken(*place))
        .map(|(_, case)| case)
        .collect()
}

/// Each of the lengths with each number of parts.
fn in_parts() -> Vec<(Attention, Schedule)> {
    let mut cases = Vec::new();
    for (index, lengths) in LENGTHS.into_iter().enumerate() {
        for (turn, parts) in PARTS.into_iter().enumerate() {
            let causal = (index + turn) % 2 == 0;
            let rows = if index < 3 { 16 } else { 64 };
            let case = attention(AttentionFormat::F16, Scaling::PerHead, lengths, causal);
            cases.push((case, schedule([rows, 64, 64], 1 + turn, parts)));
        }
    }
    cases
}

/// Two numbers of parts for each of the lengths, one of them with a mask, and each number twice.
#[test]
fn parts_of_keys_are_merged_whatever_their_number() {
    let numbers = PARTS.len();
    check(some(in_parts(), |place| {
        let (lengths, parts) = (place / numbers, place % numbers);
        parts == lengths || parts == (lengths + 1) % numbers
    }));
}

#[test]
#[ignore = "minutes: all lengths with all numbers of parts"]
fn parts_of_keys_are_merged_whatever_their_number_and_lengths() {
    check(in_parts());
}

/// Three formats, each with a mask and without one.
fn in_parts_of_warp_groups() -> Vec<(Attention, Schedule)> {
    let formats = [
        (AttentionFormat::F16, Scaling::PerHead, 128, 4),
        (AttentionFormat::E4m3, Scaling::PerBlock, 64, 3),
        (AttentionFormat::Bf16, Scaling::PerHead, 64, 2),
    ];
    let mut cases = Vec::new();
    for (turn, (format, scaling, head_size, parts)) in formats.into_iter().enumerate() {
        for (causal, lengths) in [(true, [[130, 530], [3, 40], [1, 513]]), (false, [[70, 530]; 3])] {
            let case = Attention {
                head_size,
                ..attention(format, scaling, lengths, causal)
            };
            let schedule = Schedule {
                roles: Roles::Specialised,
                order: Order::Sorted,
                exponential: [Exponential::Hardware, Exponential::Polynomial, Exponential::Table][turn],
                ..schedule([128, 64, head_size], 2, parts)
            };
            cases.push((case, schedule));
        }
    }
    cases
}

/// Each format, with a mask or without one.
#[test]
fn parts_of_warp_groups_keys_are_merged_too() {
    check(some(in_parts_of_warp_groups(), |place| {
        place % 2 != place / 2 % 2
    }));
}

#[test]
#[ignore = "minutes: every format with a mask and without one"]
fn parts_of_warp_groups_keys_are_merged_with_every_mask() {
    check(in_parts_of_warp_groups());
}

/// Heads that share keys as the rows of one, by the specialised kernel: sequences of equal and of unequal lengths, among them no
/// query, more queries than keys, and tiles in which a warp group has no row.
fn packed_warp_groups() -> Vec<(Attention, Schedule)> {
    let formats = [
        (AttentionFormat::F16, Scaling::PerHead, Arithmetic::Fp16, 128),
        (AttentionFormat::E4m3, Scaling::PerHead, Arithmetic::Fp8, 128),
        (AttentionFormat::Int8, Scaling::PerHead, Arithmetic::Fp16, 64),
        (AttentionFormat::Bf16, Scaling::PerHead, Arithmetic::Fp16, 64),
        (AttentionFormat::E4m3, Scaling::PerTensor, Arithmetic::Fp8, 64),
    ];
    let mut cases = Vec::new();
    for (turn, (format, scaling, arithmetic, head_size)) in formats.into_iter().enumerate() {
        for (place, lengths) in [[[13, 300]; 3], [[70, 301], [5, 2], [0, 64]], [[100, 260]; 3]]
            .into_iter()
            .enumerate()
        {
            let case = Attention {
                heads: 6,
                head_size,
                ..attention(format, scaling, lengths, (turn + place) % 2 == 0)
            };
            let schedule = Schedule {
                roles: Roles::Specialised,
                order: Order::Sorted,
                arithmetic,
                ..schedule([128, 128, head_size], 2, 1 + (turn + place) % 3)
            };
            cases.push((case, schedule));
        }
    }
    cases
}

/// Each format with one of the lengths, in one part or in several.
#[test]
fn warp_groups_have_the_rows_of_all_heads_that_share_keys() {
    check(some(packed_warp_groups(), |place| place % 3 == place / 3 % 3));
}

#[test]
#[ignore = "minutes: every format with all lengths"]
fn warp_groups_have_the_rows_of_all_heads_that_share_keys_whatever_their_lengths() {
    check(packed_warp_groups());
}

/// Every format and scaling with three pairs of a tile and lengths.
fn split_and_packed() -> Vec<(Attention, Schedule)> {
    let mut cases = Vec::new();
    let formats = [
        (AttentionFormat::Bf16, Scaling::PerHead, Arithmetic::Fp16),
        (AttentionFormat::E4m3, Scaling::PerHead, Arithmetic::Fp16),
        (AttentionFormat::E4m3, Scaling::PerBlock, Arithmetic::Fp8),
        (AttentionFormat::Int8, Scaling::PerHead, Arithmetic::Fp16),
        (AttentionFormat::Int8, Scaling::PerBlock, Arithmetic::Fp16),
    ];
    for (turn, (format, scaling, arithmetic)) in formats.into_iter().enumerate() {
        for (tile, lengths) in [
            ([16, 128], LENGTHS[turn % 3]),
            ([64, 64], LENGTHS[1]),
            ([16, 64], LENGTHS[3]),
        ] {
            let head_size = if turn % 2 == 0 { 128 } else { 64 };
            let case = Attention {
                head_size,
                output: [OutputFormat::F16, OutputFormat::Bf16, OutputFormat::F32][turn % 3],
                ..attention(format, scaling, lengths, turn % 2 == 1)
            };
            let exponential = [Exponential::Hardware, Exponential::Polynomial, Exponential::Table][turn % 3];
            let schedule = Schedule {
                arithmetic,
                exponential,
                ..schedule([tile[0], tile[1], head_size], 3, 3)
            };
            cases.push((case, schedule));
        }
    }
    cases
}

/// Every format and scaling with one of the pairs in turn.
#[test]
fn every_format_and_scaling_is_split_and_packed() {
    check(some(split_and_packed(), |place| place % 3 == place / 3 % 3));
}

#[test]
#[ignore = "minutes: every format and scaling with every tile"]
fn every_format_and_scaling_is_split_and_packed_in_every_tile() {
    check(split_and_packed());
}
