use std::collections::BTreeSet;

use gauntlet_problem::{Form, GemmShape, OutputFormat};
use gauntlet_schedule::Tile;
use proptest::prelude::*;

use super::*;

fn gemm(shapes: &[[usize; 3]], form: Form) -> GroupedGemm {
    GroupedGemm {
        groups: shapes.iter().map(|&[m, n, k]| GemmShape { m, n, k }).collect(),
        form,
        output: OutputFormat::Bf16,
    }
}

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
        let plan = NarrowPlan::new(&gemm(&shapes, form), &schedule([rows, tokens, 128])).unwrap();
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
fn a_block_has_as_many_warps_as_there_are_shares_of_the_depth() {
    let warps = |k, tile| {
        let plan = NarrowPlan::new(&gemm(&[[4, 64, 16], [4, 64, k]], Form::Plain), &schedule(tile)).unwrap();
        let variant = plan.variant().clone();
        assert_eq!(variant.defines["WARPS"], (variant.threads / 32).to_string());
        assert_eq!(
            variant.shared_bytes,
            variant.threads / 32 * 32 * tile[1] as u32 * 4
        );
        variant.threads / 32
    };
    assert_eq!(warps(7168, [32, 16, 128]), 16);
    assert_eq!(warps(7168, [32, 16, 1024]), 7);
    assert_eq!(warps(272, [32, 8, 128]), 4);
    assert_eq!(warps(16, [32, 8, 128]), 2);
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let refused = |form, change: &dyn Fn(&mut Schedule), word: &str| {
        let mut schedule = schedule([32, 16, 128]);
        change(&mut schedule);
        let message = NarrowPlan::new(&gemm(&[[4, 64, 256]], form), &schedule)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with(word), "{message}");
    };
    refused(Form::Swiglu, &|_| {}, "tile.m = 32: ");
    refused(Form::Plain, &|schedule| schedule.tile.m = 16, "tile.m = 16: ");
    refused(Form::Plain, &|schedule| schedule.tile.n = 12, "tile.n = 12: ");
    refused(Form::Plain, &|schedule| schedule.tile.k = 64, "tile.k = 64: ");
    refused(Form::Plain, &|schedule| schedule.stages = 2, "stages = 2: ");
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
    refused(Form::Plain, &|schedule| schedule.cluster.m = 2, "cluster = 2×1: ");
}

#[test]
fn the_parameter_points_at_the_tables() {
    let plan = NarrowPlan::new(
        &gemm(&[[3, 40, 16], [9, 16, 512]], Form::Plain),
        &schedule([32, 8, 128]),
    )
    .unwrap();
    let weights = Weights {
        packed: [1 << 20, 0],
        ..Weights::default()
    };
    let memory = plan.memory(&[weights; 2]);
    assert_eq!(
        (memory.maps.len(), memory.workspace_bytes, memory.counter_bytes),
        (0, 0, 0)
    );
    let addresses = Addresses {
        tokens: 1 << 32,
        token_scales: 2 << 32,
        output: 3 << 32,
        tables: 4 << 32,
        maps: 0,
        workspace: 0,
        counters: 0,
    };
    let [launch] = plan.launches(&addresses).try_into().unwrap();
    assert_eq!(launch.grid, 4);
    let parameter: Parameter = bytemuck::pod_read_unaligned(&launch.parameter);
    assert_eq!((parameter.groups, parameter.count), (addresses.tables, 4));
    let blocks = (parameter.blocks - addresses.tables) as usize;
    assert_eq!(
        memory.tables[blocks..],
        *bytemuck::cast_slice::<_, u8>(plan.blocks())
    );
    let second: Group =
        bytemuck::pod_read_unaligned(&memory.tables[size_of::<Group>()..][..size_of::<Group>()]);
    assert_eq!((second.m, second.n, second.k), (9, 16, 512));
    assert_eq!(
        (second.tokens, second.token_scales, second.output),
        (3 * 128, 3 * 16, 120)
    );
    assert_eq!(second.weights, weights.packed);
}

#[test]
fn without_tokens_there_is_nothing_to_launch() {
    let plan = NarrowPlan::new(&gemm(&[[0, 40, 16]], Form::Plain), &schedule([32, 8, 128])).unwrap();
    let addresses = Addresses {
        tokens: 0,
        token_scales: 0,
        output: 0,
        tables: 0,
        maps: 0,
        workspace: 0,
        counters: 0,
    };
    assert_eq!(plan.launches(&addresses), []);
}
