//! The constraints of each instruction set, their messages, and the remedies.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_families::operations::{accepts, check};
use gauntlet_problems::{
    Arithmetic, Attention, AttentionFormat, Choice, Cluster, Epilogue, Exponential, Form, GroupedGemm,
    Layout, Maps, Operation, Order, Packing, Roles, Schedule, Scores, Tile, TokenFormat, Values, resources,
};
use gauntlet_simulate::Subject;
use proptest::prelude::*;

fn gemm(form: Form, shapes: &[[usize; 3]]) -> Operation {
    Operation::GroupedGemm(GroupedGemm::new(form, shapes.iter().copied()))
}

fn plain() -> Operation {
    gemm(Form::Plain, &[[128, 4096, 1536], [384, 4096, 1536]])
}

/// The same as `plain`, with tokens of 16 bits.
fn half_tokens() -> Operation {
    match plain() {
        Operation::GroupedGemm(gemm) => Operation::GroupedGemm(GroupedGemm {
            tokens: TokenFormat::Bf16,
            ..gemm
        }),
        attention @ Operation::Attention(_) => attention,
    }
}

fn dual() -> Operation {
    gemm(Form::Swiglu, &[[256, 4096, 7168]])
}

fn attention(format: AttentionFormat) -> Operation {
    Operation::Attention(Attention::new(format, [[512, 512]], [8, 8], 64))
}

/// A CPU with fixed figures, so that messages do not depend on the machine that runs the tests.
fn cpu(threads: usize) -> Device {
    let text = format!(
        "name = \"desk\"\ntitle = \"A desk\"\narch = \"cpu\"\n\
         processors = {{ value = {threads}, unit = \"thread\", source = \"made up\" }}\n\
         memory.l2-size = {{ value = 512, unit = \"KiB\", source = \"made up\" }}\n\
         cpu.simd = {{ value = [\"avx2\"], source = \"made up\" }}\n"
    );
    Device::from_toml(&text, Path::new("desk.toml")).unwrap()
}

fn schedule(change: &str) -> Schedule {
    toml::from_str(change).unwrap()
}

fn report(schedule: &Schedule, problem: &Operation, device: &Device) -> String {
    let lines: Vec<_> = check(schedule, problem, device)
        .iter()
        .map(|violation| format!("    {violation}\n        source: {}", violation.source))
        .collect();
    if lines.is_empty() {
        "    accepted".to_owned()
    } else {
        lines.join("\n")
    }
}

#[test]
fn a_value_that_is_not_accepted_is_a_violation_and_no_baseline() {
    let record = serde_json::to_value(plain()).unwrap();
    let sizes = gauntlet_families::open(&record).unwrap();
    let parameters = Schedule::baseline().parameters().with("order", "purple");
    let violations = sizes.violations(&parameters, &Device::builtin("h200").unwrap());
    assert_eq!(violations.len(), 1);
    assert_eq!(
        (violations[0].parameter.as_str(), violations[0].value.as_str()),
        ("order", "purple")
    );
    assert!(!sizes.accepts(&parameters, &Device::builtin("h200").unwrap()));
    assert!(Subject::of(&sizes, &parameters).is_err());
}

#[test]
fn the_recorded_tile_pitch_is_refused_with_both_ways_out() {
    let b200 = Device::builtin("b200").unwrap();
    for n in [64, 128] {
        let faulty = schedule(&format!("tile = [64, {n}, 256]"));
        let violations = check(&faulty, &plain(), &b200);
        assert_eq!(violations.len(), 1);
        assert_eq!(
            violations[0].to_string(),
            "tile.m = 64: mxf4nvf4 on sm_100a needs M = 128 for one CTA; try 128, or swap A and B so that N, \
             8…256, carries the 64 rows"
        );
        let swapped = Schedule::of(&violations[0].remedies[1].parameters).unwrap();
        assert!(swapped.swap_ab);
        assert_eq!(
            swapped.tile,
            Tile {
                m: 128,
                n: 64,
                k: 256
            }
        );
    }
    assert!(
        accepts(&schedule("tile = [128, 64, 256]"), &plain(), &b200),
        "N = 64 is allowed, though M is not"
    );
}

