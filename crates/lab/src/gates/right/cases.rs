//! The cases that a schedule needs and no suite knows.

use gauntlet_problem::{Attention, Case, GemmShape, GroupedGemm, Problem, Sequence};
use gauntlet_schedule::Schedule;

/// Cases that the suite cannot know it needs: at least stages + 2 steps deep, so that a pipeline wraps around, with
/// tails on every side; and the smallest.
pub fn cases_for(schedule: &Schedule, like: Option<&Case>) -> Vec<Case> {
    let Some(like) = like else { return Vec::new() };
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
                    "deep, with tails",
                    shapes(&[(schedule.tile.m + 1, schedule.tile.n + 1, k), (3, 7, 16)]),
                ),
                case("smallest", shapes(&[(1, 1, 16), (0, 5, 32), (1, 2, 48)])),
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
                case("deep, with tails", sequences(&[(schedule.tile.m + 1, keys)])),
                case("smallest", sequences(&[(1, 1), (2, 3)])),
            ]
        }
    }
}
