//! Deals tiles out so that the last worker is done as early as possible.
//!
//! Makespan scheduling of independent jobs on identical machines is NP-hard, so this searches: over the parts into
//! which groups' tokens are cut, and for each choice over a deadline, by bisection (MULTIFIT: Coffman, Garey and
//! Johnson, "An application of bin-packing to multiprocessor scheduling", 1978).

use std::cmp::Reverse;

use super::order::Share;
use super::packing::{Packer, Packing};
use super::work::{Cutter, Kind};

/// Tiles that the search may place in all: what keeps a plan of a few groups under two milliseconds, and one of
/// hundreds under twenty.
const PLACEMENTS: usize = 40_000;
/// Halvings of the range of deadlines.
const HALVINGS: usize = 8;
/// A gain smaller than this is not worth a search.
const WORTHWHILE: f64 = 0.998;

/// Kinds of tiles and their shares, each sorted by falling width.
pub(super) fn balance(cutter: &Cutter, workers: usize, most_parts: usize) -> (Vec<Kind>, Vec<Share>) {
    let mut search = Search::new(cutter, workers, most_parts);
    search.uniform_widths();
    search.single_groups();
    let Best { kinds, packing, .. } = search.best;
    let mut shares = packing.shares(workers);
    for share in &mut shares {
        // The code goes from wide to narrow; parts of split tiles early, for others wait for them.
        share.sort_by_key(|piece| {
            let columns = kinds[piece.kind].columns;
            (
                Reverse(columns),
                Reverse(piece.parts.min(2)),
                piece.kind,
                piece.block,
                piece.part,
            )
        });
    }
    (kinds, shares)
}

struct Search<'a> {
    cutter: &'a Cutter<'a>,
    packer: Packer,
    best: Best,
    least: Vec<usize>,
    placements: usize,
}

struct Best {
    parts: Vec<usize>,
    kinds: Vec<Kind>,
    packing: Packing,
}

impl<'a> Search<'a> {
    fn new(cutter: &'a Cutter<'a>, workers: usize, most_parts: usize) -> Self {
        let least = cutter.least_parts();
        let mut packer = Packer::new(workers, most_parts);
        let kinds = sorted(cutter.kinds(&least));
        let packing = packer.longest_first(&kinds);
        let mut search = Self {
            cutter,
            packer,
            best: Best {
                parts: least.clone(),
                kinds: kinds.clone(),
                packing,
            },
            placements: PLACEMENTS,
            least: least.clone(),
        };
        search.bisect(&least, kinds);
        search
    }

    /// Cuts every group into parts of at most some width, from the widest to the narrowest.
    fn uniform_widths(&mut self) {
        let mut last = self.least.clone();
        for width in (1..self.cutter.geometry.width / 8)
            .rev()
            .map(|eighths| 8 * eighths)
        {
            let groups = self.cutter.gemm.groups.iter();
            let parts: Vec<_> = groups.map(|shape| shape.m.div_ceil(width)).collect();
            if parts != last {
                self.attempt(&parts);
                last = parts;
            }
        }
    }

    /// Changes one group's parts at a time, as long as that helps.
    fn single_groups(&mut self) {
        let mut unchanged = 0;
        for group in (0..self.least.len()).cycle() {
            if unchanged == self.least.len() || self.placements == 0 {
                return;
            }
            let before = self.best.packing.makespan;
            for parts in [
                self.best.parts[group] + 1,
                self.best.parts[group].saturating_sub(1),
            ] {
                let most = self.cutter.gemm.groups[group].m.div_ceil(8);
                if (self.least[group]..=most).contains(&parts) {
                    let mut candidate = self.best.parts.clone();
                    candidate[group] = parts;
                    self.attempt(&candidate);
                }
            }
            unchanged = if self.best.packing.makespan < before {
                0
            } else {
                unchanged + 1
            };
        }
    }

    /// Tries a choice of parts, if there is time, and keeps it if it is worthwhile.
    fn attempt(&mut self, parts: &[usize]) {
        let kinds = sorted(self.cutter.kinds(parts));
        let deadline = self.best.packing.makespan * WORTHWHILE;
        let most = self.packer.within(&kinds, deadline);
        if most && self.place(&kinds, deadline) {
            self.bisect(parts, kinds);
        }
    }

    /// Whether everything fits; counts the placements.
    fn place(&mut self, kinds: &[Kind], deadline: f64) -> bool {
        let tiles = kinds.iter().map(|kind| kind.blocks).sum();
        if self.placements < tiles {
            self.placements = 0;
            return false;
        }
        self.placements -= tiles;
        self.packer.fit(kinds, deadline)
    }

    /// Finds the earliest deadline that can be kept, and makes it the best.
    fn bisect(&mut self, parts: &[usize], kinds: Vec<Kind>) {
        let mut low = self.packer.bound(&kinds);
        let mut high = self.best.packing.makespan;
        let mut found = None;
        for _ in 0..HALVINGS {
            if low > high * WORTHWHILE {
                break;
            }
            let middle = 0.5 * (low + high);
            if self.place(&kinds, middle) {
                let packing = self.packer.packing(&kinds);
                high = packing.makespan.min(middle);
                found = Some(packing);
            } else {
                low = middle;
            }
        }
        if let Some(packing) = found {
            self.best = Best {
                parts: parts.to_vec(),
                kinds,
                packing,
            };
        }
    }
}

/// By falling cost.
fn sorted(mut kinds: Vec<Kind>) -> Vec<Kind> {
    kinds.sort_by(|left, right| right.whole.total_cmp(&left.whole));
    kinds
}
