use std::collections::BTreeMap;

use gauntlet_problem::{Case, Form, GemmShape, GroupedGemm, OutputFormat, Problem, Suite};
use gauntlet_schedule::{Epilogue, Lookup, Order, Roles, Schedule, Tile as Block};
use proptest::prelude::*;

use super::abi::Parameter;
use super::*;
use crate::plan::{DEPTH_STEP, Group, Matrix};

const PROCESSORS: u32 = 132;

fn schedule(tile: [usize; 2], stages: usize, order: Order, split_k: usize) -> Schedule {
    Schedule {
        tile: Block {
            m: tile[0],
            n: tile[1],
            k: 128,
        },
        stages,
        epilogue: Epilogue::Direct,
        roles: Roles::Specialised,
        order,
        lookup: Lookup::Precomputed,
        swap_ab: true,
        split_k,
        ..Schedule::baseline()
    }
}

fn gemm(shapes: &[[usize; 3]], form: Form) -> GroupedGemm {
    GroupedGemm {
        groups: shapes.iter().map(|&[m, n, k]| GemmShape { m, n, k }).collect(),
        form,
        output: OutputFormat::F16,
    }
}

fn benchmarks(suite: &str) -> Vec<(String, GroupedGemm)> {
    let cases = Suite::builtin(suite).unwrap().benchmark.into_iter();
    let gemm = |case: Case| match case.problem {
        Problem::GroupedGemm(gemm) => (format!("{suite} {}", case.name), gemm),
        Problem::Attention(_) => unreachable!("the suite has GEMMs alone"),
    };
    cases.map(gemm).collect()
}

/// Every output of every group must get every value of the depth exactly once.
fn check_coverage(gemm: &GroupedGemm, schedule: &Schedule, plan: &SwappedPlan) {
    let mut tiles: BTreeMap<[u32; 4], Vec<Tile>> = BTreeMap::new();
    for &tile in plan.tiles() {
        let place = [tile.group, tile.row, tile.token, tile.width];
        tiles.entry(place).or_default().push(tile);
    }
    let mut slots = Vec::new();
    let mut tokens: BTreeMap<[u32; 2], Vec<[u32; 2]>> = BTreeMap::new();
    for (&[group, row, token, width], parts) in &mut tiles {
        assert!(width > 0 && width as usize <= schedule.tile.n && token.is_multiple_of(8));
        tokens.entry([group, row]).or_default().push([token, width]);
        parts.sort_by_key(|tile| tile.first_chunk);
        let count = parts.len() as u32;
        assert!(count as usize <= schedule.split_k);
        let mut chunk = 0;
        for (index, tile) in (0..).zip(parts.iter()) {
            assert!(tile.chunks > 0 && tile.chunks.is_multiple_of(2));
            assert_eq!((tile.first_chunk, tile.parts), (chunk, index | count << 16));
            assert_eq!(tile.slot, parts[0].slot);
            chunk += tile.chunks;
        }
        let depth = gemm.groups[group as usize].k.next_multiple_of(DEPTH_STEP);
        assert_eq!(chunk as usize * 128, depth);
        if count == 1 {
            assert_eq!(parts[0].slot, WHOLE);
        } else {
            slots.extend(parts[0].slot..parts[0].slot + count);
        }
    }
    slots.sort_unstable();
    assert!(
        slots.iter().copied().eq(0..slots.len() as u32),
        "each part has a place of its own"
    );
    for (index, shape) in gemm.groups.iter().enumerate() {
        for row in (0..shape.n).step_by(schedule.tile.m) {
            let mut end = 0;
            for [token, width] in tokens.remove(&[index as u32, row as u32]).unwrap_or_default() {
                assert_eq!(token, end, "tokens of group {index}, row {row}");
                end += width;
            }
            assert_eq!(end as usize, shape.m);
        }
    }
    assert!(tokens.is_empty(), "{tokens:?}");
}

/// Widths must not rise within a worker, and parts of split tiles come before whole ones of the same width.
fn check_order(plan: &SwappedPlan) {
    for bounds in plan.offsets().windows(2) {
        let share = &plan.tiles()[bounds[0] as usize..bounds[1] as usize];
        let keys = share
            .iter()
            .map(|tile| (tile.width.next_multiple_of(8), tile.slot != WHOLE));
        assert!(keys.is_sorted_by(|left, right| left >= right));
    }
}

