//! The work of a problem, before it is dealt out: kinds of tiles, of which each has many alike.

use gauntlet_problem::{GemmShape, GroupedGemm};

use super::cost::Costs;
use super::geometry::{CHUNK, Geometry};
use crate::plan::groups::depth;

/// Tiles that are alike but for their weight rows.
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
    /// What each part costs more for each part beyond two.
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

    /// Chunks, an even number, that a part of a tile in so many can have in some time.
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

    /// Nanoseconds of a part of a tile in so many, besides its chunks.
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
    /// Whether a tile has as many columns as its tokens need, in steps of 8; all of them otherwise.
    pub mixed: bool,
}

impl Cutter<'_> {
    /// The least parts into which each group's tokens can be cut; 0 for a group without any.
    pub fn least_parts(&self) -> Vec<usize> {
        let parts = |shape: &GemmShape| shape.m.div_ceil(self.geometry.width);
        self.gemm.groups.iter().map(parts).collect()
    }

    /// Blocks of weight rows of a group.
    pub fn blocks(&self, group: usize) -> usize {
        self.gemm.groups[group].n.div_ceil(self.geometry.block_rows)
    }

    /// The kinds of all groups, each cut evenly into so many parts, in steps of 8 tokens.
    pub fn kinds(&self, parts: &[usize]) -> Vec<Kind> {
        let groups = parts.iter().enumerate();
        groups
            .flat_map(|(group, &parts)| self.kinds_of(group, parts))
            .collect()
    }

    fn kinds_of(&self, group: usize, parts: usize) -> impl Iterator<Item = Kind> {
        let GemmShape { m, k, .. } = self.gemm.groups[group];
        let eighths = m.div_ceil(8);
        (0..parts).map(move |part| {
            // The longer parts first.
            let begin = |part: usize| 8 * (part * (eighths / parts) + part.min(eighths % parts));
            let (token, end) = (begin(part), begin(part + 1).min(m));
            let columns = if self.mixed {
                (end - token).next_multiple_of(8)
            } else {
                self.geometry.width
            };
            let chunks = depth(k) / CHUNK;
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
