//! The work of attention, divided as in the CPU executor.

use std::collections::HashMap;

use gauntlet_problems::{Attention, Epilogue, Lookup, Roles, Schedule, Sequence, Setup};
use gauntlet_simulate::cpu::{From, Rates, Side, StepTimes, TileTimes, Work, buffers, share, workers};

const FLOAT: f64 = size_of::<f32>() as f64;

/// Lanes of the widest panel, for which rows are unpacked.
const LANES: usize = 32;

/// The division of a problem.
struct Cut<'a> {
    attention: &'a Attention,
    schedule: &'a Schedule,
    rates: &'a Rates,
    /// Queries per tile, keys per step.
    queries: usize,
    keys: usize,
    query_side: Side,
    key_side: Side,
}

/// The properties that distinguish tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    sequence: usize,
    queries: usize,
    /// Keys that any query of the tile sees.
    visible: usize,
    slice: usize,
    /// Whether the tile is the first to use its keys and values.
    first: bool,
}

/// The work of one call.
pub(super) fn work(attention: &Attention, schedule: &Schedule, rates: &Rates) -> Work {
    let cut = Cut::new(attention, schedule, rates);
    let mut work = Work::default();
    for (index, sequence) in attention.sequences.iter().enumerate() {
        cut.add_tiles(index, *sequence, &mut work);
    }
    if schedule.setup == Setup::PerCall {
        work.setup = cut.setup(&work);
    }
    work
}

impl<'a> Cut<'a> {
    fn new(attention: &'a Attention, schedule: &'a Schedule, rates: &'a Rates) -> Self {
        let longest =
            |length: fn(&Sequence) -> usize| attention.sequences.iter().map(length).max().unwrap_or(0).max(1);
        let tile = schedule.tile;
        let (queries, keys, query_side, key_side) = if schedule.swap_ab {
            (tile.n, tile.m, Side::Columns, Side::Rows)
        } else {
            (tile.m, tile.n, Side::Rows, Side::Columns)
        };
        Self {
            attention,
            schedule,
            rates,
            queries: queries.min(longest(|sequence| sequence.queries)),
            keys: keys.min(longest(|sequence| sequence.keys)),
            query_side,
            key_side,
        }
    }

    fn query_width(&self) -> usize {
        self.rates.width(self.query_side)
    }

    fn key_width(&self) -> usize {
        self.rates.width(self.key_side)
    }

    /// Bytes of the panels of K and V of one stage.
    fn panel_bytes(&self) -> f64 {
        let size = self.attention.head_size;
        let key = self.keys.next_multiple_of(self.key_width()) * size;
        let value = size.next_multiple_of(self.key_width()) * self.keys;
        (key + value) as f64 * FLOAT
    }

    fn panels_bytes(&self) -> f64 {
        self.schedule.stages as f64 * self.panel_bytes()
    }

    /// Where panels are when they are used again.
    fn slots(&self) -> From {
        match self.schedule.roles {
            Roles::Unified => From::Ago(self.panels_bytes()),
            Roles::Specialised => From::Thread,
        }
    }

    /// Output sums of a tile with `queries` queries.
    fn sums(&self, queries: usize) -> f64 {
        let size = self.attention.head_size.next_multiple_of(self.key_width());
        (queries.next_multiple_of(self.query_width()) * size) as f64
    }

    /// Tiles in the executor's order: slices fastest, then blocks of queries, then heads.
    fn add_tiles(&self, sequence: usize, lengths: Sequence, work: &mut Work) {
        let split = self.schedule.split_k;
        let sharing = self.attention.heads / self.attention.kv_heads;
        let mut known: HashMap<Kind, usize> = HashMap::new();
        for head in 0..self.attention.heads {
            for block in 0..lengths.queries.div_ceil(self.queries) {
                let end = lengths.queries.min((block + 1) * self.queries);
                let queries = end - block * self.queries;
                let visible = self.attention.visible_keys(lengths, end - 1).min(lengths.keys);
                for slice in 0..split {
                    let kind = Kind {
                        sequence,
                        queries,
                        visible,
                        slice,
                        first: block == 0 && head % sharing == 0,
                    };
                    let class = *known.entry(kind).or_insert_with(|| {
                        work.classes.push(self.tile(kind));
                        work.classes.len() - 1
                    });
                    work.tiles.push(class);
                }
                if split > 1 {
                    let merge = self.rates.merge[usize::from(self.schedule.swap_ab)];
                    let add = split as f64 * self.sums(queries) * merge;
                    work.reductions.push(add + self.write(queries));
                }
            }
        }
        let pairs: usize = (0..lengths.queries)
            .map(|query| self.attention.visible_keys(lengths, query).min(lengths.keys))
            .sum();
        let products = (2 * pairs * self.attention.heads * self.attention.head_size) as f64;
        work.useful += products / (self.rates.block.rows * self.rates.block.columns) as f64 * self.rates.step;
    }

