//! How a schedule's values become definitions, and which are refused.

use gauntlet_device::{Arch, Device};
use gauntlet_problems::resources::block_bytes;
use gauntlet_problems::{Operation, TokenFormat};

use super::*;
use crate::plan::swapped::dealt::Dealt;
use crate::plan::{Plan, Source};

#[test]
fn a_variant_s_defines_say_what_the_schedule_says() {
    let variant = |form, order, tile, stages| {
        let plan = SwappedPlan::new(
            &gemm(&[[40, 512, 512]], form),
            &schedule(tile, stages, order, 1),
            hopper(),
        );
        plan.unwrap().variant().clone()
    };
    let dual = variant(Form::Swiglu, Order::Sorted, [64, 104], 4);
    let ring = 4 * (104 * 256 + 8192);
    let expected = [
        ("DUAL", "1"),
        ("FINE", "64"),
        ("FORMAT", "0"),
        ("MIXED", "1"),
        ("OUTPUT", "0"),
        ("OVERLAP", "1"),
        ("REPACKED", "0"),
        ("RING", &ring.to_string()),
        ("WIDTH", "104"),
    ];
    let defines = dual.defines.iter().map(|(name, value)| (*name, value.as_str()));
    assert!(defines.eq(expected));
    assert_eq!(
        (dual.threads, dual.shared_bytes, dual.registers),
        (384, ring as u32 + 8192 + 1024, 168)
    );
    assert!(dual.overlaps());

    // Two units are the minimum, even for narrow tiles.
    let shallow = variant(Form::Plain, Order::Static, [128, 16], 2);
    assert_eq!(
        (
            shallow.defines["RING"].as_str(),
            shallow.defines["MIXED"].as_str()
        ),
        ("24576", "0")
    );
    // Three stages of the widest tiles are the most.
    for (form, rows) in [(Form::Plain, 128), (Form::Swiglu, 64)] {
        let widest = variant(form, Order::Sorted, [rows, 256], 3);
        assert_eq!(widest.shared_bytes, 230_400);
    }
}

