//! Checks by counting whether tiles can be packed: workers with equal time left form one entry, and no placement is
//! recorded. Most packings of a search fail; this detects failure for hundreds of tiles at the cost of a few.

use super::packing::Placement;
use super::work::{Kind, Piece};

/// Tolerance for rounding in sums of nanoseconds.
const ROUNDING: f64 = 1.0 + 1e-9;

/// The time that workers have left.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Nanoseconds, and the number of workers that have this much left; the least first.
    left: Vec<(f64, usize)>,
    /// Kinds with tiles that fit no worker whole, and how many those are.
    rest: Vec<(usize, usize)>,
}

impl Counts {
    /// The finish time of the last of `workers` workers for all tiles, cut into at most `most_parts` parts, if it is
    /// within the deadline. It equals the result of [`Packer::pack`](super::packing::Packer::pack), which places the
    /// tiles.
    pub fn fit(
        &mut self,
        kinds: &[Kind],
        placement: Placement,
        workers: usize,
        most_parts: usize,
        deadline: f64,
    ) -> Option<f64> {
        self.left.clear();
        self.left.push((deadline, workers));
        self.rest.clear();
        for (index, kind) in kinds.iter().enumerate() {
            let rest = match placement {
                Placement::LeastLeft => self.place_where_least_left(kind.whole, kind.blocks),
                Placement::MostLeft => self.place_where_most_left(kind.whole, kind.blocks),
            };
            if rest > 0 {
                if most_parts == 1 {
                    return None;
                }
                self.rest.push((index, rest));
            }
        }
        if self.too_little_is_left(kinds) {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        let all = rest.iter().all(|&(index, count)| {
            let kind = &kinds[index];
            let most = most_parts.min(workers).min(kind.chunks / 2);
            (0..count).all(|_| self.cut(kind, most))
        });
        self.rest = rest;
        let least_left = self.left.first().map_or(deadline, |&(left, _)| left);
        all.then_some(deadline - least_left)
    }

    /// Tiles of one cost, each to a worker with the most left; returns how many fit nowhere.
    fn place_where_most_left(&mut self, cost: f64, mut count: usize) -> usize {
        while count > 0 {
            let Some(&(left, workers)) = self.left.last().filter(|&&(left, _)| left >= cost) else {
                return count;
            };
            let filled = count.min(workers);
            self.shift(self.left.len() - 1, filled, left - cost);
            count -= filled;
        }
        0
    }

    /// Tiles of one cost, each to a worker with the least that is enough; returns how many fit nowhere.
    fn place_where_least_left(&mut self, cost: f64, mut count: usize) -> usize {
        while count > 0 {
            let place = self.left.partition_point(|&(left, _)| left < cost);
            let Some(&(mut left, workers)) = self.left.get(place) else {
                return count;
            };
            // One worker of the entry with the least sufficient time takes tiles until it is full, then the next worker
            // of that entry.
            let mut each = 0;
            while left >= cost && each < count {
                left -= cost;
                each += 1;
            }
            let filled = (count / each).min(workers);
            self.shift(place, filled, left);
            count -= filled * each;
        }
        0
    }

    /// Whether tiles that fit no worker whole need more than all the time left, even if each were cut in two without
    /// loss.
    fn too_little_is_left(&self, kinds: &[Kind]) -> bool {
        let halves = |&(index, count): &(usize, usize)| {
            let kind = &kinds[index];
            count as f64 * (2.0 * kind.part + kind.chunks as f64 * kind.chunk)
        };
        let needed: f64 = self.rest.iter().map(halves).sum();
        let left: f64 = self
            .left
            .iter()
            .map(|&(left, workers)| left * workers as f64)
            .sum();
        needed > left * ROUNDING
    }

    /// Cuts a tile into as few parts as fit, up to a maximum: all but the last fill the workers with the most time
    /// left, and the last goes where it fits best.
    fn cut(&mut self, kind: &Kind, most: usize) -> bool {
        let Some(parts) = (2..=most).find(|&parts| self.room(kind, parts) >= kind.chunks) else {
            return false;
        };
        let mut rest = kind.chunks;
        for part in 0..parts {
            let place = match part + 1 == parts {
                false => self.left.len() - 1,
                true => self
                    .left
                    .partition_point(|&(left, _)| kind.room(left, parts) < rest),
            };
            let Some(&(left, _)) = self.left.get(place) else {
                return false;
            };
            let chunks = kind.room(left, parts).min(rest);
            self.shift(place, 1, left - kind.cost(&Piece::sized(chunks, parts)));
            rest -= chunks;
        }
        true
    }

    /// Chunks that the workers with the most time left can take together, for a tile in this many parts.
    fn room(&self, kind: &Kind, parts: usize) -> usize {
        let (mut chunks, mut missing) = (0, parts);
        for &(left, workers) in self.left.iter().rev() {
            let taken = missing.min(workers);
            chunks += taken * kind.room(left, parts);
            missing -= taken;
            if missing == 0 {
                break;
            }
        }
        chunks
    }

    /// Some of the workers of an entry have less left from now on.
    fn shift(&mut self, place: usize, workers: usize, left: f64) {
        self.left[place].1 -= workers;
        if self.left[place].1 == 0 {
            self.left.remove(place);
        }
        let to = self.left.partition_point(|&(other, _)| other < left);
        match self.left.get_mut(to) {
            Some((other, count)) if *other == left => *count += workers,
            _ => self.left.insert(to, (left, workers)),
        }
    }
}