fn check(gemm: &GroupedGemm, schedule: &Schedule, processors: u32) -> SwappedPlan {
    let plan = SwappedPlan::new(gemm, schedule, processors).unwrap();
    check_coverage(gemm, schedule, &plan);
    let offsets = plan.offsets();
    assert_eq!(
        (offsets[0], offsets.last()),
        (0, Some(&(plan.tiles().len() as u32)))
    );
    assert!(offsets.is_sorted());
    match schedule.order {
        Order::PerTile => assert!((0..).zip(offsets).all(|(worker, &offset)| worker == offset)),
        Order::Sorted => check_order(&plan),
        Order::Dynamic => {
            let list = plan.tiles().iter().map(|tile| tile.width.next_multiple_of(8));
            assert!(list.is_sorted_by(|left, right| left >= right));
        }
        Order::Static => {}
    }
    if schedule.order != Order::PerTile {
        assert_eq!(plan.workers(), processors);
    }
    if schedule.order != Order::Dynamic {
        assert_eq!(offsets.len(), plan.workers() as usize + 1);
    }
    plan
}

fn shapes() -> impl Strategy<Value = Vec<[usize; 3]>> {
    let m = prop_oneof![4 => 0usize..300, 1 => 300usize..3000, 1 => 0usize..9];
    let shape = (m, 1usize..2000, 1usize..160).prop_map(|(m, n, sixteenths)| [m, n, 16 * sixteenths]);
    proptest::collection::vec(shape, 1..9)
}

