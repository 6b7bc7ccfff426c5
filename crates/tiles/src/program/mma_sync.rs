//! sm_80 and sm_89, and on sm_90a what needs nothing of Hopper (attention and swapped GEMMs without roles): `cp.async`, operands converted in registers, `mma.sync`.

use gauntlet_device::Arch;
use gauntlet_operations::Operation;

use super::Action::{AwaitCopies, CommitCopies, Load, Multiply, Softmax, Store, Synchronise};
use super::text::{
    Buffers, CONSUMER, EVERYONE, PRODUCER, acquire, convert, multiply, now, publish, repeat, role,
    softmax_in_registers, stages, synchronise, wait_for, when,
};
use super::{
    Action, BufferIndex, Condition, Contents, CopyMethod, Extent, Filled, Guard, Product, Signal, Statement,
    TileProgram,
};
use crate::resources::{accumulators, is_unified, key_warps, multiplied_bytes, multiplied_value_bytes};
use crate::{Roles, Schedule, Scores};

/// Sums that one thread keeps: half of the registers it can have.
const SUMS_OF_A_THREAD: usize = 128;

/// Warps of a block of the unified GEMM kernel.
const UNIFIED_WARPS: usize = 4;

/// Queries that a warp of sm_90a owns.
const QUERIES_OF_A_WARP: usize = 16;

pub(super) fn program(schedule: &Schedule, problem: &Operation, arch: Arch) -> TileProgram {
    match schedule.roles {
        Roles::Unified => unified(schedule, problem, arch),
        Roles::Specialised => specialised(schedule, problem, arch),
    }
}

/// Warps that multiply: at least one for each of the four schedulers of a processor.
fn warps(schedule: &Schedule, problem: &Operation, arch: Arch) -> usize {
    if is_unified(schedule, arch) && matches!(problem, Operation::GroupedGemm(_)) {
        return UNIFIED_WARPS;
    }
    if arch == Arch::Sm90a {
        return (schedule.tile.m / QUERIES_OF_A_WARP).clamp(4, 16);
    }
    accumulators(schedule, problem)
        .div_ceil(32 * SUMS_OF_A_THREAD)
        .next_power_of_two()
        .clamp(4, 16)
}

fn unified(schedule: &Schedule, problem: &Operation, arch: Arch) -> TileProgram {
    let stages = stages(schedule);
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Block);
    let queries = buffers.queries(problem, Guard::Block);
    let softmax = Softened::of(&mut buffers, schedule, problem);
    // Warps with the same queries merge as results are staged: they leave their sums, and meet, and each takes some of all.
    // (In the kernel that is where operands were, behind a barrier after the last step.)
    let merges = softmax.is_some() && key_warps(schedule) > 1;
    let staging = match merges {
        true => Some(buffers.add(Contents::Staging, 1, Filled::Tile, Guard::Block)),
        false => buffers.staging(schedule),
    };
    let products = products(operands, softmax, converts(schedule, problem, arch), Synchronise);

    // The queries belong to the first group of copies.
    let mut tile: Vec<Statement> = queries
        .map(|queries| load(queries, 0).into())
        .into_iter()
        .collect();
    if stages == 1 {
        let mut step: Vec<Statement> = vec![
            load(operands, 0).into(),
            CommitCopies.into(),
            AwaitCopies { outstanding: 0 }.into(),
            Synchronise.into(),
        ];
        step.extend(products);
        step.push(Synchronise.into());
        tile.push(repeat(Extent::Steps, step));
    } else {
        let ahead = stages - 1;
        // A group for each step, even for those that a short tile lacks: the wait counts groups, not steps.
        tile.push(repeat(
            Extent::Times(ahead),
            vec![
                when(Condition::HasStepAhead(0), vec![load(operands, 0).into()]),
                CommitCopies.into(),
            ],
        ));
        let mut step: Vec<Statement> = vec![
            AwaitCopies {
                outstanding: stages - 2,
            }
            .into(),
            // Every warp's part of this step has landed, and every warp is done with the slot that is filled next.
            Synchronise.into(),
            when(Condition::HasStepAhead(ahead), vec![load(operands, ahead).into()]),
            CommitCopies.into(),
        ];
        step.extend(products);
        tile.push(repeat(Extent::Steps, step));
        if softmax == Some(Softened::Registers) && (merges || staging.is_none()) {
            // Neither a barrier inside a step nor one in the epilogue guarantees that every warp is done with the
            // queries.
            tile.push(Synchronise.into());
        }
    }
    // The steps of the next tile contain a barrier before the staging buffer is written again.
    tile.extend(epilogue(staging, Synchronise));
    buffers.program(vec![role(
        EVERYONE,
        warps(schedule, problem, arch),
        vec![repeat(Extent::Tiles, tile)],
    )])
}

