//! The work of a grouped GEMM, divided as in the CPU executor.

use std::collections::HashMap;

use gauntlet_problems::resources::weights;
use gauntlet_problems::{Epilogue, GemmShape, GroupedGemm, Lookup, Roles, Schedule, Setup};
use gauntlet_simulate::cpu::{From, Rates, Side, StepTimes, TileTimes, Work, buffers, share, workers};

const FLOAT: f64 = size_of::<f32>() as f64;

/// Values that are scaled, rounded and written at a time.
const RUN: usize = 32;

/// Operands of a call were last used before all the other copies that calls rotate over, so they count as being in
/// memory.
const LONG_AGO: f64 = f64::INFINITY;

/// One operand's side of a tile.
#[derive(Debug, Clone, Copy)]
struct Edge {
    extent: usize,
    side: Side,
    width: usize,
}

impl Edge {
    fn panels(self, rows: usize) -> usize {
        rows.div_ceil(self.width)
    }

    /// Rows of block `block` of `total` rows.
    fn block(self, block: usize, total: usize) -> usize {
        total.min((block + 1) * self.extent) - block * self.extent
    }
}

/// The division of a problem.
struct Cut<'a> {
    gemm: &'a GroupedGemm,
    schedule: &'a Schedule,
    rates: &'a Rates,
    tokens: Edge,
    weights: Edge,
    depth: usize,
    products: usize,
    /// Whether weights are multiplied straight from their codes.
    unpacked: bool,
}

/// The properties that distinguish tiles of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    group: usize,
    tokens: usize,
    weights: usize,
    slice: usize,
    /// Whether the tile is the first to use its weights.
    first: bool,
}

/// The work of one call.
pub(super) fn work(gemm: &GroupedGemm, schedule: &Schedule, rates: &Rates) -> Work {
    let cut = Cut::new(gemm, schedule, rates);
    let mut work = Work::default();
    for (group, shape) in gemm.groups.iter().enumerate() {
        cut.add_resident(shape, &mut work);
        cut.add_tiles(group, shape, &mut work);
    }
    if schedule.setup == Setup::PerCall {
        work.setup = cut.setup(&work);
    }
    work
}

impl<'a> Cut<'a> {
    fn new(gemm: &'a GroupedGemm, schedule: &'a Schedule, rates: &'a Rates) -> Self {
        let largest = |size: fn(&GemmShape) -> usize| gemm.groups.iter().map(size).max().unwrap_or(0).max(1);
        let edge = |side, extent: usize| Edge {
            extent,
            side,
            width: rates.width(side),
        };
        let tile = schedule.tile;
        let (tokens, weight_rows) = if schedule.swap_ab {
            (edge(Side::Columns, tile.n), edge(Side::Rows, tile.m))
        } else {
            (edge(Side::Rows, tile.m), edge(Side::Columns, tile.n))
        };
        let clamp = |edge: Edge, most: usize| Edge {
            extent: edge.extent.min(most),
            ..edge
        };
        let most_tokens = largest(|shape| shape.m);
        Self {
            unpacked: schedule.swap_ab && most_tokens <= rates.block.unpacked,
            gemm,
            schedule,
            rates,
            tokens: clamp(tokens, most_tokens),
            weights: clamp(weight_rows, largest(|shape| shape.n)),
            depth: tile.k.min(largest(|shape| shape.k).next_multiple_of(16)),
            products: weights(gemm),
        }
    }

    /// A depth padded to whole chunks.
    fn filled(&self, depth: usize) -> usize {
        depth.next_multiple_of(self.rates.block.chunk)
    }

    /// Bytes of `rows` packed rows of a side over a depth.
    fn packed(&self, edge: Edge, rows: usize, depth: usize) -> f64 {
        (rows * self.filled(depth)) as f64 * self.rates.block.bytes[edge.side as usize]
    }

    /// Bytes of the panels of one stage.
    fn panel_bytes(&self) -> f64 {
        if self.unpacked {
            return 0.0;
        }
        self.packed(self.weights, self.weights.extent, self.depth) * self.products as f64
    }

