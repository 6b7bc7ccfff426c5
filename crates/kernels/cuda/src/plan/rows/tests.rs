use gauntlet_problems::{Epilogue, Roles, Tile as Block};
use gauntlet_problems::{Form, GemmShape, Lookup, Order, OutputFormat};
use proptest::prelude::*;

use super::*;
use crate::plan::fixture::{ADDRESSES, PROCESSORS, assert_defines, collect, gemm, shapes};
use crate::plan::tiled::Parameter;
use crate::plan::{Group, MAPS_A_GROUP};

const ORDERS: [Order; 4] = [Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic];
const LOOKUPS: [Lookup; 2] = [Lookup::Linear, Lookup::Precomputed];

fn schedule(tile: [usize; 3], order: Order, lookup: Lookup, split_k: usize) -> Schedule {
    Schedule {
        tile: tile.into(),
        stages: 2,
        order,
        lookup,
        split_k,
        ..Schedule::baseline()
    }
}

/// The parts of a launch that the kernel reads.
struct Seen {
    groups: Vec<Group>,
    order: Vec<u8>,
    tiles: u32,
    blocks: u32,
}

impl Seen {
    fn new(plan: &RowsPlan) -> Option<Self> {
        let [launch] = plan.launches(&ADDRESSES).try_into().ok()?;
        let parameter: Parameter = bytemuck::pod_read_unaligned(&launch.parameter);
        let memory = plan.memory(&[]);
        let place = |address: u64| (address - ADDRESSES.tables) as usize;
        assert!(
            place(parameter.order).is_multiple_of(16),
            "tiles are read 16 bytes at a time"
        );
        Some(Self {
            groups: collect(
                &memory.tables[place(parameter.groups)..]
                    [..plan.tiled.gemm.groups.len() * size_of::<Group>()],
            ),
            order: memory.tables[place(parameter.order)..].to_vec(),
            tiles: parameter.tiles,
            blocks: launch.grid,
        })
    }

    /// The kernel's walk over the groups.
    fn walk(&self, tile: Block, mut number: u32) -> Tile {
        for (index, group) in (0..).zip(&self.groups) {
            let (rows, columns) = (group.m.div_ceil(tile.m as u32), group.n.div_ceil(tile.n as u32));
            if number < rows * columns {
                return Tile {
                    group: index,
                    row: number % rows * tile.m as u32,
                    column: number / rows * tile.n as u32,
                    steps: group.k / tile.k as u32,
                };
            }
            number -= rows * columns;
        }
        panic!("a number beyond the tiles");
    }

    fn tile(&self, schedule: &Schedule, number: u32) -> Tile {
        let by_cost = matches!(schedule.order, Order::Sorted | Order::Dynamic);
        match schedule.lookup {
            Lookup::Precomputed => collect(&self.order)[number as usize],
            Lookup::Linear if by_cost => self.walk(schedule.tile, collect(&self.order)[number as usize]),
            Lookup::Linear => self.walk(schedule.tile, number),
        }
    }

    /// The places that blocks take, in any order.
    fn places(&self, schedule: &Schedule) -> Vec<u32> {
        let work = self.tiles * schedule.split_k as u32;
        match schedule.order {
            Order::PerTile => (0..self.blocks).collect(),
            Order::Static | Order::Sorted => (0..self.blocks)
                .flat_map(|block| (block..work).step_by(self.blocks as usize))
                .collect(),
            Order::Dynamic => (0..work).collect(),
        }
    }
}

