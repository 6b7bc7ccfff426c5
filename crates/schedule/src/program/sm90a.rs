//! sm_90a: bulk copies, NVFP4 converted to fp16 on the way, `wgmma`. Attention without roles goes by `mma.sync`.

use gauntlet_device::Arch;
use gauntlet_problem::Problem;

use super::Operation::{Await, AwaitProducts, Convert, Multiply};
use super::mma_sync;
use super::text::{
    Buffers, CONSUMER, EVERYONE, bulk_epilogue, bulk_load, bulk_producer, is_attention, now, repeat, role,
    softmax_in_registers, stages, storing_tiles, synchronise, when,
};
use super::{
    BufferIndex, Condition, Contents, Extent, Filled, Guard, Operation, Product, Statement, TileProgram,
};
use crate::resources::{by_mma_sync, is_narrow};
use crate::{Roles, Schedule};

/// Rows of a `wgmma`, all of one group of four warps.
const ROWS: usize = 64;
/// Values of a step's depth that one warp of a narrow tile takes.
const NARROW_DEPTH: usize = 128;

pub(super) fn program(schedule: &Schedule, problem: &Problem) -> TileProgram {
    if is_attention(problem) && by_mma_sync(schedule, Arch::Sm90a) {
        return mma_sync::program(schedule, problem, Arch::Sm90a);
    }
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    let queries = buffers.queries(problem, Guard::Barriers);
    // `wgmma` takes its columns from shared memory: without swap-AB those are the weights.
    let converted = (!is_attention(problem) && !schedule.swap_ab)
        .then(|| buffers.add(Contents::Converted, stages(schedule), Filled::Step, Guard::Block));
    let staging = buffers.staging(schedule);
    let barrier = synchronise(schedule);

    let step = match (queries, converted) {
        (Some(_), _) => attention_step(operands),
        (None, Some(converted)) => converting_step(operands, converted, stages(schedule), barrier),
        (None, None) => swapped_step(operands),
    };
    let before = queries.map(|buffer| Statement::Do(Await { buffer }));
    let mut after: Vec<Statement> = queries.map(|queries| now(queries).into()).into_iter().collect();
    after.extend(converted.map(|_| Statement::Do(AwaitProducts { outstanding: 0 })));
    after.extend(bulk_epilogue(staging, None, None, barrier));

    let warps = warps(schedule);
    let roles = match schedule.roles {
        Roles::Unified => {
            let mut tile = first_loads(operands, stages(schedule));
            let ahead = stages(schedule) - 1;
            let mut loading = vec![when(
                Condition::HasStepAhead(ahead),
                vec![when(Condition::FirstWarp, bulk_load(operands, ahead).into())],
            )];
            loading.extend(step);
            tile.push(repeat(Extent::Steps, loading));
            tile.extend(after);
            vec![role(EVERYONE, warps, storing_tiles(tile, staging))]
        }
        Roles::Specialised => {
            let mut tile: Vec<Statement> = before.into_iter().collect();
            tile.push(repeat(Extent::Steps, step));
            tile.extend(after);
            vec![
                bulk_producer(operands, queries),
                role(CONSUMER, warps, storing_tiles(tile, staging)),
            ]
        }
    };
    TileProgram {
        buffers: buffers.0,
        roles,
    }
}

/// A group of four warps for each 64 rows; a block has at most 1024 threads, and one warp may load. Those of a narrow tile
/// share out the depth.
fn warps(schedule: &Schedule) -> usize {
    if is_narrow(schedule) {
        return (schedule.tile.k / NARROW_DEPTH).clamp(1, 16);
    }
    4 * (schedule.tile.m / ROWS).clamp(1, 7)
}

/// What one warp of all loads before the first step.
fn first_loads(operands: BufferIndex, stages: usize) -> Vec<Statement> {
    let load = when(Condition::FirstWarp, bulk_load(operands, 0).into());
    let loads = (stages > 1).then(|| repeat(Extent::FirstSteps(stages - 1), vec![load]));
    loads.into_iter().collect()
}

fn multiply(product: Product, from: BufferIndex) -> Operation {
    Multiply {
        product,
        from,
        to: None,
        asynchronous: true,
    }
}

/// The weights go through registers, the tokens lie in shared memory as they are multiplied.
fn swapped_step(operands: BufferIndex) -> Vec<Statement> {
    [
        Await { buffer: operands },
        Convert {
            from: operands,
            to: None,
        },
        multiply(Product::Gemm, operands),
        AwaitProducts { outstanding: 0 },
        now(operands),
    ]
    .map(Statement::Do)
    .into()
}

/// The tokens go through registers, the weights to shared memory, while the product of the step before runs; with a
/// single slot there is no room for that.
fn converting_step(
    operands: BufferIndex,
    converted: BufferIndex,
    stages: usize,
    barrier: Operation,
) -> Vec<Statement> {
    let weights = Convert {
        from: operands,
        to: Some(converted),
    };
    let done = AwaitProducts { outstanding: 0 };
    let mut step = vec![Await { buffer: operands }];
    if stages == 1 {
        step.extend([done, barrier, weights]);
    } else {
        step.extend([weights, done]);
    }
    step.extend([
        Convert {
            from: operands,
            to: None,
        },
        now(operands),
        barrier,
        multiply(Product::Gemm, converted),
    ]);
    step.into_iter().map(Statement::Do).collect()
}

/// Scores and probabilities stay in registers.
fn attention_step(operands: BufferIndex) -> Vec<Statement> {
    [
        Await { buffer: operands },
        multiply(Product::Scores, operands),
        AwaitProducts { outstanding: 0 },
        softmax_in_registers(),
        multiply(Product::Values, operands),
        AwaitProducts { outstanding: 0 },
        now(operands),
    ]
    .map(Statement::Do)
    .into()
}
