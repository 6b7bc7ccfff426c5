//! The cases that a schedule needs and no suite knows.

use std::mem::discriminant;

use gauntlet_problem::{Attention, Case, GemmShape, GroupedGemm, Problem, Sequence};
use gauntlet_schedule::Schedule;

/// The name of the smallest case of a family.
pub const SMALLEST: &str = "smallest";

/// The name of the case of a family that is deep enough for a pipeline to wrap around.
pub const DEEP: &str = "deep, with tails";

/// Cases for each family that is timed (see [`cases_like`]).
pub fn cases_for(schedule: &Schedule, timed: &[Case]) -> Vec<Case> {
    let mut families: Vec<&Case> = Vec::new();
    for case in timed {
        let is_new = |known: &&Case| discriminant(&known.problem) != discriminant(&case.problem);
        if families.iter().all(is_new) {
            families.push(case);
        }
    }
    families
        .into_iter()
        .flat_map(|case| cases_like(schedule, case))
        .collect()
}

/// Cases that the suite cannot know it needs: at least stages + 2 steps deep, so that a pipeline wraps around, with
/// tails on every side; and the smallest.
fn cases_like(schedule: &Schedule, like: &Case) -> Vec<Case> {
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
                    shapes(&[(schedule.tile.m + 1, schedule.tile.n + 1, k), (3, 7, 16)]),
                ),
                case(SMALLEST, shapes(&[(1, 1, 16), (0, 5, 32), (1, 2, 48)])),
            ]
        }
        Problem::Attention(attention) => {
            let keys = deep * schedule.tile.n * schedule.split_k + 1;
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