/// Each output element must get each value of the depth exactly once.
fn check_coverage(gemm: &GroupedGemm, schedule: &Schedule, processors: u32) {
    let plan = RowsPlan::new(gemm, schedule, processors).unwrap();
    // For each group, by tile: the steps that parts have taken.
    let grid = |shape: &GemmShape| {
        (
            shape.m.div_ceil(schedule.tile.m),
            shape.n.div_ceil(schedule.tile.n),
        )
    };
    let mut taken: Vec<Vec<Vec<(u32, u32)>>> = gemm
        .groups
        .iter()
        .map(|shape| vec![Vec::new(); grid(shape).0 * grid(shape).1])
        .collect();
    if let Some(seen) = Seen::new(&plan) {
        for place in seen.places(schedule) {
            let (number, part, parts) = (
                place / schedule.split_k as u32,
                place % schedule.split_k as u32,
                schedule.split_k as u32,
            );
            let tile = seen.tile(schedule, number);
            assert_eq!(tile, plan.tiles()[number as usize]);
            let (row, column) = (tile.row as usize, tile.column as usize);
            assert!(row.is_multiple_of(schedule.tile.m) && column.is_multiple_of(schedule.tile.n));
            let rows = grid(&gemm.groups[tile.group as usize]).0;
            let index = column / schedule.tile.n * rows + row / schedule.tile.m;
            let steps = tile.steps * part / parts..tile.steps * (part + 1) / parts;
            assert!(!steps.is_empty(), "no step would end a block's work");
            taken[tile.group as usize][index].push((steps.start, steps.end));
        }
    }
    for (shape, tiles) in gemm.groups.iter().zip(taken) {
        for mut parts in tiles {
            parts.sort_unstable();
            let mut end = 0;
            for (begin, next) in parts {
                assert_eq!(begin, end);
                end = next;
            }
            assert_eq!(end as usize * schedule.tile.k, depth(shape.k));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_output_gets_all_of_its_depth_once(
        shapes in shapes(3000),
        (groups_of_rows, eighths, deep) in (1usize..3, 1usize..9, any::<bool>()),
        (order, lookup, parts) in (0usize..4, 0usize..2, 1usize..9),
        processors in 1u32..150,
    ) {
        let gemm = gemm(&shapes, Form::Plain);
        let k = if deep { 256 } else { 128 };
        let fewest = shapes.iter().filter(|shape| shape[0] > 0).map(|shape| depth(shape[2]) / k).min();
        let split_k = parts.min(fewest.unwrap_or(1));
        let tile = [64 * groups_of_rows, 8 * eighths, k];
        check_coverage(&gemm, &schedule(tile, ORDERS[order], LOOKUPS[lookup], split_k), processors);
    }
}

#[test]
fn the_deepest_tiles_come_first_where_the_order_is_by_cost_and_their_neighbours_stay() {
    let problem = gemm(&[[100, 300, 256], [200, 200, 1024], [64, 100, 1024]], Form::Plain);
    let groups = |order| -> Vec<u32> {
        let plan = RowsPlan::new(&problem, &schedule([128, 128, 256], order, Lookup::Linear, 1), 5).unwrap();
        plan.tiles().iter().map(|tile| tile.group).collect()
    };
    assert_eq!(groups(Order::Static), [0, 0, 0, 1, 1, 1, 1, 2]);
    assert_eq!(groups(Order::Sorted), [1, 1, 1, 1, 2, 0, 0, 0]);
    assert_eq!(groups(Order::Dynamic), groups(Order::Sorted));
}

#[test]
fn persistent_blocks_are_as_many_as_processors_and_no_more_than_pieces_of_work() {
    let problem = gemm(&[[300, 1000, 512]], Form::Plain);
    let blocks = |order, split_k, processors| {
        let schedule = schedule([128, 128, 256], order, Lookup::Linear, split_k);
        let plan = RowsPlan::new(&problem, &schedule, processors).unwrap();
        plan.launches(&ADDRESSES)[0].grid
    };
    assert_eq!(blocks(Order::PerTile, 2, 7), 48);
    assert_eq!(blocks(Order::Static, 2, 7), 7);
    assert_eq!(blocks(Order::Dynamic, 1, PROCESSORS), 24);
}

#[test]
fn a_variant_s_defines_say_what_the_schedule_says() {
    let schedule = Schedule {
        stages: 3,
        epilogue: Epilogue::Staged,
        roles: Roles::Specialised,
        ..schedule([128, 64, 128], Order::Dynamic, Lookup::Precomputed, 2)
    };
    let problem = GroupedGemm {
        output: OutputFormat::F32,
        ..gemm(&[[40, 512, 512]], Form::Swiglu)
    };
    let plan = RowsPlan::new(&problem, &schedule, PROCESSORS).unwrap();
    // Two slots of fp16, three of packed values and scales, staged rows of 72 elements, work and barriers.
    let shared = 2 * 2 * 64 * 256 + 3 * (2 * 64 + 128) * 80 + 128 * 72 * 4 + 3 * 48;
    let shared = shared.to_string();
    let expected = [
        ("DUAL", "1"),
        ("EPILOGUE", "Staged"),
        ("LOOKUP", "Precomputed"),
        ("ORDER", "Dynamic"),
        ("OUTPUT", "2"),
        ("PAIRED", "0"),
        ("ROLES", "Specialised"),
        ("SHARED_BYTES", &shared),
        ("SPLIT_K", "2"),
        ("STAGES", "3"),
        ("SWAP_AB", "0"),
        ("TILE_K", "128"),
        ("TILE_M", "128"),
        ("TILE_N", "64"),
    ];
    let variant = plan.variant();
    assert_defines(variant, &expected);
    assert_eq!((variant.threads, variant.registers), (384, 168));
    assert_eq!(variant.shared_bytes.to_string(), shared);
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let problem = gemm(&[[40, 512, 512], [0, 64, 16]], Form::Plain);
    let refused = |change: &dyn Fn(&mut Schedule), start: &str| {
        let mut schedule = Schedule::baseline();
        change(&mut schedule);
        let message = RowsPlan::new(&problem, &schedule, PROCESSORS)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with(start), "{message}");
    };
    refused(&|schedule| schedule.tile.m = 96, "tile.m = 96: ");
    refused(&|schedule| schedule.tile.m = 320, "tile.m = 320: ");
    refused(&|schedule| schedule.tile.n = 12, "tile.n = 12: ");
    refused(&|schedule| schedule.tile.n = 264, "tile.n = 264: ");
    refused(&|schedule| schedule.tile.k = 64, "tile.k = 64: ");
    refused(&|schedule| schedule.tile.m = 256, "tile.k = 256: ");
    refused(&|schedule| schedule.tile.n = 136, "tile.n = 136: ");
    refused(&|schedule| schedule.stages = 0, "stages = 0: ");
    refused(&|schedule| schedule.stages = 3, "stages = 3: ");
    refused(&|schedule| schedule.cluster.m = 2, "cluster = 2×1: ");
    refused(&|schedule| schedule.split_k = 3, "split-k = 3: ");
    refused(&|schedule| schedule.split_k = 0, "split-k = 0: ");
}

#[test]
fn more_tiles_than_a_table_holds_are_refused_before_it_is_made() {
    let huge = gemm(&[[1 << 30, 1 << 20, 16]], Form::Plain);
    let message = RowsPlan::new(&huge, &Schedule::baseline(), PROCESSORS)
        .unwrap_err()
        .to_string();
    assert!(message.contains("number of tiles"), "{message}");
}

#[test]
fn rows_too_long_for_32_bits_are_refused() {
    let deep = gemm(&[[1, 1, 1 << 25]], Form::Plain);
    let message = RowsPlan::new(&deep, &Schedule::baseline(), PROCESSORS)
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("K of group 0 is 33554432"), "{message}");
}

