//! The built-in suites, and how suites are read.

use std::path::Path;

use gauntlet_families::{TASKS, load_suite, suite, suite_names};
use gauntlet_problems::{Attention, Form, GemmShape, Operation, Scaling, Sequence};
use gauntlet_task::{InputKind, Sizes, Suite, SuiteError};
use gauntlet_tiled_family::operation;

pub fn parse(text: &str) -> Result<Suite, SuiteError> {
    Suite::parse(text, Path::new("mine.toml"), TASKS)
}

fn groups(sizes: &Sizes) -> &[GemmShape] {
    match operation(sizes) {
        Some(Operation::GroupedGemm(gemm)) => &gemm.groups,
        _ => &[],
    }
}

fn attention(sizes: &Sizes) -> Attention {
    match operation(sizes) {
        Some(Operation::Attention(attention)) => attention.clone(),
        _ => unreachable!("{sizes} is no attention"),
    }
}

#[test]
fn every_suite_that_comes_with_the_program_can_be_read() {
    let counts: Vec<(usize, usize)> = suite_names()
        .into_iter()
        .map(|name| {
            let suite = suite(name).unwrap();
            assert_eq!(suite.name, name);
            assert!(!suite.description.is_empty());
            (suite.correctness.len(), suite.benchmark.len())
        })
        .collect();
    assert_eq!(counts, [(10, 4), (8, 4), (9, 3), (2, 2), (2, 2)]);
}

#[test]
fn speeds_of_light_are_the_longer_of_bytes_and_flops() {
    // Connects shapes and published times by two rates: a wrong figure in either shows.
    for name in ["group-gemm", "dual-gemm"] {
        for case in suite(name).unwrap().benchmark {
            let bound = case.speed_of_light.unwrap();
            assert_eq!(bound.device, "B200");
            let microseconds =
                (case.sizes.bytes() as f64 / 7.68e6).max(case.sizes.flops().unwrap() as f64 / 6.9e9);
            let ratio = bound.microseconds / microseconds;
            assert!(
                (ratio - 1.0).abs() < 0.01,
                "{name} {}: {microseconds} µs",
                case.name
            );
        }
    }
}

#[test]
fn benchmark_shapes_are_the_records() {
    let gemm = suite("group-gemm").unwrap();
    assert_eq!(
        groups(&gemm.benchmark[1].sizes)[2],
        GemmShape {
            m: 168,
            n: 7168,
            k: 2048
        }
    );
    assert_eq!(
        groups(&gemm.correctness[9].sizes)[1],
        GemmShape {
            m: 384,
            n: 256,
            k: 768
        }
    );
    let dual = suite("dual-gemm").unwrap();
    let duals = dual.correctness.iter().chain(&dual.benchmark);
    assert!(
        duals
            .into_iter()
            .all(|case| matches!(operation(&case.sizes), Some(Operation::GroupedGemm(gemm)) if gemm.form == Form::Swiglu))
    );
    let mission = attention(&suite("attention").unwrap().benchmark[1].sizes);
    assert_eq!(
        mission.sequences,
        [Sequence {
            queries: 512,
            keys: 512
        }]
    );
    assert_eq!((mission.heads, mission.kv_heads, mission.head_size), (8, 8, 64));
}

