//! `mma.sync`: all of attention but that with roles on sm_90a.

use gauntlet_device::Arch;
use gauntlet_problems::resources::{key_warps, multiplied_bytes, multiplied_value_bytes};
use gauntlet_problems::{Attention, Roles, Schedule, Scores};
use gauntlet_tile_program::Action::{Multiply, Softmax};
use gauntlet_tile_program::{Action, BufferIndex, Contents, Filled, Guard, Product, TileProgram};
use gauntlet_tiled_family::program::{
    Buffers, Pipeline, convert, multiply, multiplying_warps, softmax_in_registers, synchronise,
};

/// Queries that a warp owns.
const QUERIES_OF_A_WARP: usize = 16;

pub(super) fn program(schedule: &Schedule, attention: &Attention, arch: Arch) -> TileProgram {
    let is_unified = schedule.roles == Roles::Unified;
    let guard = if is_unified { Guard::Block } else { Guard::Barriers };
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, guard);
    let queries = Some(buffers.queries(guard));
    let softmax = Softened::of(&mut buffers, schedule);
    // Warps with the same queries merge as results are staged: they leave their sums, and meet, and each takes some of all.
    // (In the kernel that is where operands were, behind a barrier after the last step.)
    let merges = is_unified && key_warps(schedule) > 1;
    let staging = match merges {
        true => Some(buffers.add(Contents::Staging, 1, Filled::Tile, Guard::Block)),
        false => buffers.staging(schedule),
    };
    let convert = converts(schedule, attention, arch).then(|| convert(operands, None));
    let products = softmax.products(operands, synchronise(schedule));
    let pipeline = Pipeline {
        warps: multiplying_warps(schedule.tile.m / QUERIES_OF_A_WARP),
        operands,
        queries,
        staging,
        products: convert.into_iter().chain(products).collect(),
        meets: softmax != Softened::Registers,
        // The scores are written again in the next step, where now the weights are read.
        overwrites: matches!(softmax, Softened::InPlace { .. }),
        merges,
    };
    pipeline.program(buffers, schedule)
}

/// Where attention's softmax finds the scores and leaves the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Softened {
    /// In the registers of the warps that own their rows.
    Registers,
    /// In a buffer, where the weights overwrite the scores.
    InPlace { scores: BufferIndex },
    /// In a buffer each.
    Separate {
        scores: BufferIndex,
        weights: BufferIndex,
    },
}

impl Softened {
    /// Adds the buffers.
    fn of(buffers: &mut Buffers, schedule: &Schedule) -> Self {
        let mut buffer = |contents| buffers.add(contents, 1, Filled::Step, Guard::Block);
        match schedule.scores {
            Scores::Registers => Self::Registers,
            Scores::InPlace => Self::InPlace {
                scores: buffer(Contents::Scores),
            },
            Scores::Separate => Self::Separate {
                scores: buffer(Contents::Scores),
                weights: buffer(Contents::Probabilities),
            },
        }
    }

    /// Both products of a step, with the barriers between them.
    fn products(self, operands: BufferIndex, barrier: Action) -> Vec<Action> {
        let (scores, weights) = match self {
            Self::Registers => {
                return vec![
                    multiply(Product::Scores, operands),
                    softmax_in_registers(),
                    multiply(Product::Values, operands),
                ];
            }
            Self::InPlace { scores } => (scores, scores),
            Self::Separate { scores, weights } => (scores, weights),
        };
        vec![
            Multiply {
                product: Product::Scores,
                from: operands,
                to: Some(scores),
                asynchronous: false,
            },
            barrier,
            Softmax {
                from: Some(scores),
                to: Some(weights),
            },
            barrier,
            multiply(Product::Values, operands),
        ]
    }
}

/// Whether operands are converted in registers: where any is multiplied wider than it lies in memory.
fn converts(schedule: &Schedule, attention: &Attention, arch: Arch) -> bool {
    let widest = multiplied_bytes(schedule, attention).max(multiplied_value_bytes(schedule, attention, arch));
    attention.format.bytes() < widest
}
