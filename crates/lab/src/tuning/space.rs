//! The schedules that are looked at: for each architecture the values of each word that make a difference there.
//!
//! What follows from shapes alone is set up once and looked up in a table in all of them: on a plan that is made once
//! these cost nothing, so they are no choice.

use gauntlet_device::{Arch, Device};
use gauntlet_problem::Problem;
use gauntlet_schedule::{
    Arithmetic, Choice, Cluster, Epilogue, Exponential, Layout, Lookup, Options, Order, Packing, Roles,
    Schedule, Scores, Setup, Tile, Values,
};

/// Every schedule of the space for a problem, whether the device accepts it or not, always in the same order.
pub fn space(problem: &Problem, device: &Device) -> Vec<Schedule> {
    options(problem, device.arch).combinations().collect()
}

fn options(problem: &Problem, arch: Arch) -> Options {
    let grid = Grid::of(problem, arch);
    let (columns, depths) = (&grid.columns, &grid.depths);
    let tiles = grid.rows.iter().flat_map(|&m| {
        let columns = columns.iter();
        columns.flat_map(move |&n| depths.iter().map(move |&k| Tile { m, n, k }))
    });
    let is_gemm = matches!(problem, Problem::GroupedGemm(_));
    let one = Cluster { m: 1, n: 1 };
    Options {
        tiles: tiles.collect(),
        stages: grid.stages.to_vec(),
        epilogues: all::<Epilogue>(),
        roles: all::<Roles>(),
        orders: all::<Order>(),
        lookups: vec![Lookup::Precomputed],
        setups: vec![Setup::Once],
        swap_ab: if is_gemm { vec![false, true] } else { vec![false] },
        split_k: grid.splits.to_vec(),
        clusters: match arch {
            Arch::Cpu | Arch::Sm80 | Arch::Sm89 => vec![one],
            // There a split of keys is one over the blocks of a cluster.
            Arch::Sm90a if !is_gemm => grid.splits.iter().map(|&n| Cluster { m: 1, n }).collect(),
            Arch::Sm90a | Arch::Sm100a => vec![one, Cluster { m: 2, n: 1 }],
        },
        // Whether weights are repacked is no choice of the caller's who has them as they are.
        packings: vec![Packing::default()],
        scores: vec![Scores::default()],
        values: vec![Values::default()],
        layouts: vec![Layout::default()],
        exponentials: vec![Exponential::default()],
        arithmetics: if is_gemm || arch == Arch::Cpu {
            vec![Arithmetic::default()]
        } else {
            all::<Arithmetic>()
        },
    }
}

fn all<T: Choice>() -> Vec<T> {
    T::ALL.iter().map(|(value, _)| *value).collect()
}

/// Numbers to try. A tile that reaches beyond the problem computes nothing but padding more, so of those only the
/// smallest is there.
struct Grid {
    rows: Vec<usize>,
    columns: Vec<usize>,
    depths: Vec<usize>,
    stages: &'static [usize],
    splits: &'static [usize],
}

impl Grid {
    fn of(problem: &Problem, arch: Arch) -> Self {
        let on_cpu = arch == Arch::Cpu;
        let rows: &[usize] = if on_cpu {
            &[16, 32, 64, 128, 256]
        } else {
            &[64, 128, 256]
        };
        let columns: &[usize] = if on_cpu {
            &[32, 64, 128, 256]
        } else {
            &[16, 32, 64, 128, 256]
        };
        let depths: &[usize] = if on_cpu {
            &[64, 128, 256, 512, 1024]
        } else {
            &[128, 256]
        };
        let stages: &[usize] = if on_cpu { &[1, 2, 3, 4] } else { &[2, 3, 4, 6, 8] };
        let splits: &[usize] = if on_cpu { &[1, 2] } else { &[1, 2, 4] };
        match problem {
            Problem::GroupedGemm(gemm) => {
                let most = |size: fn(&gauntlet_problem::GemmShape) -> usize| {
                    gemm.groups.iter().map(size).max().unwrap_or(1)
                };
                // With swap-AB tokens take the place of weights, so either side may have either size.
                let widest = most(|shape| shape.m).max(most(|shape| shape.n));
                Self {
                    rows: up_to(rows, widest),
                    columns: up_to(columns, widest),
                    depths: up_to(depths, most(|shape| shape.k)),
                    stages,
                    splits,
                }
            }
            Problem::Attention(attention) => {
                let most = |size: fn(&gauntlet_problem::Sequence) -> usize| {
                    attention.sequences.iter().map(size).max().unwrap_or(1)
                };
                // What the kernels of sm_90a take; there one stage is of use too, where all keys are held at once.
                let (rows, columns, stages): (&[usize], &[usize], _) = match arch {
                    Arch::Sm90a => (&[64, 128, 192, 256], &[64, 128, 256], [1, 2, 3, 4].as_slice()),
                    Arch::Cpu | Arch::Sm80 | Arch::Sm89 | Arch::Sm100a => (rows, columns, stages),
                };
                Self {
                    rows: up_to(rows, most(|sequence| sequence.queries)),
                    columns: up_to(columns, most(|sequence| sequence.keys)),
                    depths: vec![attention.head_size],
                    stages,
                    splits,
                }
            }
        }
    }
}

/// The rising values up to the first that covers `size`.
fn up_to(values: &[usize], size: usize) -> Vec<usize> {
    let covered = values.iter().position(|value| *value >= size);
    values[..covered.map_or(values.len(), |place| place + 1)].to_vec()
}

#[cfg(test)]
mod tests {
    use gauntlet_problem::Suite;
    use gauntlet_schedule::accepts;

    use super::*;

    #[test]
    fn nothing_beyond_the_first_tile_that_covers_the_problem() {
        assert_eq!(up_to(&[16, 32, 64], 17), [16, 32]);
        assert_eq!(up_to(&[16, 32, 64], 16), [16]);
        assert_eq!(up_to(&[16, 32, 64], 1000), [16, 32, 64]);
    }

    #[test]
    fn every_device_accepts_some_of_its_space_and_the_order_is_fixed() {
        for name in ["host", "a100", "h200", "b200"] {
            let device = if name == "host" {
                Device::host()
            } else {
                Device::builtin(name).unwrap()
            };
            for suite in ["group-gemm", "attention"] {
                let problem = &Suite::builtin(suite).unwrap().benchmark[0].problem;
                let points = space(problem, &device);
                assert_eq!(points, space(problem, &device));
                let some = points
                    .iter()
                    .filter(|schedule| accepts(schedule, problem, &device));
                assert!(some.take(9).count() == 9, "{name}, {suite}");
            }
        }
    }
}
