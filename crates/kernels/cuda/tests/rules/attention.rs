//! Checks that the constraint rules for attention accept exactly what the plans accept on Hopper and on Blackwell, where the
//! kernels that need nothing of Hopper run, and before Hopper at least that.

use gauntlet_kernels_cuda::plan::{Source, Target, plan};
use gauntlet_problems::{
    Arithmetic, Attention, AttentionFormat, Choice, Cluster, Epilogue, Layout, Lookup, Operation, Order,
    OutputFormat, Roles, Scaling, Schedule, Scores, Sequence, Tile, Values,
};

use super::rules_beside_plans;

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
fn schedules(problem: &Operation) -> Vec<Schedule> {
    let Operation::Attention(attention) = problem else {
        return Vec::new();
    };
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
fn rules_and_plans_accept_the_same_on_hopper() {
    let (kernels, wider) = rules_beside_plans("h200", &problems(), schedules);
    assert_eq!(wider, None);
    assert_eq!(kernels.len(), 3, "{kernels:?}");
}

#[test]
fn rules_and_plans_accept_the_same_on_blackwell() {
    let (kernels, wider) = rules_beside_plans("b200", &problems(), schedules);
    assert_eq!(wider, None);
    assert!(kernels.keys().eq([&Source::AttentionUnified]), "{kernels:?}");
}

/// Before Hopper the rules also accept schedules of other authors' kernels, which records hold. The kernels are Blackwell's, but
/// for the sizes of shared memory and e4m3 products, so a part of the problems is enough.
#[test]
fn rules_accept_all_that_is_planned_before_hopper() {
    let some: Vec<_> = problems().into_iter().step_by(5).collect();
    let [on_ada, on_ampere] = ["l4", "a100"].map(|name| rules_beside_plans(name, &some, schedules));
    for (kernels, wider) in [&on_ada, &on_ampere] {
        assert!(kernels.keys().eq([&Source::AttentionUnified]), "{kernels:?}");
        assert!(wider.is_some());
    }
    assert_ne!(on_ada.0, on_ampere.0);
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
