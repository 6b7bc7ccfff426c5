//! The kernel's input: its parameter, the tables that it points to, and the maps.

use bytemuck::Zeroable;
use gauntlet_problems::TokenFormat;

use super::coverage::check;
use super::*;
use crate::packing::pack;
use crate::plan::fixture::{ADDRESSES, collect};
use crate::plan::swapped::abi::{INLINE_GROUPS, Inline, LAST, Parameter, Shape, Tile, WHOLE};
use crate::plan::{Group, MappedOperands, Matrix, Memory, Pass, Plan, Source, TokenMatrix, Weights};

fn parameter(plan: &SwappedPlan) -> (u32, Parameter) {
    let [tokens, products] = plan.launches(&ADDRESSES).try_into().unwrap();
    assert_eq!(
        (tokens.pass, products.pass),
        (Pass::Preparation, Pass::Main),
        "in this order"
    );
    assert_eq!(tokens.parameter, products.parameter);
    (products.grid, bytemuck::pod_read_unaligned(&products.parameter))
}

/// `count` entries of the table at an address.
fn table<T: bytemuck::Pod>(memory: &Memory, address: u64, count: usize) -> Vec<T> {
    assert!(address.is_multiple_of(32));
    let begin = (address - ADDRESSES.tables) as usize;
    collect(&memory.tables[begin..begin + count * size_of::<T>()])
}

#[test]
fn the_parameter_points_at_the_tables() {
    let problem = gemm(&[[20, 300, 272], [0, 64, 16], [7, 129, 512]], Form::Plain);
    let plan = check(&problem, &schedule([128, 16], 4, Order::Static, 2), 3);
    let weights: Vec<_> = (1..4)
        .map(|group| Weights {
            packed: [group << 20, 0],
            scales: [group << 24, 0],
            scale: [group as f32, 0.0],
        })
        .collect();
    let memory = plan.memory(&weights);
    let (grid, parameter) = parameter(&plan);
    assert_eq!(size_of::<Parameter>(), 1000);

    let groups: Vec<Group> = table(&memory, parameter.group_table, 3);
    assert_eq!(groups[2].weights, [3 << 20, 0]);
    let shape = |[m, n, k]: [u32; 3], [tokens, token_scales, output, workspace]: [u64; 4]| Shape {
        tokens,
        token_scales,
        output,
        workspace,
        m,
        n,
        k,
        columns: k,
    };
    let shapes = [
        shape([20, 300, 512], [0, 0, 0, 0]),
        shape([0, 64, 256], [20 * 256, 20 * 32, 6000, 24 * 1024]),
        shape([7, 129, 512], [20 * 256, 20 * 32, 6000, 24 * 1024]),
    ];
    assert_eq!(parameter.inline.shapes[..3], shapes);
    assert_eq!(parameter.inline.shapes[3..], [Shape::zeroed(); INLINE_GROUPS - 3]);
    let numbers = |group: &Group| {
        let Group { m, n, k, .. } = *group;
        shape(
            [m, n, k],
            [group.tokens, group.token_scales, group.output, group.workspace],
        )
    };
    assert!(groups.iter().map(numbers).eq(shapes));

    // 3 and 1 blocks of 8 tokens, 4 chunks each.
    assert_eq!(table::<u32>(&memory, parameter.item_table, 4), [0, 12, 12, 16]);
    assert_eq!(parameter.inline.item_offsets[..5], [0, 12, 12, 16, 0]);
    assert_eq!((grid, parameter.items, parameter.group_count), (3, 16, 3));
    assert_eq!(parameter.map_table, ADDRESSES.maps);
    assert_eq!(parameter.partials, ADDRESSES.workspace + 32 * 1024);
    let parts = plan.tiles().iter().filter(|tile| tile.slot != WHOLE).count();
    assert!(parts > 0);
    assert_eq!(plan.slots(), parts);
    assert_eq!(memory.workspace_bytes, 32 * 1024 + parts * 128 * 16 * 4);
    assert_eq!(memory.counter_bytes, 4 * 2 * parts);
}

