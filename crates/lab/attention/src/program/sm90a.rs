//! sm_90a: attention. Without roles by `mma.sync`; with roles `wgmma` takes keys and values from shared memory, where
//! e4m3 operands are first converted.

use gauntlet_device::Arch;
use gauntlet_problems::resources::{HopperAttention, operands_made_ready, warp_groups};
use gauntlet_problems::{Attention, Schedule};
use gauntlet_tile_program::Action::{AwaitProducts, SynchroniseRole};
use gauntlet_tile_program::{
    BufferIndex, Contents, Extent, Filled, Guard, Product, Role, Signal, Statement, TileProgram,
};
use gauntlet_tiled_family::program::{
    Buffers, CONSUMER, CONVERTER, acquire, asynchronous, bulk_epilogue, bulk_producer, convert, now, publish,
    repeat, role, softmax_in_registers, stages, statements, wait_for,
};

use super::mma_sync;

/// Slots of copied operands that are not converted yet. The kernel's ring of three holds keys or values in each slot;
/// here both are in one.
const RAW_SLOTS: usize = 2;
/// Warps that convert.
const CONVERTERS: usize = 3;
/// Warps of a warp group.
const GROUP: usize = 4;
/// Warp groups that share out the keys of the resident kernel, each with room of its own.
const RESIDENT_GROUPS: usize = 2;

pub(super) fn program(schedule: &Schedule, attention: &Attention) -> TileProgram {
    let is_made_ready = operands_made_ready(schedule, attention) > 0;
    match (HopperAttention::of(schedule), is_made_ready) {
        (HopperAttention::Unified, _) => mma_sync::program(schedule, attention, Arch::Sm90a),
        (HopperAttention::Specialised, false) => copied(schedule, attention),
        (HopperAttention::Specialised, true) => converted(schedule, attention),
        (HopperAttention::Resident, _) => resident(schedule, attention, is_made_ready),
    }
}

/// The step where keys and values are multiplied as they were copied.
fn copied(schedule: &Schedule, attention: &Attention) -> TileProgram {
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    let queries = buffers.queries(Guard::Barriers);
    let roles = vec![
        bulk_producer(operands, Some(queries)),
        consumer(schedule, attention, queries, multiply(operands, operands)),
    ];
    buffers.program(roles)
}

/// The step where warps of the block convert the copied operands before they are multiplied.
fn converted(schedule: &Schedule, attention: &Attention) -> TileProgram {
    let mut buffers = Buffers::default();
    let raw = buffers.add(Contents::Operands, RAW_SLOTS, Filled::Step, Guard::Barriers);
    let queries = buffers.queries(Guard::Barriers);
    let ready = buffers.add(
        Contents::Converted,
        stages(schedule),
        Filled::Step,
        Guard::Barriers,
    );
    let convert = [
        wait_for(raw),
        acquire(ready),
        convert(raw, Some(ready)),
        publish(ready, Signal::Now),
        now(raw),
    ];
    let convert = convert.map(Statement::Do).into();
    let converter = role(
        CONVERTER,
        CONVERTERS,
        vec![repeat(Extent::Tiles, vec![repeat(Extent::Steps, convert)])],
    );
    let roles = vec![
        bulk_producer(raw, Some(queries)),
        converter,
        consumer(schedule, attention, queries, multiply(ready, ready)),
    ];
    buffers.program(roles)
}

/// There is room for all keys: a step for each of the two warp groups, so nothing is waited for but copies. Both warp
/// groups take part in each step here; one warp stands for the threads that issue copies.
fn resident(schedule: &Schedule, attention: &Attention, is_made_ready: bool) -> TileProgram {
    let mut buffers = Buffers::default();
    let mut held = |contents, guard| buffers.add(contents, RESIDENT_GROUPS, Filled::Step, guard);
    let operands = held(Contents::Operands, Guard::Barriers);
    let ready = is_made_ready.then(|| held(Contents::Converted, Guard::Block));
    let queries = buffers.queries(Guard::Barriers);
    let step = match ready {
        None => multiply(operands, operands),
        Some(ready) => {
            let mut step = multiply(ready, operands);
            let convert = convert(operands, Some(ready));
            step.splice(1..1, [convert.into(), SynchroniseRole.into()]);
            step
        }
    };
    let roles = vec![
        bulk_producer(operands, Some(queries)),
        consumer(schedule, attention, queries, step),
    ];
    buffers.program(roles)
}

/// The warp groups that multiply, once the queries are there.
fn consumer(schedule: &Schedule, attention: &Attention, queries: BufferIndex, step: Vec<Statement>) -> Role {
    let groups = match HopperAttention::of(schedule) {
        HopperAttention::Resident => RESIDENT_GROUPS,
        HopperAttention::Unified | HopperAttention::Specialised => warp_groups(schedule, attention).count,
    };
    let mut tile = vec![
        wait_for(queries).into(),
        repeat(Extent::Steps, step),
        now(queries).into(),
    ];
    tile.extend(bulk_epilogue(None, None, None, SynchroniseRole));
    role(
        CONSUMER,
        GROUP * groups.clamp(1, 7),
        vec![repeat(Extent::Tiles, tile)],
    )
}

/// Both products of a step from `ready`; scores and probabilities stay in registers. `operands` is the buffer that is
/// awaited and released.
fn multiply(ready: BufferIndex, operands: BufferIndex) -> Vec<Statement> {
    statements([
        wait_for(operands),
        asynchronous(Product::Scores, ready, None),
        AwaitProducts { outstanding: 0 },
        softmax_in_registers(),
        asynchronous(Product::Values, ready, None),
        AwaitProducts { outstanding: 0 },
        now(operands),
    ])
}