#[test]
fn maps_describe_the_weights_in_the_kernel_s_order() {
    let problem = gemm(&[[20, 300, 272], [7, 129, 512]], Form::Swiglu);
    let schedule = schedule([64, 16, 256], Order::Static, Lookup::Linear, 1);
    let maps = RowsPlan::new(&problem, &schedule, PROCESSORS)
        .unwrap()
        .memory(&[])
        .maps;
    assert_eq!(maps.len(), 2 * MAPS_A_GROUP);
    assert_eq!(maps[2].matrix, Matrix::SecondWeights);
    let sizes = |index: usize| {
        let map = &maps[index];
        (map.group, map.sizes[0], map.sizes[1], map.boxes[0], map.boxes[1])
    };
    assert_eq!(sizes(0), (0, 256, 300, 128, 16));
    assert_eq!(sizes(7), (1, 32, 129, 16, 16));
}

#[test]
fn only_a_split_depth_needs_a_workspace() {
    let problem = gemm(&[[100, 300, 512]], Form::Plain);
    let memory = |split_k| {
        let schedule = schedule([64, 128, 128], Order::Static, Lookup::Linear, split_k);
        let memory = RowsPlan::new(&problem, &schedule, PROCESSORS)
            .unwrap()
            .memory(&[]);
        (memory.workspace_bytes, memory.counter_bytes)
    };
    assert_eq!(memory(1), (0, 4));
    // Six tiles of four warps.
    assert_eq!(memory(3), (3 * 6 * 64 * 128 * 4, 4 + 6 * 4 * 4));
}

#[test]
fn without_tokens_there_is_nothing_to_launch() {
    let problem = gemm(&[[0, 300, 272]], Form::Plain);
    let plan = RowsPlan::new(&problem, &Schedule::baseline(), PROCESSORS).unwrap();
    assert_eq!(plan.launches(&ADDRESSES), []);
}