#[test]
fn six_stages_of_the_baseline_fit_blackwell_and_seven_do_not() {
    let b200 = Device::builtin("b200").unwrap();
    assert_eq!(
        resources::stage_bytes(&Schedule::baseline(), &plain(), b200.arch),
        36_864
    );
    assert!(accepts(&schedule("stages = 6"), &plain(), &b200));
    let violations = check(&schedule("stages = 7"), &plain(), &b200);
    assert_eq!(violations[0].remedies[0].sentence, "try 6");
    // 227 KiB − 5 × 36,864 B leaves room for a 32 KiB result; − 6 × 36,864 B does not.
    assert!(accepts(
        &schedule("stages = 5\nepilogue = \"staged\""),
        &plain(),
        &b200
    ));
    assert!(!accepts(
        &schedule("stages = 6\nepilogue = \"staged\""),
        &plain(),
        &b200
    ));
}

#[test]
fn hopper_takes_few_rows_of_weights_for_few_tokens_alone() {
    let h200 = Device::builtin("h200").unwrap();
    let takes = |tile: &str, problem: &Operation| {
        let schedule = schedule(&format!("tile = {tile}\nswap-ab = true\nstages = 2"));
        accepts(&schedule, problem, &h200)
    };
    for (tile, problem) in [
        ("[32, 16, 2048]", plain()),
        ("[32, 8, 2048]", plain()),
        ("[16, 16, 1024]", dual()),
    ] {
        assert!(takes(tile, &problem), "{tile}");
    }
    assert!(!takes("[32, 24, 512]", &plain()), "wgmma has 64 rows");
    assert!(!takes("[48, 16, 512]", &plain()), "one warp has at most 32");
    assert!(!accepts(&schedule("tile = [32, 16, 512]"), &plain(), &h200));
    // Packed values and scales of rows and tokens: (32 + 16) · (1024 + 128) bytes.
    let narrow = schedule("tile = [32, 16, 2048]\nswap-ab = true");
    assert_eq!(resources::stage_bytes(&narrow, &plain(), h200.arch), 55_296);
}

#[test]
fn shared_memory_on_hopper_is_what_its_kernels_take() {
    let h200 = Device::builtin("h200").unwrap();
    let bytes = |change: &str, problem: &Operation| {
        let schedule = schedule(change);
        assert_eq!(report(&schedule, problem, &h200), "    accepted", "{change}");
        resources::block_bytes(&schedule, problem, h200.arch)
    };
    // Four stages of 256 packed rows, and two of 128 rows as fp16: as many as are in use at a time.
    assert_eq!(
        bytes("tile = [128, 128, 128]\nstages = 4", &plain()),
        4 * 256 * 80 + 2 * 32_768
    );
    let swapped = |tile: &str, stages: usize| {
        format!("tile = {tile}\nstages = {stages}\nswap-ab = true\nroles = \"specialised\"")
    };
    // Fp16 tokens and packed weights, four slots of scales, the barriers.
    assert_eq!(
        bytes(&swapped("[128, 256, 128]", 3), &plain()),
        3 * 73_728 + 4 * 2_048 + 1_024
    );
    // Two stages are enough, even for narrow tiles.
    assert_eq!(
        bytes(&swapped("[128, 16, 128]", 2), &plain()),
        2 * 12_288 + 4 * 2_048 + 1_024
    );
    // 64 rows of each of two weights take as much.
    assert_eq!(
        bytes(&swapped("[64, 256, 128]", 3), &dual()),
        3 * 73_728 + 4 * 2_048 + 1_024
    );
    assert!(!accepts(
        &schedule(&swapped("[128, 256, 128]", 4)),
        &plain(),
        &h200
    ));
    // Few tokens: both operands stay packed.
    assert_eq!(
        bytes("tile = [32, 16, 512]\nswap-ab = true", &plain()),
        48 * (256 + 32)
    );
}

#[test]
fn every_device_takes_the_baseline_of_the_plain_product() {
    let devices = Device::builtin_names().map(|name| Device::builtin(name).unwrap());
    for device in devices.chain([Device::host(), cpu(1)]) {
        assert_eq!(
            report(&Schedule::baseline(), &plain(), &device),
            "    accepted",
            "{}",
            device.name
        );
    }
}