fn any_schedule() -> impl Strategy<Value = (Form, Schedule)> {
    let orders = [Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic];
    (any::<bool>(), any::<bool>(), 1usize..17, 0usize..4, 1usize..9).prop_map(
        move |(dual, four, eighths, order, split_k)| {
            let form = if dual { Form::Swiglu } else { Form::Plain };
            let rows = if four { 256 } else { 128 };
            let m = if dual { rows / 2 } else { rows };
            (form, schedule([m, 8 * eighths], 3, orders[order], split_k))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_output_gets_all_of_its_depth_once(
        shapes in shapes(),
        (form, schedule) in any_schedule(),
        processors in 1u32..150,
    ) {
        check(&gemm(&shapes, form), &schedule, processors);
    }

    #[test]
    fn a_plan_is_the_same_each_time(shapes in shapes(), (form, schedule) in any_schedule()) {
        let gemm = gemm(&shapes, form);
        let plan = || SwappedPlan::new(&gemm, &schedule, PROCESSORS).unwrap();
        let (first, second) = (plan(), plan());
        prop_assert_eq!(first.tiles(), second.tiles());
        prop_assert_eq!(first.offsets(), second.offsets());
    }

    #[test]
    fn balancing_is_never_worse_than_longest_first(
        shapes in shapes(),
        (form, schedule) in any_schedule(),
        processors in 1u32..150,
    ) {
        let gemm = gemm(&shapes, form);
        let schedule = Schedule { order: Order::Sorted, ..schedule };
        let plan = SwappedPlan::new(&gemm, &schedule, processors).unwrap();
        let makespan = longest_first(&gemm, &schedule, processors);
        prop_assert!(plan.balance().makespan <= makespan * (1.0 + 1e-9));
    }
}

/// The makespan of the least parts, whole, the longest first, each to the worker with the least to do.
fn longest_first(gemm: &GroupedGemm, schedule: &Schedule, processors: u32) -> f64 {
    let geometry = Geometry::new(gemm, schedule).unwrap();
    let costs = Costs::new(geometry.consumers, geometry.width);
    let cutter = Cutter {
        gemm,
        geometry: &geometry,
        costs: &costs,
        mixed: true,
    };
    let kinds = cutter.kinds(&cutter.least_parts());
    let mut tiles: Vec<f64> = kinds
        .iter()
        .flat_map(|kind| vec![kind.whole; kind.blocks])
        .collect();
    tiles.sort_by(|left, right| right.total_cmp(left));
    let mut loads = vec![0.0f64; processors as usize];
    for cost in tiles {
        *loads
            .iter_mut()
            .min_by(|left, right| left.total_cmp(right))
            .unwrap() += cost;
    }
    loads.into_iter().fold(0.0, f64::max)
}

#[test]
fn the_benchmarks_are_balanced_within_a_twentieth_of_an_even_deal() {
    for (suite, rows) in [("group-gemm", 256), ("dual-gemm", 128)] {
        for (name, gemm) in benchmarks(suite) {
            let plan = check(&gemm, &schedule([rows, 128], 4, Order::Sorted, 8), PROCESSORS);
            let balance = plan.balance();
            let even = balance.busy / f64::from(PROCESSORS);
            assert!(balance.makespan < 1.05 * even, "{name}: {balance:?}");
        }
    }
}

#[test]
fn workers_that_whole_tiles_leave_idle_take_parts() {
    // 24 blocks of weight rows by 512 tokens: 120 tiles of at most 104 tokens, or 144 of fewer, for 132 workers.
    let dual = gemm(&[[512, 3072, 7168]], Form::Swiglu);
    let makespan = |split_k| {
        let schedule = schedule([128, 128], 4, Order::Sorted, split_k);
        check(&dual, &schedule, PROCESSORS).balance().makespan
    };
    assert!(makespan(2) < 0.95 * makespan(1));
}

#[test]
fn splitting_the_depth_helps_where_tiles_are_few() {
    let decode = gemm(&[[16, 4096, 7168]], Form::Plain);
    let makespan = |split_k| {
        let schedule = schedule([256, 16], 4, Order::Sorted, split_k);
        check(&decode, &schedule, PROCESSORS).balance().makespan
    };
    assert!(makespan(8) < 0.4 * makespan(1));
}

#[test]
fn a_variant_s_defines_say_what_the_schedule_says() {
    let plan = SwappedPlan::new(
        &gemm(&[[40, 512, 512]], Form::Swiglu),
        &schedule([128, 104], 4, Order::Dynamic, 1),
        PROCESSORS,
    )
    .unwrap();
    let Variant {
        defines,
        threads,
        shared_bytes,
        registers,
        ..
    } = plan.variant();
    let ring = 4 * (104 * 256 + 256 * 80);
    let expected = [
        ("CONSUMERS", "4"),
        ("DUAL", "1"),
        ("DYNAMIC", "1"),
        ("MIXED", "1"),
        ("OUTPUT", "0"),
        ("RING", &ring.to_string()),
        ("STAGED", "0"),
        ("WIDTH", "104"),
    ];
    assert!(
        defines
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .eq(expected)
    );
    assert_eq!(
        (*threads, *shared_bytes, *registers),
        (544, ring as u32 + 1024, 120)
    );
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let problem = gemm(&[[40, 512, 512]], Form::Plain);
    let refused = |change: &dyn Fn(&mut Schedule), word: &str| {
        let mut schedule = schedule([256, 128], 4, Order::Sorted, 1);
        change(&mut schedule);
        let message = SwappedPlan::new(&problem, &schedule, PROCESSORS)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with(word), "{message}");
    };
    refused(&|schedule| schedule.tile.m = 64, "tile.m = 64: ");
    refused(&|schedule| schedule.tile.n = 12, "tile.n = 12: ");
    refused(&|schedule| schedule.tile.n = 136, "tile.n = 136: ");
    refused(&|schedule| schedule.tile.k = 256, "tile.k = 256: ");
    refused(&|schedule| schedule.stages = 1, "stages = 1: ");
    refused(&|schedule| schedule.stages = 5, "stages = 5: ");
    refused(&|schedule| schedule.roles = Roles::Unified, "roles = unified: ");
    refused(&|schedule| schedule.lookup = Lookup::Linear, "lookup = linear: ");
    refused(&|schedule| schedule.cluster.n = 2, "cluster = 1×2: ");
    refused(&|schedule| schedule.split_k = 65, "split-k = 65: ");
}

#[test]
fn more_tiles_than_a_table_holds_are_refused_before_it_is_made() {
    let huge = gemm(&[[1 << 30, 1 << 20, 16]], Form::Plain);
    let schedule = schedule([256, 128], 4, Order::Sorted, 1);
    let message = SwappedPlan::new(&huge, &schedule, PROCESSORS)
        .unwrap_err()
        .to_string();
    assert!(message.contains("number of tiles"), "{message}");
}

fn collect<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

#[test]
fn the_parameter_points_at_the_tables() {
    let problem = gemm(&[[20, 300, 272], [0, 64, 16], [7, 129, 512]], Form::Plain);
    let plan = check(&problem, &schedule([256, 16], 4, Order::Sorted, 4), 5);
    let weights: Vec<_> = (1..4)
        .map(|group| Weights {
            packed: [group << 20, 0],
            scales: [group << 24, 0],
            scale: [group as f32, 0.0],
        })
        .collect();
    let memory = plan.memory(&weights);
    let addresses = Addresses {
        tokens: 1 << 32,
        token_scales: 2 << 32,
        output: 3 << 32,
        tables: 4 << 32,
        maps: 5 << 32,
        workspace: 6 << 32,
        counters: 7 << 32,
    };
    let [launch] = plan.launches(&addresses).try_into().unwrap();
    let parameter: Parameter = bytemuck::pod_read_unaligned(&launch.parameter);
    let table = |address: u64, bytes: usize| {
        assert!(address.is_multiple_of(32));
        let begin = (address - addresses.tables) as usize;
        memory.tables[begin..begin + bytes].to_vec()
    };
    let groups: Vec<Group> = collect(&table(parameter.groups, 3 * size_of::<Group>()));
    assert_eq!(
        groups.iter().map(|group| group.k).collect::<Vec<_>>(),
        [512, 256, 512]
    );
    assert_eq!(
        groups.iter().map(|group| group.tokens).collect::<Vec<_>>(),
        [0, 20 * 256, 20 * 256]
    );
    assert_eq!(
        groups.iter().map(|group| group.token_scales).collect::<Vec<_>>(),
        [0, 20 * 32, 20 * 32]
    );
    assert_eq!(
        groups.iter().map(|group| group.output).collect::<Vec<_>>(),
        [0, 6000, 6000]
    );
    assert_eq!(
        groups.iter().map(|group| group.workspace).collect::<Vec<_>>(),
        [0, 24 * 1024, 24 * 1024]
    );
    assert_eq!(groups[2].weights, [3 << 20, 0]);
    let tiles = table(parameter.tiles, size_of_val(plan.tiles()));
    assert_eq!(tiles, bytemuck::cast_slice::<_, u8>(plan.tiles()));
    let offsets = table(parameter.offsets, 4 * 6);
    assert_eq!(offsets, bytemuck::cast_slice::<_, u8>(plan.offsets()));
    // 3 and 1 blocks of 8 tokens, 4 chunks each.
    let converted = table(parameter.convert_offsets, 4 * 4);
    assert_eq!(collect::<u32>(&converted), [0, 12, 12, 16]);
    assert_eq!(
        (parameter.convert_items, parameter.workers, parameter.group_count),
        (16, 5, 3)
    );
    assert_eq!(parameter.partials, addresses.workspace + 32 * 1024);
    let parts = plan.tiles().iter().filter(|tile| tile.slot != WHOLE).count();
    assert_eq!(memory.workspace_bytes, 32 * 1024 + parts * 256 * 16 * 4);
    assert_eq!(memory.counter_bytes, 4 * (4 + 4 * parts));
}

#[test]
fn maps_describe_the_weights() {
    let problem = gemm(&[[20, 300, 272], [7, 129, 512]], Form::Swiglu);
    let plan = SwappedPlan::new(&problem, &schedule([64, 16], 4, Order::Sorted, 1), PROCESSORS).unwrap();
    let maps = plan.memory(&[]).maps;
    let matrices = [
        Matrix::Weights,
        Matrix::WeightScales,
        Matrix::SecondWeights,
        Matrix::SecondWeightScales,
    ];
    assert!(
        maps.iter()
            .map(|map| map.matrix)
            .eq(matrices.into_iter().chain(matrices))
    );
    let sizes = |index: usize| {
        let map = &maps[index];
        (map.group, map.columns, map.rows, map.box_columns, map.box_rows)
    };
    assert_eq!(sizes(0), (0, 256, 300, 64, 64));
    assert_eq!(sizes(7), (1, 32, 129, 16, 64));
}

#[test]
fn without_tokens_there_is_nothing_to_launch() {
    let plan = check(
        &gemm(&[[0, 300, 272]], Form::Plain),
        &schedule([256, 16], 4, Order::Sorted, 4),
        5,
    );
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
