//! A layer whose token counts only the device knows: its blocks plan each call there, `kernels/swapped_routed.cuh` says how.
//!
//! Launches depend on the number of token rows alone, so one captured graph serves every routing. Everything that blocks keep has
//! room for the worst routing: each group that has tokens may fill up its last eight converted tokens and its last tile.

use std::hash::{Hash, Hasher};

use bytemuck::Zeroable;
use gauntlet_problems::{GemmShape, GroupedGemm, Maps, OutputFormat, Roles, Schedule};

use super::abi::{Cost, Inline, Parameter, Routed, Shape, Tile};
use super::cost::Costs;
use super::geometry::{CHUNK, CONSUMERS, Geometry};
use super::tables::{ALIGNMENT, direct_tokens, maps};
use super::tokens;
use crate::plan::error::require;
use crate::plan::groups::{self, check_sizes, check_tiles, depth, token_columns, within};
use crate::plan::variant::output_define;
use crate::plan::{
    Addresses, Group, Launch, Memory, Pass, Plan, PlanError, ScaleLayout, Source, Target, Variant, Weights,
};

/// Most groups: those that a block of `kernels/tokens.cu` has room for.
const MAX_GROUPS: usize = 4096;
/// Half of a block's threads plan, each for a worker, and one for the end.
const MAX_WORKERS: usize = (256 + 128) / 2 - 1;
/// Tiles that a worker may have beyond an equal share of them: a span of equal work may have more tiles if they are narrow, and is
/// not taken if it has more than this.
const MORE_TILES: usize = 16;
/// The units of costs: the work of a call stays below 2³¹ of them, and a tile takes hundreds at least.
const MAX_WORK: f64 = (1_u32 << 30) as f64;
const NANOSECONDS: f64 = 8.0;

/// A layer for the swapped kernel, planned on the device in each call.
#[derive(Debug)]
pub struct RoutedPlan {
    variant: Variant,
    preparation: Option<Variant>,
    /// The groups, each without tokens.
    layer: GroupedGemm,
    geometry: Geometry,
    workers: usize,
    tiles_a_worker: usize,
    /// Blocks of weight rows of a group.
    weight_blocks: usize,
    /// Most items of conversion, and room for eights of converted tokens.
    items: usize,
    eighths: usize,
    costs: Vec<Cost>,
    epilogue: Option<Epilogue>,
    most_parts: usize,
    places: Places,
}

/// What follows a product's sums, before they are rounded, beside their scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epilogue {
    /// Addresses of what is added to the sums of both weights, `[products, n]`; 0 for nothing.
    pub biases: [u64; 2],
    /// The format of the biases.
    pub bias_format: OutputFormat,
    /// In the dual form, results are `first · σ(alpha · first) · (second + beta)`.
    pub alpha: f32,
    /// See `alpha`.
    pub beta: f32,
    /// Sums of the first weights are limited to this before, and those of the second on both sides; infinite for no limit.
    pub limit: f32,
}

/// Compared by their bits, so that calls find the plan that was made for them.
impl Eq for Epilogue {}

impl Hash for Epilogue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.biases, self.bias_format).hash(state);
        [self.alpha, self.beta, self.limit].map(f32::to_bits).hash(state);
    }
}

/// Bytes from the workspace's begin, after the converted tokens; and from the tables' begin.
#[derive(Debug, Clone, Copy)]
struct Places {
    tiles: usize,
    partials: usize,
    end: usize,
    costs: usize,
}

