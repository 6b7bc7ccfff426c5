//! The parts of a schedule that rules are about and remedies change: parameters, and the sides of a tile.

use gauntlet_parameters::{Domain, Parameters, Value};
use gauntlet_problems::{Cluster, Schedule, Tile};

/// The distance of choosing another word, or of exchanging the operands, in doublings of a number: equal to a factor of
/// 4.
const CHOICE_DISTANCE: f64 = 2.0;

/// The numbers that remedies try.
const NUMBERS: &[(Lever, &[usize])] = &[
    (TILE_M, &[1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512]),
    (
        TILE_N,
        &[8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512],
    ),
    (TILE_K, &[16, 32, 64, 96, 128, 192, 256, 512]),
    (STAGES, &[1, 2, 3, 4, 5, 6, 7, 8]),
    (SPLIT_K, &[1, 2, 3, 4, 6, 8, 12, 16]),
];

/// The clusters that remedies try.
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

/// A parameter of the schedule's table, or one number of it, as in `tile.m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lever(&'static str);

/// Rows of a tile.
pub const TILE_M: Lever = Lever("tile.m");
/// Columns of a tile.
pub const TILE_N: Lever = Lever("tile.n");
/// Depth of a tile.
pub const TILE_K: Lever = Lever("tile.k");
/// The parameter `stages`.
pub const STAGES: Lever = Lever("stages");
/// The parameter `epilogue`.
pub const EPILOGUE: Lever = Lever("epilogue");
/// The parameter `roles`.
pub const ROLES: Lever = Lever("roles");
/// The parameter `order`.
pub const ORDER: Lever = Lever("order");
/// The parameter `swap-ab`.
pub const SWAP_AB: Lever = Lever("swap-ab");
/// The parameter `split-k`.
pub const SPLIT_K: Lever = Lever("split-k");
/// The parameter `cluster`.
pub const CLUSTER: Lever = Lever("cluster");
/// The parameter `packing`.
pub const PACKING: Lever = Lever("packing");
/// The parameter `maps`.
pub const MAPS: Lever = Lever("maps");
/// The parameter `scores`.
pub const SCORES: Lever = Lever("scores");
/// The parameter `values`.
pub const VALUES: Lever = Lever("values");
/// The parameter `layout`.
pub const LAYOUT: Lever = Lever("layout");
/// The parameter `exponential`.
pub const EXPONENTIAL: Lever = Lever("exponential");
/// The parameter `arithmetic`.
pub const ARITHMETIC: Lever = Lever("arithmetic");