#[test]
fn messages() {
    let fp8 = attention(AttentionFormat::E4m3);
    let fp16 = attention(AttentionFormat::F16);
    let half = half_tokens();
    let odd = gemm(Form::Plain, &[[100, 99, 256]]);
    let cases = [
        ("b200", plain(), "tile = [64, 64, 256]"),
        ("b200", plain(), "tile = [128, 100, 96]"),
        ("b200", plain(), "tile = [64, 300, 256]\nstages = 8"),
        ("b200", plain(), "stages = 9"),
        ("b200", plain(), "tile = [128, 24, 256]\ncluster = [2, 1]"),
        ("b200", plain(), "cluster = [4, 4]"),
        ("b200", plain(), "split-k = 12"),
        ("b200", dual(), "tile = [128, 256, 256]"),
        ("b200", odd.clone(), "epilogue = \"staged\""),
        ("b200", fp8.clone(), "tile = [96, 64, 64]"),
        (
            "b200",
            fp8.clone(),
            "tile = [128, 64, 64]\nroles = \"specialised\"\norder = \"sorted\"\ncluster = [2, 1]",
        ),
        ("b200", half.clone(), "stages = 3"),
        (
            "b200",
            half.clone(),
            "tile = [128, 136, 64]\nswap-ab = true\nroles = \"specialised\"\nepilogue = \"staged\"\norder = \"dynamic\"",
        ),
        (
            "b200",
            half,
            "tile = [16, 16, 4096]\nswap-ab = true\norder = \"sorted\"\nsplit-k = 2",
        ),
        ("h200", plain(), "tile = [96, 128, 256]"),
        ("h200", plain(), "tile = [32, 64, 256]"),
        ("h200", plain(), "stages = 3"),
        ("h200", dual(), "tile = [128, 256, 128]"),
        ("h200", plain(), "tile = [256, 256, 64]"),
        (
            "h200",
            fp8.clone(),
            "tile = [64, 48, 64]\nroles = \"specialised\"\narithmetic = \"fp8\"",
        ),
        ("a100", plain(), "cluster = [2, 1]\ntile = [120, 128, 128]"),
        ("l4", plain(), "stages = 4"),
        ("l4", dual(), "tile = [256, 128, 128]"),
        ("l4", fp16.clone(), "tile = [64, 40, 64]\nstages = 3"),
        // The schedule of another author's kernel, which records hold.
        ("l4", fp16.clone(), "tile = [32, 32, 64]\nstages = 2"),
        (
            "l4",
            fp16.clone(),
            "tile = [64, 64, 128]\nswap-ab = true\nsplit-k = 9",
        ),
        ("h200", plain(), "values = \"scalar\"\nscores = \"in-place\""),
        ("h200", plain(), "packing = \"fragments\""),
        ("h200", plain(), "maps = \"per-block\""),
        ("l4", plain(), "maps = \"per-block\""),
        ("b200", fp8.clone(), "tile = [128, 64, 64]\nmaps = \"per-block\""),
        ("desk", plain(), "maps = \"per-block\""),
        ("h200", fp8.clone(), "tile = [96, 72, 64]"),
        ("h200", fp8.clone(), "tile = [64, 64, 64]\nvalues = \"scalar\""),
        (
            "h200",
            fp8.clone(),
            "tile = [64, 64, 64]\nexponential = \"table\"\nscores = \"separate\"",
        ),
        ("h200", fp8.clone(), "tile = [64, 64, 64]\narithmetic = \"fp8\""),
        (
            "h200",
            fp16.clone(),
            "tile = [64, 256, 64]\narithmetic = \"fp8\"\nroles = \"specialised\"",
        ),
        (
            "h200",
            fp8.clone(),
            "tile = [128, 64, 64]\nstages = 2\nroles = \"specialised\"\nscores = \"separate\"\nvalues = \"scalar\"\n\
             layout = \"plain\"",
        ),
        (
            "h200",
            fp8.clone(),
            "tile = [128, 64, 64]\nstages = 2\nroles = \"specialised\"\nsplit-k = 2",
        ),
        (
            "h200",
            fp8.clone(),
            "tile = [64, 64, 64]\nstages = 4\nroles = \"specialised\"\narithmetic = \"fp8\"\nsplit-k = 4\n\
             cluster = [1, 4]",
        ),
        (
            "h200",
            fp8.clone(),
            "tile = [128, 64, 64]\nroles = \"specialised\"\nepilogue = \"staged\"\norder = \"dynamic\"",
        ),
        (
            "h200",
            fp8.clone(),
            "tile = [64, 64, 64]\nsplit-k = 2\ncluster = [1, 2]",
        ),
        ("b200", fp8.clone(), "tile = [128, 64, 64]\nlayout = \"plain\""),
        ("a100", fp8.clone(), "tile = [64, 64, 64]\narithmetic = \"fp8\""),
        ("desk", plain(), "tile = [2000, 100, 250]"),
        ("desk", plain(), "stages = 9"),
        ("desk", plain(), "tile = [256, 512, 512]\nstages = 3"),
        ("desk", plain(), "roles = \"specialised\""),
        ("one thread", plain(), "roles = \"specialised\"\nstages = 2"),
        ("desk", plain(), "cluster = [2, 1]"),
        ("desk", odd, "split-k = 2"),
        ("desk", fp16, "tile = [64, 64, 32]\nswap-ab = true"),
        ("desk", fp8, "tile = [64, 64, 64]\nexponential = \"polynomial\""),
    ]
    .map(|(name, problem, change)| {
        let device = match name {
            "desk" => cpu(2),
            "one thread" => cpu(1),
            name => Device::builtin(name).unwrap(),
        };
        let schedule = schedule(change);
        format!(
            "{name}: {}\n{}",
            change.replace('\n', ", "),
            report(&schedule, &problem, &device)
        )
    });
    insta::assert_snapshot!(cases.join("\n"));
}