impl RoutedPlan {
    /// Plans the products of `layer` for at most `rows` tokens of all groups together. The token counts in `layer` are ignored: the
    /// routing decides them on the device.
    ///
    /// # Errors
    /// If the products have several sizes, the kernel does not support a value of the schedule, or a size exceeds its
    /// integer ranges.
    pub fn new(
        layer: &GroupedGemm,
        rows: usize,
        schedule: &Schedule,
        target: Target,
        epilogue: Option<Epilogue>,
    ) -> Result<Self, PlanError> {
        let first = layer
            .groups
            .first()
            .copied()
            .unwrap_or(GemmShape { m: 0, n: 0, k: 0 });
        let sizes = |shape: &GemmShape| [shape.n, shape.k];
        if let Some(product) = layer
            .groups
            .iter()
            .position(|shape| sizes(shape) != sizes(&first))
        {
            return Err(PlanError::Unequal {
                product,
                found: sizes(&layer.groups[product]),
                first: sizes(&first),
            });
        }
        require! {
            "swap-ab": schedule.swap_ab, true, "the device deals out the tiles of the swapped kernel alone";
            "roles": schedule.roles, Roles::Specialised, "the device deals out the tiles of the swapped kernel alone";
            "maps": schedule.maps, Maps::Prebuilt, "the swapped kernel reads maps that the host has made";
        }
        if !Source::Swapped.runs_on(target.arch) {
            return Err(PlanError::word(
                "roles",
                schedule.roles,
                format!(
                    "only the swapped kernel takes token counts from the device; it needs a Hopper GPU, and this one runs the \
                     kernels for {}",
                    target.arch
                ),
                "give the token counts of each product on the host",
            ));
        }
        within("the number of tokens", rows, i32::MAX as usize)?;
        within("the number of groups", layer.groups.len(), MAX_GROUPS)?;
        check_sizes(layer)?;
        let geometry = Geometry::new(layer, schedule, target)?;
        let mut variant = geometry.variant(layer, schedule, target);
        variant.defines.insert("ROUTED", "1".to_owned());
        if epilogue.is_some() {
            variant.defines.insert("EPILOGUE", "1".to_owned());
        }

        let layer = GroupedGemm {
            groups: vec![GemmShape { m: 0, ..first }; layer.groups.len()],
            ..layer.clone()
        };
        // A group that has tokens fills up its last tile with one less than its width, and its last eight tokens.
        let filled = layer.groups.len().min(rows);
        let token_tiles = (rows + (geometry.width - 1) * filled) / geometry.width;
        let weight_blocks = first.n.div_ceil(geometry.block_rows);
        let most_tiles = token_tiles.saturating_mul(weight_blocks);
        check_tiles(most_tiles)?;
        let workers = (target.processors as usize).clamp(1, MAX_WORKERS);
        let workers = workers.min(most_tiles.saturating_mul(schedule.split_k));
        within(
            "the bytes in which a block plans the call",
            scratch_bytes(layer.groups.len(), token_tiles, workers),
            geometry.ring_bytes,
        )?;
        let chunks = depth(first.k) / CHUNK;
        let (items, eighths) = match geometry.prepares_tokens() {
            true => {
                let filled = (rows + 7 * filled) / 8;
                (filled.saturating_mul(chunks), rows / 8 + layer.groups.len() + 1)
            }
            false => (0, 0),
        };
        within(
            "the items to convert",
            eighths.saturating_mul(chunks),
            u32::MAX as usize,
        )?;

        let converted = eighths * chunks * 8 * CHUNK * 2 + geometry.copied_beyond();
        let tiles_a_worker = most_tiles.div_ceil(workers.max(1)) + MORE_TILES;
        Ok(Self {
            variant,
            preparation: tokens::variant(layer.tokens, &geometry, target, true),
            costs: costs(
                &geometry,
                chunks,
                (rows.div_ceil(8) + filled).saturating_mul(weight_blocks),
            ),
            epilogue,
            most_parts: schedule.split_k,
            places: Places::new(
                converted,
                workers * tiles_a_worker,
                match schedule.split_k {
                    1 => 0,
                    _ => workers * PARTS_A_WORKER * geometry.partial_bytes(),
                },
                layer.groups.len(),
            ),
            layer,
            geometry,
            workers,
            weight_blocks,
            items,
            eighths,
            tiles_a_worker,
        })
    }
}

/// A worker's span may begin and end within a tile.
const PARTS_A_WORKER: usize = 2;

/// Bytes of shared memory in which a block plans a call; the other half is `Scratch` in `kernels/swapped_routed.cuh`.
fn scratch_bytes(groups: usize, token_tiles: usize, workers: usize) -> usize {
    const FIXED: usize = 33 * size_of::<Cost>() + 16 * 4 + 8 * 4;
    let of_workers = (workers + 1) * 4 * 8;
    (FIXED + of_workers).next_multiple_of(16)
        + groups * 16
        + groups.div_ceil(32) * 32 * 4
        + (token_tiles + 1) * 16
}