/// As many blocks as run at the same time, for every order; every block but the last has an item for each warp.
#[test]
fn tokens_are_converted_by_blocks_that_run_at_once() {
    let blocks = |order, tokens: usize, processors| {
        let problem = gemm(
            &[[tokens, 300, 256], [0, 64, 256], [tokens, 300, 256]],
            Form::Plain,
        );
        let plan = check(&problem, &schedule([128, 64], 4, order, 1), processors);
        let [launch, _] = plan.launches(&ADDRESSES).try_into().unwrap();
        assert_eq!(launch.cluster, 1);
        launch.grid
    };
    for order in [Order::PerTile, Order::Static, Order::Sorted] {
        // Two chunks for each eight tokens of two groups.
        assert_eq!(blocks(order, 1, 7), 1);
        assert_eq!(blocks(order, 32, 7), 1);
        assert_eq!(blocks(order, 33, 7), 2);
        assert_eq!(blocks(order, 2000, 7), 7);
        assert_eq!(blocks(order, 2000, 200), 63);
    }
}

#[test]
fn all_plans_have_the_same_kernel_for_tokens() {
    let preparation = |form, rows, order| {
        let schedule = schedule([rows, 64], 4, order, 1);
        let plan = SwappedPlan::new(&gemm(&[[20, 300, 512]], form), &schedule, hopper()).unwrap();
        let variants: Vec<_> = plan.variants().into_iter().cloned().collect();
        assert_eq!(&variants[Pass::Main as usize], plan.variant());
        assert_eq!(Some(&variants[Pass::Preparation as usize]), plan.preparation());
        variants[Pass::Preparation as usize].clone()
    };
    let tokens = preparation(Form::Plain, 128, Order::Sorted);
    assert_eq!(tokens, preparation(Form::Swiglu, 64, Order::Static));
    assert_eq!((tokens.source, tokens.threads), (Source::Tokens, 512));
    assert!(tokens.overlaps());
    // A multiprocessor has 228 KiB, of which it reserves 1 for each block.
    assert!(2 * (tokens.shared_bytes + 1024) > 228 << 10);
}

#[test]
fn every_worker_has_a_row_of_tiles_whose_last_is_marked() {
    let problem = gemm(&[[300, 700, 272], [7, 129, 1024], [90, 640, 512]], Form::Plain);
    for order in [Order::PerTile, Order::Static, Order::Sorted] {
        let plan = check(&problem, &schedule([128, 64], 4, order, 3), 7);
        let memory = plan.memory(&[]);
        let (grid, parameter) = parameter(&plan);
        assert_eq!(grid, plan.workers());
        let longest = plan
            .offsets()
            .windows(2)
            .map(|bounds| bounds[1] - bounds[0])
            .max();
        assert_eq!(Some(parameter.tiles_a_worker), longest);
        let places = (grid * parameter.tiles_a_worker) as usize;
        let tiles: Vec<Tile> = table(&memory, parameter.tiles, places);
        let mut seen: Vec<Tile> = Vec::new();
        for (worker, row) in tiles.chunks(parameter.tiles_a_worker as usize).enumerate() {
            let count = row.iter().take_while(|tile| tile.chunks > 0).count();
            assert!(row[count..].iter().all(|tile| *tile == Tile::zeroed()));
            assert_eq!(plan.offsets()[worker] as usize, seen.len());
            for (place, tile) in row[..count].iter().enumerate() {
                assert_eq!(
                    tile.parts & LAST != 0,
                    place + 1 == count,
                    "only the last is marked"
                );
                let parts = tile.parts & !LAST;
                seen.push(Tile { parts, ..*tile });
            }
        }
        assert_eq!(seen, plan.tiles());
    }
}

#[test]
fn the_parameter_holds_sixteen_groups_or_none() {
    let inline = |groups| {
        let problem = gemm(&vec![[8, 128, 256]; groups], Form::Plain);
        let plan = check(&problem, &schedule([128, 8], 4, Order::Sorted, 1), PROCESSORS);
        let parameter = parameter(&plan).1;
        let items = (0..=groups as u32).map(|group| 2 * group).collect::<Vec<_>>();
        assert_eq!(
            table::<u32>(&plan.memory(&[]), parameter.item_table, groups + 1),
            items
        );
        parameter.inline
    };
    let sixteen = inline(16);
    assert_eq!(
        (sixteen.shapes[15].output, sixteen.item_offsets[16]),
        (15 * 1024, 32)
    );
    assert_eq!(inline(17), Inline::zeroed());
}

