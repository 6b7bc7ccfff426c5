//! Whether a tile program is sound: every interleaving of its warps and of the engines they start, explored.
//!
//! Without branches on data a warp's text is one list of events, so the state of a block is how far each warp is.
//! What an asynchronous copy or product touches is taken to be touched from its start until a wait forces it: it may
//! end at any time in between, and nothing that goes wrong when it ends early goes right when it ends late. For the
//! same reason a warp's move may be everything from a wait up to the next, signals at its end included: waits never
//! become unsatisfied again, and what is touched in the middle of a move is still to be touched at its beginning.
//!
//! Two warps stand for the warps of a role, or three where the first does more than the others. Every rule is about
//! two events, and a signal or barrier waits for all warps: so what goes wrong among many goes wrong between two that
//! are alike, or between the first and another. (The first and one other do not do: if they wait for each other by
//! means that only the first has, two others may still race.)

mod explore;
mod flaw;
mod links;
mod moves;
mod narrate;
pub mod recorded;
#[cfg(test)]
mod tests;
mod unroll;

use gauntlet_task::program::{Action, BufferIndex, Contents, CopyMethod, Filled, Statement, TileProgram};
use serde::{Deserialize, Serialize};

pub use flaw::{Flaw, FlawKind};

use explore::explore;
use unroll::Block;

/// Tiles are explored with up to so many steps more than the deepest buffer has slots: enough for each slot to be
/// used again, and for the loop to run with nothing left to load.
const STEPS_BEYOND: usize = 3;

/// Blocks are explored with up to so many tiles more than the deepest buffer of tiles has slots: each slot is used
/// again.
const TILES_BEYOND: usize = 1;

/// What was explored without finding a flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// States, over all sizes of block.
    pub states: usize,
    /// Slots of the operands' buffer.
    pub stages: usize,
    /// Steps of the longest tile.
    pub steps: usize,
    /// Tiles of the longest block.
    pub tiles: usize,
}

/// Explores blocks of one tile up to one more than any buffer has slots for tiles, from one step to three more than
/// any has slots for steps.
///
/// # Errors
/// The first flaw, in the smallest block that has one, with the shortest interleaving that shows it. That nothing
/// overlaps is said only of programs that are sound otherwise.
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

/// The blocks to be explored, each as the steps of its tiles: so many and one, in every order.
fn blocks(tiles: usize, longest: usize) -> impl Iterator<Item = Vec<usize>> {
    (1..=tiles).flat_map(move |tiles| {
        (1..=longest).flat_map(move |steps| {
            // The last pattern, all tiles short, is the first of one step.
            let patterns = if steps == 1 { 1 } else { (1_usize << tiles) - 1 };
            (0..patterns).map(move |short| {
                let steps = |tile| if short >> tile & 1 == 1 { 1 } else { steps };
                (0..tiles).map(steps).collect()
            })
        })
    })
}

/// Slots of the deepest buffer that is filled so often.
fn deepest(program: &TileProgram, filled: Filled) -> usize {
    let buffers = program.buffers.iter().filter(|buffer| buffer.filled == filled);
    buffers.map(|buffer| buffer.slots).max().unwrap_or(1)
}

/// Slots of the deepest buffer into which operands are loaded.
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

/// Whether the program sets out to copy operands while it multiplies: by engines, or in a role of its own.
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

/// Where a copy of a step's operands goes, and what copies, if the operation is one.
fn streamed(program: &TileProgram, operation: &Action) -> Option<(BufferIndex, CopyMethod)> {
    match operation {
        Action::Load { buffer, copy, .. } => {
            let contents = program.buffers[*buffer].contents;
            matches!(contents, Contents::Operands | Contents::Converted).then_some((*buffer, *copy))
        }
        _ => None,
    }
}

/// All operations of a text, wherever they stand in it.
fn operations(body: &[Statement]) -> Vec<Action> {
    body.iter()
        .flat_map(|statement| match statement {
            Statement::Repeat(_, body) | Statement::If(_, body) => operations(body),
            Statement::Do(operation) => vec![*operation],
        })
        .collect()
}