#[test]
fn a_tile_is_computed_with_the_next_width_that_has_code() {
    let columns = |width| {
        let geometry = Geometry::new(
            &gemm(&[[40, 512, 512]], Form::Plain),
            &schedule([128, width], 2, Order::Sorted, 1),
            hopper(),
        );
        let geometry = geometry.unwrap();
        move |tokens| geometry.columns(tokens)
    };
    let wide = columns(256);
    assert_eq!(
        [1, 8, 9, 57, 64, 65, 80, 81, 249, 256].map(wide),
        [8, 8, 16, 64, 64, 80, 80, 96, 256, 256]
    );
    // The most columns of a tile have code too.
    assert_eq!([96, 97, 104].map(columns(104)), [96, 104, 104]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_block_has_the_bytes_that_the_rules_count((form, schedule) in any_schedule(), stages in 2usize..9) {
        let schedule = Schedule { stages, ..schedule };
        let gemm = gemm(&[[40, 512, 512]], form);
        if let Ok(plan) = SwappedPlan::new(&gemm, &schedule, hopper()) {
            let counted = block_bytes(&schedule, &Operation::GroupedGemm(gemm), Arch::Sm90a);
            prop_assert_eq!(plan.variant().shared_bytes as usize, counted);
        }
    }
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let refused = |form, rows, change: &dyn Fn(&mut Schedule), expected: &str| {
        let mut schedule = schedule([rows, 256], 2, Order::Sorted, 1);
        change(&mut schedule);
        let message = SwappedPlan::new(&gemm(&[[40, 512, 512]], form), &schedule, hopper())
            .unwrap_err()
            .to_string();
        let (word, remedy) = expected.split_once("; ").unwrap();
        assert!(
            message.starts_with(word) && message.ends_with(remedy),
            "{message}"
        );
    };
    let plain = |change: &dyn Fn(&mut Schedule), expected| refused(Form::Plain, 128, change, expected);
    plain(&|schedule| schedule.tile.m = 256, "tile.m = 256: ; choose 128");
    plain(&|schedule| schedule.tile.n = 12, "tile.n = 12: ; choose 16");
    plain(&|schedule| schedule.tile.n = 264, "tile.n = 264: ; choose 256");
    plain(&|schedule| schedule.tile.k = 256, "tile.k = 256: ; choose 128");
    plain(
        &|schedule| schedule.stages = 1,
        "stages = 1: ; choose 2 to 3, or a smaller tile.n",
    );
    plain(
        &|schedule| schedule.stages = 4,
        "stages = 4: ; choose 2 to 3, or a smaller tile.n",
    );
    plain(
        &|schedule| schedule.roles = Roles::Unified,
        "tile.n = 256: ; choose 128",
    );
    plain(
        &|schedule| schedule.lookup = Lookup::Linear,
        "lookup = linear: ; choose precomputed",
    );
    plain(
        &|schedule| schedule.epilogue = Epilogue::Staged,
        "epilogue = staged: ; choose direct",
    );
    plain(
        &|schedule| schedule.order = Order::Dynamic,
        "order = dynamic: ; choose sorted",
    );
    plain(&|schedule| schedule.cluster.n = 2, "cluster = 1×2: ; choose 1×1");
    plain(
        &|schedule| schedule.split_k = 65,
        "split-k = 65: ; choose 1 to 64",
    );
    let dual = |change: &dyn Fn(&mut Schedule), expected| refused(Form::Swiglu, 64, change, expected);
    dual(&|schedule| schedule.tile.m = 128, "tile.m = 128: ; choose 64");
    dual(
        &|schedule| schedule.stages = 4,
        "stages = 4: ; choose 2 to 3, or a smaller tile.n",
    );
}

/// The unified kernel of a form in tiles this wide, for a described GPU.
fn unified(name: &str, form: Form, [rows, width]: [usize; 2], stages: usize) -> Result<SwappedPlan, String> {
    let device = Device::builtin(name).unwrap();
    let schedule = Schedule {
        roles: Roles::Unified,
        ..schedule([rows, width], stages, Order::Sorted, 1)
    };
    let gemm = gemm(&[[40, 512, 512], [3, 512, 512]], form);
    let plan = SwappedPlan::new(&gemm, &schedule, Target::of(&device).unwrap());
    let plan = plan.map_err(|error| error.to_string())?;
    let counted = block_bytes(&schedule, &Operation::GroupedGemm(gemm), device.arch);
    assert_eq!(
        plan.variant().shared_bytes as usize,
        counted,
        "{name}, {schedule}"
    );
    Ok(plan)
}

#[test]
fn the_unified_kernel_takes_what_fits_the_gpu_and_says_how_many_blocks_share_a_processor() {
    // A stage has 128 rows of weights, 72 bytes each, and 256 bytes for each token.
    for (name, width, stages, blocks) in [
        ("h200", 128, 2, "2"),
        ("h200", 64, 2, "3"),
        ("a100", 64, 3, "2"),
        ("a100", 32, 2, "3"),
        ("l4", 64, 2, "1"),
        ("l4", 32, 2, "2"),
    ] {
        let plan = unified(name, Form::Plain, [128, width], stages).unwrap();
        let variant = plan.variant();
        assert_eq!(variant.source, Source::Unified);
        assert_eq!(variant.shared_bytes as usize, stages * (128 * 72 + width * 256));
        assert_eq!(variant.defines["BLOCKS"], blocks, "{name}, {width}");
        assert_eq!(variant.overlaps(), name == "h200");
        assert_eq!(variant.threads, 128);
    }
    let message = |name, form, tile, stages| unified(name, form, tile, stages).unwrap_err();
    assert_eq!(
        message("l4", Form::Plain, [128, 128], 3),
        "stages = 3: a ring holds 2 stages or more, each takes 41984 B, and a block has 101376 B with 0 B for other things; \
         choose 2 to 2, or a smaller tile.n"
    );
    assert!(message("l4", Form::Swiglu, [128, 64], 2).ends_with("choose 64"));
    assert!(message("l4", Form::Plain, [128, 136], 2).starts_with("tile.n = 136"));
}

#[test]
fn more_tiles_than_a_table_holds_are_refused_before_it_is_made() {
    let huge = gemm(&[[1 << 30, 1 << 20, 16]], Form::Plain);
    let schedule = schedule([128, 128], 4, Order::Sorted, 1);
    let refused = SwappedPlan::new(&huge, &schedule, hopper()).unwrap_err();
    assert!(refused.to_string().contains("number of tiles"), "{refused}");

    // Two tiles of one worker are two places for each.
    let small = gemm(&[[8, 256, 16]], Form::Plain);
    let geometry = Geometry::new(&small, &schedule, hopper()).unwrap();
    let cutter = Cutter {
        gemm: &small,
        geometry: &geometry,
        costs: &Costs::new(geometry.width),
        mixed: true,
    };
    let kinds = cutter.kinds(&cutter.least_parts());
    let deal = |workers| {
        let mut shares = vec![vec![kinds[0].whole_piece(0, 0), kinds[0].whole_piece(0, 1)]];
        shares.resize(workers, Vec::new());
        Dealt::new(&kinds, &shares, &geometry).map(|dealt| dealt.workers())
    };
    assert_eq!(deal(1 << 10), Ok(1 << 10));
    let refused = deal(1 << 22).unwrap_err();
    assert!(refused.to_string().contains("number of tiles"), "{refused}");
}

#[test]
fn weights_in_steps_are_for_tokens_of_sixteen_bits_of_one_depth() {
    let refused = |tokens, roles, depths: [usize; 2]| {
        let problem = GroupedGemm {
            tokens,
            ..gemm(&depths.map(|k| [20, 300, k]), Form::Plain)
        };
        let schedule = Schedule {
            packing: Packing::Steps,
            roles,
            ..schedule([128, 16], 2, Order::Sorted, 1)
        };
        SwappedPlan::new(&problem, &schedule, hopper())
            .err()
            .map(|error| error.to_string())
    };
    let (bf16, nvfp4) = (TokenFormat::Bf16, TokenFormat::Nvfp4);
    assert_eq!(refused(bf16, Roles::Specialised, [272, 272]), None);
    for (refusal, why) in [
        (refused(bf16, Roles::Unified, [272, 272]), "which has roles"),
        (refused(nvfp4, Roles::Specialised, [272, 272]), "NVFP4 tokens"),
        (
            refused(bf16, Roles::Specialised, [272, 288]),
            "K has to be the same",
        ),
    ] {
        let refusal = refusal.unwrap();
        assert!(
            refusal.starts_with("packing = steps: ") && refusal.contains(why),
            "{refusal}"
        );
    }
}