/// What tiles cost by their eighths of tokens, if there are at most so many tiles of eight tokens.
fn costs(geometry: &Geometry, chunks: usize, tiles: usize) -> Vec<Cost> {
    let costs = Costs::new(geometry.width);
    let columns = |eighths: usize| match geometry.mixed {
        true => geometry.columns(8 * eighths),
        false => geometry.width,
    };
    let most_work = costs.whole(columns(1), chunks) * tiles as f64;
    let unit = NANOSECONDS.max(most_work / MAX_WORK);
    let of = |eighths: usize| {
        let columns = columns(eighths);
        Cost {
            whole: (costs.whole(columns, chunks) / unit).ceil() as u32,
            part: (costs.part(columns) / unit).ceil() as u32,
            pair: (2.0 * costs.chunk(columns) / unit).ceil() as u32,
            further: (costs.further(columns) / unit).ceil() as u32,
        }
    };
    (0..=geometry.width / 8).map(of).collect()
}

impl Places {
    fn new(converted: usize, tiles: usize, partial_bytes: usize, groups: usize) -> Self {
        let after = |begin: usize, bytes: usize| (begin + bytes).next_multiple_of(ALIGNMENT);
        let begin = after(converted, 0);
        let partials = after(begin, tiles * size_of::<Tile>());
        Self {
            tiles: begin,
            partials,
            end: partials + partial_bytes,
            costs: after(0, groups * size_of::<Group>()),
        }
    }
}

impl Plan for RoutedPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn preparation(&self) -> Option<&Variant> {
        self.preparation.as_ref()
    }

    fn memory(&self, weights: &[Weights]) -> Memory {
        let groups = groups::table(&self.layer, ScaleLayout::Rows, weights, |_| 0);
        let mut tables = bytemuck::cast_slice(&groups).to_vec();
        tables.resize(self.places.costs, 0);
        tables.extend_from_slice(bytemuck::cast_slice(&self.costs));
        Memory {
            tables,
            maps: maps(&self.layer, &self.geometry),
            workspace_bytes: self.places.end,
            counter_bytes: match self.most_parts {
                1 => 0,
                _ => 4 * CONSUMERS * PARTS_A_WORKER * self.workers,
            },
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if addresses.rows == 0 || self.weight_blocks == 0 {
            return Vec::new();
        }
        let place = |offset: usize| addresses.workspace + offset as u64;
        let GemmShape { n, k, .. } = self.layer.groups[0];
        let mut inline = Inline::zeroed();
        inline.shapes[0] = Shape {
            m: 8 * self.eighths as u32,
            n: n as u32,
            k: depth(k) as u32,
            columns: token_columns(&self.layer, &self.layer.groups[0]) as u32,
            ..Shape::zeroed()
        };
        let tokens = direct_tokens(&self.layer, &self.geometry, addresses.rows, addresses);
        let parameter = |ends_are_ready: bool| Parameter {
            tokens: addresses.operands[0],
            token_scales: addresses.scales[0],
            output: addresses.output,
            group_table: addresses.tables,
            item_table: 0,
            map_table: addresses.maps,
            tiles: place(self.places.tiles),
            workspace: addresses.workspace,
            partials: place(self.places.partials),
            counters: addresses.counters,
            tiles_a_worker: self.tiles_a_worker as u32,
            group_count: self.layer.groups.len() as u32,
            items: 0,
            weight_blocks: self.weight_blocks as u32,
            inline,
            routed: Routed {
                ends: addresses.operands[1],
                costs: addresses.tables + self.places.costs as u64,
                rows: addresses.rows as u32,
                most_parts: self.most_parts as u32,
                ends_are_ready: u32::from(ends_are_ready),
                bias_format: self.epilogue.map_or(0, |own| output_define(own.bias_format)) as u32,
                biases: self.epilogue.map_or([0; 2], |own| own.biases),
                alpha: self.epilogue.map_or(1.0, |own| own.alpha),
                beta: self.epilogue.map_or(0.0, |own| own.beta),
                limit: self.epilogue.map_or(f32::INFINITY, |own| own.limit),
                reserved: 0,
            },
        };
        let launch = |pass, blocks, ends_are_ready, mapped| Launch {
            pass,
            grid: blocks,
            cluster: 1,
            parameter: bytemuck::bytes_of(&parameter(ends_are_ready)).to_vec(),
            mapped,
        };
        let workers = self.workers as u32;
        match tokens {
            Some(_) => vec![launch(Pass::Main, workers, addresses.operands[2] == 1, tokens)],
            None => {
                // The launch that converts tokens has waited for that which wrote the ends.
                let blocks = tokens::blocks(self.items, self.workers);
                vec![
                    launch(Pass::Preparation, blocks, false, None),
                    launch(Pass::Main, workers, true, None),
                ]
            }
        }
    }
}