#[test]
fn maps_describe_the_weights() {
    let problem = gemm(&[[20, 300, 272], [7, 129, 512]], Form::Swiglu);
    let plan = SwappedPlan::new(&problem, &schedule([64, 16], 4, Order::Sorted, 1), hopper()).unwrap();
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
        (map.group, map.sizes[0], map.sizes[1], map.boxes[0], map.boxes[1])
    };
    assert_eq!(sizes(0), (0, 256, 300, 64, 64));
    assert_eq!(sizes(7), (1, 32, 129, 32, 64));
}

#[test]
fn without_tokens_there_is_nothing_to_launch() {
    let plan = check(
        &gemm(&[[0, 300, 272]], Form::Plain),
        &schedule([128, 16], 4, Order::Sorted, 4),
        5,
    );
    assert_eq!(plan.launches(&ADDRESSES), []);
}

/// A box of a chunk's rows begins where `packing` puts the chunk's first row, and has the rows of a block.
#[test]
fn maps_describe_repacked_weights() {
    for (form, rows) in [(Form::Plain, 128), (Form::Swiglu, 64)] {
        let schedule = Schedule {
            packing: Packing::Fragments,
            ..schedule([rows, 16], 4, Order::Sorted, 1)
        };
        let plan = SwappedPlan::new(&gemm(&[[20, 300, 512]], form), &schedule, hopper()).unwrap();
        assert_eq!(plan.variant().defines["REPACKED"], "1");
        let maps = plan.memory(&[]).maps;
        let packed = pack(300, 512, &[0; 300 * 256], &[0; 300 * 32]).unwrap();
        for (map, bytes, row_bytes) in [(&maps[0], packed.values, 64), (&maps[1], packed.scales, 8)] {
            let [columns, map_rows] = map.sizes[..] else {
                panic!("two dimensions")
            };
            assert_eq!(columns * map_rows, bytes.len() as u64);
            assert_eq!(map.boxes[0] * map.boxes[1], (rows * row_bytes) as u32);
            // The kernel counts sixteens of rows.
            let sixteen = (columns * map_rows / (4 * 19)) as usize;
            assert_eq!(sixteen, 16 * row_bytes);
            assert!(sixteen.is_multiple_of(columns as usize));
        }
    }
}

/// A launch alone, with the maps of all groups' tokens at the end of its parameter, and no room for converted tokens.
#[test]
fn tokens_that_are_copied_as_they_are_need_no_launch() {
    let problem = GroupedGemm {
        tokens: TokenFormat::Bf16,
        ..gemm(&[[20, 300, 272], [0, 64, 272], [7, 129, 272]], Form::Plain)
    };
    let schedule = Schedule {
        packing: Packing::Steps,
        ..schedule([128, 16], 4, Order::Sorted, 1)
    };
    let plan = SwappedPlan::new(&problem, &schedule, hopper()).unwrap();
    assert_eq!(plan.variant().defines["REPACKED"], "2");
    assert_eq!(plan.variants().len(), 1);
    assert_eq!(plan.memory(&[]).workspace_bytes, 0);
    let [products] = plan.launches(&ADDRESSES).try_into().unwrap();
    let Some(MappedOperands::Tokens(tokens)) = products.mapped else {
        panic!("{products:?}");
    };
    let expected = TokenMatrix {
        address: ADDRESSES.operands[0],
        columns: 272,
        rows: 27,
    };
    assert_eq!((products.pass, tokens), (Pass::Main, expected));
    let boxes: Vec<_> = tokens.maps().into_iter().map(|map| map.boxes).collect();
    assert_eq!(boxes, [8, 16, 32, 64, 128, 256].map(|rows| vec![64, rows]));
    assert_eq!(
        MappedOperands::complete(&products.parameter, &[1; 768]).len(),
        1024 + 768
    );
}