#[test]
fn groups_are_written_one_by_one_or_side_by_side() {
    let suite = parse(
        r#"
        [[benchmark]]
        name = "list"
        inputs = "wide"
        grouped-gemm = { groups = [{ m = 1, n = 2, k = 16 }, { m = 0, n = 4, k = 32 }], form = "swiglu" }
        [[benchmark]]
        name = "sizes"
        grouped-gemm = { groups = { m = [1, 0], n = [2, 4], k = 16 } }
        [[benchmark]]
        name = "single"
        grouped-gemm = { groups = { m = 1, n = 2, k = 16 } }
        "#,
    )
    .unwrap();
    assert_eq!(suite.name, "mine");
    let [list, sizes, single] = &suite.benchmark[..] else {
        unreachable!("three cases")
    };
    assert_eq!(
        groups(&list.sizes),
        [GemmShape { m: 1, n: 2, k: 16 }, GemmShape { m: 0, n: 4, k: 32 }]
    );
    assert_eq!(
        groups(&sizes.sizes),
        [GemmShape { m: 1, n: 2, k: 16 }, GemmShape { m: 0, n: 4, k: 16 }]
    );
    assert_eq!(groups(&single.sizes).len(), 1);
    assert_eq!(
        (list.inputs, sizes.inputs),
        (InputKind::Wide, InputKind::Competition)
    );
}

#[test]
fn scales_are_per_head_unless_a_case_says_otherwise() {
    let read = |words: &str| {
        let sizes = format!("heads = 2, length = 4, head-size = 8, format = \"int8\"{words}");
        let text = format!("[[benchmark]]\nname = \"one\"\nattention = {{ {sizes} }}\n");
        attention(&parse(&text).unwrap().benchmark[0].sizes)
    };
    assert_eq!(read("").scaling, Scaling::PerHead);
    let blocks = read(", scaling = \"per-block\"");
    assert_eq!(blocks.scaling, Scaling::PerBlock);
    // Records from before there was a choice are read and written unchanged.
    let written = |attention: &Attention| serde_json::to_value(attention).unwrap();
    assert_eq!(written(&read("")).get("scaling"), None);
    assert_eq!(written(&blocks)["scaling"], "per-block");
    let json = written(&read(""));
    assert_eq!(serde_json::from_value::<Attention>(json).unwrap(), read(""));
}

#[test]
fn a_suite_is_read_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.toml");
    std::fs::write(
        &path,
        "[[benchmark]]\nname = \"a\"\ngrouped-gemm.groups = { m = 1, n = 1, k = 16 }\n",
    )
    .unwrap();
    assert_eq!(load_suite(&path).unwrap().name, "small");
    assert!(matches!(
        load_suite(directory.path()).unwrap_err(),
        SuiteError::Read { .. }
    ));
}

#[test]
fn a_suite_of_several_tasks_takes_the_parameters_of_each_once() {
    let gemm = suite("group-gemm").unwrap().parameters();
    assert!(gemm.find("packing").is_some() && gemm.find("arithmetic").is_none());
    let mixed = parse(
        r#"
        [[benchmark]]
        name = "a"
        grouped-gemm = { groups = { m = 1, n = 2, k = 16 } }
        [[benchmark]]
        name = "b"
        attention = { length = 8, heads = 1, head-size = 64, format = "f16" }
        [[benchmark]]
        name = "c"
        grouped-gemm = { groups = { m = 2, n = 2, k = 16 } }
        "#,
    )
    .unwrap()
    .parameters();
    assert!(mixed.find("packing").is_some() && mixed.find("arithmetic").is_some());
    let unknown = gauntlet_parameters::Parameters::new().with("colour", "red");
    let message = mixed.check(&unknown).unwrap_err().message;
    assert!(
        message.starts_with("the suite has no parameter `colour`; its parameters are `tile`"),
        "{message}"
    );
}

#[test]
fn sizes_survive_records() {
    for name in suite_names() {
        for case in suite(name).unwrap().cases() {
            let record = case.sizes.to_record();
            assert_eq!(record["family"], case.sizes.task().name());
            let again = gauntlet_families::open(&record).unwrap();
            assert_eq!(again, case.sizes, "{name}, {}", case.name);
            // The format of the first version, which the kernels' own types still write.
            if let Some(operation) = operation(&case.sizes) {
                let written = serde_json::to_value(operation).unwrap();
                assert_eq!(record, written, "{name}, {}", case.name);
            }
        }
    }
    let unknown = gauntlet_families::open(&serde_json::json!({ "family": "convolution" })).unwrap_err();
    assert_eq!(
        unknown,
        "no task is called `convolution`; there are `grouped-gemm`, `attention`, `rms-norm`"
    );
    let wrong = serde_json::json!({ "family": "grouped-gemm", "groups": [{ "m": 1, "n": 1, "k": 17 }] });
    let message = gauntlet_families::open(&wrong).unwrap_err();
    assert!(message.contains("K = 17 is not a multiple of 16"), "{message}");
}