fn any_of<T: Choice + std::fmt::Debug>() -> impl Strategy<Value = T> {
    let default = proptest::sample::select(vec![T::ALL[0].0]);
    let any = proptest::sample::select(T::ALL.iter().map(|(value, _)| *value).collect::<Vec<_>>());
    proptest::prop_oneof![4 => default, 1 => any]
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let sizes = || proptest::sample::select(vec![1_usize, 8, 16, 48, 64, 100, 128, 256, 300, 512]);
    let choices = (
        proptest::sample::select(vec![Epilogue::Direct, Epilogue::Staged]),
        proptest::sample::select(vec![Roles::Unified, Roles::Specialised]),
        proptest::sample::select(Order::ALL.iter().map(|(order, _)| *order).collect::<Vec<_>>()),
        any::<bool>(),
        (
            any_of::<Packing>(),
            any_of::<Maps>(),
            any_of::<Scores>(),
            any_of::<Values>(),
            any_of::<Layout>(),
            any_of::<Exponential>(),
            any_of::<Arithmetic>(),
        ),
    );
    (
        (sizes(), sizes(), sizes()),
        1..10_usize,
        1..9_usize,
        (1..4_usize, 1..4_usize),
        choices,
    )
        .prop_map(|((m, n, k), stages, split_k, (rows, columns), choices)| {
            let (
                epilogue,
                roles,
                order,
                swap_ab,
                (packing, maps, scores, values, layout, exponential, arithmetic),
            ) = choices;
            Schedule {
                tile: Tile { m, n, k },
                stages,
                split_k,
                cluster: Cluster { m: rows, n: columns },
                epilogue,
                roles,
                order,
                swap_ab,
                packing,
                maps,
                scores,
                values,
                layout,
                exponential,
                arithmetic,
                ..Schedule::baseline()
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn remedies_keep_every_rule(faulty in any_schedule(), on in 0..7_usize, what in 0..5_usize) {
        let device = Device::builtin_names()
            .map(|name| Device::builtin(name).unwrap())
            .chain([cpu(1), cpu(2)])
            .nth(on)
            .unwrap();
        let problem =
            [plain(), dual(), attention(AttentionFormat::E4m3), attention(AttentionFormat::F16), half_tokens()][what].clone();
        let violations = check(&faulty, &problem, &device);
        prop_assert_eq!(violations.is_empty(), accepts(&faulty, &problem, &device));
        for remedy in violations.iter().flat_map(|violation| &violation.remedies) {
            let remedied = Schedule::of(&remedy.parameters).unwrap();
            prop_assert!(accepts(&remedied, &problem, &device), "{} on {}", remedied, device.name);
            prop_assert_ne!(&remedied, &faulty);
        }
    }
}
