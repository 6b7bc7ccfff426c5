#![expect(clippy::unwrap_used, reason = "tests")]
//! The covering set of each family: complete, accepted, small, and reproducible.

use std::collections::BTreeSet;
use std::path::Path;

use gauntlet_device::Device;
use gauntlet_families::open;
use gauntlet_parameters::{Parameters, Value, pairwise};
use gauntlet_problems::{
    Attention, AttentionFormat, Choice, Epilogue, Form, GroupedGemm, Lookup, Operation, Order, Roles,
    Schedule, Setup,
};
use gauntlet_task::Sizes;

use super::sizes;

fn cpu(threads: usize) -> Device {
    let text = format!(
        "name = \"desk\"\ntitle = \"A desk\"\narch = \"cpu\"\n\
         processors = {{ value = {threads}, unit = \"thread\", source = \"made up\" }}\n\
         memory.l2-size = {{ value = 1, unit = \"MiB\", source = \"made up\" }}\n\
         cpu.simd = {{ value = [], source = \"made up\" }}\n"
    );
    Device::from_toml(&text, Path::new("desk.toml")).unwrap()
}

fn gemm(k: usize) -> Sizes {
    let groups = [[40, 512, k], [384, 128, k]];
    sizes(Operation::GroupedGemm(GroupedGemm::new(Form::Plain, groups)))
}

fn attention() -> Sizes {
    sizes(Operation::Attention(Attention::new(
        AttentionFormat::E4m3,
        [[32, 300]],
        [1, 1],
        64,
    )))
}

fn all<T: Choice>() -> Vec<Value> {
    T::ALL.iter().map(|(value, _)| value.to_value()).collect()
}

/// Every candidate of the family's space, written out by hand rather than by the code under test.
fn everything(sizes: &Sizes) -> Vec<Parameters> {
    let is_gemm = sizes.task().name() == "grouped-gemm";
    let tiles: &[[usize; 3]] = if is_gemm {
        &[
            [128, 128, 256],
            [64, 64, 256],
            [32, 128, 64],
            [16, 48, 16],
            [5, 16, 128],
            [96, 80, 48],
        ]
    } else {
        &[[64, 64, 64], [128, 128, 64], [16, 48, 64], [5, 16, 64]]
    };
    let mut everything = vec![Parameters::new()];
    let mut vary = |name: &str, values: Vec<Value>| {
        everything = everything
            .iter()
            .flat_map(|before| {
                values
                    .iter()
                    .map(move |value| before.clone().changed(&one(name, value)))
            })
            .collect();
    };
    vary("tile", tiles.iter().map(|tile| (*tile).into()).collect());
    vary("stages", [1_usize, 2, 3].map(Value::from).to_vec());
    vary("epilogue", all::<Epilogue>());
    vary("roles", all::<Roles>());
    vary("order", all::<Order>());
    vary("lookup", all::<Lookup>());
    vary("setup", all::<Setup>());
    if is_gemm {
        vary("swap-ab", vec![false.into(), true.into()]);
    }
    vary("split-k", [1_usize, 2, 3].map(Value::from).to_vec());
    everything
}

fn one(name: &str, value: &Value) -> Parameters {
    [(name.to_owned(), value.clone())].into_iter().collect()
}

/// Pairs of all parameters of a schedule, including those that the space leaves at their defaults.
fn pairs(candidates: &[Parameters]) -> BTreeSet<(String, String, String, String)> {
    let mut pairs = BTreeSet::new();
    for candidate in candidates {
        let whole = Schedule::table().complete(candidate);
        for (left, one) in whole.iter() {
            for (right, other) in whole.iter().filter(|(right, _)| *right > left) {
                pairs.insert((
                    left.to_owned(),
                    one.to_string(),
                    right.to_owned(),
                    other.to_string(),
                ));
            }
        }
    }
    pairs
}

fn covering(sizes: &Sizes, device: &Device) -> Vec<Parameters> {
    pairwise(&sizes.covering_space(), |parameters| {
        sizes.accepts(parameters, device)
    })
}

#[test]
fn every_pair_that_can_occur_occurs() {
    for (sizes, device) in [
        (gemm(768), cpu(2)),
        (gemm(256), cpu(2)),
        (gemm(768), cpu(1)),
        (attention(), cpu(2)),
    ] {
        let chosen = covering(&sizes, &device);
        assert!(chosen.iter().all(|candidate| sizes.accepts(candidate, &device)));
        let feasible: Vec<_> = everything(&sizes)
            .into_iter()
            .filter(|candidate| sizes.accepts(candidate, &device))
            .collect();
        assert_eq!(pairs(&chosen), pairs(&feasible));
        // 6 tiles × 4 orders are 24 pairs, each of which needs its own candidate; no set can be smaller.
        assert!(
            (16..=40).contains(&chosen.len()),
            "{} of {}",
            chosen.len(),
            feasible.len()
        );
    }
}

#[test]
fn the_set_is_the_same_every_time() {
    assert_eq!(covering(&gemm(768), &cpu(2)), covering(&gemm(768), &cpu(2)));
}

#[test]
fn what_a_device_refuses_is_left_out() {
    let sizes = gemm(768);
    let alone = covering(&sizes, &cpu(1));
    assert!(!alone.is_empty());
    let unified = Value::from("unified");
    assert!(
        alone
            .iter()
            .all(|candidate| candidate.get("roles") == Some(&unified))
    );
    let clustered = sizes.covering_space().with("cluster", [[2_usize, 1]]);
    let none = pairwise(&clustered, |parameters| sizes.accepts(parameters, &cpu(2)));
    assert_eq!(none, []);
}

/// A candidate of a space can also be written by a user.
#[test]
fn spaces_hold_only_what_the_table_accepts() {
    let devices = Device::builtin_names().map(|name| Device::builtin(name).unwrap());
    for device in devices.chain([cpu(2)]) {
        let rows = open(&serde_json::json!({ "family": "rms-norm", "rows": 8, "columns": 64 })).unwrap();
        for sizes in [gemm(768), attention(), rows] {
            let table = sizes.task().parameters();
            for space in [sizes.covering_space(), sizes.tuning_space(&device)] {
                assert!(!space.is_empty());
                for parameters in space.combinations() {
                    assert_eq!(table.check(&parameters), Ok(()), "{sizes} on {}", device.name);
                }
            }
        }
    }
}
