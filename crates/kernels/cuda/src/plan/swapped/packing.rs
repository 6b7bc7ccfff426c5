//! Packs tiles into equal bins, one a worker, whose size is a deadline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::counting::Counts;
use super::order::Share;
use super::work::{Kind, Piece};

/// Tiles on workers.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    placed: Vec<(usize, Piece)>,
    /// Nanoseconds of the worker that is busy longest.
    pub makespan: f64,
}

impl Packing {
    /// The work of each worker.
    pub fn shares(&self, workers: usize) -> Vec<Share> {
        let mut shares = vec![Share::new(); workers];
        for &(worker, piece) in &self.placed {
            shares[worker].push(piece);
        }
        shares
    }
}

/// Which worker a whole tile goes to, of those that can still finish it by the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// The worker with the least time left: a worker gets neighbouring tiles, and all groups are in flight at once.
    LeastLeft,
    /// The worker with the most time left: neighbouring tiles start at about the same time on different workers, so only
    /// few groups are in flight at once.
    MostLeft,
}

/// Packs tiles; reuses its memory between attempts.
#[derive(Debug)]
pub(super) struct Packer {
    placement: Placement,
    workers: usize,
    most_parts: usize,
    /// The time each worker has left, the least first.
    left: Vec<(f64, usize)>,
    placed: Vec<(usize, Piece)>,
    counts: Counts,
}

impl Packer {
    /// A packer for `workers` workers, with tiles cut into at most `most_parts` parts.
    pub fn new(placement: Placement, workers: usize, most_parts: usize) -> Self {
        Self {
            placement,
            workers,
            most_parts,
            left: Vec::with_capacity(workers),
            placed: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// A lower bound of the makespan of this much work, before the extra cost of split tiles.
    pub fn even(&self, work: f64) -> f64 {
        work / self.workers as f64
    }

    /// Whole tiles, the longest first, each to the worker with the least to do (Graham, "Bounds on multiprocessing
    /// timing anomalies", 1969). Kinds are in the order of falling cost, here and below.
    pub fn longest_first(&mut self, kinds: &[Kind]) -> Packing {
        self.placed.clear();
        let mut loads: BinaryHeap<_> = (0..self.workers)
            .map(|worker| Reverse((Load(0.0), worker)))
            .collect();
        let tiles = kinds
            .iter()
            .enumerate()
            .flat_map(|(index, kind)| (0..kind.blocks).map(move |block| (index, block)));
        for (index, block) in tiles {
            let Some(mut least) = loads.peek_mut() else { break };
            let Reverse((Load(load), worker)) = &mut *least;
            *load += kinds[index].whole;
            self.placed
                .push((*worker, kinds[index].whole_piece(index, block)));
        }
        self.packing(kinds)
    }

    /// When the last worker is done, if all tiles can be by the deadline.
    pub fn fit(&mut self, kinds: &[Kind], deadline: f64) -> Option<f64> {
        self.counts
            .fit(kinds, self.placement, self.workers, self.most_parts, deadline)
    }

    /// Packs all tiles by the deadline, if they fit: whole tiles by the placement rule, the rest cut along the depth to
    /// fill the time left.
    pub fn pack(&mut self, kinds: &[Kind], deadline: f64) -> Option<Packing> {
        self.place(kinds, deadline).then(|| self.packing(kinds))
    }

    fn place(&mut self, kinds: &[Kind], deadline: f64) -> bool {
        self.begin(deadline);
        let mut rest = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            for block in 0..kind.blocks {
                let place = self.place_of(kind.whole);
                if place == self.left.len() {
                    if self.most_parts == 1 {
                        return false;
                    }
                    rest.push((index, block..kind.blocks));
                    break;
                }
                self.put(place, kind, kind.whole_piece(index, block));
            }
        }
        rest.into_iter()
            .all(|(index, mut blocks)| blocks.all(|block| self.cut(&kinds[index], index, block)))
    }

    /// The entry of `left` that gets a whole tile; the number of entries if none has room for it.
    fn place_of(&self, cost: f64) -> usize {
        let first = self.left.partition_point(|&(left, _)| left < cost);
        match self.placement {
            Placement::LeastLeft => first,
            Placement::MostLeft => first.max(self.left.len() - 1),
        }
    }

    /// The piece that was placed last.
    fn packing(&self, kinds: &[Kind]) -> Packing {
        let mut loads = vec![0.0; self.workers];
        for (worker, piece) in &self.placed {
            loads[*worker] += kinds[piece.kind].cost(piece);
        }
        Packing {
            placed: self.placed.clone(),
            makespan: loads.into_iter().fold(0.0, f64::max),
        }
    }

    fn begin(&mut self, deadline: f64) {
        self.left.clear();
        self.left
            .extend((0..self.workers).map(|worker| (deadline, worker)));
        self.placed.clear();
    }

    /// Cuts a tile into as few parts as fit: all but the last fill the workers with most left, the last goes where it fits
    /// best.
    fn cut(&mut self, kind: &Kind, index: usize, block: usize) -> bool {
        let fits = |&parts: &usize| {
            let most_left = self.left.iter().rev().take(parts);
            let rooms = most_left.map(|&(left, _)| kind.room(left, parts));
            rooms.sum::<usize>() >= kind.chunks
        };
        let most = self.most_parts.min(self.workers).min(kind.chunks / 2);
        let Some(parts) = (2..=most).find(fits) else {
            return false;
        };
        let mut first_chunk = 0;
        for part in 0..parts {
            let rest = kind.chunks - first_chunk;
            let place = match part + 1 == parts {
                false => self.left.len() - 1,
                true => self
                    .left
                    .partition_point(|&(left, _)| kind.room(left, parts) < rest),
            };
            let chunks = kind.room(self.left[place].0, parts).min(rest);
            let piece = Piece {
                kind: index,
                block,
                first_chunk,
                chunks,
                part,
                parts,
            };
            self.put(place, kind, piece);
            first_chunk += chunks;
        }
        true
    }

    /// Gives a piece to the worker at a place in the order of what is left.
    fn put(&mut self, place: usize, kind: &Kind, piece: Piece) {
        let (left, worker) = self.left[place];
        let left = left - kind.cost(&piece);
        let to = self.left[..place].partition_point(|&other| other < (left, worker));
        self.left[to..=place].rotate_right(1);
        self.left[to] = (left, worker);
        self.placed.push((worker, piece));
    }
}

/// A load that can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Load(f64);

impl Eq for Load {}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const PLACEMENTS: [Placement; 2] = [Placement::LeastLeft, Placement::MostLeft];

