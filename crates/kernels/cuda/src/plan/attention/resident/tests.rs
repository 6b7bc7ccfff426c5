use gauntlet_problems::Scaling;
use gauntlet_problems::{Roles, Tile};

use super::*;
use crate::plan::attention::abi::Parameter;
use crate::plan::fixture::ADDRESSES;
use crate::plan::{Map, Swizzle};

fn attention(sequences: &[[usize; 2]], head_size: usize, format: AttentionFormat) -> Attention {
    Attention::new(format, sequences.iter().copied(), [8, 4], head_size)
}

fn short() -> Attention {
    attention(&[[512, 512]], 64, AttentionFormat::F16)
}

fn schedule(keys: usize, split_k: usize) -> Schedule {
    Schedule {
        tile: Tile::from([ROWS, keys, 64]),
        roles: Roles::Specialised,
        split_k,
        cluster: Cluster { m: 1, n: split_k },
        ..Schedule::baseline()
    }
}

fn plan(attention: &Attention, keys: usize, split: usize) -> ResidentPlan {
    ResidentPlan::new(attention, &schedule(keys, split)).unwrap()
}

fn refusal(attention: &Attention, schedule: &Schedule) -> String {
    ResidentPlan::new(attention, schedule).unwrap_err().to_string()
}

fn define<'plan>(plan: &'plan ResidentPlan, name: &str) -> &'plan str {
    &plan.variant().defines[name]
}

fn parameter(launch: &Launch) -> Parameter {
    bytemuck::pod_read_unaligned(&launch.parameter)
}