impl Lever {
    /// Every part of a schedule, in the order of its table; a tile as its three sides.
    pub(super) fn all() -> Vec<Self> {
        let parameters = Schedule::table().parameters().iter();
        parameters
            .flat_map(|parameter| match parameter.name.as_ref() {
                "tile" => vec![TILE_M, TILE_N, TILE_K],
                _ => match &parameter.name {
                    std::borrow::Cow::Borrowed(name) => vec![Self(name)],
                    std::borrow::Cow::Owned(_) => Vec::new(),
                },
            })
            .collect()
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    /// The parameter, and which of its numbers.
    fn parts(self) -> (&'static str, Option<usize>) {
        match self.0.split_once('.') {
            Some((parameter, side)) => (parameter, ["m", "n", "k"].iter().position(|known| *known == side)),
            None => (self.0, None),
        }
    }

    fn get(self, schedule: &Schedule) -> Option<Value> {
        let (name, side) = self.parts();
        let value = schedule.parameters().get(name)?.clone();
        match (value, side) {
            (Value::Numbers(numbers), Some(side)) => numbers.get(side).map(|number| Value::Number(*number)),
            (value, _) => Some(value),
        }
    }

    /// The schedule with another value here; unchanged by a value that the parameter does not accept.
    fn set(self, schedule: &Schedule, value: Value) -> Schedule {
        let (name, side) = self.parts();
        let value = match (schedule.parameters().get(name), side, value) {
            (Some(Value::Numbers(numbers)), Some(side), Value::Number(number)) => {
                let mut numbers = numbers.clone();
                if let Some(place) = numbers.get_mut(side) {
                    *place = number;
                }
                Value::Numbers(numbers)
            }
            (_, _, value) => value,
        };
        let change = Parameters::new().with(name, value);
        schedule.changed(&change).unwrap_or_else(|_| schedule.clone())
    }

    pub(super) fn value(self, schedule: &Schedule) -> String {
        self.get(schedule)
            .map_or_else(String::new, |value| value.to_string())
    }

    /// `into` with this part as it is in `from`; for an exchange of operands, with the tile that goes with it.
    pub(super) fn carry(self, from: &Schedule, into: &Schedule) -> Schedule {
        if self == SWAP_AB {
            let tile = Tile {
                k: into.tile.k,
                ..from.tile
            };
            return Schedule {
                swap_ab: from.swap_ab,
                tile,
                ..into.clone()
            };
        }
        match self.get(from) {
            Some(value) => self.set(into, value),
            None => into.clone(),
        }
    }

    /// Schedules that differ in this part only, each with its distance, the nearest first; of two equally near the
    /// larger number. Exchanging the operands carries `tile.m` over to `tile.n` and may choose another `tile.m`.
    pub(super) fn alternatives(self, schedule: &Schedule, depth: Option<usize>) -> Vec<(f64, Schedule)> {
        let mut found = match self {
            SWAP_AB => exchanged(schedule),
            CLUSTER => clusters(schedule),
            _ => match NUMBERS.iter().find(|(lever, _)| *lever == self) {
                Some((_, numbers)) => self.numbers(schedule, numbers, depth),
                None => self.choices(schedule),
            },
        };
        found.retain(|(_, other)| other != schedule);
        found.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        found
    }

    fn numbers(self, schedule: &Schedule, numbers: &[usize], depth: Option<usize>) -> Vec<(f64, Schedule)> {
        let depth = depth.filter(|_| self == TILE_K).map(|depth| [depth]);
        let numbers = depth.as_ref().map_or(numbers, |depth| depth.as_slice());
        let now = self.get(schedule).and_then(|value| value.number()).unwrap_or(1);
        let other = |&number: &usize| (octaves(number, now as usize), self.set(schedule, number.into()));
        numbers.iter().rev().map(other).collect()
    }

    fn choices(self, schedule: &Schedule) -> Vec<(f64, Schedule)> {
        let domain = Schedule::table().find(self.0).map(|parameter| &parameter.domain);
        let words = domain.map_or_else(Vec::new, Domain::values);
        words
            .into_iter()
            .map(|word| (CHOICE_DISTANCE, self.set(schedule, word)))
            .collect()
    }
}

fn clusters(schedule: &Schedule) -> Vec<(f64, Schedule)> {
    let other = |&[m, n]: &[usize; 2]| {
        let distance = octaves(m, schedule.cluster.m) + octaves(n, schedule.cluster.n);
        let cluster = Cluster { m, n };
        (
            distance,
            Schedule {
                cluster,
                ..schedule.clone()
            },
        )
    };
    CLUSTERS.iter().map(other).collect()
}

fn exchanged(schedule: &Schedule) -> Vec<(f64, Schedule)> {
    let tile = schedule.tile;
    let rows = NUMBERS.iter().find(|(lever, _)| *lever == TILE_M);
    let other = |&m: &usize| {
        let swapped = Schedule {
            swap_ab: !schedule.swap_ab,
            tile: Tile {
                m,
                n: tile.m,
                k: tile.k,
            },
            ..schedule.clone()
        };
        (CHOICE_DISTANCE + octaves(m, tile.n), swapped)
    };
    rows.map_or_else(Vec::new, |(_, numbers)| numbers.iter().map(other).collect())
}

/// How many doublings lie between two numbers.
fn octaves(left: usize, right: usize) -> f64 {
    ((left.max(1) as f64) / (right.max(1) as f64)).log2().abs()
}
