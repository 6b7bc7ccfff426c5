//! The orders that need no balancing: every tile in parts of equal depth, in the groups' order.

use gauntlet_problems::Order;

use super::work::{Kind, Piece};

/// A worker's pieces, in the order in which it computes them.
pub(super) type Share = Vec<Piece>;

/// Deals out every tile in `parts` parts; the sorted order has its tiles balanced instead.
pub(super) fn deal(kinds: &[Kind], order: Order, workers: usize, parts: usize) -> Vec<Share> {
    let pieces = pieces(kinds, parts);
    if order == Order::PerTile {
        one_each(pieces)
    } else {
        contiguous(&pieces, workers)
    }
}

/// All tiles, each in `parts` parts (fewer where the depth has fewer pairs of chunks), in the groups' order.
fn pieces(kinds: &[Kind], parts: usize) -> Vec<Piece> {
    let tiles = kinds
        .iter()
        .enumerate()
        .flat_map(|(kind, tiles)| (0..tiles.blocks).map(move |block| (kind, tiles, block)));
    tiles
        .flat_map(|(kind, tiles, block)| {
            let pairs = tiles.chunks / 2;
            let parts = parts.min(pairs);
            (0..parts).map(move |part| {
                let begin = |part: usize| 2 * (part * pairs / parts);
                Piece {
                    kind,
                    block,
                    first_chunk: begin(part),
                    chunks: begin(part + 1) - begin(part),
                    part,
                    parts,
                }
            })
        })
        .collect()
}

/// A worker for each piece.
fn one_each(pieces: Vec<Piece>) -> Vec<Share> {
    pieces.into_iter().map(|piece| vec![piece]).collect()
}

/// Gives each worker the same number of pieces, in their order.
fn contiguous(pieces: &[Piece], workers: usize) -> Vec<Share> {
    let begin = |worker: usize| pieces.len() * worker / workers;
    (0..workers)
        .map(|worker| pieces[begin(worker)..begin(worker + 1)].to_vec())
        .collect()
}
