//! sm_80 and sm_89: `cp.async`, operands converted in registers, `mma.sync`.

use gauntlet_device::Arch;
use gauntlet_problem::Problem;

use super::Operation::{
    Acquire, Await, AwaitCopies, CommitCopies, Convert, Load, Multiply, Publish, Softmax, Store, Synchronise,
};
use super::text::{
    Buffers, CONSUMER, EVERYONE, PRODUCER, is_attention, multiply, now, repeat, role, stages, synchronise,
    when,
};
use super::{
    BufferIndex, Condition, Contents, Copy, Extent, Filled, Guard, Operation, Product, Signal, Statement,
    TileProgram,
};
use crate::resources::accumulators;
use crate::{Roles, Schedule};

/// Sums that one thread keeps: half of the registers it can have.
const SUMS_OF_A_THREAD: usize = 128;

pub(super) fn program(schedule: &Schedule, problem: &Problem, arch: Arch) -> TileProgram {
    match schedule.roles {
        Roles::Unified => unified(schedule, problem, arch),
        Roles::Specialised => specialised(schedule, problem, arch),
    }
}

/// Warps that multiply: at least one for each of the four schedulers of a processor.
fn warps(schedule: &Schedule, problem: &Problem) -> usize {
    accumulators(schedule, problem)
        .div_ceil(32 * SUMS_OF_A_THREAD)
        .next_power_of_two()
        .clamp(4, 16)
}

fn unified(schedule: &Schedule, problem: &Problem, arch: Arch) -> TileProgram {
    let stages = stages(schedule);
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Block);
    let queries = buffers.queries(problem, Guard::Block);
    let scores = scores(&mut buffers, problem);
    let staging = buffers.staging(schedule);
    let products = products(operands, scores, converts(problem, arch), Synchronise);

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
            // Everyone's part of this step has landed, and everyone is done with the slot that is filled next.
            Synchronise.into(),
            when(Condition::HasStepAhead(ahead), vec![load(operands, ahead).into()]),
            CommitCopies.into(),
        ];
        step.extend(products);
        tile.push(repeat(Extent::Steps, step));
    }
    // Before the staging buffer is written again, everyone meets in the steps of the next tile.
    tile.extend(epilogue(staging, Synchronise));
    TileProgram {
        buffers: buffers.0,
        roles: vec![role(
            EVERYONE,
            warps(schedule, problem),
            vec![repeat(Extent::Tiles, tile)],
        )],
    }
}

fn specialised(schedule: &Schedule, problem: &Problem, arch: Arch) -> TileProgram {
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    let queries = buffers.queries(problem, Guard::Barriers);
    let scores = scores(&mut buffers, problem);
    let staging = buffers.staging(schedule);
    let barrier = synchronise(schedule);

    let fill = |buffer| -> Vec<Statement> {
        vec![
            Acquire { buffer, ahead: 0 }.into(),
            load(buffer, 0).into(),
            Publish {
                buffer,
                when: Signal::CopiesDone,
            }
            .into(),
        ]
    };
    let mut produce = queries.map_or(vec![], fill);
    produce.push(repeat(Extent::Steps, fill(operands)));

    let mut step: Vec<Statement> = vec![Await { buffer: operands }.into()];
    step.extend(products(operands, scores, converts(problem, arch), barrier));
    step.push(now(operands).into());
    // The scores are written again in the next step.
    step.extend(scores.map(|_| Statement::Do(barrier)));
    let mut consume: Vec<Statement> = queries
        .map(|buffer| Await { buffer }.into())
        .into_iter()
        .collect();
    consume.push(repeat(Extent::Steps, step));
    consume.extend(queries.map(|queries| Statement::Do(now(queries))));
    consume.extend(epilogue(staging, barrier));
    if staging.is_some() && scores.is_none() {
        // Nothing else keeps a fast warp from writing the next tile's results while a slow one copies these.
        consume.push(barrier.into());
    }

    let warps = warps(schedule, problem);
    TileProgram {
        buffers: buffers.0,
        roles: vec![
            role(PRODUCER, warps / 4, vec![repeat(Extent::Tiles, produce)]),
            role(CONSUMER, warps, vec![repeat(Extent::Tiles, consume)]),
        ],
    }
}

/// The scores cross from the warps that computed them to those that own their rows.
fn scores(buffers: &mut Buffers, problem: &Problem) -> Option<BufferIndex> {
    is_attention(problem).then(|| buffers.add(Contents::Scores, 1, Filled::Step, Guard::Block))
}

/// Whether operands are converted in registers: NVFP4 always, e4m3 where `mma.sync` does not take it.
fn converts(problem: &Problem, arch: Arch) -> bool {
    match problem {
        Problem::GroupedGemm(_) => true,
        Problem::Attention(attention) => arch == Arch::Sm80 && attention.format.bytes() == 1,
    }
}

fn load(buffer: BufferIndex, ahead: usize) -> Operation {
    Load {
        buffer,
        ahead,
        copy: Copy::Asynchronous,
    }
}

fn products(
    operands: BufferIndex,
    scores: Option<BufferIndex>,
    converts: bool,
    barrier: Operation,
) -> Vec<Statement> {
    let convert = converts.then_some(Convert {
        from: operands,
        to: None,
    });
    let products = match scores {
        None => vec![multiply(Product::Gemm, operands)],
        Some(_) => vec![
            Multiply {
                product: Product::Scores,
                from: operands,
                to: scores,
                asynchronous: false,
            },
            barrier,
            Softmax {
                from: scores,
                to: scores,
            },
            barrier,
            multiply(Product::Values, operands),
        ],
    };
    convert.into_iter().chain(products).map(Statement::Do).collect()
}

/// There are no bulk stores yet: from the staging buffer the warps copy whole rows.
fn epilogue(staging: Option<BufferIndex>, barrier: Operation) -> Vec<Statement> {
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
