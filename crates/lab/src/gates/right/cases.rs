//! The cases that a schedule needs and no suite knows.

use std::mem::discriminant;

use gauntlet_device::Arch;
use gauntlet_problem::{Attention, Case, GemmShape, GroupedGemm, Problem, Sequence};
use gauntlet_schedule::Schedule;
use gauntlet_schedule::resources::resident_keys;

/// The name of the smallest case of a family.
pub const SMALLEST: &str = "smallest";

/// The name of the case of a family that is deep enough for a pipeline to wrap around.
pub const DEEP: &str = "deep, with tails";

/// Cases for each family that is timed (see [`cases_like`]), on a device of this architecture.
pub fn cases_for(schedule: &Schedule, timed: &[Case], arch: Arch) -> Vec<Case> {
    let mut families: Vec<&Case> = Vec::new();
    for case in timed {
        let is_new = |known: &&Case| discriminant(&known.problem) != discriminant(&case.problem);
        if families.iter().all(is_new) {
            families.push(case);
        }
    }
    families
        .into_iter()
        .flat_map(|case| cases_like(schedule, case, arch))
        .collect()
}

/// Cases that the suite cannot know it needs: at least stages + 2 steps deep, so that a pipeline wraps around, with
/// tails on every side; and the smallest. Where all keys are held at once, as many as there is room for, but one.
fn cases_like(schedule: &Schedule, like: &Case, arch: Arch) -> Vec<Case> {
    let deep = schedule.stages + 2;
    let case = |name: &str, problem| Case {
        name: name.to_owned(),
        problem,
        // Operands from a file fit the problem that they were made for, and no other.
        data: None,
        ..like.clone()
    };
    match &like.problem {
        Problem::GroupedGemm(gemm) => {
            let k = (deep * schedule.tile.k * schedule.split_k).next_multiple_of(16) + 16;
            // Each part of a split depth has a step, or the schedule takes no such problem.
            let least = schedule.split_k.saturating_sub(1) * schedule.tile.k;
            let shapes = |shapes: &[(usize, usize, usize)]| {
                let groups = shapes.iter().map(|&(m, n, k)| GemmShape { m, n, k }).collect();
                Problem::GroupedGemm(GroupedGemm {
                    groups,
                    ..gemm.clone()
                })
            };
            vec![
                case(
                    DEEP,
                    shapes(&[(schedule.tile.m + 1, schedule.tile.n + 1, k), (3, 7, least + 16)]),
                ),
                case(
                    SMALLEST,
                    shapes(&[(1, 1, least + 16), (0, 5, least + 32), (1, 2, least + 48)]),
                ),
            ]
        }
        Problem::Attention(attention) => {
            let keys = match resident_keys(schedule, arch) {
                Some(held) => held.saturating_sub(1).max(1),
                None => deep * schedule.tile.n * schedule.split_k + 1,
            };
            let sequences = |sequences: &[(usize, usize)]| {
                let sequences = sequences
                    .iter()
                    .map(|&(queries, keys)| Sequence { queries, keys })
                    .collect();
                Problem::Attention(Attention {
                    sequences,
                    ..attention.clone()
                })
            };
            vec![
                case(DEEP, sequences(&[(schedule.tile.m + 1, keys)])),
                case(SMALLEST, sequences(&[(1, 1), (2, 3)])),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;
    use gauntlet_problem::Suite;
    use gauntlet_schedule::{Cluster, Roles, Tile, check};

    use super::*;

    #[test]
    fn a_schedule_that_splits_the_depth_takes_its_cases() {
        for (suite, split_k) in [("group-gemm", 1), ("group-gemm", 4), ("dual-gemm", 3)] {
            let split = Schedule {
                split_k,
                ..Schedule::baseline()
            };
            let device = Device::builtin("h200").unwrap();
            for case in cases_for(&split, &Suite::builtin(suite).unwrap().benchmark, Arch::Sm90a) {
                assert_eq!(
                    check(&split, &case.problem, &device),
                    [],
                    "{suite}, {}, split in {split_k}",
                    case.name
                );
            }
        }
    }

    #[test]
    fn where_all_keys_are_held_the_deep_case_has_as_many_but_one() {
        let suite = Suite::builtin("attention").unwrap();
        let resident = Schedule {
            tile: Tile::from([64, 128, 64]),
            roles: Roles::Specialised,
            split_k: 2,
            cluster: Cluster { m: 1, n: 2 },
            ..Schedule::baseline()
        };
        let deepest = |arch| {
            let cases = cases_for(&resident, &suite.benchmark, arch);
            let sequences = cases.iter().flat_map(|case| match &case.problem {
                Problem::Attention(attention) => attention.sequences.clone(),
                Problem::GroupedGemm(_) => Vec::new(),
            });
            sequences.map(|sequence| sequence.keys).max()
        };
        assert_eq!(deepest(Arch::Sm90a), Some(511));
        assert_eq!(deepest(Arch::Cpu), Some(3 * 128 * 2 + 1));
    }
}
