//! The swapped and the unified kernel: weights, taken through registers, are the rows of the matrix unit's first operand;
//! tokens, converted by a previous kernel, are its columns. Both share out tiles by the same tables; which one computes
//! follows from the roles (`geometry`).

mod abi;
mod balance;
mod cost;
mod counting;
mod dealt;
mod geometry;
mod order;
mod packing;
mod routed;
mod tables;
#[cfg(test)]
mod tests;
mod tokens;
mod work;

use gauntlet_problems::GroupedGemm;
use gauntlet_problems::{Order, Schedule};

use super::groups::{check_sizes, check_tiles};
use super::{Addresses, Launch, Memory, Plan, PlanError, Target, Variant, Weights};
pub use abi::{Tile, WHOLE};
use cost::Costs;
use dealt::Dealt;
use geometry::Geometry;
use order::Share;
pub use routed::{Epilogue, RoutedPlan};
use tables::Tables;
use work::{Cutter, Kind};

/// A problem for the swapped or the unified kernel.
#[derive(Debug)]
pub struct SwappedPlan {
    variant: Variant,
    preparation: Option<Variant>,
    balance: Balance,
    tables: Tables,
}

/// How evenly the work is distributed, according to the cost model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// Nanoseconds of the worker that is busy longest.
    pub makespan: f64,
    /// Nanoseconds of all workers together.
    pub busy: f64,
    /// The same, if none of these tiles were split.
    pub work: f64,
    /// Workers.
    pub workers: usize,
    /// Tiles, split ones counted once.
    pub tiles: usize,
    /// Parts of split tiles.
    pub parts: usize,
}

impl SwappedPlan {
    /// Plans a valid problem.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, target: Target) -> Result<Self, PlanError> {
        check_sizes(gemm)?;
        let geometry = Geometry::new(gemm, schedule, target)?;
        let costs = Costs::new(geometry.width);
        let cutter = Cutter {
            gemm,
            geometry: &geometry,
            costs: &costs,
            mixed: geometry.mixed,
        };
        let least = cutter.least_parts();
        let tiles = least
            .iter()
            .enumerate()
            .map(|(group, parts)| parts.len().saturating_mul(cutter.blocks(group)));
        check_tiles(
            tiles
                .fold(0, usize::saturating_add)
                .saturating_mul(schedule.split_k),
        )?;

        let workers = target.processors.max(1) as usize * geometry.blocks;
        let (kinds, shares) = match schedule.order {
            Order::Sorted => balance::balance(&cutter, workers, schedule.split_k),
            order => {
                let kinds = cutter.kinds(&least);
                let shares = order::deal(&kinds, order, workers, schedule.split_k);
                (kinds, shares)
            }
        };
        let dealt = Dealt::new(&kinds, &shares, &geometry)?;
        Ok(Self {
            variant: geometry.variant(gemm, schedule, target),
            preparation: tokens::variant(gemm.tokens, &geometry, target, false),
            balance: Balance::of(&kinds, &shares, workers),
            tables: Tables::new(gemm, &geometry, dealt, target.processors as usize)?,
        })
    }

    /// The pieces of work, worker after worker, each in its order.
    pub fn tiles(&self) -> &[Tile] {
        &self.tables.dealt.tiles
    }

    /// Where each worker's pieces begin, and where the last ones end.
    pub fn offsets(&self) -> &[u32] {
        &self.tables.dealt.offsets
    }

    /// Workers, which are blocks.
    pub fn workers(&self) -> u32 {
        self.tables.dealt.workers() as u32
    }

    /// Where each group's items of conversion begin, and where the last ones end. An item is 8 tokens by 128 values.
    pub fn item_offsets(&self) -> &[u32] {
        &self.tables.item_offsets
    }

    /// Buffers of partial sums, one for each part of a split tile.
    pub fn slots(&self) -> usize {
        self.tables.dealt.slots
    }

    /// Where the partial sums of split tiles begin, in bytes from the workspace's begin.
    pub fn partials(&self) -> u64 {
        self.tables.partials
    }

    /// How evenly the work is dealt out.
    pub fn balance(&self) -> Balance {
        self.balance
    }
}

impl Plan for SwappedPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn preparation(&self) -> Option<&Variant> {
        self.preparation.as_ref()
    }

    fn memory(&self, weights: &[Weights]) -> Memory {
        self.tables.memory(weights)
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        self.tables.launches(addresses)
    }
}

impl Balance {
    fn of(kinds: &[Kind], shares: &[Share], workers: usize) -> Self {
        let pieces = || shares.iter().flatten();
        let load = |share: &Share| -> f64 { share.iter().map(|piece| kinds[piece.kind].cost(piece)).sum() };
        Self {
            makespan: shares.iter().map(load).fold(0.0, f64::max),
            busy: shares.iter().map(load).sum(),
            work: kinds.iter().map(|kind| kind.blocks as f64 * kind.whole).sum(),
            workers,
            tiles: pieces().filter(|piece| piece.part == 0).count(),
            parts: pieces().filter(|piece| piece.parts > 1).count(),
        }
    }
}
