use std::collections::BTreeSet;

use gauntlet_problems::Form;
use gauntlet_problems::Tile;
use proptest::prelude::*;

use super::*;
use crate::plan::Group;
use crate::plan::fixture::{ADDRESSES, gemm, hopper};

fn schedule(tile: [usize; 3]) -> Schedule {
    Schedule {
        tile: Tile::from(tile),
        lookup: Lookup::Precomputed,
        swap_ab: true,
        ..Schedule::baseline()
    }
}

proptest! {
    #[test]
    fn every_output_has_one_block(
        shapes in prop::collection::vec((0usize..40, 1usize..300, 1usize..40), 1..6),
        dual in any::<bool>(),
        wide in any::<bool>(),
    ) {
        let shapes: Vec<_> = shapes.into_iter().map(|(m, n, blocks)| [m, n, 16 * blocks]).collect();
        let form = if dual { Form::Swiglu } else { Form::Plain };
        let (rows, tokens) = (if dual { 16 } else { 32 }, if wide { 16 } else { 8 });
        let plan = NarrowPlan::new(&gemm(&shapes, form), &schedule([rows, tokens, 128]), hopper()).unwrap();
        let mut outputs = BTreeSet::new();
        for block in plan.blocks() {
            prop_assert!(block.width as usize <= tokens);
            let n = shapes[block.group as usize][1];
            for row in block.row as usize..(block.row as usize + rows).min(n) {
                for token in block.token..block.token + block.width {
                    prop_assert!(outputs.insert((block.group, row, token)));
                }
            }
        }
        let expected: usize = shapes.iter().map(|[m, n, _]| m * n).sum();
        prop_assert_eq!(outputs.len(), expected);
        let last = outputs.last().map(|&(group, row, token)| (group as usize, row, token as usize));
        let largest = shapes.iter().enumerate().rfind(|(_, [m, ..])| *m > 0);
        prop_assert_eq!(last, largest.map(|(group, [m, n, _])| (group, n - 1, m - 1)));
    }
}

#[test]
fn a_block_has_a_warp_for_each_chunk_of_a_step() {
    let variant = |tile, stages| {
        let schedule = Schedule {
            stages,
            ..schedule(tile)
        };
        let plan = NarrowPlan::new(&gemm(&[[4, 64, 7168]], Form::Plain), &schedule, hopper()).unwrap();
        plan.variant().clone()
    };
    let wide = variant([32, 16, 2048], 2);
    assert!(wide.overlaps());
    // A row of a chunk has 64 bytes of values and 8 of scales.
    assert_eq!((wide.threads, wide.shared_bytes), (512, 16 * 2 * 48 * 72));
    // All registers are one block's, though shared memory holds two.
    assert_eq!((wide.defines["BLOCKS"].as_str(), wide.registers), ("1", 128));
    let small = variant([32, 8, 512], 4);
    assert_eq!((small.threads, small.shared_bytes), (128, 4 * 4 * 40 * 72));
    assert_eq!((small.defines["BLOCKS"].as_str(), small.registers), ("4", 128));
}

#[test]
fn stages_fill_shared_memory_and_no_more() {
    let planned = |stages| {
        let schedule = Schedule {
            stages,
            ..schedule([32, 16, 2048])
        };
        NarrowPlan::new(&gemm(&[[4, 64, 256]], Form::Plain), &schedule, hopper())
    };
    assert!(planned(4).unwrap().variant().shared_bytes <= 232_448);
    assert!(planned(5).unwrap_err().to_string().contains("choose 1 to 4"));
    assert!(planned(0).is_err());
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let refused = |form, change: &dyn Fn(&mut Schedule), word: &str| {
        let mut schedule = schedule([32, 16, 128]);
        change(&mut schedule);
        let message = NarrowPlan::new(&gemm(&[[4, 64, 256]], form), &schedule, hopper())
            .unwrap_err()
            .to_string();
        assert!(message.starts_with(word), "{message}");
    };
    refused(Form::Swiglu, &|_| {}, "tile.m = 32: ");
    refused(Form::Plain, &|schedule| schedule.tile.m = 16, "tile.m = 16: ");
    refused(Form::Plain, &|schedule| schedule.tile.n = 12, "tile.n = 12: ");
    refused(Form::Plain, &|schedule| schedule.tile.k = 64, "tile.k = 64: ");
    refused(Form::Plain, &|schedule| schedule.tile.k = 2176, "tile.k = 2176: ");
    refused(Form::Plain, &|schedule| schedule.stages = 99, "stages = 99: ");
    refused(
        Form::Plain,
        &|schedule| schedule.roles = Roles::Specialised,
        "roles = specialised: ",
    );
    refused(
        Form::Plain,
        &|schedule| schedule.epilogue = Epilogue::Staged,
        "epilogue = staged: ",
    );
    refused(
        Form::Plain,
        &|schedule| schedule.order = Order::Sorted,
        "order = sorted: ",
    );
    refused(
        Form::Plain,
        &|schedule| schedule.lookup = Lookup::Linear,
        "lookup = linear: ",
    );
    refused(Form::Plain, &|schedule| schedule.split_k = 2, "split-k = 2: ");
    refused(
        Form::Plain,
        &|schedule| schedule.packing = Packing::Steps,
        "packing = steps: ",
    );
    refused(Form::Plain, &|schedule| schedule.cluster.m = 2, "cluster = 2×1: ");
}

