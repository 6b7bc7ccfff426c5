//! The parts of a schedule that rules are about and remedies change.

use crate::{
    Arithmetic, Choice, Cluster, Epilogue, Exponential, Layout, Order, Packing, Roles, Schedule, Scores,
    Tile, Values,
};

const TILE_M: &[usize] = &[1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512];
const TILE_N: &[usize] = &[8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512];
const TILE_K: &[usize] = &[16, 32, 64, 96, 128, 192, 256, 512];
const STAGES: &[usize] = &[1, 2, 3, 4, 5, 6, 7, 8];
const SPLIT_K: &[usize] = &[1, 2, 3, 4, 6, 8, 12, 16];
const CLUSTERS: &[[usize; 2]] = &[
    [1, 1],
    [2, 1],
    [1, 2],
    [2, 2],
    [4, 1],
    [1, 4],
    [2, 4],
    [4, 2],
    [8, 1],
    [1, 8],
];

/// The cost of choosing another name, or exchanging the operands, in doublings of a number: as much as a factor 4.
const CHOICE_DISTANCE: f64 = 2.0;

/// A part of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lever {
    TileM,
    TileN,
    TileK,
    Stages,
    Epilogue,
    Roles,
    Order,
    SwapAb,
    SplitK,
    Cluster,
    Packing,
    Scores,
    Values,
    Layout,
    Exponential,
    Arithmetic,
}

