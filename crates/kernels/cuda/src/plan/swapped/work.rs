//! The work of a problem before it is distributed: kinds of tiles, each of which stands for many equal tiles.

use gauntlet_problems::{GemmShape, GroupedGemm};

use super::cost::Costs;
use super::geometry::{CHUNK, Geometry};
use crate::plan::groups::depth;

/// Tiles that differ only in their weight rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kind {
    /// The group.
    pub group: u32,
    /// First token in the group.
    pub token: u32,
    /// Tokens.
    pub width: u32,
    /// Columns that the kernel computes.
    pub columns: usize,
    /// Chunks of the whole depth.
    pub chunks: usize,
    /// Blocks of weight rows: how many tiles there are.
    pub blocks: usize,
    /// Nanoseconds of one tile over the whole depth.
    pub whole: f64,
    /// Nanoseconds of a chunk.
    pub chunk: f64,
    /// Nanoseconds of a part of a tile in two parts, besides its chunks.
    pub part: f64,
    /// The extra cost of each part for each part beyond two.
    pub further: f64,
}

/// Some of the depth of one tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index of its [`Kind`].
    pub kind: usize,
    /// Its block of weight rows.
    pub block: usize,
    /// First chunk.
    pub first_chunk: usize,
    /// Chunks.
    pub chunks: usize,
    /// Which part of the tile it is.
    pub part: usize,
    /// Parts of the tile.
    pub parts: usize,
}

impl Piece {
    /// A piece without a place, for cost estimates: they depend only on its chunks and the number of parts.
    pub fn sized(chunks: usize, parts: usize) -> Self {
        Self {
            kind: 0,
            block: 0,
            first_chunk: 0,
            chunks,
            part: 0,
            parts,
        }
    }
}

impl Kind {
    /// A tile over the whole depth.
    pub fn whole_piece(&self, kind: usize, block: usize) -> Piece {
        Piece {
            kind,
            block,
            first_chunk: 0,
            chunks: self.chunks,
            part: 0,
            parts: 1,
        }
    }

    /// Chunks, an even number, that a part of a tile in `parts` parts can compute in this time.
    pub fn room(&self, nanoseconds: f64, parts: usize) -> usize {
        let pairs = (nanoseconds - self.split(parts)) / (2.0 * self.chunk);
        2 * pairs.max(0.0) as usize
    }

    /// Nanoseconds of a piece.
    pub fn cost(&self, piece: &Piece) -> f64 {
        match piece.parts {
            1 => self.whole,
            parts => self.split(parts) + piece.chunks as f64 * self.chunk,
        }
    }

    /// Nanoseconds of a part of a tile in `parts` parts, besides its chunks.
    fn split(&self, parts: usize) -> f64 {
        self.part + parts.saturating_sub(2) as f64 * self.further
    }
}

/// Turns groups into kinds of tiles.
#[derive(Debug)]
pub(super) struct Cutter<'a> {
    pub gemm: &'a GroupedGemm,
    pub geometry: &'a Geometry,
    pub costs: &'a Costs,
    /// Whether a tile has as many columns as its tokens need, see [`Geometry::columns`]; all of them otherwise.
    pub mixed: bool,
}

impl Cutter<'_> {
    /// Each group's tokens in as few parts as possible.
    pub fn least_parts(&self) -> Vec<Parts> {
        let groups = self.gemm.groups.iter();
        groups
            .map(|shape| even(shape.m.div_ceil(8), shape.m.div_ceil(self.geometry.width)))
            .collect()
    }

    /// Blocks of weight rows of a group.
    pub fn blocks(&self, group: usize) -> usize {
        self.gemm.groups[group].n.div_ceil(self.geometry.block_rows)
    }

    /// The kinds of all groups, each cut into its parts.
    pub fn kinds(&self, parts: &[Parts]) -> Vec<Kind> {
        let groups = parts.iter().enumerate();
        groups
            .flat_map(|(group, parts)| self.kinds_of(group, parts))
            .collect()
    }

    /// Nanoseconds of all of a group's tiles, whole.
    pub fn work_of(&self, group: usize, parts: &Parts) -> f64 {
        let chunks = depth(self.gemm.groups[group].k) / CHUNK;
        let tiles = parts
            .iter()
            .map(|eighths| self.costs.whole(self.columns(*eighths), chunks));
        self.blocks(group) as f64 * tiles.sum::<f64>()
    }

    fn columns(&self, eighths: usize) -> usize {
        match self.mixed {
            true => self.geometry.columns(8 * eighths),
            false => self.geometry.width,
        }
    }

    fn kinds_of(&self, group: usize, parts: &Parts) -> impl Iterator<Item = Kind> {
        let GemmShape { m, k, .. } = self.gemm.groups[group];
        let chunks = depth(k) / CHUNK;
        let mut end = 0;
        parts.iter().map(move |eighths| {
            let token = end;
            end = (token + 8 * eighths).min(m);
            let columns = self.columns(*eighths);
            Kind {
                group: group as u32,
                token: token as u32,
                width: (end - token) as u32,
                columns,
                chunks,
                blocks: self.blocks(group),
                whole: self.costs.whole(columns, chunks),
                chunk: self.costs.chunk(columns),
                part: self.costs.part(columns),
                further: self.costs.further(columns),
            }
        })
    }
}

/// The eighths of a group's tokens that each of its parts has; none of a group without tokens.
pub(super) type Parts = Vec<usize>;

/// This many parts, as even as possible, the longer ones first.
pub(super) fn even(eighths: usize, parts: usize) -> Parts {
    (0..parts)
        .map(|part| eighths / parts + usize::from(part < eighths % parts))
        .collect()
}