#[test]
fn words_become_definitions() {
    let plan = plan(&short(), 128, 2);
    let expected = [
        ("ARITHMETIC", "0"),
        ("CAUSAL", "0"),
        ("EXPONENTIAL", "0"),
        ("FORMAT", "0"),
        ("HEAD", "64"),
        ("KEYS", "128"),
        ("OUTPUT", "0"),
        ("OVERLAP", "1"),
        ("PARTIALS", "1"),
        ("RAGGED", "0"),
        ("RUNS", "1"),
        ("SCALING", "0"),
        ("SPLIT", "2"),
        ("TILES", "8"),
        ("UNIFORM", "1"),
    ];
    let defines = plan.variant().defines.iter();
    assert_eq!(
        defines
            .map(|(name, value)| (*name, value.as_str()))
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(plan.variant().threads, 256);
}

#[test]
fn partials_are_in_fp16_only_where_results_and_values_fit_it() {
    let mut problem = short();
    problem.output = OutputFormat::F32;
    assert_eq!(define(&plan(&problem, 128, 2), "PARTIALS"), "0");
    let brains = attention(&[[512, 512]], 64, AttentionFormat::Bf16);
    assert_eq!(define(&plan(&brains, 128, 2), "PARTIALS"), "0");
    let eights = attention(&[[512, 512]], 64, AttentionFormat::E4m3);
    assert_eq!(define(&plan(&eights, 128, 2), "PARTIALS"), "1");
    let by_block = Attention {
        scaling: Scaling::PerBlock,
        ..eights
    };
    assert_eq!(define(&plan(&by_block, 128, 2), "PARTIALS"), "0");
}

#[test]
fn of_equal_sequences_scales_of_blocks_are_those_of_one_with_all_heads() {
    let by_block = Attention {
        scaling: Scaling::PerBlock,
        ..attention(&[[100, 200]; 3], 64, AttentionFormat::Int8)
    };
    let plan = plan(&by_block, 128, 2);
    assert_eq!((define(&plan, "FORMAT"), define(&plan, "SCALING")), ("3", "1"));
    let tables = plan.memory(&[]).tables;
    // One sequence, its 3 · 8 heads' tiles of 64 queries, and where its scales begin.
    assert_eq!(tables.len(), 16 + 48 * 16 + 8);
    assert!(tables.ends_with(&[0; 8]));
}

#[test]
fn fp8_arithmetic_is_for_e4m3_alone() {
    let schedule = Schedule {
        arithmetic: Arithmetic::Fp8,
        ..schedule(128, 2)
    };
    let arithmetic = |format| {
        let plan = ResidentPlan::new(&attention(&[[512, 512]], 64, format), &schedule).unwrap();
        define(&plan, "ARITHMETIC").to_owned()
    };
    assert_eq!(arithmetic(AttentionFormat::E4m3), "1");
    assert_eq!(arithmetic(AttentionFormat::F16), "0");
}

#[test]
fn shared_memory_holds_operands_what_they_become_and_partial_results() {
    let bytes = |attention: &Attention, arithmetic| {
        let schedule = Schedule {
            arithmetic,
            ..schedule(128, 2)
        };
        let plan = ResidentPlan::new(attention, &schedule).unwrap();
        assert!(plan.variant().shared_bytes >= ALONE_BYTES as u32);
        shared_bytes(attention, &schedule)
    };
    let eights = attention(&[[512, 512]], 64, AttentionFormat::E4m3);
    let merged = 16384 + 1024;
    // Q; K and V of two warp groups.
    assert_eq!(bytes(&short(), Arithmetic::Fp16), 8192 + 4 * 16384 + merged + 64);
    // The same in bytes; K and V in fp16.
    assert_eq!(
        bytes(&eights, Arithmetic::Fp16),
        4096 + 4 * 8192 + 4 * 16384 + merged + 64
    );
    // The same; V transposed.
    assert_eq!(
        bytes(&eights, Arithmetic::Fp8),
        4096 + 4 * 8192 + 2 * 8192 + merged + 64
    );
}

#[test]
fn equal_sequences_are_one_with_all_heads() {
    let plan = plan(&attention(&[[100, 512]; 3], 64, AttentionFormat::F16), 128, 2);
    assert_eq!((define(&plan, "UNIFORM"), define(&plan, "TILES")), ("1", "2"));
    let launches = plan.launches(&ADDRESSES);
    assert_eq!(
        (launches.len(), launches[0].grid, launches[0].cluster),
        (1, 3 * 8 * 2 * 2, 2)
    );
    let parameter = parameter(&launches[0]);
    assert_eq!((parameter.heads, parameter.kv_heads), (24, 12));
    assert_eq!((parameter.queries, parameter.keys), (100, 512));
    assert!(plan.memory(&[]).maps.is_empty());
    let maps = launches[0].mapped.unwrap().maps();
    let sizes = |map: &Map| (map.sizes.clone(), map.boxes.clone(), map.swizzle);
    assert_eq!(maps.len(), 3);
    assert_eq!(
        sizes(&maps[0]),
        (vec![64, 100, 24], vec![64, 64, 1], Swizzle::Bytes128)
    );
    assert_eq!(
        sizes(&maps[2]),
        (vec![64, 512, 12], vec![64, 128, 1], Swizzle::Bytes128)
    );
}

#[test]
fn unequal_sequences_have_tables_and_maps_each() {
    let plan = plan(
        &attention(&[[100, 512], [64, 3]], 128, AttentionFormat::F16),
        128,
        4,
    );
    assert_eq!((define(&plan, "UNIFORM"), define(&plan, "TILES")), ("0", "1"));
    assert_eq!(plan.memory(&[]).maps.len(), 6);
    let launches = plan.launches(&ADDRESSES);
    assert_eq!(launches[0].mapped, None);
    assert_eq!((launches[0].grid, launches[0].cluster), (3 * 8 * 4, 4));
    let parameter = parameter(&launches[0]);
    assert_eq!((parameter.tile_count, parameter.queries), (24, 0));
}

#[test]
fn a_sequence_that_does_not_fit_names_what_would_hold_it() {
    let of_keys = |keys| attention(&[[64, keys]], 64, AttentionFormat::F16);
    let refused = |keys, tile, split| refusal(&of_keys(keys), &schedule(tile, split));
    assert!(ResidentPlan::new(&of_keys(512), &schedule(128, 2)).is_ok());
    let message = refused(513, 128, 2);
    assert!(
        message.contains("512 keys") && message.contains("has 513"),
        "{message}"
    );
    assert!(
        message.ends_with("choose split-k 4 with a cluster of 1×4"),
        "{message}"
    );
    assert!(refused(2048, 128, 4).ends_with("choose tile.n 256"));
    assert!(refused(2048, 64, 2).contains("larger split-k and a larger tile.n"));
    assert!(refused(2049, 256, 4).contains("tile.m 128"));
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let plain = schedule(128, 2);
    let long = attention(&[[64, 512]], 128, AttentionFormat::F16);
    assert!(refusal(&long, &schedule(256, 2)).contains("shared memory"));
    assert!(refusal(&short(), &schedule(96, 2)).starts_with("tile.n = 96"));
    assert!(refusal(&short(), &schedule(128, 3)).starts_with("split-k = 3"));
    let with = |change: fn(&mut Schedule)| {
        let mut schedule = plain.clone();
        change(&mut schedule);
        refusal(&short(), &schedule)
    };
    assert!(with(|schedule| schedule.cluster.n = 1).starts_with("cluster = "));
    assert!(with(|schedule| schedule.stages = 3).starts_with("stages = 3"));
    assert!(with(|schedule| schedule.order = Order::Sorted).starts_with("order = "));
    assert!(with(|schedule| schedule.epilogue = Epilogue::Staged).starts_with("epilogue = "));
    assert!(with(|schedule| schedule.scores = Scores::InPlace).starts_with("scores = "));
    assert!(with(|schedule| schedule.values = Values::Scalar).starts_with("values = "));
    assert!(with(|schedule| schedule.layout = Layout::Plain).starts_with("layout = "));
}