    fn tile(&self, kind: Kind) -> TileTimes {
        let slice = share(
            kind.visible.div_ceil(self.keys),
            kind.slice,
            self.schedule.split_k,
        );
        let steps = slice.clone().map(|step| {
            let keys = self.keys.min(kind.visible - step * self.keys);
            StepTimes {
                prepare: self.prepare(keys, kind.first),
                multiply: self.multiply(kind.queries, keys, step > slice.start),
            }
        });
        let size = self.attention.head_size;
        TileTimes {
            find: match self.schedule.lookup {
                Lookup::Linear => kind.sequence as f64 * self.rates.group,
                Lookup::Precomputed => 0.0,
            },
            begin: (kind.queries * size) as f64 * self.rates.across[self.query_side as usize],
            steps: steps.collect(),
            finish: if self.schedule.split_k > 1 {
                self.sums(kind.queries) * self.rates.split_store
            } else {
                self.write(kind.queries)
            },
            cost: (kind.queries * 2 * size * slice.len() * self.keys) as u64,
        }
    }

    fn prepare(&self, keys: usize, first: bool) -> f64 {
        let values = (keys * self.attention.head_size) as f64;
        let side = self.key_side as usize;
        let bytes = if first {
            2.0 * values * self.attention.format.bytes() as f64
        } else {
            0.0
        };
        let slots = self.rates.store(2.0 * values * FLOAT, self.slots());
        let memory = bytes * self.rates.threads as f64 / self.rates.memory;
        values * (self.rates.across[side] + self.rates.along[side]) + slots + memory
    }

    fn multiply(&self, queries: usize, keys: usize, further: bool) -> f64 {
        let (rates, size) = (self.rates, self.attention.head_size);
        let (query_width, key_width) = (self.query_width(), self.key_width());
        let panels = |length: usize, width: usize| {
            if rates.padded {
                length.div_ceil(width) as f64
            } else {
                length as f64 / width as f64
            }
        };
        let (query_panels, key_panels) = (panels(queries, query_width), panels(keys, key_width));
        let value_panels = panels(size, key_width);
        let lanes = query_panels * query_width as f64;
        let slots = self.slots();
        let query_panel = From::Ago(lanes * size as f64 * FLOAT);
        // K and V of the step are streamed for each panel of queries.
        let value_panel = From::Ago((size.next_multiple_of(key_width) * keys) as f64 * FLOAT);
        let near = From::Ago(0.0);
        let depth = size as f64;
        let along = keys as f64;
        let products = if self.schedule.swap_ab {
            rates.blocks(key_panels, query_panels, depth, [slots, query_panel])
                + query_panels * rates.blocks(value_panels, 1.0, along, [value_panel, near])
        } else {
            rates.blocks(query_panels, key_panels, depth, [query_panel, slots])
                + query_panels * rates.blocks(1.0, value_panels, along, [near, value_panel])
        };
        let scores = lanes * along;
        let turn = if self.schedule.swap_ab {
            0.0
        } else {
            scores * rates.turn
        };
        let rescale = if further {
            let outputs = lanes * value_panels * key_width as f64;
            outputs * rates.rescale[usize::from(self.schedule.swap_ab)]
        } else {
            0.0
        };
        let side = self.query_side as usize;
        let softmax = scores * rates.softmax[side] + query_panels * rates.softmax_call[side];
        products + turn + softmax + rescale
    }

    fn write(&self, queries: usize) -> f64 {
        let (width, run) = if self.schedule.swap_ab {
            (self.rates.block.rows, self.rates.output_run_swapped)
        } else {
            (self.rates.block.columns, self.rates.output_run)
        };
        let runs = self.attention.head_size.div_ceil(width) as f64;
        queries as f64 * (self.rates.output_row + runs * run)
    }

    fn setup(&self, work: &Work) -> f64 {
        let (threads, size) = (self.rates.threads, self.attention.head_size);
        let queries = self.queries.next_multiple_of(self.query_width());
        let scores = (queries * self.keys.next_multiple_of(self.key_width())) as f64 * FLOAT;
        let partials = if self.schedule.split_k > 1 {
            work.tiles.len() as f64 * (self.sums(self.queries) + 2.0 * queries as f64) * FLOAT
        } else {
            0.0
        };
        let staging = match self.schedule.epilogue {
            Epilogue::Direct => 0.0,
            Epilogue::Staged => (self.queries * size * self.attention.output.bytes()) as f64,
        };
        let turned = if self.schedule.swap_ab { 0 } else { threads };
        let sizes = [
            (1, partials),
            (threads, (queries * size) as f64 * FLOAT),
            (threads, scores),
            (turned, scores),
            (threads, self.sums(self.queries) * FLOAT),
            (threads, (LANES * size) as f64 * FLOAT),
            (threads, staging),
            (
                workers(self.schedule.roles, threads) * self.schedule.stages,
                self.panel_bytes(),
            ),
        ];
        work.tiles.len() as f64 * self.rates.plan_tile + buffers(self.rates, &sizes)
    }
}
