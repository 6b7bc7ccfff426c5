#![expect(clippy::unwrap_used, reason = "tests")]
//! Operands and results of every task as files.

use gauntlet_families::{TASKS, open, suite, suite_names};
use gauntlet_task::{Coverage, InputKind, Output, Sizes};

/// The smallest case of each suite, and operands with a scale for each block of positions.
fn small() -> Vec<Sizes> {
    let smallest = |name| {
        let cases = suite(name).unwrap();
        let sizes = cases.cases().map(|case| case.sizes.clone());
        sizes.min_by_key(|sizes| sizes.bytes()).unwrap()
    };
    let blocks = serde_json::json!({
        "family": "attention", "sequences": [{ "queries": 3, "keys": 70 }, { "queries": 65, "keys": 2 }],
        "heads": 4, "kv_heads": 2, "head_size": 5, "format": "e4m3", "scaling": "per-block", "output": "f32",
    });
    let names = suite_names().into_iter();
    names.map(smallest).chain([open(&blocks).unwrap()]).collect()
}

#[test]
fn operands_of_every_kind_survive_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (path, again) = (directory.path().join("inputs"), directory.path().join("again"));
    for sizes in small() {
        for kind in InputKind::ALL {
            let inputs = sizes.generate(kind, 3).unwrap();
            inputs.save(&path).unwrap();
            let loaded = sizes.load(&path).unwrap();
            loaded.save(&again).unwrap();
            assert!(
                std::fs::read(&path).unwrap() == std::fs::read(&again).unwrap(),
                "{sizes}, {kind}"
            );
            let coverage = sizes.spot(1);
            assert_eq!(
                sizes.expected(&*loaded, coverage),
                sizes.expected(&*inputs, coverage),
                "{sizes}, {kind}"
            );
        }
    }
}

#[test]
fn files_hold_the_tensors_that_a_task_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tensors");
    for sizes in small() {
        sizes.generate(InputKind::Wide, 3).unwrap().save(&path).unwrap();
        let file = gauntlet_tensors::TensorFile::open(&path).unwrap();
        let tensors = file.tensors(&sizes.inputs()).unwrap();
        let bytes: usize = tensors.iter().map(|tensor| tensor.bytes.len()).sum();
        assert_eq!(bytes, file.bytes(), "{sizes}: the file has other tensors");

        let mut output = Output::poisoned(&sizes.outputs());
        if !output.0[0].is_empty() {
            output.0[0].set(0, -0.0);
        }
        output.save(&path).unwrap();
        let loaded = Output::load(&path, &sizes.outputs()).unwrap();
        let bytes = |output: &Output| -> Vec<u8> {
            output.0.iter().flat_map(|tensor| tensor.bytes.clone()).collect()
        };
        assert_eq!(bytes(&loaded), bytes(&output), "{sizes}");
    }
}

#[test]
fn operands_of_another_task_are_refused() {
    let cases: Vec<Sizes> = ["group-gemm", "attention"]
        .iter()
        .map(|name| suite(name).unwrap().correctness[0].sizes.clone())
        .collect();
    assert_eq!(cases[0].task().name(), TASKS[0].name());
    for (sizes, other) in [(&cases[0], &cases[1]), (&cases[1], &cases[0])] {
        let foreign = other.generate(InputKind::Competition, 1).unwrap();
        let error = sizes.expected(&*foreign, Coverage::Full).unwrap_err();
        assert_eq!(
            error,
            "the operands are of another kernel family than the problem"
        );
    }
}