#[test]
fn operands_of_a_file_are_read_with_the_suite() {
    let directory = tempfile::tempdir().unwrap();
    let text = |k: usize| {
        format!(
            "[[benchmark]]\nname = \"a\"\ndata = \"a.safetensors\"\n\
             grouped-gemm = {{ groups = {{ m = 2, n = 3, k = {k} }} }}\n"
        )
    };
    let read = |k: usize| Suite::parse(&text(k), &directory.path().join("mine.toml"), TASKS);
    let message = read(32).unwrap_err().to_string();
    assert!(message.contains("mine.toml:3: cannot read"), "{message}");
    let sizes = parse(&text(32).replace("data = \"a.safetensors\"\n", ""))
        .unwrap()
        .benchmark[0]
        .sizes
        .clone();
    let path = directory.path().join("a.safetensors");
    sizes.generate(InputKind::Wide, 1).unwrap().save(&path).unwrap();
    assert_eq!(read(32).unwrap().benchmark[0].data, Some(path));
    let message = read(48).unwrap_err().to_string();
    assert!(
        message.ends_with("tensor `0.a.values` is U8 [2, 16], but the task takes U8 [2, 24]"),
        "{message}"
    );
}

#[test]
fn words_of_a_command_line_are_the_sizes_of_a_suite() {
    let words = |words: &[(&str, &str)]| -> Vec<(String, String)> {
        words
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    };
    let read = |given: &[(&str, &str)]| -> Result<String, String> {
        let names: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
        let mut claiming = TASKS.iter().filter(|task| task.claims(&names));
        let (Some(task), None) = (claiming.next(), claiming.next()) else {
            return Err(format!("{names:?} are of no one task"));
        };
        let sizes = task.inline_table(&words(given))?;
        let text = format!("[[benchmark]]\nname = \"one\"\n{} = {sizes}\n", task.name());
        parse(&text)
            .map(|suite| suite.benchmark[0].sizes.to_string())
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        read(&[("m", "80"), ("n", "4096"), ("k", "7168")]).unwrap(),
        "M 80, N 4096, K 7168, plain"
    );
    assert_eq!(
        read(&[
            ("g", "3"),
            ("m", "80,64,248"),
            ("n", "4096"),
            ("k", "7168"),
            ("form", "swiglu")
        ])
        .unwrap(),
        "3 groups, M 64…248, N 4096, K 7168, swiglu"
    );
    assert_eq!(
        read(&[
            ("g", "4"),
            ("m", "80"),
            ("n", "64"),
            ("k", "32"),
            ("output", "f32")
        ])
        .unwrap(),
        "4 groups, M 80, N 64, K 32, plain, to f32"
    );
    assert_eq!(
        read(&[
            ("heads", "8"),
            ("length", "512"),
            ("head-size", "64"),
            ("format", "e4m3"),
            ("causal", "true")
        ])
        .unwrap(),
        "batch 1, 8 heads, 512 queries × 512 keys, head size 64, e4m3, causal"
    );
    let message = read(&[("g", "3"), ("m", "80,64"), ("n", "64"), ("k", "32")]).unwrap_err();
    assert_eq!(message, "g = 3, but 2 sizes in m");
    let message = read(&[("g", "none"), ("m", "80"), ("n", "64"), ("k", "32")]).unwrap_err();
    assert_eq!(message, "g = none; give a number of groups up to 65536");
}
