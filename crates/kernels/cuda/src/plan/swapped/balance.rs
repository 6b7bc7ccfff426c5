//! Distributes tiles so that the last worker finishes as early as possible.
//!
//! Makespan scheduling of independent jobs on identical machines is NP-hard, so this searches: over the parts into
//! which groups' tokens are cut, and for each choice over a deadline, by bisection (MULTIFIT: Coffman, Garey and
//! Johnson, "An application of bin-packing to multiprocessor scheduling", 1978).
//!
//! Tiles of one group read the same tokens. If all groups are processed at the same time and their tokens do not fit
//! the level-2 cache, every tile reads its tokens from memory. In that case tiles are distributed in waves, group after
//! group.

use std::cmp::Reverse;

use super::geometry::{CHUNK, ROWS};
use super::order::Share;
use super::packing::{Packer, Packing, Placement};
use super::work::{Cutter, Kind, Parts, even};

/// Most tile placements of a search, including placements that are only counted. This bounds the planning time: 0.1 to
/// 1.0 ms in `results/epyc/planning/2026-11-23.json`.
const PLACEMENTS: usize = 20_000;
/// The cost of examining one choice of parts, in placements.
const LOOK: usize = 4;
/// Halvings of the range of deadlines.
const HALVINGS: usize = 8;
/// A gain smaller than this is not worth a search.
const WORTHWHILE: f64 = 0.998;

/// Bytes of tokens that stay in the level-2 cache: three quarters of an H100's 50 MB, because weights and results pass through it
/// too. Tokens of 50.3 MB did not stay (128 experts, 16384 tokens, N 4096, K 1536, bf16 tokens: 740 us with the least time left
/// and 502 in the order of the groups; H100, 2026-11-25).
const CACHED_BYTES: usize = (50 << 20) / 4 * 3;
/// Bytes that memory delivers in a nanosecond at most: 2.98 TB/s was the best read rate seen on an H100.
const MEMORY_RATE: f64 = 3000.0;

/// Where whole tiles go: to the worker with the least time left, unless memory would then bound the call because tokens
/// are read from it too often.
///
/// With the least time left, a worker computes neighbouring tiles one after another. All kinds of tiles are then in
/// flight together, each on a few workers, and only these share the tokens that they load. Measured on an H100
/// (2026-11-24; 256 tokens an expert, N 3072, K 4096; this order against one block a tile, which goes through the
/// groups in waves, µs): 32 experts 331 and 336, 64 experts 925 and 697, 128 experts 2826 and 1533. By this estimate
/// the first case needs 2.3 TB/s, the second 3.8.
///
/// Waves have a cost: all workers first compute wide tiles, which the matrix unit bounds, and later narrow ones, which
/// memory bounds. So they are used only for calls that need them.
pub(super) fn placement(cutter: &Cutter, workers: usize) -> Placement {
    let kinds = cutter.kinds(&cutter.least_parts());
    let token_bytes = |kind: &Kind| 2 * kind.columns * kind.chunks * CHUNK;
    if kinds.iter().map(token_bytes).sum::<usize>() <= CACHED_BYTES {
        return Placement::LeastLeft;
    }
    let sharing = (workers as f64 / kinds.len() as f64).max(1.0);
    let loaded = |kind: &Kind| {
        // A value of a weight has half a byte, and a sixteenth of a scale.
        let weights = ROWS * kind.chunks * CHUNK * 9 / 16;
        kind.blocks as f64 * (token_bytes(kind) as f64 / sharing + weights as f64)
    };
    let nanoseconds = work(&kinds) / workers as f64;
    if kinds.iter().map(loaded).sum::<f64>() <= MEMORY_RATE * nanoseconds {
        return Placement::LeastLeft;
    }
    Placement::MostLeft
}