#[test]
fn few_groups_are_found_by_their_first_blocks() {
    let shapes = [[3, 40, 16], [0, 64, 256], [9, 16, 512]];
    let plan = NarrowPlan::new(&gemm(&shapes, Form::Plain), &schedule([32, 8, 128]), hopper()).unwrap();
    let weights = Weights {
        packed: [1 << 20, 0],
        ..Weights::default()
    };
    let memory = plan.memory(&[weights; 3]);
    assert_eq!(
        (memory.maps.len(), memory.workspace_bytes, memory.counter_bytes),
        (0, 0, 0)
    );
    let [launch] = plan.launches(&ADDRESSES).try_into().unwrap();
    assert_eq!(launch.grid, 4);
    let parameter: Parameter = bytemuck::pod_read_unaligned(&launch.parameter);
    assert_eq!((parameter.groups, parameter.blocks), (ADDRESSES.tables, 0));
    assert_eq!(parameter.first_blocks[..4], [0, 2, 2, u32::MAX]);
    // The lookup of the kernel: the last group whose first block is not after this one.
    for (number, block) in plan.blocks().iter().enumerate() {
        let begun = |first: &u32| *first <= number as u32;
        assert_eq!(
            parameter.first_blocks.iter().rposition(begun),
            Some(block.group as usize)
        );
    }
    let last: Group =
        bytemuck::pod_read_unaligned(&memory.tables[2 * size_of::<Group>()..][..size_of::<Group>()]);
    assert_eq!((last.m, last.n, last.k), (9, 16, 512));
    assert_eq!(
        (last.tokens, last.token_scales, last.output),
        (3 * 128, 3 * 16, 120)
    );
    assert_eq!(last.weights, weights.packed);
}

#[test]
fn many_groups_have_a_table_of_blocks() {
    let plan = NarrowPlan::new(
        &gemm(&[[9, 40, 16]; 17], Form::Plain),
        &schedule([32, 8, 128]),
        hopper(),
    )
    .unwrap();
    let memory = plan.memory(&[Weights::default(); 17]);
    let [launch] = plan.launches(&ADDRESSES).try_into().unwrap();
    let parameter: Parameter = bytemuck::pod_read_unaligned(&launch.parameter);
    let blocks = (parameter.blocks - ADDRESSES.tables) as usize;
    assert_eq!(
        memory.tables[blocks..],
        *bytemuck::cast_slice::<_, u8>(plan.blocks())
    );
    assert_eq!(
        plan.blocks()[5],
        Block {
            group: 1,
            row: 32,
            token: 0,
            width: 8
        }
    );
    assert_eq!(launch.grid, 17 * 4);
}

#[test]
fn without_tokens_there_is_nothing_to_launch() {
    let plan = NarrowPlan::new(
        &gemm(&[[0, 40, 16]], Form::Plain),
        &schedule([32, 8, 128]),
        hopper(),
    )
    .unwrap();
    assert_eq!(plan.launches(&ADDRESSES), []);
}

#[test]
fn no_more_blocks_find_room_on_a_multiprocessor_than_shall() {
    for tokens in [8, 16] {
        let plan = NarrowPlan::new(
            &gemm(&[[tokens, 64, 7168]], Form::Swiglu),
            &Schedule {
                stages: 2,
                ..schedule([16, tokens, 1024])
            },
            hopper(),
        )
        .unwrap();
        let variant = plan.variant();
        let block = variant.shared_bytes as usize + RESERVED_BYTES;
        assert_eq!(variant.defines["BLOCKS"], "2");
        assert_eq!(hopper().processor_shared_bytes / block, 2, "{tokens} tokens");
    }
}
