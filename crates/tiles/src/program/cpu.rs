//! The CPU: panels prepared ahead, in memory of one thread or of a producer and one of its consumers.
//!
//! A block is one thread that multiplies, with the thread that prepares its panels if roles are specialised; the
//! lanes of a producer's other consumers are of the same kind and share nothing with it but the producer's time.

use gauntlet_operations::Operation;

use super::Action::{AwaitStore, BulkStore, Load, Prefetch, Store};
use super::text::{
    Buffers, CONSUMER, EVERYONE, PRODUCER, acquire, is_attention, multiply, now, publish, repeat, role,
    softmax_in_registers, stages, wait_for, when,
};
use super::{
    Action, BufferIndex, Condition, Contents, CopyMethod, Extent, Filled, Guard, Product, Signal, Statement,
    TileProgram,
};
use crate::{Roles, Schedule};

pub(super) fn program(schedule: &Schedule, problem: &Operation) -> TileProgram {
    let stages = stages(schedule);
    let guard = match schedule.roles {
        Roles::Unified => Guard::Block,
        Roles::Specialised => Guard::Barriers,
    };
    let mut buffers = Buffers::default();
    let panels = buffers.add(Contents::Converted, stages, Filled::Step, guard);
    let queries = buffers.queries(problem, Guard::Block);
    let staging = buffers.staging(schedule);
    let begin = queries.map(|queries| Statement::Do(prepare(queries)));
    let roles = match schedule.roles {
        Roles::Unified => {
            let mut tile: Vec<Statement> = begin.into_iter().collect();
            tile.push(batches(panels, stages, products(panels, problem)));
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
            step.extend(products(panels, problem));
            step.push(now(panels).into());
            let mut consume: Vec<Statement> = begin.into_iter().collect();
            consume.push(repeat(Extent::Steps, step));
            consume.extend(epilogue(staging));
            vec![
                role(
                    PRODUCER,
                    1,
                    vec![repeat(Extent::Tiles, vec![repeat(Extent::Steps, produce)])],
                ),
                role(CONSUMER, 1, vec![repeat(Extent::Tiles, consume)]),
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

fn products(panels: BufferIndex, problem: &Operation) -> Vec<Statement> {
    if is_attention(problem) {
        vec![
            multiply(Product::Scores, panels).into(),
            softmax_in_registers().into(),
            multiply(Product::Values, panels).into(),
        ]
    } else {
        vec![multiply(Product::Gemm, panels).into()]
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
