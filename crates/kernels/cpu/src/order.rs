//! Which worker computes which tile, and when.

use std::sync::atomic::{AtomicUsize, Ordering};

use gauntlet_problems::Order;

/// The tiles of a problem, assigned as the schedule's order says.
#[derive(Debug)]
pub(crate) struct Assignment {
    tiles: usize,
    workers: usize,
    dealing: Dealing,
}

#[derive(Debug)]
enum Dealing {
    /// One tile per worker and wave.
    Waves,
    /// A fixed list per worker.
    Shares(Vec<Vec<usize>>),
    /// A shared counter: each request gets the next tile.
    Counter(AtomicUsize),
}

impl Assignment {
    /// Assigns one tile for each of `costs` (in any unit) to `workers`.
    pub fn new(order: Order, costs: &[u64], workers: usize) -> Self {
        let dealing = match order {
            Order::PerTile => Dealing::Waves,
            Order::Static => Dealing::Shares(contiguous(costs.len(), workers)),
            Order::Sorted => Dealing::Shares(longest_first(costs, workers)),
            Order::Dynamic => Dealing::Counter(AtomicUsize::new(0)),
        };
        Self {
            tiles: costs.len(),
            workers,
            dealing,
        }
    }

    /// The number of waves that compute all tiles; each begins when the one before is complete.
    pub fn waves(&self) -> usize {
        match self.dealing {
            Dealing::Waves => self.tiles.div_ceil(self.workers),
            _ => 1,
        }
    }

    /// Resets the counter before a new run.
    pub fn restart(&self) {
        if let Dealing::Counter(next) = &self.dealing {
            next.store(0, Ordering::Relaxed);
        }
    }

    /// The next tile of `worker`, which has taken `taken` tiles in this wave; `None` when it is done.
    pub fn next(&self, wave: usize, worker: usize, taken: usize) -> Option<usize> {
        match &self.dealing {
            Dealing::Waves => {
                Some(wave * self.workers + worker).filter(|tile| taken == 0 && *tile < self.tiles)
            }
            Dealing::Shares(shares) => shares[worker].get(taken).copied(),
            Dealing::Counter(next) => {
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|tile| *tile < self.tiles)
            }
        }
    }

    /// A guess at the result of [`next`](Self::next) in this wave if the other workers take `others` tiles first. Takes
    /// nothing.
    pub fn likely(&self, worker: usize, taken: usize, others: usize) -> Option<usize> {
        match &self.dealing {
            Dealing::Waves => None,
            Dealing::Shares(shares) => shares[worker].get(taken).copied(),
            Dealing::Counter(next) => {
                Some(next.load(Ordering::Relaxed) + others).filter(|tile| *tile < self.tiles)
            }
        }
    }
}

fn contiguous(tiles: usize, workers: usize) -> Vec<Vec<usize>> {
    (0..workers)
        .map(|worker| (tiles * worker / workers..tiles * (worker + 1) / workers).collect())
        .collect()
}

/// Assigns each tile, the most expensive first, to the worker with the least work so far (Graham's
/// longest-processing-time rule).
fn longest_first(costs: &[u64], workers: usize) -> Vec<Vec<usize>> {
    let mut tiles: Vec<usize> = (0..costs.len()).collect();
    tiles.sort_by_key(|tile| std::cmp::Reverse(costs[*tile]));
    let mut shares = vec![Vec::new(); workers];
    let mut loads = vec![0_u64; workers];
    for tile in tiles {
        let least = (0..workers).min_by_key(|worker| loads[*worker]).unwrap_or(0);
        loads[least] = loads[least].saturating_add(costs[tile]);
        shares[least].push(tile);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(assignment: &Assignment, workers: usize) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); workers];
        assignment.restart();
        for wave in 0..assignment.waves() {
            for (worker, list) in lists.iter_mut().enumerate() {
                let mut count = 0;
                while let Some(tile) = assignment.next(wave, worker, count) {
                    list.push(tile);
                    count += 1;
                }
            }
        }
        lists
    }

    #[test]
    fn every_order_deals_out_each_tile_once() {
        for order in [Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic] {
            for workers in 1..5 {
                for tiles in 0..12 {
                    let costs: Vec<u64> = (0..tiles).map(|tile| tile * 7 % 5 + 1).collect();
                    let assignment = Assignment::new(order, &costs, workers);
                    for _ in 0..2 {
                        let mut all = taken(&assignment, workers).concat();
                        all.sort_unstable();
                        assert_eq!(all, (0..costs.len()).collect::<Vec<_>>(), "{order:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_likely_comes_next_unless_others_are_quicker() {
        for order in [Order::Static, Order::Sorted, Order::Dynamic] {
            let assignment = Assignment::new(order, &[1, 9, 2, 8, 3], 2);
            let mut count = 0;
            loop {
                let likely = assignment.likely(1, count, 0);
                let next = assignment.next(0, 1, count);
                assert_eq!(likely, next, "{order:?}");
                count += 1;
                if next.is_none() {
                    break;
                }
            }
        }
        let dynamic = Assignment::new(Order::Dynamic, &[1; 5], 2);
        assert_eq!(dynamic.likely(0, 0, 1), Some(1));
        assert_eq!(dynamic.likely(0, 0, 5), None);
        assert_eq!(dynamic.next(0, 0, 0), Some(0));
    }

    #[test]
    fn each_order_is_what_it_says() {
        let costs = [1, 9, 2, 8, 3];
        let deal = |order| taken(&Assignment::new(order, &costs, 2), 2);
        assert_eq!(deal(Order::PerTile), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(deal(Order::Static), [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(deal(Order::Sorted), [vec![1, 2, 0], vec![3, 4]]);
        assert_eq!(Assignment::new(Order::PerTile, &costs, 2).waves(), 3);
        assert_eq!(Assignment::new(Order::Static, &costs, 2).waves(), 1);
    }
}
