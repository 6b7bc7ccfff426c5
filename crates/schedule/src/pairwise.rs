//! A small set of schedules in which every pair of values that can occur together does.
//!
//! Faults that depend on one or two words show in such a set, at a fraction of the cost of all combinations.

use std::collections::HashSet;

use gauntlet_device::Device;
use gauntlet_problem::Problem;

use crate::{
    Arithmetic, Choice, Cluster, Epilogue, Exponential, Layout, Lookup, Order, Packing, Roles, Schedule,
    Scores, Setup, Tile, Values, Word, accepts,
};

/// The values to combine, a list for each word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Of [`Schedule::tile`].
    pub tiles: Vec<Tile>,
    /// Of [`Schedule::stages`].
    pub stages: Vec<usize>,
    /// Of [`Schedule::epilogue`].
    pub epilogues: Vec<Epilogue>,
    /// Of [`Schedule::roles`].
    pub roles: Vec<Roles>,
    /// Of [`Schedule::order`].
    pub orders: Vec<Order>,
    /// Of [`Schedule::lookup`].
    pub lookups: Vec<Lookup>,
    /// Of [`Schedule::setup`].
    pub setups: Vec<Setup>,
    /// Of [`Schedule::swap_ab`].
    pub swap_ab: Vec<bool>,
    /// Of [`Schedule::split_k`].
    pub split_k: Vec<usize>,
    /// Of [`Schedule::cluster`].
    pub clusters: Vec<Cluster>,
    /// Of [`Schedule::packing`].
    pub packings: Vec<Packing>,
    /// Of [`Schedule::scores`].
    pub scores: Vec<Scores>,
    /// Of [`Schedule::values`].
    pub values: Vec<Values>,
    /// Of [`Schedule::layout`].
    pub layouts: Vec<Layout>,
    /// Of [`Schedule::exponential`].
    pub exponentials: Vec<Exponential>,
    /// Of [`Schedule::arithmetic`].
    pub arithmetics: Vec<Arithmetic>,
}

impl Options {
    /// Every choice, and a short list of numbers that the CPU kernels take: the usual tile, narrower and wider ones, a
    /// lopsided one, and one with more rows than columns and neither a power of two.
    pub fn cpu(problem: &Problem) -> Self {
        let tiles = match problem {
            Problem::GroupedGemm(_) => {
                vec![
                    [128, 128, 256],
                    [64, 64, 256],
                    [32, 128, 64],
                    [16, 48, 16],
                    [5, 16, 128],
                    [96, 80, 48],
                ]
            }
            Problem::Attention(attention) => {
                let size = attention.head_size;
                vec![[64, 64, size], [128, 128, size], [16, 48, size], [5, 16, size]]
            }
        };
        Self {
            tiles: tiles.into_iter().map(Tile::from).collect(),
            stages: vec![1, 2, 3],
            epilogues: all(),
            roles: all(),
            orders: all(),
            lookups: all(),
            setups: all(),
            swap_ab: vec![false, true],
            split_k: vec![1, 2, 3],
            clusters: vec![Cluster { m: 1, n: 1 }],
            packings: vec![Packing::default()],
            scores: vec![Scores::default()],
            values: vec![Values::default()],
            layouts: vec![Layout::default()],
            exponentials: vec![Exponential::default()],
            arithmetics: vec![Arithmetic::default()],
        }
    }