    /// Bytes of a thread's panels of all stages.
    fn panels_bytes(&self) -> f64 {
        self.schedule.stages as f64 * self.panel_bytes()
    }

    fn sums(&self) -> f64 {
        (self.tokens.extent * self.weights.extent * self.products) as f64
    }

    /// Bytes of a group's resident panels.
    fn resident_bytes(&self, shape: &GemmShape) -> f64 {
        let steps = self.steps(shape);
        steps.map(|depth| self.packed(self.tokens, shape.m, depth)).sum()
    }

    /// The depths of a group's steps.
    fn steps(&self, shape: &GemmShape) -> impl Iterator<Item = usize> {
        let (k, depth) = (shape.k, self.depth);
        (0..k).step_by(depth).map(move |start| depth.min(k - start))
    }

    /// The time to pack `rows` rows over a depth for a side.
    fn pack(&self, edge: Edge, rows: usize, depth: usize, from: f64, asked: bool) -> f64 {
        let index = edge.side as usize;
        let chunks = (self.filled(depth) / self.rates.block.chunk) as f64;
        let row = self.rates.pack_run[index] + chunks * self.rates.pack_chunk[index];
        let away = self.rates.pack_from(depth as f64, from, asked);
        rows as f64 * (row + depth as f64 * away)
    }

    fn add_resident(&self, shape: &GemmShape, work: &mut Work) {
        let bytes = self.resident_bytes(shape);
        for block in 0..shape.m.div_ceil(self.tokens.extent) {
            let rows = self.tokens.block(block, shape.m);
            for first in (0..rows).step_by(self.tokens.width) {
                let rows = self.tokens.width.min(rows - first);
                let piece = |depth| {
                    // The packer walks along a row, so the processor prefetches beyond its own run.
                    self.pack(self.tokens, rows, depth, LONG_AGO, false)
                        + self.rates.fetch(self.packed(self.tokens, rows, depth), bytes)
                };
                work.resident.push(self.steps(shape).map(piece).sum());
            }
        }
    }

    /// Tiles in the executor's order: slices fastest, then blocks of tokens, then of weights.
    fn add_tiles(&self, group: usize, shape: &GemmShape, work: &mut Work) {
        let token_blocks = shape.m.div_ceil(self.tokens.extent);
        let blocks = token_blocks * shape.n.div_ceil(self.weights.extent);
        let split = self.schedule.split_k;
        let mut known: HashMap<Kind, usize> = HashMap::new();
        for block in 0..blocks {
            let (token_block, weight_block) = (block % token_blocks, block / token_blocks);
            let tokens = self.tokens.block(token_block, shape.m);
            let weights = self.weights.block(weight_block, shape.n);
            for slice in 0..split {
                let kind = Kind {
                    group,
                    tokens,
                    weights,
                    slice,
                    first: token_block == 0,
                };
                let class = *known.entry(kind).or_insert_with(|| {
                    work.classes.push(self.tile(kind, shape));
                    work.classes.len() - 1
                });
                work.tiles.push(class);
            }
            let useful = (tokens * weights * shape.k * self.products) as f64;
            work.useful +=
                useful / (self.rates.block.rows * self.rates.block.columns) as f64 * self.rates.step;
            if split > 1 {
                let add = split as f64 * self.sums() * self.rates.split_add;
                work.reductions.push(add + self.write(tokens, weights));
            }
        }
    }

    fn tile(&self, kind: Kind, shape: &GemmShape) -> TileTimes {
        let all = share(shape.k.div_ceil(self.depth), kind.slice, self.schedule.split_k);
        let steps = all
            .clone()
            .map(|step| {
                let depth = self.depth.min(shape.k - step * self.depth);
                // Without further stages nothing is prefetched, nor are the first stages of a tile.
                let asked = self.schedule.roles == Roles::Unified
                    && self.schedule.stages > 1
                    && step - all.start >= self.schedule.stages;
                StepTimes {
                    prepare: self.prepare(kind, depth, asked, shape),
                    multiply: self.multiply(kind, depth, shape),
                }
            })
            .collect();
        TileTimes {
            find: match self.schedule.lookup {
                Lookup::Linear => kind.group as f64 * self.rates.group,
                Lookup::Precomputed => 0.0,
            },
            begin: 0.0,
            steps,
            finish: if self.schedule.split_k > 1 {
                self.sums() * self.rates.split_store
            } else {
                self.write(kind.tokens, kind.weights)
            },
            cost: (kind.tokens * kind.weights * all.len() * self.depth) as u64,
        }
    }