fn specialised(schedule: &Schedule, problem: &Operation, arch: Arch) -> TileProgram {
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    let queries = buffers.queries(problem, Guard::Barriers);
    let softmax = Softened::of(&mut buffers, schedule, problem);
    let staging = buffers.staging(schedule);
    let barrier = synchronise(schedule);

    let fill = |buffer| -> Vec<Statement> {
        vec![
            acquire(buffer).into(),
            load(buffer, 0).into(),
            publish(buffer, Signal::CopiesDone).into(),
        ]
    };
    let mut produce = queries.map_or(vec![], fill);
    produce.push(repeat(Extent::Steps, fill(operands)));

    let mut step: Vec<Statement> = vec![wait_for(operands).into()];
    step.extend(products(
        operands,
        softmax,
        converts(schedule, problem, arch),
        barrier,
    ));
    step.push(now(operands).into());
    if let Some(Softened::InPlace { .. }) = softmax {
        // The scores are written again in the next step, where now the weights are read.
        step.push(barrier.into());
    }
    let mut consume: Vec<Statement> = queries
        .map(|buffer| wait_for(buffer).into())
        .into_iter()
        .collect();
    consume.push(repeat(Extent::Steps, step));
    consume.extend(queries.map(|queries| Statement::Do(now(queries))));
    consume.extend(epilogue(staging, barrier));
    if staging.is_some() && matches!(softmax, None | Some(Softened::Registers)) {
        // Nothing else keeps a fast warp from writing the next tile's results while a slow one copies these.
        consume.push(barrier.into());
    }

    let warps = warps(schedule, problem, arch);
    buffers.program(vec![
        role(PRODUCER, warps / 4, vec![repeat(Extent::Tiles, produce)]),
        role(CONSUMER, warps, vec![repeat(Extent::Tiles, consume)]),
    ])
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
    /// Adds the buffers; none for a GEMM.
    fn of(buffers: &mut Buffers, schedule: &Schedule, problem: &Operation) -> Option<Self> {
        let Operation::Attention(_) = problem else {
            return None;
        };
        let mut buffer = |contents| buffers.add(contents, 1, Filled::Step, Guard::Block);
        Some(match schedule.scores {
            Scores::Registers => Self::Registers,
            Scores::InPlace => Self::InPlace {
                scores: buffer(Contents::Scores),
            },
            Scores::Separate => Self::Separate {
                scores: buffer(Contents::Scores),
                weights: buffer(Contents::Probabilities),
            },
        })
    }
}

/// Whether operands are converted in registers: NVFP4 always, those of attention where any is multiplied wider than it
/// lies in memory.
fn converts(schedule: &Schedule, problem: &Operation, arch: Arch) -> bool {
    match problem {
        Operation::GroupedGemm(_) => true,
        Operation::Attention(attention) => {
            let widest =
                multiplied_bytes(schedule, attention).max(multiplied_value_bytes(schedule, attention, arch));
            attention.format.bytes() < widest
        }
    }
}

fn load(buffer: BufferIndex, ahead: usize) -> Action {
    Load {
        buffer,
        ahead,
        copy: CopyMethod::Asynchronous,
    }
}

fn products(
    operands: BufferIndex,
    softmax: Option<Softened>,
    converts: bool,
    barrier: Action,
) -> Vec<Statement> {
    let convert = converts.then_some(convert(operands, None));
    let through = |scores, weights| {
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
    };
    let products = match softmax {
        None => vec![multiply(Product::Gemm, operands)],
        Some(Softened::Registers) => vec![
            multiply(Product::Scores, operands),
            softmax_in_registers(),
            multiply(Product::Values, operands),
        ],
        Some(Softened::InPlace { scores }) => through(scores, scores),
        Some(Softened::Separate { scores, weights }) => through(scores, weights),
    };
    convert.into_iter().chain(products).map(Statement::Do).collect()
}

/// There are no bulk stores yet: from the staging buffer the warps copy whole rows.
fn epilogue(staging: Option<BufferIndex>, barrier: Action) -> Vec<Statement> {
    let store = Store {
        from: None,
        to: staging,
    };
    let copy = staging.map(|_| {
        [
            barrier,
            Store {
                from: staging,
                to: None,
            },
        ]
    });
    [store]
        .into_iter()
        .chain(copy.into_iter().flatten())
        .map(Statement::Do)
        .collect()
}