    /// A part costs what a whole tile does besides its chunks, and more.
    fn kind() -> impl Strategy<Value = Kind> {
        (1usize..80, 1usize..40, 100.0f64..1500.0, 1000.0f64..6000.0).prop_map(
            |(blocks, pairs, chunk, part)| Kind {
                group: 0,
                token: 0,
                width: 8,
                columns: 8,
                chunks: 2 * pairs,
                blocks,
                whole: 1000.0 + 2.0 * pairs as f64 * chunk,
                chunk,
                part,
                further: 0.1 * part,
            },
        )
    }

    #[test]
    fn halves_that_just_fit_are_found() {
        let kind = Kind {
            group: 0,
            token: 0,
            width: 8,
            columns: 8,
            chunks: 8,
            blocks: 3,
            whole: 5000.0,
            chunk: 500.0,
            part: 1500.0,
            further: 0.0,
        };
        let half = kind.part + 4.0 * kind.chunk;
        for placement in PLACEMENTS {
            let mut packer = Packer::new(placement, 6, 2);
            assert_eq!(packer.fit(&[kind], half), Some(half));
            assert_eq!(
                packer.pack(&[kind], half).map(|packing| packing.makespan),
                Some(half)
            );
            assert_eq!(packer.fit(&[kind], half - 1.0), None);
        }
    }

    proptest! {
        #[test]
        fn counting_finds_what_placing_finds(
            mut kinds in vec(kind(), 1..8),
            placement in proptest::sample::select(PLACEMENTS.to_vec()),
            workers in 1usize..140,
            most_parts in 1usize..6,
            tightness in 0.7f64..1.6,
        ) {
            kinds.sort_by(|left, right| right.whole.total_cmp(&left.whole));
            let mut packer = Packer::new(placement, workers, most_parts);
            let work = kinds.iter().map(|kind| kind.blocks as f64 * kind.whole).sum();
            let deadline = packer.even(work) * tightness;
            let counted = packer.fit(&kinds, deadline);
            let packed = packer.pack(&kinds, deadline).map(|packing| packing.makespan);
            prop_assert_eq!(counted.is_some(), packed.is_some());
            if let (Some(counted), Some(packed)) = (counted, packed) {
                prop_assert!((counted / packed - 1.0).abs() < 1e-9);
                prop_assert!(packed <= deadline * (1.0 + 1e-9));
            }
        }
    }
}
