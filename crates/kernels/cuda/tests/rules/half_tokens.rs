//! Checks that the constraint rules for GEMMs of 16-bit tokens accept exactly what the plans accept on Blackwell, where the kernels
//! that need nothing of Hopper run, and before Hopper at least that.

use gauntlet_kernels_cuda::plan::Source;
use gauntlet_problems::{
    Choice, Cluster, Epilogue, Form, GemmShape, GroupedGemm, Lookup, Maps, Operation, Order, OutputFormat,
    Packing, Roles, Schedule, Tile, TokenFormat,
};

use super::rules_beside_plans;

/// All are deep enough that each part of a split has a step: the rules refuse parts without one, and the plans do not.
fn problems() -> Vec<Operation> {
    let mut problems = Vec::new();
    for (tokens, output) in [
        (TokenFormat::F16, OutputFormat::F32),
        (TokenFormat::Bf16, OutputFormat::Bf16),
    ] {
        for form in [Form::Plain, Form::Swiglu] {
            for rows in [[3, 0], [200, 17]] {
                let groups = rows.map(|m| GemmShape { m, n: 272, k: 8192 });
                problems.push(Operation::GroupedGemm(GroupedGemm {
                    groups: groups.to_vec(),
                    form,
                    output,
                    tokens,
                }));
            }
        }
    }
    problems
}

fn each<T: Choice>(schedules: Vec<Schedule>, set: impl Fn(&mut Schedule, T)) -> Vec<Schedule> {
    let with_each = |schedule: Schedule| T::ALL.iter().map(move |(value, _)| (schedule.clone(), *value));
    let pairs = schedules.into_iter().flat_map(with_each);
    pairs
        .map(|(mut schedule, value)| {
            set(&mut schedule, value);
            schedule
        })
        .collect()
}

/// Tiles, stages and splits that some kernel accepts and some that none does, in every order, with every value of each other
/// parameter that has a rule.
fn schedules() -> Vec<Schedule> {
    let mut schedules = Vec::new();
    for m in [16, 32, 64, 100, 128, 256] {
        for n in [4, 8, 16, 24, 64, 100, 128, 136] {
            for k in [64, 128, 256, 2048, 4096] {
                for (stages, split_k, blocks) in
                    [(1, 1, 1), (2, 1, 1), (3, 4, 1), (9, 1, 1), (2, 65, 1), (2, 1, 2)]
                {
                    schedules.push(Schedule {
                        tile: Tile { m, n, k },
                        stages,
                        split_k,
                        cluster: Cluster { m: blocks, n: 1 },
                        lookup: Lookup::Precomputed,
                        swap_ab: true,
                        ..Schedule::baseline()
                    });
                }
            }
        }
    }
    let rows = schedules.iter().map(|schedule| Schedule {
        swap_ab: false,
        ..schedule.clone()
    });
    let mut all: Vec<_> = rows.collect();
    let schedules = each(schedules, |schedule, order: Order| schedule.order = order);
    all.extend(each(schedules.clone(), |schedule, roles: Roles| {
        schedule.roles = roles
    }));
    all.extend(each(schedules.clone(), |schedule, epilogue: Epilogue| {
        schedule.epilogue = epilogue
    }));
    all.extend(each(schedules.clone(), |schedule, packing: Packing| {
        schedule.packing = packing
    }));
    all.extend(each(schedules, |schedule, maps: Maps| schedule.maps = maps));
    all
}

#[test]
fn rules_and_plans_accept_the_same_on_blackwell() {
    let (kernels, wider) = rules_beside_plans("b200", &problems(), |_| schedules());
    assert_eq!(wider, None);
    assert!(
        kernels.keys().eq([&Source::Narrow, &Source::Unified]),
        "{kernels:?}"
    );
}

/// Before Hopper the rules are those of the instructions, the same for all tokens.
#[test]
fn rules_accept_all_that_is_planned_before_hopper() {
    for name in ["l4", "a100"] {
        let (kernels, wider) = rules_beside_plans(name, &problems(), |_| schedules());
        assert!(
            kernels.keys().eq([&Source::Narrow, &Source::Unified]),
            "{name}: {kernels:?}"
        );
        assert!(wider.is_some(), "{name}");
    }
}
