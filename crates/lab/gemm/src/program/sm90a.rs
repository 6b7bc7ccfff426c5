//! sm_90a: bulk copies, NVFP4 converted to fp16 on the way, `wgmma`.

use gauntlet_problems::resources::{is_narrow, weights};
use gauntlet_problems::{GroupedGemm, Roles, Schedule};
use gauntlet_tile_program::Action::AwaitProducts;
use gauntlet_tile_program::{
    Action, BufferIndex, Condition, Contents, Extent, Filled, Guard, Product, Statement, TileProgram,
};
use gauntlet_tiled_family::program::{
    Buffers, CONSUMER, EVERYONE, asynchronous, bulk_epilogue, bulk_load, bulk_producer, convert, first_loads,
    now, repeat, role, stages, statements, storing_tiles, synchronise, wait_for, when,
};

/// Rows of a `wgmma`, all of one group of four warps.
const ROWS: usize = 64;
/// Values of a step's depth that one warp of a narrow tile takes.
const NARROW_DEPTH: usize = 128;

pub(super) fn program(schedule: &Schedule, gemm: &GroupedGemm) -> TileProgram {
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    // `wgmma` takes its columns from shared memory: without swap-AB those are the weights.
    let converted = (!schedule.swap_ab)
        .then(|| buffers.add(Contents::Converted, stages(schedule), Filled::Step, Guard::Block));
    let staging = buffers.staging(schedule);
    let barrier = synchronise(schedule);

    let step = match converted {
        Some(converted) => converting_step(operands, converted, stages(schedule), barrier),
        None => swapped_step(operands),
    };
    let mut after: Vec<Statement> = converted
        .map(|_| Statement::Do(AwaitProducts { outstanding: 0 }))
        .into_iter()
        .collect();
    after.extend(bulk_epilogue(staging, None, None, barrier));

    let warps = warps(schedule, gemm);
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
            let mut tile = vec![repeat(Extent::Steps, step)];
            tile.extend(after);
            vec![
                bulk_producer(operands, None),
                role(CONSUMER, warps, storing_tiles(tile, staging)),
            ]
        }
    };
    buffers.program(roles)
}

/// A group of four warps for each 64 rows, with swap-AB for each 64 of each weight; a block has at most 1024 threads, and one
/// warp may load. Those of a narrow tile share out the depth.
fn warps(schedule: &Schedule, gemm: &GroupedGemm) -> usize {
    if is_narrow(schedule) {
        return (schedule.tile.k / NARROW_DEPTH).clamp(1, 16);
    }
    let matrices = if schedule.swap_ab { weights(gemm) } else { 1 };
    4 * (matrices * schedule.tile.m / ROWS).clamp(1, 7)
}

/// The weights go through registers, the tokens lie in shared memory as they are multiplied.
fn swapped_step(operands: BufferIndex) -> Vec<Statement> {
    statements([
        wait_for(operands),
        convert(operands, None),
        asynchronous(Product::Gemm, operands, None),
        AwaitProducts { outstanding: 0 },
        now(operands),
    ])
}

/// The tokens go through registers, the weights to shared memory, while the product of the step before runs; with a
/// single slot there is no room for that.
fn converting_step(
    operands: BufferIndex,
    converted: BufferIndex,
    stages: usize,
    barrier: Action,
) -> Vec<Statement> {
    let weights = convert(operands, Some(converted));
    let done = AwaitProducts { outstanding: 0 };
    let mut step = vec![wait_for(operands)];
    if stages == 1 {
        step.extend([done, barrier, weights]);
    } else {
        step.extend([weights, done]);
    }
    step.extend([
        convert(operands, None),
        now(operands),
        barrier,
        asynchronous(Product::Gemm, converted, None),
    ]);
    statements(step)
}
