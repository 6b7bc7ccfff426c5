//! Checks whether a tile program is sound by exploring every interleaving of its warps and of the engines they start.
//!
//! Without branches on data, a warp's program is one list of events, so the state of a block is each warp's position in
//! its list. The memory that an asynchronous copy or product accesses counts as in use from its start until a wait
//! forces its completion. The operation may end at any time in between, and an error that occurs when it ends early
//! also occurs if it counts as ending late. For the same reason one move of a warp may span everything from a wait up
//! to the next wait, including the signals at its end: a satisfied wait stays satisfied, and an access in the middle of
//! a move is still ahead when the move begins.
//!
//! Two warps represent all warps of a role; three if the first warp does more than the others. Every rule concerns two
//! events, and a signal or barrier waits for all warps. So a flaw among many warps also occurs between two that are
//! alike, or between the first and another. (The first and one other are not enough: if they wait for each other by
//! means that only the first has, two others may still race.)
//!
//! A loop that lacked a barrier, as it was recorded:
//!
//! ```
//! use gauntlet_barrier_proofs::prove;
//! use gauntlet_barrier_proofs::recorded::barrier_removed;
//!
//! let flaw = prove(&barrier_removed()).unwrap_err();
//! assert!(flaw.kind.is_race());
//! // What each warp does until it goes wrong.
//! assert!(flaw.interleaving.len() > 5);
//! ```

mod explore;
mod flaw;
mod links;
mod moves;
mod narrate;
pub mod recorded;
#[cfg(test)]
mod tests;
mod unroll;

use gauntlet_tile_program::{Action, BufferIndex, Contents, CopyMethod, Filled, Statement, TileProgram};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use flaw::{Flaw, FlawKind};

use explore::explore;
use unroll::Block;

/// How many more steps than the deepest buffer's slots a tile may have. This is enough for each slot to be reused, and
/// for the loop to run with nothing left to load.
const STEPS_BEYOND: usize = 3;

/// How many more tiles than the deepest tile buffer's slots a block may have: enough for each slot to be reused.
const TILES_BEYOND: usize = 1;

/// The extent of an exploration that found no flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// States, summed over all block sizes.
    pub states: usize,
    /// Slots of the operands' buffer.
    pub stages: usize,
    /// Steps of the longest tile.
    pub steps: usize,
    /// Tiles of the longest block.
    pub tiles: usize,
}

/// Explores blocks from one tile up to one more than the slots of the deepest buffer of tiles, each tile from one step
/// up to three more than the slots of the deepest buffer of steps.
///
/// # Errors
/// The first flaw, in the smallest block that has one, with the shortest interleaving that shows it. Missing overlap is
/// reported only for programs that are otherwise sound.
pub fn prove(program: &TileProgram) -> Result<Proof, Box<Flaw>> {
    let steps = deepest(program, Filled::Step) + STEPS_BEYOND;
    let tiles = deepest(program, Filled::Tile) + TILES_BEYOND;
    let stages = stages(program);
    let copying = stages > 1 && copies_beside_products(program);
    let mut proof = Proof {
        states: 0,
        stages,
        steps,
        tiles,
    };
    let mut idle = None;
    for tiles in blocks(tiles, steps) {
        let explored = explore(program, &Block::of(program, &tiles))?;
        proof.states += explored.states;
        // A tile of one step has nothing to overlap with.
        if copying && tiles == [stages + 1] {
            idle = explored.idle;
        }
    }
    idle.map_or(Ok(proof), Err)
}

/// The blocks to explore, each as the step counts of its tiles: for each number of steps, every sequence of tiles with
/// that many steps or one.
fn blocks(tiles: usize, longest: usize) -> impl Iterator<Item = Vec<usize>> {
    (1..=tiles).flat_map(move |tiles| {
        (1..=longest).flat_map(move |steps| {
            // The last pattern, all tiles short, equals the first one of `steps` = 1.
            let patterns = if steps == 1 { 1 } else { (1_usize << tiles) - 1 };
            (0..patterns).map(move |short| {
                let steps = |tile| if short >> tile & 1 == 1 { 1 } else { steps };
                (0..tiles).map(steps).collect()
            })
        })
    })
}

/// Slots of the deepest buffer that is filled at the rate `filled`.
fn deepest(program: &TileProgram, filled: Filled) -> usize {
    let buffers = program.buffers.iter().filter(|buffer| buffer.filled == filled);
    buffers.map(|buffer| buffer.slots).max().unwrap_or(1)
}

/// Slots of the deepest buffer that operands are loaded into.
fn stages(program: &TileProgram) -> usize {
    let loaded = program
        .roles
        .iter()
        .flat_map(|role| operations(&role.body))
        .filter_map(|operation| streamed(program, &operation));
    loaded
        .map(|(buffer, _)| program.buffers[buffer].slots)
        .max()
        .unwrap_or(1)
}

/// Whether the program is meant to copy operands while it multiplies: by engines, or in a separate role.
fn copies_beside_products(program: &TileProgram) -> bool {
    program.roles.iter().any(|role| {
        let operations = operations(&role.body);
        let multiplies = operations
            .iter()
            .any(|operation| matches!(operation, Action::Multiply { .. }));
        operations
            .iter()
            .filter_map(|operation| streamed(program, operation))
            .any(|(_, copy)| copy != CopyMethod::Registers || !multiplies)
    })
}

/// If the operation copies a step's operands: the target buffer, and the engine that copies.
fn streamed(program: &TileProgram, operation: &Action) -> Option<(BufferIndex, CopyMethod)> {
    match operation {
        Action::Load { buffer, copy, .. } => {
            let contents = program.buffers[*buffer].contents;
            matches!(contents, Contents::Operands | Contents::Converted).then_some((*buffer, *copy))
        }
        _ => None,
    }
}

/// All operations of a program text, including nested ones.
fn operations(body: &[Statement]) -> Vec<Action> {
    body.iter()
        .flat_map(|statement| match statement {
            Statement::Repeat(_, body) | Statement::If(_, body) => operations(body),
            Statement::Do(operation) => vec![*operation],
        })
        .collect()
}