    /// Every combination, the last word changing fastest.
    pub fn combinations(&self) -> impl Iterator<Item = Schedule> + '_ {
        let lengths = [
            self.tiles.len(),
            self.stages.len(),
            self.epilogues.len(),
            self.roles.len(),
            self.orders.len(),
            self.lookups.len(),
            self.setups.len(),
            self.swap_ab.len(),
            self.split_k.len(),
            self.clusters.len(),
            self.packings.len(),
            self.scores.len(),
            self.values.len(),
            self.layouts.len(),
            self.exponentials.len(),
            self.arithmetics.len(),
        ];
        (0..lengths.iter().product()).map(move |number: usize| {
            let mut rest = number;
            let mut at = [0; Word::ALL.len()];
            for (index, length) in lengths.iter().enumerate().rev() {
                at[index] = rest % length;
                rest /= length;
            }
            Schedule {
                tile: self.tiles[at[0]],
                stages: self.stages[at[1]],
                epilogue: self.epilogues[at[2]],
                roles: self.roles[at[3]],
                order: self.orders[at[4]],
                lookup: self.lookups[at[5]],
                setup: self.setups[at[6]],
                swap_ab: self.swap_ab[at[7]],
                split_k: self.split_k[at[8]],
                cluster: self.clusters[at[9]],
                packing: self.packings[at[10]],
                scores: self.scores[at[11]],
                values: self.values[at[12]],
                layout: self.layouts[at[13]],
                exponential: self.exponentials[at[14]],
                arithmetic: self.arithmetics[at[15]],
            }
        })
    }
}

/// A set of schedules that the device accepts for the problem, in which every pair of values of two words that
/// occurs in any accepted combination occurs at least once. The same options give the same set, in the same order.
///
/// Greedy: each time the schedule that covers most of the pairs still missing, the first of equals.
pub fn pairwise(options: &Options, problem: &Problem, device: &Device) -> Vec<Schedule> {
    let feasible: Vec<(Schedule, Vec<Pair>)> = options
        .combinations()
        .filter(|schedule| accepts(schedule, problem, device))
        .map(|schedule| {
            let pairs = pairs(&schedule);
            (schedule, pairs)
        })
        .collect();
    let mut missing: HashSet<&Pair> = feasible.iter().flat_map(|(_, pairs)| pairs).collect();
    let mut chosen = Vec::new();
    while !missing.is_empty() {
        let mut best: Option<(usize, &(Schedule, Vec<Pair>))> = None;
        for entry in &feasible {
            let gain = entry.1.iter().filter(|pair| missing.contains(pair)).count();
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, entry));
            }
        }
        let Some((_, (schedule, pairs))) = best else { break };
        pairs.iter().for_each(|pair| {
            missing.remove(pair);
        });
        chosen.push(schedule.clone());
    }
    chosen
}

/// Two words with their values.
type Pair = ((Word, u64), (Word, u64));

/// Every pair of values in a schedule.
fn pairs(schedule: &Schedule) -> Vec<Pair> {
    let values = Word::ALL.map(|word| (word, code(word, schedule)));
    let mut pairs = Vec::with_capacity(values.len() * (values.len() - 1) / 2);
    for (index, &left) in values.iter().enumerate() {
        pairs.extend(values[index + 1..].iter().map(|&right| (left, right)));
    }
    pairs
}

/// A number that tells the values of a word apart.
fn code(word: Word, schedule: &Schedule) -> u64 {
    let join = |parts: &[usize]| parts.iter().fold(0, |code, part| code << 20 | *part as u64);
    match word {
        Word::Tile => join(&<[usize; 3]>::from(schedule.tile)),
        Word::Stages => schedule.stages as u64,
        Word::Epilogue => position(schedule.epilogue),
        Word::Roles => position(schedule.roles),
        Word::Order => position(schedule.order),
        Word::Lookup => position(schedule.lookup),
        Word::Setup => position(schedule.setup),
        Word::SwapAb => u64::from(schedule.swap_ab),
        Word::SplitK => schedule.split_k as u64,
        Word::Cluster => join(&<[usize; 2]>::from(schedule.cluster)),
        Word::Packing => position(schedule.packing),
        Word::Scores => position(schedule.scores),
        Word::Values => position(schedule.values),
        Word::Layout => position(schedule.layout),
        Word::Exponential => position(schedule.exponential),
        Word::Arithmetic => position(schedule.arithmetic),
    }
}

fn position<T: Choice>(value: T) -> u64 {
    T::ALL.iter().take_while(|(other, _)| *other != value).count() as u64
}

fn all<T: Choice>() -> Vec<T> {
    T::ALL.iter().map(|(value, _)| *value).collect()
}
