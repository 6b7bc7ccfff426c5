//! Building blocks for writing programs, shared by several instruction sets.

use gauntlet_problems::{Epilogue, Roles, Schedule};
use gauntlet_tile_program::Action::{
    Acquire, Await, AwaitStore, BulkStore, Convert, Load, Multiply, Publish, Release, Softmax, Store,
    Synchronise, SynchroniseRole,
};
use gauntlet_tile_program::{
    Action, Buffer, BufferIndex, Condition, Contents, CopyMethod, Extent, Filled, Guard, Product, Role,
    Signal, Statement, TileProgram,
};

/// The role of all warps where there are no special roles.
pub const EVERYONE: &str = "everyone";
/// Warps that read tensor memory: each has 32 of its 128 lanes.
pub const READERS: usize = 4;
/// The role that only loads.
pub const PRODUCER: &str = "producer";
/// The role that converts loaded operands for the matrix unit.
pub const CONVERTER: &str = "converter";
/// The role that multiplies loaded operands.
pub const CONSUMER: &str = "consumer";

/// A loop.
pub fn repeat(extent: Extent, body: Vec<Statement>) -> Statement {
    Statement::Repeat(extent, body)
}

/// A condition.
pub fn when(condition: Condition, body: Vec<Statement>) -> Statement {
    Statement::If(condition, body)
}

/// A role of `warps` warps.
pub fn role(name: &'static str, warps: usize, body: Vec<Statement>) -> Role {
    Role { name, warps, body }
}

/// The buffers of a program under construction.
#[derive(Debug, Default)]
pub struct Buffers(Vec<Buffer>);

impl Buffers {
    /// The program of these buffers.
    pub fn program(self, roles: Vec<Role>) -> TileProgram {
        let buffers = self.0;
        TileProgram { buffers, roles }
    }

    /// A buffer of `slots` slots.
    pub fn add(&mut self, contents: Contents, slots: usize, filled: Filled, guard: Guard) -> BufferIndex {
        self.0.push(Buffer {
            contents,
            slots,
            filled,
            guard,
        });
        self.0.len() - 1
    }

    /// Operands in as many slots as the schedule has stages.
    pub fn operands(&mut self, schedule: &Schedule, guard: Guard) -> BufferIndex {
        self.add(Contents::Operands, stages(schedule), Filled::Step, guard)
    }

    /// The queries of a tile.
    pub fn queries(&mut self, guard: Guard) -> BufferIndex {
        self.add(Contents::Queries, 1, Filled::Tile, guard)
    }

    /// The staging buffer, if results are staged.
    pub fn staging(&mut self, schedule: &Schedule) -> Option<BufferIndex> {
        (schedule.epilogue == Epilogue::Staged)
            .then(|| self.add(Contents::Staging, 1, Filled::Tile, Guard::Block))
    }
}

/// The slots of the operands: at least one.
pub fn stages(schedule: &Schedule) -> usize {
    schedule.stages.max(1)
}

/// The barrier among those that multiply: the whole block, or their role.
pub fn synchronise(schedule: &Schedule) -> Action {
    match schedule.roles {
        Roles::Unified => Synchronise,
        Roles::Specialised => SynchroniseRole,
    }
}

/// Waits for the slot and has it filled by a bulk copy.
pub fn bulk_load(buffer: BufferIndex, ahead: usize) -> [Statement; 2] {
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
pub fn bulk_producer(operands: BufferIndex, queries: Option<BufferIndex>) -> Role {
    let mut tile: Vec<Statement> = queries.map_or(vec![], |queries| bulk_load(queries, 0).into());
    tile.push(repeat(Extent::Steps, bulk_load(operands, 0).into()));
    role(PRODUCER, 1, vec![repeat(Extent::Tiles, tile)])
}

/// Waits until the slot of the present step is full.
pub fn wait_for(buffer: BufferIndex) -> Action {
    Await { buffer }
}

/// Waits until the slot of the present step is empty.
pub fn acquire(buffer: BufferIndex) -> Action {
    Acquire { buffer, ahead: 0 }
}

/// Says that the slot is full.
pub fn publish(buffer: BufferIndex, when: Signal) -> Action {
    Publish { buffer, when }
}

/// Says that the slot is empty.
pub fn release(buffer: BufferIndex, when: Signal) -> Action {
    Release { buffer, when }
}

/// Says at once that the slot is empty.
pub fn now(buffer: BufferIndex) -> Action {
    release(buffer, Signal::Now)
}

/// Converts operands: into a buffer, or into registers.
pub fn convert(from: BufferIndex, to: Option<BufferIndex>) -> Action {
    Convert { from, to }
}

/// A product whose sums are in registers.
pub fn multiply(product: Product, from: BufferIndex) -> Action {
    Multiply {
        product,
        from,
        to: None,
        asynchronous: false,
    }
}

/// The softmax of scores in registers.
pub fn softmax_in_registers() -> Action {
    Softmax { from: None, to: None }
}

/// Stores the results of a tile with warps that synchronise at `barrier`: `sums` holds the accumulators, and `taken`
/// runs as soon as they have been read. A staging buffer is written after the bulk store of the previous tile has read
/// it.
pub fn bulk_epilogue(
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
pub fn storing_tiles(tile: Vec<Statement>, staging: Option<BufferIndex>) -> Vec<Statement> {
    let mut body = vec![repeat(Extent::Tiles, tile)];
    body.extend(staging.map(|_| when(Condition::FirstWarp, vec![AwaitStore.into()])));
    body
}

/// The loads before the first step, which one warp issues for all.
pub fn first_loads(operands: BufferIndex, stages: usize) -> Vec<Statement> {
    let load = when(Condition::FirstWarp, bulk_load(operands, 0).into());
    let loads = (stages > 1).then(|| repeat(Extent::FirstSteps(stages - 1), vec![load]));
    loads.into_iter().collect()
}

/// Actions as statements.
pub fn statements(actions: impl IntoIterator<Item = Action>) -> Vec<Statement> {
    actions.into_iter().map(Statement::Do).collect()
}

/// Actions of one warp on behalf of all.
pub fn first_warp(actions: impl IntoIterator<Item = Action>) -> Statement {
    when(Condition::FirstWarp, statements(actions))
}

/// A product that is started, with its sums in registers unless it has a buffer for them.
pub fn asynchronous(product: Product, from: BufferIndex, to: Option<BufferIndex>) -> Action {
    Multiply {
        product,
        from,
        to,
        asynchronous: true,
    }
}

/// Says that the slot is full when the products so far are done.
pub fn publish_done(buffer: BufferIndex) -> Action {
    publish(buffer, Signal::ProductsDone)
}

/// Says that the slot is empty when the products so far are done.
pub fn release_when_done(buffer: BufferIndex) -> Action {
    release(buffer, Signal::ProductsDone)
}

/// The loads of one warp on behalf of all in a step, before and after its product is issued. The slot that is filled
/// next is that of the previous product, so this product should be queued first.
pub fn loads_of_a_step(operands: BufferIndex, stages: usize) -> (Vec<Statement>, Vec<Statement>) {
    let ahead = stages - 1;
    let load = when(Condition::FirstWarp, bulk_load(operands, ahead).into());
    if stages == 1 {
        (vec![load], vec![])
    } else {
        (vec![], vec![when(Condition::HasStepAhead(ahead), vec![load])])
    }
}
