//! Assigns tiles to clusters.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use gauntlet_problems::Order;

use super::work::Kind;

/// Clusters that get the same kinds of tiles at the same time, and so behave alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The first of them.
    pub cluster: usize,
    /// The number of clusters.
    pub alike: usize,
    /// The first tiles of each resident block, by kind.
    pub blocks: Vec<Vec<usize>>,
}

/// All tiles, assigned as far as possible before the kernel starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deal {
    /// The tiles that each cluster starts with.
    pub shares: Vec<Share>,
    /// The remaining tiles, for the first free cluster, by kind, in runs.
    pub queue: Queue,
    /// Whether a block computes only one tile.
    pub one_each: bool,
}

/// Runs of equal tiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Kind and count; the next run is last.
    runs: Vec<(usize, usize)>,
}

impl Queue {
    /// The kind and number of the next tiles, at most `wanted`.
    pub(super) fn take(&mut self, wanted: usize) -> Option<(usize, usize)> {
        let (kind, left) = self.runs.last_mut()?;
        let taken = wanted.min(*left);
        let kind = *kind;
        *left -= taken;
        if *left == 0 {
            self.runs.pop();
        }
        Some((kind, taken))
    }
}

impl Deal {
    /// Assigns `kinds` to `clusters` clusters of multiprocessors, each with `resident` blocks at a time.
    pub fn of(kinds: &[Kind], order: Order, clusters: usize, resident: usize) -> Self {
        let mut runs: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| (index, kind.count))
            .collect();
        if order == Order::Sorted {
            runs.sort_by(|(left, _), (right, _)| weight(&kinds[*right]).total_cmp(&weight(&kinds[*left])));
        }
        match order {
            Order::Static => Self::fixed(in_turn(&runs, clusters)),
            Order::Sorted => Self::fixed(longest_first(&runs, kinds, clusters)),
            Order::PerTile | Order::Dynamic => {
                let first = clusters * resident;
                let mut blocks = vec![Vec::with_capacity(resident); clusters];
                for (place, kind) in each(&runs).take(first).enumerate() {
                    blocks[place % clusters].push(vec![kind]);
                }
                Self {
                    shares: alike(blocks),
                    queue: rest(&runs, first),
                    one_each: order == Order::PerTile,
                }
            }
        }
    }

    fn fixed(lists: Vec<Vec<usize>>) -> Self {
        Self {
            shares: alike(lists.into_iter().map(|list| vec![list]).collect()),
            queue: Queue::default(),
            one_each: false,
        }
    }
}

/// Assigns tiles to clusters in turn.
fn in_turn(runs: &[(usize, usize)], clusters: usize) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); clusters];
    for (place, kind) in each(runs).enumerate() {
        lists[place % clusters].push(kind);
    }
    lists
}

/// Assigns each tile, the most expensive first, to the cluster with the least work so far (Graham's
/// longest-processing-time rule).
fn longest_first(runs: &[(usize, usize)], kinds: &[Kind], clusters: usize) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); clusters];
    // The bit patterns of non-negative loads sort like their values.
    let mut loads: BinaryHeap<_> = (0..clusters).map(|cluster| Reverse((0_u64, cluster))).collect();
    for kind in each(runs) {
        if let Some(mut least) = loads.peek_mut() {
            let Reverse((load, cluster)) = *least;
            lists[cluster].push(kind);
            *least = Reverse(((f64::from_bits(load) + weight(&kinds[kind])).to_bits(), cluster));
        }
    }
    lists
}

/// The relative cost of a tile: the bytes it reads, since tiles of a kind multiply alike.
fn weight(kind: &Kind) -> f64 {
    kind.steps as f64 * kind.depth * (kind.rows + kind.columns)
}

fn each(runs: &[(usize, usize)]) -> impl Iterator<Item = usize> {
    runs.iter()
        .flat_map(|&(kind, count)| std::iter::repeat_n(kind, count))
}

/// The runs without the first tiles; the next run is last.
fn rest(runs: &[(usize, usize)], mut first: usize) -> Queue {
    let mut left = Vec::with_capacity(runs.len());
    for &(kind, count) in runs {
        let dealt = first.min(count);
        first -= dealt;
        if count > dealt {
            left.push((kind, count - dealt));
        }
    }
    left.reverse();
    Queue { runs: left }
}

fn alike(blocks: Vec<Vec<Vec<usize>>>) -> Vec<Share> {
    let mut places: HashMap<Vec<Vec<usize>>, usize> = HashMap::new();
    let mut shares: Vec<Share> = Vec::new();
    for (cluster, blocks) in blocks.into_iter().enumerate() {
        if blocks.iter().all(Vec::is_empty) {
            continue;
        }
        match places.get(&blocks) {
            Some(&place) => shares[place].alike += 1,
            None => {
                places.insert(blocks.clone(), shares.len());
                shares.push(Share {
                    cluster,
                    alike: 1,
                    blocks,
                });
            }
        }
    }
    shares
}
