#![expect(clippy::unwrap_used, reason = "tests")]
//! Sizes around the edges of a schedule's tiles, which suites do not contain.

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_families::suite;
use gauntlet_parameters::Parameters;
use gauntlet_problems::{Operation, Schedule};
use gauntlet_task::{DEEP, SMALLEST, Sizes};
use gauntlet_tiled_family::operation;

fn device(name: &str) -> Device {
    Device::builtin(name).unwrap()
}

fn cpu() -> Device {
    let text = "name = \"desk\"\ntitle = \"A desk\"\narch = \"cpu\"\n\
                processors = { value = 2, unit = \"thread\", source = \"made up\" }\n\
                cpu.simd = { value = [], source = \"made up\" }\n";
    Device::from_toml(text, Path::new("desk.toml")).unwrap()
}

fn parameters(change: &str) -> Parameters {
    Parameters::parse(change).unwrap()
}

/// The edge sizes of a suite's task.
fn edges(suite_name: &str, change: &str, device: &Device) -> Vec<(&'static str, Sizes)> {
    let timed = &suite(suite_name).unwrap().benchmark[0];
    timed.sizes.edge_sizes(&parameters(change), device)
}

#[test]
fn a_schedule_that_splits_the_depth_takes_its_cases() {
    let h200 = device("h200");
    for (suite, split_k) in [("group-gemm", 1), ("group-gemm", 4), ("dual-gemm", 3)] {
        let change = format!("split-k={split_k}");
        let edges = edges(suite, &change, &h200);
        let names: Vec<_> = edges.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [DEEP, SMALLEST]);
        for (name, sizes) in edges {
            assert_eq!(
                sizes.violations(&parameters(&change), &h200),
                [],
                "{suite}, {name}, split in {split_k}"
            );
        }
    }
}

#[test]
fn where_all_keys_are_held_the_deep_case_has_as_many_but_one() {
    let resident = "tile=64x128x64 roles=specialised split-k=2 cluster=1x2";
    let deepest = |device: &Device| {
        let edges = edges("attention", resident, device);
        let sequences = edges.iter().flat_map(|(_, sizes)| match operation(sizes) {
            Some(Operation::Attention(attention)) => attention.sequences.clone(),
            _ => Vec::new(),
        });
        sequences.map(|sequence| sequence.keys).max()
    };
    assert_eq!(deepest(&device("h200")), Some(511));
    assert_eq!(deepest(&cpu()), Some(3 * 128 * 2 + 1));
}

/// A pipeline of any length wraps around, and every side of the tile has a tail.
#[test]
fn the_deep_case_is_deeper_than_the_pipeline_and_has_tails() {
    for stages in [1, 3, 8] {
        let change = format!("tile=64x48x128 stages={stages}");
        let schedule = Schedule::of(&parameters(&change)).unwrap();
        let deep = &edges("group-gemm", &change, &cpu())[0].1;
        let Some(Operation::GroupedGemm(gemm)) = operation(deep) else {
            panic!("{deep} is no GEMM")
        };
        let shape = gemm.groups[0];
        assert!(shape.k > (stages + 1) * schedule.tile.k, "{shape:?}");
        assert_ne!(shape.k % schedule.tile.k, 0, "{shape:?}");
        assert_eq!((shape.m, shape.n), (65, 49));

        let change = format!("tile=64x48x64 stages={stages}");
        let deep = &edges("attention", &change, &cpu())[0].1;
        let Some(Operation::Attention(attention)) = operation(deep) else {
            panic!("{deep} is no attention")
        };
        let sequence = attention.sequences[0];
        assert!(sequence.keys > (stages + 1) * 48, "{sequence:?}");
        assert_ne!(sequence.keys % 48, 0, "{sequence:?}");
        assert_eq!(sequence.queries, 65);
    }
}

/// Everything else is as in the timed case: form, formats, heads.
#[test]
fn edge_cases_differ_from_the_timed_one_in_sizes_only() {
    for name in ["group-gemm", "dual-gemm", "attention"] {
        let timed = suite(name).unwrap().benchmark[0].sizes.clone();
        for (edge, sizes) in timed.edge_sizes(&Parameters::new(), &cpu()) {
            assert_eq!(sizes.task().name(), timed.task().name());
            assert!(
                sizes.distance(&timed).is_some(),
                "{name}, {edge}: {sizes} beside {timed}"
            );
        }
    }
}
