//! The distributed work, in the kernel's format.

use std::collections::BTreeMap;

use super::abi::{LAST, Tile, WHOLE};
use super::geometry::Geometry;
use super::order::Share;
use super::work::{Kind, Piece};
use crate::plan::PlanError;
use crate::plan::groups::check_tiles;

/// Every worker's tiles.
#[derive(Debug)]
pub(super) struct Dealt {
    /// Worker after worker, each one's in its order.
    pub tiles: Vec<Tile>,
    /// The first tile of each worker, and the end of the last worker's.
    pub offsets: Vec<u32>,
    /// Tiles of the worker that has most of them.
    pub tiles_a_worker: usize,
    /// Buffers of partial sums.
    pub slots: usize,
}

impl Dealt {
    /// A share for each block; some may have none.
    ///
    /// # Errors
    /// If a table with as many places for each worker would be too large.
    pub fn new(kinds: &[Kind], shares: &[Share], geometry: &Geometry) -> Result<Self, PlanError> {
        let tiles_a_worker = shares.iter().map(Share::len).max().unwrap_or(0);
        check_tiles(shares.len().saturating_mul(tiles_a_worker))?;
        let slots = Slots::new(shares);
        let (mut tiles, mut offsets) = (Vec::new(), vec![0]);
        for share in shares {
            tiles.extend(share.iter().map(|piece| tile(piece, kinds, geometry, &slots)));
            offsets.push(tiles.len() as u32);
        }
        Ok(Self {
            tiles,
            offsets,
            tiles_a_worker,
            slots: slots.count,
        })
    }

    /// Workers, which are blocks.
    pub fn workers(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Places of the kernel's table.
    pub fn places(&self) -> usize {
        self.workers() * self.tiles_a_worker
    }

    /// The kernel's table: a row of as many places for each worker, its tiles first, the rest zero.
    pub fn table(&self) -> Vec<Tile> {
        let mut table: Vec<Tile> = vec![bytemuck::Zeroable::zeroed(); self.places()];
        for (worker, bounds) in self.offsets.windows(2).enumerate() {
            let tiles = &self.tiles[bounds[0] as usize..bounds[1] as usize];
            let begin = worker * self.tiles_a_worker;
            table[begin..begin + tiles.len()].copy_from_slice(tiles);
            if !tiles.is_empty() {
                table[begin + tiles.len() - 1].parts |= LAST;
            }
        }
        table
    }
}

/// The first slot of partial sums of each split tile.
struct Slots {
    first: BTreeMap<(usize, usize), usize>,
    count: usize,
}

impl Slots {
    fn new(shares: &[Share]) -> Self {
        let split = shares
            .iter()
            .flatten()
            .filter(|piece| piece.parts > 1 && piece.part == 0);
        let parts: BTreeMap<_, _> = split
            .map(|piece| ((piece.kind, piece.block), piece.parts))
            .collect();
        let mut count = 0;
        let first = parts.into_iter().map(|(tile, parts)| {
            count += parts;
            (tile, count - parts)
        });
        Self {
            first: first.collect(),
            count,
        }
    }

    fn of(&self, piece: &Piece) -> u32 {
        self.first
            .get(&(piece.kind, piece.block))
            .map_or(WHOLE, |&slot| slot as u32)
    }
}

fn tile(piece: &Piece, kinds: &[Kind], geometry: &Geometry, slots: &Slots) -> Tile {
    let kind = &kinds[piece.kind];
    Tile {
        group: kind.group,
        row: (piece.block * geometry.block_rows) as u32,
        token: kind.token,
        width: kind.width,
        first_chunk: piece.first_chunk as u32,
        chunks: piece.chunks as u32,
        slot: slots.of(piece),
        parts: (piece.part | piece.parts << 16) as u32,
    }
}