    /// How many bytes ago a tile's codes were used: by the previous tile, which has other tokens; its own panels came
    /// in between.
    fn codes_ago(&self, kind: Kind, shape: &GemmShape) -> f64 {
        let before = self.packed(self.tokens, self.tokens.extent, shape.k) + self.panels_bytes();
        if kind.first { LONG_AGO } else { before }
    }

    fn prepare(&self, kind: Kind, depth: usize, asked: bool, shape: &GemmShape) -> f64 {
        if self.unpacked {
            return 0.0;
        }
        let from = self.codes_ago(kind, shape);
        let pack = self.pack(self.weights, kind.weights, depth, from, asked);
        let written = self.packed(self.weights, kind.weights, depth);
        let slots = match self.schedule.roles {
            Roles::Unified => From::Ago(self.panels_bytes()),
            Roles::Specialised => From::Thread,
        };
        self.products as f64 * (pack + self.rates.store(written, slots))
    }

    /// The time to multiply weights straight from their codes, which are prefetched.
    fn multiply_codes(&self, kind: Kind, depth: usize, shape: &GemmShape) -> f64 {
        let away = self
            .rates
            .pack_from(depth as f64, self.codes_ago(kind, shape), true);
        let value = self.rates.codes_value + kind.tokens as f64 * self.rates.codes_column + away;
        (self.products * kind.weights * depth) as f64 * value
    }

    fn multiply(&self, kind: Kind, depth: usize, shape: &GemmShape) -> f64 {
        if self.unpacked {
            return self.multiply_codes(kind, depth, shape);
        }
        let panel = match self.schedule.roles {
            Roles::Unified => {
                From::Ago(self.panels_bytes() + self.packed(self.tokens, self.tokens.extent, depth))
            }
            Roles::Specialised => From::Thread,
        };
        let resident = From::Ago(self.resident_bytes(shape) + self.panels_bytes());
        let (tokens, weights) = if self.rates.padded {
            (
                self.tokens.panels(kind.tokens) as f64,
                self.weights.panels(kind.weights) as f64,
            )
        } else {
            (
                kind.tokens as f64 / self.tokens.width as f64,
                kind.weights as f64 / self.weights.width as f64,
            )
        };
        let depth = self.filled(depth) as f64;
        let product = if self.schedule.swap_ab {
            self.rates.blocks(weights, tokens, depth, [panel, resident])
        } else {
            self.rates.blocks(tokens, weights, depth, [resident, panel])
        };
        self.products as f64 * product
    }

    fn write(&self, tokens: usize, weights: usize) -> f64 {
        let runs = weights.div_ceil(RUN) as f64;
        tokens as f64 * (self.rates.output_row + runs * self.rates.output_run)
    }

    fn setup(&self, work: &Work) -> f64 {
        let threads = self.rates.threads;
        let resident: f64 = self
            .gemm
            .groups
            .iter()
            .map(|shape| self.resident_bytes(shape))
            .sum();
        let partials = if self.schedule.split_k > 1 {
            work.tiles.len() as f64 * self.sums() * FLOAT
        } else {
            0.0
        };
        let staging = match self.schedule.epilogue {
            Epilogue::Direct => 0.0,
            Epilogue::Staged => (self.tokens.extent * self.weights.extent * self.gemm.output.bytes()) as f64,
        };
        let sizes = [
            (1, resident),
            (1, partials),
            (threads, self.sums() * FLOAT),
            (threads, staging),
            (
                workers(self.schedule.roles, threads) * self.schedule.stages,
                self.panel_bytes(),
            ),
        ];
        let planned = (work.tiles.len() + work.resident.len()) as f64 * self.rates.plan_tile;
        planned + buffers(self.rates, &sizes)
    }
}
