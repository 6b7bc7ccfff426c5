//! A layer whose token counts only the device knows: a small kernel plans each call there, before the same two kernels.
//!
//! Launches depend on the number of token rows alone, so one captured graph serves every routing. No tile is split along K,
//! and tiles are dealt out in turn, the widest first. Everything that the planning kernel writes has room for the worst
//! routing: each group that has tokens may fill up its last eighth of converted tokens and its last tile.

use bytemuck::Zeroable;
use gauntlet_operations::{GemmShape, GroupedGemm, Maps, Roles, Schedule};

use super::abi::{Inline, Parameter, RouteParameter, TokenTile};
use super::geometry::{CHUNK, Geometry};
use super::tables::{ALIGNMENT, direct_tokens, maps};
use super::tokens;
use crate::plan::error::require;
use crate::plan::groups::{self, check_sizes, check_tiles, depth, token_columns, within};
use crate::plan::variant::most_registers;
use crate::plan::{
    Addresses, Group, Launch, Memory, Pass, Plan, PlanError, ScaleLayout, Source, Target, Variant, Weights,
};

/// Threads of the planning kernel: one warp for each width of tiles.
const THREADS: usize = 1024;

/// A layer for the swapped kernel, planned on the device in each call.
#[derive(Debug)]
pub struct RoutedPlan {
    variant: Variant,
    preparation: Option<Variant>,
    routing: Variant,
    /// The groups, each without tokens.
    layer: GroupedGemm,
    geometry: Geometry,
    /// Rows of tokens of all groups.
    rows: usize,
    workers: usize,
    /// Blocks of weight rows of a group.
    weight_blocks: usize,
    /// Most items of conversion, and most token tiles.
    items: usize,
    token_tiles: usize,
    places: Places,
}

/// Bytes from the workspace's begin, after the converted tokens.
#[derive(Debug, Clone, Copy)]
struct Places {
    groups: usize,
    items: usize,
    tiles: usize,
    end: usize,
}

impl RoutedPlan {
    /// Plans the products of `layer` for `rows` tokens of all groups together. The token counts in `layer` are ignored: the
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
        check_sizes(layer)?;
        let geometry = Geometry::new(layer, schedule, target)?;
        let mut variant = geometry.variant(layer, schedule, target);
        variant.defines.insert("ROUTED", "1".to_owned());

        let layer = GroupedGemm {
            groups: vec![GemmShape { m: 0, ..first }; layer.groups.len()],
            ..layer.clone()
        };
        // A group that has tokens fills up its last eighth with up to 7, and its last tile with one less than its width.
        let filled = layer.groups.len().min(rows);
        let eighths = (rows + 7 * filled) / 8;
        let token_tiles = (rows + (geometry.width - 1) * filled) / geometry.width;
        let weight_blocks = first.n.div_ceil(geometry.block_rows);
        check_tiles(token_tiles.saturating_mul(weight_blocks))?;
        let items = match geometry.prepares_tokens() {
            true => eighths.saturating_mul(depth(first.k) / CHUNK),
            false => 0,
        };
        within("the items to convert", items, u32::MAX as usize)?;

        let converted = items * 8 * CHUNK * 2 + geometry.copied_beyond();
        Ok(Self {
            variant,
            preparation: tokens::variant(layer.tokens, &geometry, target, true),
            routing: routing(geometry.width),
            places: Places::new(converted, layer.groups.len(), token_tiles),
            layer,
            geometry,
            rows,
            workers: target.processors.max(1) as usize,
            weight_blocks,
            items,
            token_tiles,
        })
    }

    /// Rows of tokens of all groups.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

fn routing(width: usize) -> Variant {
    Variant {
        source: Source::Route,
        defines: [("OVERLAP", "1".to_owned()), ("WIDTH", width.to_string())].into(),
        threads: THREADS as u32,
        shared_bytes: 0,
        registers: most_registers(THREADS),
    }
}

impl Places {
    fn new(converted: usize, groups: usize, token_tiles: usize) -> Self {
        let after = |begin: usize, bytes: usize| (begin + bytes).next_multiple_of(ALIGNMENT);
        let begin = after(converted, 0);
        let items = after(begin, groups * size_of::<Group>());
        let tiles = after(items, (groups + 2) * size_of::<u32>());
        Self {
            groups: begin,
            items,
            tiles,
            end: after(tiles, token_tiles * size_of::<TokenTile>()),
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

    fn routing(&self) -> Option<&Variant> {
        Some(&self.routing)
    }

    fn memory(&self, weights: &[Weights]) -> Memory {
        Memory {
            tables: bytemuck::cast_slice(&groups::table(&self.layer, ScaleLayout::Rows, weights, |_| 0))
                .to_vec(),
            maps: maps(&self.layer, &self.geometry),
            workspace_bytes: self.places.end,
            counter_bytes: 0,
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if self.token_tiles == 0 || self.weight_blocks == 0 {
            return Vec::new();
        }
        let place = |offset: usize| addresses.workspace + offset as u64;
        let shape = &self.layer.groups[0];
        let columns = token_columns(&self.layer, shape);
        let scale_bytes = match self.layer.tokens.float() {
            None => columns / 16,
            Some(_) => 0,
        };
        let route = RouteParameter {
            ends: addresses.operands[1],
            layer: addresses.tables,
            groups: place(self.places.groups),
            items: place(self.places.items),
            tiles: place(self.places.tiles),
            group_count: self.layer.groups.len() as u32,
            tokens: self.rows as u32,
            token_bytes: self.layer.tokens.row_bytes(columns) as u32,
            scale_bytes: scale_bytes as u32,
        };
        let most_tiles = self.token_tiles * self.weight_blocks;
        let parameter = Parameter {
            tokens: addresses.operands[0],
            token_scales: addresses.scales[0],
            output: addresses.output,
            group_table: route.groups,
            item_table: route.items,
            map_table: addresses.maps,
            tiles: route.tiles,
            workspace: addresses.workspace,
            partials: 0,
            counters: 0,
            tiles_a_worker: most_tiles.div_ceil(self.workers) as u32,
            group_count: route.group_count,
            items: 0,
            weight_blocks: self.weight_blocks as u32,
            inline: Inline::zeroed(),
        };
        let launch = |pass, grid, parameter: &[u8], mapped| Launch {
            pass,
            grid,
            cluster: 1,
            parameter: parameter.to_vec(),
            mapped,
        };
        let of_both = bytemuck::bytes_of(&parameter);
        let tokens = direct_tokens(&self.layer, &self.geometry, self.rows, addresses);
        let mut launches = vec![launch(Pass::Routing, 1, bytemuck::bytes_of(&route), None)];
        if tokens.is_none() {
            let blocks = tokens::blocks(self.items, self.workers);
            launches.push(launch(Pass::Preparation, blocks, of_both, None));
        }
        let blocks = self.workers.min(most_tiles) as u32;
        launches.push(launch(Pass::Main, blocks, of_both, tokens));
        launches
    }
}
