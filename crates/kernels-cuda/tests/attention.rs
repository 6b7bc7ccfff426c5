//! Checks that the constraint rules for attention on Hopper accept exactly what the plans accept.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_families::operations::accepts;
use gauntlet_kernels_cuda::plan::{Target, plan};
use gauntlet_operations::resources::block_bytes;
use gauntlet_operations::{
    Arithmetic, Attention, AttentionFormat, Choice, Cluster, Epilogue, Layout, Lookup, Operation, Order,
    OutputFormat, Roles, Scaling, Schedule, Scores, Sequence, Tile, Values,
};

fn problems() -> Vec<Operation> {
    let formats = [
        (AttentionFormat::F16, Scaling::PerHead),
        (AttentionFormat::Bf16, Scaling::PerHead),
        (AttentionFormat::E4m3, Scaling::PerTensor),
        (AttentionFormat::E4m3, Scaling::PerBlock),
        (AttentionFormat::Int8, Scaling::PerBlock),
    ];
    let mut problems = Vec::new();
    for (format, scaling) in formats {
        for (head_size, output) in [(64, OutputFormat::F16), (128, OutputFormat::F32)] {
            for lengths in [[[300, 500], [1, 77]], [[64, 1000], [0, 7]], [[1, 3], [5, 9]]] {
                let sequences = lengths.map(|[queries, keys]| Sequence { queries, keys });
                problems.push(Operation::Attention(Attention {
                    sequences: sequences.to_vec(),
                    heads: 4,
                    kv_heads: 2,
                    head_size,
                    causal: false,
                    format,
                    scaling,
                    output,
                }));
            }
        }
    }
    problems
}

/// Tiles, stages and splits that some kernel accepts and some that none does, with every value of the other parameters
/// that have a rule.
fn schedules(attention: &Attention) -> Vec<Schedule> {
    let mut schedules = Vec::new();
    for m in [16, 32, 64, 96, 128, 192, 256] {
        for n in [32, 64, 96, 128, 256] {
            for stages in [1, 2, 3, 4, 16] {
                for (split_k, blocks) in [(1, 1), (2, 2), (3, 3), (4, 4), (2, 1), (4, 1)] {
                    schedules.push(Schedule {
                        tile: Tile {
                            m,
                            n,
                            k: attention.head_size,
                        },
                        stages,
                        split_k,
                        cluster: Cluster { m: 1, n: blocks },
                        lookup: Lookup::Precomputed,
                        ..Schedule::baseline()
                    });
                }
            }
        }
    }
    schedules = each(schedules, |schedule, roles: Roles| Schedule {
        roles,
        ..schedule.clone()
    });
    schedules = each(schedules, |schedule, order: Order| Schedule {
        order,
        ..schedule.clone()
    });
    schedules = each(schedules, |schedule, epilogue: Epilogue| Schedule {
        epilogue,
        ..schedule.clone()
    });
    schedules = each(schedules, |schedule, arithmetic: Arithmetic| Schedule {
        arithmetic,
        ..schedule.clone()
    });
    let unified = schedules
        .clone()
        .into_iter()
        .filter(|schedule| schedule.roles == Roles::Unified && schedule.split_k == 1)
        .collect();
    let unified = each(unified, |schedule, scores: Scores| Schedule {
        scores,
        ..schedule.clone()
    });
    schedules.extend(each(unified, |schedule, values: Values| Schedule {
        values,
        ..schedule.clone()
    }));
    schedules
}

fn each<T: Choice>(schedules: Vec<Schedule>, with: impl Fn(&Schedule, T) -> Schedule) -> Vec<Schedule> {
    let with_each =
        |schedule: &Schedule| -> Vec<_> { T::ALL.iter().map(|(value, _)| with(schedule, *value)).collect() };
    schedules.iter().flat_map(with_each).collect()
}

#[test]
fn what_the_rules_accept_is_planned_in_the_bytes_that_they_count() {
    let h200 = Device::builtin("h200").unwrap();
    let mut accepted = BTreeMap::new();
    for problem in problems() {
        let Operation::Attention(attention) = &problem else {
            continue;
        };
        for schedule in schedules(attention) {
            if !accepts(&schedule, &problem, &h200) {
                continue;
            }
            let planned = plan(&problem, &schedule, Target::hopper(132));
            let planned = planned.unwrap_or_else(|error| panic!("{schedule}: {error}"));
            let variant = planned.variant();
            let counted = block_bytes(&schedule, &problem, h200.arch);
            assert_eq!(variant.shared_bytes as usize, counted, "{schedule}, {problem:?}");
            *accepted.entry(variant.source).or_insert(0) += 1;
        }
    }
    assert_eq!(accepted.len(), 3, "{accepted:?}");
}

#[test]
fn what_no_rule_accepts_is_not_planned() {
    let h200 = Device::builtin("h200").unwrap();
    for problem in problems() {
        let Operation::Attention(attention) = &problem else {
            continue;
        };
        for schedule in schedules(attention) {
            let is_planned = plan(&problem, &schedule, Target::hopper(132)).is_ok();
            assert!(
                !is_planned || accepts(&schedule, &problem, &h200),
                "{schedule}, {problem:?}"
            );
        }
    }
}

#[test]
fn words_that_no_kernel_takes_are_refused_by_name() {
    let problem = &problems()[0];
    let roles = Schedule {
        tile: Tile {
            m: 128,
            n: 128,
            k: 64,
        },
        stages: 2,
        roles: Roles::Specialised,
        lookup: Lookup::Precomputed,
        ..Schedule::baseline()
    };
    assert!(plan(problem, &roles, Target::hopper(132)).is_ok());
    let refused = |change: fn(&mut Schedule)| {
        let mut schedule = roles.clone();
        change(&mut schedule);
        plan(problem, &schedule, Target::hopper(132))
            .unwrap_err()
            .to_string()
    };
    let begins = |message: String, word: &str| assert!(message.starts_with(word), "{message}");
    begins(refused(|schedule| schedule.tile.k = 128), "tile.k = 128");
    begins(refused(|schedule| schedule.swap_ab = true), "swap-ab = true");
    begins(
        refused(|schedule| schedule.arithmetic = Arithmetic::Fp8),
        "arithmetic = fp8",
    );
    begins(refused(|schedule| schedule.split_k = 0), "split-k = 0");
    begins(refused(|schedule| schedule.cluster.n = 2), "cluster = 1×2");
    begins(
        refused(|schedule| schedule.layout = Layout::Plain),
        "layout = plain",
    );
}