impl Lever {
    pub(super) const ALL: [Self; 16] = [
        Self::TileM,
        Self::TileN,
        Self::TileK,
        Self::Stages,
        Self::Epilogue,
        Self::Roles,
        Self::Order,
        Self::SwapAb,
        Self::SplitK,
        Self::Cluster,
        Self::Packing,
        Self::Scores,
        Self::Values,
        Self::Layout,
        Self::Exponential,
        Self::Arithmetic,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TileM => "tile.m",
            Self::TileN => "tile.n",
            Self::TileK => "tile.k",
            Self::Stages => "stages",
            Self::Epilogue => "epilogue",
            Self::Roles => "roles",
            Self::Order => "order",
            Self::SwapAb => "swap-ab",
            Self::SplitK => "split-k",
            Self::Cluster => "cluster",
            Self::Packing => "packing",
            Self::Scores => "scores",
            Self::Values => "values",
            Self::Layout => "layout",
            Self::Exponential => "exponential",
            Self::Arithmetic => "arithmetic",
        }
    }

    pub(super) fn value(self, schedule: &Schedule) -> String {
        match self {
            Self::TileM => schedule.tile.m.to_string(),
            Self::TileN => schedule.tile.n.to_string(),
            Self::TileK => schedule.tile.k.to_string(),
            Self::Stages => schedule.stages.to_string(),
            Self::Epilogue => schedule.epilogue.to_string(),
            Self::Roles => schedule.roles.to_string(),
            Self::Order => schedule.order.to_string(),
            Self::SwapAb => schedule.swap_ab.to_string(),
            Self::SplitK => schedule.split_k.to_string(),
            Self::Cluster => schedule.cluster.to_string(),
            Self::Packing => schedule.packing.to_string(),
            Self::Scores => schedule.scores.to_string(),
            Self::Values => schedule.values.to_string(),
            Self::Layout => schedule.layout.to_string(),
            Self::Exponential => schedule.exponential.to_string(),
            Self::Arithmetic => schedule.arithmetic.to_string(),
        }
    }

    /// `into` with this part as it is in `from`; for an exchange of operands, with the tile that goes with it.
    pub(super) fn carry(self, from: &Schedule, into: &Schedule) -> Schedule {
        let tile = into.tile;
        let into = into.clone();
        match self {
            Self::TileM => Schedule {
                tile: Tile {
                    m: from.tile.m,
                    ..tile
                },
                ..into
            },
            Self::TileN => Schedule {
                tile: Tile {
                    n: from.tile.n,
                    ..tile
                },
                ..into
            },
            Self::TileK => Schedule {
                tile: Tile {
                    k: from.tile.k,
                    ..tile
                },
                ..into
            },
            Self::Stages => Schedule {
                stages: from.stages,
                ..into
            },
            Self::Epilogue => Schedule {
                epilogue: from.epilogue,
                ..into
            },
            Self::Roles => Schedule {
                roles: from.roles,
                ..into
            },
            Self::Order => Schedule {
                order: from.order,
                ..into
            },
            Self::SwapAb => Schedule {
                swap_ab: from.swap_ab,
                tile: Tile {
                    k: tile.k,
                    ..from.tile
                },
                ..into
            },
            Self::SplitK => Schedule {
                split_k: from.split_k,
                ..into
            },
            Self::Cluster => Schedule {
                cluster: from.cluster,
                ..into
            },
            Self::Packing => Schedule {
                packing: from.packing,
                ..into
            },
            Self::Scores => Schedule {
                scores: from.scores,
                ..into
            },
            Self::Values => Schedule {
                values: from.values,
                ..into
            },
            Self::Layout => Schedule {
                layout: from.layout,
                ..into
            },
            Self::Exponential => Schedule {
                exponential: from.exponential,
                ..into
            },
            Self::Arithmetic => Schedule {
                arithmetic: from.arithmetic,
                ..into
            },
        }
    }

    /// Schedules that differ in this part only, each with its distance, the nearest first; of two equally near the
    /// larger number. Exchanging the operands carries `tile.m` over to `tile.n` and may choose another `tile.m`.
    pub(super) fn alternatives(self, schedule: &Schedule, depth: Option<usize>) -> Vec<(f64, Schedule)> {
        let tile = schedule.tile;
        let with_tile = |tile| Schedule {
            tile,
            ..schedule.clone()
        };
        let mut found: Vec<(f64, Schedule)> = match self {
            Self::TileM => numbers(tile.m, TILE_M, |m| with_tile(Tile { m, ..tile })),
            Self::TileN => numbers(tile.n, TILE_N, |n| with_tile(Tile { n, ..tile })),
            Self::TileK => match depth {
                Some(depth) => numbers(tile.k, &[depth], |k| with_tile(Tile { k, ..tile })),
                None => numbers(tile.k, TILE_K, |k| with_tile(Tile { k, ..tile })),
            },
            Self::Stages => numbers(schedule.stages, STAGES, |stages| Schedule {
                stages,
                ..schedule.clone()
            }),
            Self::SplitK => numbers(schedule.split_k, SPLIT_K, |split_k| Schedule {
                split_k,
                ..schedule.clone()
            }),
            Self::Epilogue => choices(|epilogue: Epilogue| Schedule {
                epilogue,
                ..schedule.clone()
            }),
            Self::Roles => choices(|roles: Roles| Schedule {
                roles,
                ..schedule.clone()
            }),
            Self::Order => choices(|order: Order| Schedule {
                order,
                ..schedule.clone()
            }),
            Self::Packing => choices(|packing: Packing| Schedule {
                packing,
                ..schedule.clone()
            }),
            Self::Scores => choices(|scores: Scores| Schedule {
                scores,
                ..schedule.clone()
            }),
            Self::Values => choices(|values: Values| Schedule {
                values,
                ..schedule.clone()
            }),
            Self::Layout => choices(|layout: Layout| Schedule {
                layout,
                ..schedule.clone()
            }),
            Self::Exponential => choices(|exponential: Exponential| Schedule {
                exponential,
                ..schedule.clone()
            }),
            Self::Arithmetic => choices(|arithmetic: Arithmetic| Schedule {
                arithmetic,
                ..schedule.clone()
            }),
            Self::Cluster => CLUSTERS
                .iter()
                .map(|&[m, n]| {
                    let distance = octaves(m, schedule.cluster.m) + octaves(n, schedule.cluster.n);
                    (
                        distance,
                        Schedule {
                            cluster: Cluster { m, n },
                            ..schedule.clone()
                        },
                    )
                })
                .collect(),
            Self::SwapAb => TILE_M
                .iter()
                .map(|&m| {
                    let exchanged = with_tile(Tile {
                        m,
                        n: tile.m,
                        k: tile.k,
                    });
                    let swapped = Schedule {
                        swap_ab: !schedule.swap_ab,
                        ..exchanged
                    };
                    (CHOICE_DISTANCE + octaves(m, tile.n), swapped)
                })
                .collect(),
        };
        found.retain(|(_, other)| other != schedule);
        found.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        found
    }
}

fn numbers(from: usize, to: &[usize], with: impl Fn(usize) -> Schedule) -> Vec<(f64, Schedule)> {
    to.iter()
        .rev()
        .map(|&value| (octaves(value, from), with(value)))
        .collect()
}

fn choices<T: Choice>(with: impl Fn(T) -> Schedule) -> Vec<(f64, Schedule)> {
    T::ALL
        .iter()
        .map(|(value, _)| (CHOICE_DISTANCE, with(*value)))
        .collect()
}

/// How many doublings lie between two numbers.
fn octaves(left: usize, right: usize) -> f64 {
    ((left.max(1) as f64) / (right.max(1) as f64)).log2().abs()
}