/// Kinds of tiles and their shares, each sorted by falling width.
pub(super) fn balance(cutter: &Cutter, workers: usize, most_parts: usize) -> (Vec<Kind>, Vec<Share>) {
    let mut search = Search::new(cutter, workers, most_parts);
    search.uniform_widths();
    search.single_groups();
    let Best { kinds, packing, .. } = search.best;
    let mut shares = packing.shares(workers);
    for share in &mut shares {
        // The kernel's code goes from wide to narrow tiles. Parts of split tiles come early because other workers wait
        // for them.
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
    /// How many more may be tried.
    placements: usize,
}

struct Best {
    parts: Vec<Parts>,
    kinds: Vec<Kind>,
    /// Nanoseconds of all tiles, whole.
    work: f64,
    packing: Packing,
}

impl<'a> Search<'a> {
    /// Begins with as few parts as possible.
    fn new(cutter: &'a Cutter<'a>, workers: usize, most_parts: usize) -> Self {
        let parts = cutter.least_parts();
        let mut packer = Packer::new(placement(cutter, workers), workers, most_parts);
        let kinds = sorted(cutter.kinds(&parts));
        let best = Best {
            packing: packer.longest_first(&kinds),
            work: work(&kinds),
            parts: parts.clone(),
            kinds,
        };
        let mut search = Self {
            cutter,
            packer,
            best,
            placements: PLACEMENTS,
        };
        search.attempt(parts);
        search
    }

    /// Cuts every group in the same way, with parts from wide to narrow.
    fn uniform_widths(&mut self) {
        let most = self.cutter.geometry.width / 8;
        let groups = self.cutter.gemm.groups.iter();
        let groups: Vec<_> = groups.map(|shape| shape.m.div_ceil(8)).collect();
        let longest = groups.iter().copied().max().unwrap_or(0);
        for (width, cut) in ways(most.min(longest)) {
            let groups = groups.iter();
            let parts: Vec<_> = groups.map(|&eighths| cut.parts(eighths, width, most)).collect();
            if parts != self.best.parts && self.placements > 0 {
                self.attempt(parts);
            }
        }
    }

    /// Changes one group's parts at a time, as long as that helps.
    fn single_groups(&mut self) {
        let groups = self.best.parts.len();
        let mut unchanged = 0;
        for group in (0..groups).cycle() {
            if unchanged == groups || self.placements == 0 {
                return;
            }
            unchanged += 1;
            for parts in self.neighbours(group) {
                self.spend(LOOK);
                if self.is_promising(group, &parts) {
                    let mut candidate = self.best.parts.clone();
                    candidate[group] = parts;
                    if self.attempt(candidate) {
                        unchanged = 0;
                    }
                }
            }
        }
    }

    /// Whether cutting a group this way leaves less work than the best makespan allows.
    fn is_promising(&self, group: usize, parts: &Parts) -> bool {
        let more = self.cutter.work_of(group, parts) - self.cutter.work_of(group, &self.best.parts[group]);
        self.packer.even(self.best.work + more) <= self.best.packing.makespan * WORTHWHILE
    }

    /// Other ways to cut a group.
    fn neighbours(&self, group: usize) -> Vec<Parts> {
        let current = &self.best.parts[group];
        let eighths: usize = current.iter().sum();
        let most = self.cutter.geometry.width / 8;
        let mut neighbours = Vec::new();
        for (width, cut) in ways(most.min(eighths)) {
            let parts = cut.parts(eighths, width, most);
            if parts != *current && !neighbours.contains(&parts) {
                neighbours.push(parts);
            }
        }
        neighbours
    }

    /// Finds the earliest deadline that a choice of parts can keep, and whether it makes it the best.
    fn attempt(&mut self, parts: Vec<Parts>) -> bool {
        let kinds = sorted(self.cutter.kinds(&parts));
        let work = work(&kinds);
        let (mut low, mut high) = (self.packer.even(work), self.best.packing.makespan);
        let mut found = None;
        let mut deadline = high * WORTHWHILE;
        for _ in 0..HALVINGS {
            if low > high * WORTHWHILE {
                break;
            }
            if let Some(makespan) = self.fit(&kinds, deadline) {
                high = makespan;
                found = Some(deadline);
            } else if found.is_none() {
                return false;
            } else {
                low = deadline;
            }
            deadline = 0.5 * (low + high);
        }
        let packing = found.and_then(|deadline| self.packer.pack(&kinds, deadline));
        let is_better = packing.is_some();
        if let Some(packing) = packing {
            self.best = Best {
                parts,
                kinds,
                work,
                packing,
            };
        }
        is_better
    }

    /// The makespan, if all work can be finished by a deadline; `None` if it cannot, or the placements are used up.
    fn fit(&mut self, kinds: &[Kind], deadline: f64) -> Option<f64> {
        self.spend(kinds.iter().map(|kind| kind.blocks).sum());
        (self.placements > 0).then(|| self.packer.fit(kinds, deadline))?
    }

    fn spend(&mut self, placements: usize) {
        self.placements = self.placements.saturating_sub(placements);
    }
}

fn work(kinds: &[Kind]) -> f64 {
    kinds.iter().map(|kind| kind.blocks as f64 * kind.whole).sum()
}

/// By falling cost.
fn sorted(mut kinds: Vec<Kind>) -> Vec<Kind> {
    kinds.sort_by(|left, right| right.whole.total_cmp(&left.whole));
    kinds
}

/// A way to cut tokens into parts of about some width.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// The fewest parts of even size that are not wider than this.
    Even,
    /// Parts of exactly this width, and a narrower rest.
    NarrowRest,
    /// Parts of exactly this width, and a wider rest.
    WideRest,
}

impl Cut {
    fn parts(self, eighths: usize, width: usize, most: usize) -> Parts {
        let (whole, rest) = (eighths / width, eighths % width);
        let mut parts = vec![width; whole];
        match self {
            Self::Even => parts = even(eighths, eighths.div_ceil(width)),
            Self::WideRest if whole > 0 && width + rest <= most => parts[0] += rest,
            _ if rest > 0 => parts.push(rest),
            _ => {}
        }
        parts
    }
}

/// Ways to cut with their widths in eighths, from wide to narrow. All widths beyond a group's own leave it whole.
fn ways(most: usize) -> impl Iterator<Item = (usize, Cut)> {
    let widths = (1..=most).rev();
    widths.flat_map(|width| [Cut::Even, Cut::NarrowRest, Cut::WideRest].map(|cut| (width, cut)))
}
