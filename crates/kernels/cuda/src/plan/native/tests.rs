use gauntlet_device::Arch;
use gauntlet_problems::{Epilogue, Form, GemmShape, Lookup, Order, OutputFormat, Roles};
use proptest::prelude::*;

use super::*;
use crate::plan::fixture::{ADDRESSES, assert_defines, gemm, shapes};

fn blackwell() -> Target {
    Target::of_arch(Arch::Sm100a, 148)
}

fn refusal(problem: &GroupedGemm, schedule: &Schedule) -> String {
    NativePlan::new(problem, schedule, blackwell())
        .unwrap_err()
        .to_string()
}

/// Each output element must get each value of the depth exactly once; the tiles of one group lie together, whichever side of
/// a tile its tokens are.
fn check_coverage(gemm: &GroupedGemm, schedule: &Schedule) {
    let plan = NativePlan::new(gemm, schedule, blackwell()).unwrap();
    let tile = schedule.tile;
    let mut seen = std::collections::HashSet::new();
    for found in plan.tiles() {
        let shape = &gemm.groups[found.group as usize];
        let (rows, columns) = match schedule.swap_ab {
            true => (shape.n, shape.m),
            false => (shape.m, shape.n),
        };
        let (row, column) = (found.row as usize, found.column as usize);
        assert!(row < rows && row.is_multiple_of(tile.m), "{found:?}");
        assert!(column < columns && column.is_multiple_of(tile.n), "{found:?}");
        assert_eq!(found.steps as usize * tile.k, depth(shape.k));
        assert!(seen.insert((found.group, row, column)), "{found:?} twice");
    }
    let count = |shape: &GemmShape| match schedule.swap_ab {
        true => shape.n.div_ceil(tile.m) * shape.m.div_ceil(tile.n),
        false => shape.m.div_ceil(tile.m) * shape.n.div_ceil(tile.n),
    };
    assert_eq!(seen.len(), gemm.groups.iter().map(count).sum::<usize>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_output_is_in_one_tile(shapes in shapes(1000), swap_ab: bool, wide in 1_usize..5, order in 0_usize..4) {
        let schedule = Schedule {
            tile: [128, 64 * wide, 256].into(),
            order: [Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic][order],
            swap_ab,
            ..Schedule::baseline()
        };
        check_coverage(&gemm(&shapes, Form::Plain), &schedule);
    }
}

#[test]
fn a_variant_s_defines_say_what_the_schedule_says() {
    let schedule = Schedule {
        tile: [128, 64, 256].into(),
        stages: 3,
        epilogue: Epilogue::Staged,
        roles: Roles::Specialised,
        order: Order::Sorted,
        lookup: Lookup::Precomputed,
        split_k: 2,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let problem = GroupedGemm {
        output: OutputFormat::F32,
        ..gemm(&[[40, 512, 512]], Form::Swiglu)
    };
    let plan = NativePlan::new(&problem, &schedule, blackwell()).unwrap();
    // Stages of two weights and tokens, each with blocks of scales; 64 staged rows a warp of 32 fp32 with padding; works,
    // barriers of stages, sums and works, and the address of tensor memory.
    let shared = 3 * ((2 * 128 + 64) * 128 + 3 * 2048) + 4 * 64 * 144 + 4 * 32 + 2 * (3 + 2 + 4) * 8 + 8;
    let shared = shared.to_string();
    let expected = [
        ("BLOCK_MAPS", "0"),
        ("DUAL", "1"),
        ("EPILOGUE", "Staged"),
        ("LOOKUP", "Precomputed"),
        ("ORDER", "Sorted"),
        ("OUTPUT", "2"),
        ("PAIRED", "0"),
        ("ROLES", "Specialised"),
        ("SHARED_BYTES", &shared),
        ("SPLIT_K", "2"),
        ("STAGES", "3"),
        ("SWAP_AB", "1"),
        // Two tiles of two sums of 64 columns, and three stages of twelve times four columns of scales.
        ("TENSOR_COLUMNS", "512"),
        ("TILE_K", "256"),
        ("TILE_M", "128"),
        ("TILE_N", "64"),
        ("TILE_SUMS", "2"),
    ];
    let variant = plan.variant();
    assert_defines(variant, &expected);
    assert_eq!((variant.threads, variant.registers), (192, 255));
    assert_eq!(variant.shared_bytes.to_string(), shared);
}

/// The copy engine brings a box of each operand, and the matrix unit finds its pieces swizzled within rows of 128 bytes or 64.
#[test]
fn maps_describe_tokens_and_weights() {
    let problem = gemm(&[[20, 300, 272], [200, 129, 512]], Form::Swiglu);
    let maps = |swap_ab, depth| {
        let schedule = Schedule {
            tile: [128, 64, depth].into(),
            swap_ab,
            ..Schedule::baseline()
        };
        let plan = NativePlan::new(&problem, &schedule, blackwell()).unwrap();
        plan.memory(&[]).maps
    };
    let plain = maps(false, 256);
    assert_eq!(plain.len(), 2 * MAPS_A_GROUP);
    let told = |map: &Map| {
        (
            map.matrix,
            map.offset,
            map.sizes.clone(),
            map.boxes.clone(),
            map.swizzle,
        )
    };
    assert_eq!(
        told(&plain[3]),
        (
            Matrix::Tokens,
            20 * 256,
            vec![256, 200],
            vec![128, 128],
            Swizzle::Bytes128
        )
    );
    assert_eq!(
        told(&plain[5]),
        (
            Matrix::SecondWeights,
            0,
            vec![256, 129],
            vec![128, 64],
            Swizzle::Bytes128
        )
    );
    let swapped = maps(true, 128);
    assert_eq!(
        told(&swapped[0]),
        (Matrix::Tokens, 0, vec![256, 20], vec![64, 64], Swizzle::Bytes64)
    );
    assert_eq!(
        told(&swapped[1]),
        (
            Matrix::Weights,
            0,
            vec![256, 300],
            vec![64, 128],
            Swizzle::Bytes64
        )
    );
}

/// The host makes the maps of the first group with tokens; each block has room for its own behind the sums of a split depth.
#[test]
fn blocks_that_make_their_maps_get_those_of_one_group() {
    let problem = gemm(&[[0, 300, 272], [200, 129, 512], [20, 64, 1024]], Form::Swiglu);
    let memory = |maps, split_k| {
        let schedule = Schedule {
            tile: [128, 64, 256].into(),
            order: Order::Static,
            split_k,
            maps,
            ..Schedule::baseline()
        };
        let target = Target::of_arch(Arch::Sm100a, 3);
        let plan = NativePlan::new(&problem, &schedule, target).unwrap();
        let own = plan.variant().defines["BLOCK_MAPS"].clone();
        (own, plan.memory(&[]))
    };
    let (own, found) = memory(Maps::PerBlock, 1);
    assert_eq!((own.as_str(), found.workspace_bytes), ("1", 3 * 3 * 128));
    let groups: Vec<_> = found.maps.iter().map(|map| map.group).collect();
    assert_eq!(groups, [1; MAPS_A_GROUP]);
    let (own, prebuilt) = memory(Maps::Prebuilt, 2);
    assert_eq!((own.as_str(), prebuilt.maps.len()), ("0", 3 * MAPS_A_GROUP));
    assert!(
        prebuilt.workspace_bytes.is_multiple_of(128),
        "maps lie on 128 bytes"
    );
    let (_, split) = memory(Maps::PerBlock, 2);
    assert_eq!(split.workspace_bytes, prebuilt.workspace_bytes + 3 * 3 * 128);
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let problem = gemm(&[[40, 512, 512], [0, 64, 16]], Form::Plain);
    let refused = |change: &dyn Fn(&mut Schedule), expected: &str| {
        let mut schedule = Schedule::baseline();
        change(&mut schedule);
        let message = refusal(&problem, &schedule);
        assert!(message.starts_with(expected), "{message}");
    };
    refused(&|schedule| schedule.tile.m = 64, "tile.m = 64: ");
    refused(&|schedule| schedule.tile.m = 256, "tile.m = 256: ");
    refused(&|schedule| schedule.tile.n = 12, "tile.n = 12: ");
    refused(&|schedule| schedule.tile.n = 264, "tile.n = 264: ");
    refused(
        &|schedule| schedule.tile.n = 96,
        "tile.n = 96: scales lie in blocks",
    );
    refused(&|schedule| schedule.tile.k = 64, "tile.k = 64: ");
    refused(&|schedule| schedule.stages = 0, "stages = 0: ");
    refused(&|schedule| schedule.stages = 7, "stages = 7: with tile");
    refused(
        &|schedule| {
            schedule.tile = [128, 256, 128].into();
            schedule.stages = 11;
        },
        "stages = 11: the sums",
    );
    refused(&|schedule| schedule.cluster.m = 4, "cluster = 4×1: ");
    refused(&|schedule| schedule.cluster.m = 2, "tile.m = 128: ");
    let paired = |change: &dyn Fn(&mut Schedule), expected: &str| {
        let of_a_pair = |schedule: &mut Schedule| {
            schedule.cluster.m = 2;
            schedule.tile.m = 256;
            schedule.roles = Roles::Specialised;
            change(schedule);
        };
        refused(&of_a_pair, expected);
    };
    paired(&|schedule| schedule.roles = Roles::Unified, "roles = unified: ");
    paired(&|schedule| schedule.order = Order::Dynamic, "order = dynamic: ");
    paired(&|schedule| schedule.tile.n = 24, "tile.n = 24: ");
    refused(&|schedule| schedule.split_k = 3, "split-k = 3: ");
    // A single tile may have any width.
    let narrow = Schedule {
        tile: [128, 40, 256].into(),
        swap_ab: true,
        ..Schedule::baseline()
    };
    assert!(NativePlan::new(&problem, &narrow, blackwell()).is_ok());
}

#[test]
fn pairs_share_a_tile() {
    let problem = gemm(&[[300, 256, 512]], Form::Plain);
    let schedule = Schedule {
        tile: [256, 128, 256].into(),
        stages: 2,
        roles: Roles::Specialised,
        order: Order::Static,
        cluster: [2, 1].into(),
        split_k: 2,
        ..Schedule::baseline()
    };
    let plan = NativePlan::new(&problem, &schedule, Target::of_arch(Arch::Sm100a, 7)).unwrap();
    let memory = plan.memory(&[]);
    // Four tiles of eight warps; each block brings 128 rows and 64 columns.
    assert_eq!(plan.tiles().len(), 4);
    assert_eq!(memory.counter_bytes, 4 + 4 * 8 * 4);
    assert_eq!((memory.maps[0].boxes[1], memory.maps[1].boxes[1]), (128, 64));
    let launch = &plan.launches(&ADDRESSES)[0];
    assert_eq!((launch.grid, launch.cluster), (6, 2));
    assert_eq!(plan.variant().defines["PAIRED"], "1");
    // Two stages of half of the values and all scales of the columns, works, three barriers a stage.
    assert_eq!(
        plan.variant().shared_bytes,
        2 * (192 * 128 + 2 * 2048) + 4 * 32 + (3 * 2 + 2 * (2 + 4)) * 8 + 8
    );
}

#[test]
fn only_a_split_depth_needs_a_workspace() {
    let problem = gemm(&[[100, 300, 512]], Form::Swiglu);
    let memory = |split_k| {
        let schedule = Schedule {
            tile: [128, 64, 128].into(),
            split_k,
            ..Schedule::baseline()
        };
        let memory = NativePlan::new(&problem, &schedule, blackwell())
            .unwrap()
            .memory(&[]);
        (memory.workspace_bytes, memory.counter_bytes)
    };
    assert_eq!(memory(1), (0, 4));
    // Five tiles of two sums and four warps.
    assert_eq!(memory(3), (3 * 5 * 2 * 128 * 64 * 4, 4 + 5 * 4 * 4));
}
