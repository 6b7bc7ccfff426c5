//! The CPU: panels prepared ahead, in memory of one thread or of a producer and one of its consumers.
//!
//! A block is one thread that multiplies, with the thread that prepares its panels if roles are specialised; the
//! lanes of a producer's other consumers are of the same kind and share nothing with it but the producer's time.

use gauntlet_problems::{Roles, Schedule};
use gauntlet_tile_program::Action::{AwaitStore, BulkStore, Load, Prefetch, Store};
use gauntlet_tile_program::{
    Action, BufferIndex, Condition, Contents, CopyMethod, Extent, Filled, Guard, Signal, Statement,
    TileProgram,
};

use super::{
    Buffers, CONSUMER, EVERYONE, PRODUCER, acquire, now, publish, repeat, role, stages, wait_for, when,
};

/// The program of the schedule, with the products of a step from its panels; each tile first prepares its queries where
/// there are any.
pub fn panels(
    schedule: &Schedule,
    has_queries: bool,
    products: impl Fn(BufferIndex) -> Vec<Action>,
) -> TileProgram {
    let stages = stages(schedule);
    let guard = match schedule.roles {
        Roles::Unified => Guard::Block,
        Roles::Specialised => Guard::Barriers,
    };
    let mut buffers = Buffers::default();
    let panels = buffers.add(Contents::Converted, stages, Filled::Step, guard);
    let queries = has_queries.then(|| buffers.queries(Guard::Block));
    let staging = buffers.staging(schedule);
    let products: Vec<_> = products(panels).into_iter().map(Statement::Do).collect();
    let mut tile: Vec<Statement> = queries
        .map(|queries| prepare(queries).into())
        .into_iter()
        .collect();
    let roles = match schedule.roles {
        Roles::Unified => {
            tile.push(batches(panels, stages, products));
            tile.extend(epilogue(staging));
            vec![role(EVERYONE, 1, vec![repeat(Extent::Tiles, tile)])]
        }
        Roles::Specialised => {
            let produce = vec![
                acquire(panels).into(),
                prepare(panels).into(),
                publish(panels, Signal::Now).into(),
            ];
            let mut step: Vec<Statement> = vec![wait_for(panels).into()];
            step.extend(products);
            step.push(now(panels).into());
            tile.push(repeat(Extent::Steps, step));
            tile.extend(epilogue(staging));
            vec![
                role(
                    PRODUCER,
                    1,
                    vec![repeat(Extent::Tiles, vec![repeat(Extent::Steps, produce)])],
                ),
                role(CONSUMER, 1, vec![repeat(Extent::Tiles, tile)]),
            ]
        }
    };
    buffers.program(roles)
}

/// Prepares as many panels as there are stages, then multiplies them while it prefetches the next.
fn batches(panels: BufferIndex, stages: usize, products: Vec<Statement>) -> Statement {
    let mut multiply = Vec::new();
    if stages > 1 {
        multiply.push(when(
            Condition::HasStepAhead(stages),
            vec![Prefetch { ahead: stages }.into()],
        ));
    }
    multiply.extend(products);
    repeat(
        Extent::Batches(stages),
        vec![
            repeat(Extent::StepsOfBatch, vec![prepare(panels).into()]),
            repeat(Extent::StepsOfBatch, multiply),
        ],
    )
}

/// Reads the quantised bytes and writes them dequantised.
fn prepare(buffer: BufferIndex) -> Action {
    Load {
        buffer,
        ahead: 0,
        copy: CopyMethod::Registers,
    }
}

/// From the staging buffer, whole rows by streaming stores.
fn epilogue(staging: Option<BufferIndex>) -> Vec<Statement> {
    let store = Store {
        from: None,
        to: staging,
    };
    let out = staging.map(|from| [BulkStore { from }, AwaitStore]);
    [store]
        .into_iter()
        .chain(out.into_iter().flatten())
        .map(Statement::Do)
        .collect()
}
