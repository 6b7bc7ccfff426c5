//! Building blocks for writing programs, shared by several instruction sets.

use gauntlet_operations::Operation;

use super::Action::{
    Acquire, Await, AwaitStore, BulkStore, Convert, Load, Multiply, Publish, Release, Softmax, Store,
    Synchronise, SynchroniseRole,
};
use super::{
    Action, Buffer, BufferIndex, Condition, Contents, CopyMethod, Extent, Filled, Guard, Product, Role,
    Signal, Statement, TileProgram,
};
use crate::{Epilogue, Roles, Schedule};

/// The role of all warps where there are no special roles.
pub(super) const EVERYONE: &str = "everyone";
/// The role that only loads.
pub(super) const PRODUCER: &str = "producer";
/// The role that converts loaded operands for the matrix unit.
pub(super) const CONVERTER: &str = "converter";
/// The role that multiplies loaded operands.
pub(super) const CONSUMER: &str = "consumer";

pub(super) fn repeat(extent: Extent, body: Vec<Statement>) -> Statement {
    Statement::Repeat(extent, body)
}

pub(super) fn when(condition: Condition, body: Vec<Statement>) -> Statement {
    Statement::If(condition, body)
}

pub(super) fn role(name: &'static str, warps: usize, body: Vec<Statement>) -> Role {
    Role { name, warps, body }
}

/// The buffers of a program under construction.
#[derive(Debug, Default)]
pub(super) struct Buffers(Vec<Buffer>);

impl Buffers {
    /// The program of these buffers.
    pub(super) fn program(self, roles: Vec<Role>) -> TileProgram {
        let buffers = self.0;
        TileProgram { buffers, roles }
    }

    pub(super) fn add(
        &mut self,
        contents: Contents,
        slots: usize,
        filled: Filled,
        guard: Guard,
    ) -> BufferIndex {
        self.0.push(Buffer {
            contents,
            slots,
            filled,
            guard,
        });
        self.0.len() - 1
    }

    /// Operands in as many slots as the schedule has stages.
    pub(super) fn operands(&mut self, schedule: &Schedule, guard: Guard) -> BufferIndex {
        self.add(Contents::Operands, stages(schedule), Filled::Step, guard)
    }

    /// The queries, if there are any.
    pub(super) fn queries(&mut self, problem: &Operation, guard: Guard) -> Option<BufferIndex> {
        is_attention(problem).then(|| self.add(Contents::Queries, 1, Filled::Tile, guard))
    }

    /// The staging buffer, if results are staged.
    pub(super) fn staging(&mut self, schedule: &Schedule) -> Option<BufferIndex> {
        (schedule.epilogue == Epilogue::Staged)
            .then(|| self.add(Contents::Staging, 1, Filled::Tile, Guard::Block))
    }
}

pub(super) fn stages(schedule: &Schedule) -> usize {
    schedule.stages.max(1)
}

pub(super) fn is_attention(problem: &Operation) -> bool {
    matches!(problem, Operation::Attention(_))
}

/// The barrier among those that multiply: the whole block, or their role.
pub(super) fn synchronise(schedule: &Schedule) -> Action {
    match schedule.roles {
        Roles::Unified => Synchronise,
        Roles::Specialised => SynchroniseRole,
    }
}

/// Waits for the slot and has it filled by a bulk copy.
pub(super) fn bulk_load(buffer: BufferIndex, ahead: usize) -> [Statement; 2] {
    [
        Acquire { buffer, ahead }.into(),
        Load {
            buffer,
            ahead,
            copy: CopyMethod::Bulk,
        }
        .into(),
    ]
}

/// The statements of a warp that only fills buffers by bulk copies.
pub(super) fn bulk_producer(operands: BufferIndex, queries: Option<BufferIndex>) -> Role {
    let mut tile: Vec<Statement> = queries.map_or(vec![], |queries| bulk_load(queries, 0).into());
    tile.push(repeat(Extent::Steps, bulk_load(operands, 0).into()));
    role(PRODUCER, 1, vec![repeat(Extent::Tiles, tile)])
}

pub(super) fn wait_for(buffer: BufferIndex) -> Action {
    Await { buffer }
}

pub(super) fn acquire(buffer: BufferIndex) -> Action {
    Acquire { buffer, ahead: 0 }
}

pub(super) fn publish(buffer: BufferIndex, when: Signal) -> Action {
    Publish { buffer, when }
}

pub(super) fn release(buffer: BufferIndex, when: Signal) -> Action {
    Release { buffer, when }
}

pub(super) fn now(buffer: BufferIndex) -> Action {
    release(buffer, Signal::Now)
}

pub(super) fn convert(from: BufferIndex, to: Option<BufferIndex>) -> Action {
    Convert { from, to }
}

pub(super) fn multiply(product: Product, from: BufferIndex) -> Action {
    Multiply {
        product,
        from,
        to: None,
        asynchronous: false,
    }
}

pub(super) fn softmax_in_registers() -> Action {
    Softmax { from: None, to: None }
}

/// Stores the results of a tile with warps that synchronise at `barrier`: `sums` holds the accumulators, and `taken`
/// runs as soon as they have been read. A staging buffer is written after the bulk store of the previous tile has read
/// it.
pub(super) fn bulk_epilogue(
    staging: Option<BufferIndex>,
    sums: Option<BufferIndex>,
    taken: Option<Action>,
    barrier: Action,
) -> Vec<Statement> {
    let store = [Store {
        from: sums,
        to: staging,
    }]
    .into_iter()
    .chain(taken)
    .map(Statement::Do);
    match staging {
        None => store.collect(),
        Some(from) => [
            when(Condition::FirstWarp, vec![AwaitStore.into()]),
            barrier.into(),
        ]
        .into_iter()
        .chain(store)
        .chain([
            barrier.into(),
            when(Condition::FirstWarp, vec![BulkStore { from }.into()]),
        ])
        .collect(),
    }
}

/// The statements of a storing role: tile after tile, and at the end it waits until the staging buffer has been read.
pub(super) fn storing_tiles(tile: Vec<Statement>, staging: Option<BufferIndex>) -> Vec<Statement> {
    let mut body = vec![repeat(Extent::Tiles, tile)];
    body.extend(staging.map(|_| when(Condition::FirstWarp, vec![AwaitStore.into()])));
    body
}
