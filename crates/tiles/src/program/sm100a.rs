//! sm_100a: bulk copies, `tcgen05` issued by one warp, sums in tensor memory.

use gauntlet_operations::Operation;

use super::Action::{Multiply, Softmax};
use super::text::{
    Buffers, EVERYONE, acquire, bulk_epilogue, bulk_load, bulk_producer, now, publish, release, repeat, role,
    stages, storing_tiles, synchronise, wait_for, when,
};
use super::{
    Action, BufferIndex, Condition, Contents, Extent, Filled, Guard, Product, Role, Signal, Statement,
    TileProgram,
};
use crate::resources::{TENSOR_MEMORY_COLUMNS, tensor_memory_columns, tile_sums};
use crate::{Roles, Schedule};

/// Each warp reads 32 of the 128 lanes of tensor memory.
const READERS: usize = 4;

pub(super) fn program(schedule: &Schedule, problem: &Operation) -> TileProgram {
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    let sums = buffers.add(
        Contents::Accumulators,
        tile_sums(schedule, problem),
        Filled::Tile,
        Guard::Barriers,
    );
    let attention = buffers
        .queries(problem, Guard::Barriers)
        .map(|queries| Attention {
            queries,
            scores: buffers.add(
                Contents::Scores,
                score_slots(schedule, problem),
                Filled::Step,
                Guard::Barriers,
            ),
            probabilities: buffers.add(Contents::Probabilities, 1, Filled::Step, Guard::Barriers),
        });
    let staging = buffers.staging(schedule);
    let mut finish: Vec<Statement> = vec![wait_for(sums).into()];
    finish.extend(bulk_epilogue(
        staging,
        Some(sums),
        Some(now(sums)),
        synchronise(schedule),
    ));

    let parts = Parts {
        operands,
        sums,
        staging,
        finish,
    };
    let roles = match (schedule.roles, attention) {
        (Roles::Unified, None) => vec![parts.one_role(&gemm_step(operands, sums), stages(schedule))],
        (Roles::Unified, Some(attention)) => vec![parts.one_role_of_attention(&attention, stages(schedule))],
        (Roles::Specialised, None) => parts.gemm_roles(),
        (Roles::Specialised, Some(attention)) => parts.attention_roles(&attention),
    };
    buffers.program(roles)
}

/// Two steps' scores where there is room for them.
fn score_slots(schedule: &Schedule, problem: &Operation) -> usize {
    let twice = tensor_memory_columns(schedule, problem) + schedule.tile.n;
    if schedule.roles == Roles::Specialised && twice <= TENSOR_MEMORY_COLUMNS {
        2
    } else {
        1
    }
}

/// The buffers of the two products of attention.
struct Attention {
    queries: BufferIndex,
    scores: BufferIndex,
    /// One slot: the warps of the softmax also rescale the sums of the values, so they must not begin before the
    /// product before is done.
    probabilities: BufferIndex,
}

/// The parts that all programs have.
struct Parts {
    operands: BufferIndex,
    sums: BufferIndex,
    staging: Option<BufferIndex>,
    finish: Vec<Statement>,
}

impl Parts {
    /// Four warps, the first of which loads and multiplies.
    fn one_role(&self, step: &[Action], stages: usize) -> Role {
        let mut tile = first_loads(self.operands, stages);
        tile.push(first_warp([acquire(self.sums)]));
        let (before, after) = loads_of_a_step(self.operands, stages);
        let mut body = before;
        body.push(first_warp(step.iter().copied()));
        body.extend(after);
        tile.push(repeat(Extent::Steps, body));
        tile.push(first_warp([publish_done(self.sums)]));
        tile.extend(self.finish.clone());
        role(EVERYONE, READERS, storing_tiles(tile, self.staging))
    }

    fn one_role_of_attention(&self, attention: &Attention, stages: usize) -> Role {
        let mut tile = vec![when(Condition::FirstWarp, bulk_load(attention.queries, 0).into())];
        tile.extend(first_loads(self.operands, stages));
        tile.push(first_warp([wait_for(attention.queries), acquire(self.sums)]));
        let (before, after) = loads_of_a_step(self.operands, stages);
        let mut body = before;
        body.push(first_warp(
            [wait_for(self.operands)]
                .into_iter()
                .chain(scores_product(self.operands, attention)),
        ));
        // The copy ahead waits for the product of the values of the step before, so the scores go first.
        body.extend(after);
        body.extend(softmax(attention).map(Statement::Do));
        body.push(first_warp(values_product(self.operands, attention, self.sums)));
        tile.push(repeat(Extent::Steps, body));
        tile.push(first_warp([
            release_when_done(attention.queries),
            publish_done(self.sums),
        ]));
        tile.extend(self.finish.clone());
        role(EVERYONE, READERS, storing_tiles(tile, self.staging))
    }

    fn gemm_roles(&self) -> Vec<Role> {
        let multiply = vec![
            acquire(self.sums).into(),
            repeat(Extent::Steps, statements(gemm_step(self.operands, self.sums))),
            publish_done(self.sums).into(),
        ];
        vec![
            bulk_producer(self.operands, None),
            role("multiplier", 1, vec![repeat(Extent::Tiles, multiply)]),
            role(
                "epilogue",
                READERS,
                storing_tiles(self.finish.clone(), self.staging),
            ),
        ]
    }

    /// One warp issues each of the two products, so that neither waits for the other's operands. The product of the
    /// values is the later one, and gives the slot of both back.
    fn attention_roles(&self, attention: &Attention) -> Vec<Role> {
        let operands = wait_for(self.operands);
        let scores_step = [operands]
            .into_iter()
            .chain(scores_product(self.operands, attention));
        let scores = vec![
            wait_for(attention.queries).into(),
            repeat(Extent::Steps, statements(scores_step)),
            release_when_done(attention.queries).into(),
        ];
        let values_step = [operands]
            .into_iter()
            .chain(values_product(self.operands, attention, self.sums));
        let values = vec![
            acquire(self.sums).into(),
            repeat(Extent::Steps, statements(values_step)),
            publish_done(self.sums).into(),
        ];
        let mut softmax_tile = vec![repeat(Extent::Steps, statements(softmax(attention)))];
        softmax_tile.extend(self.finish.clone());
        vec![
            bulk_producer(self.operands, Some(attention.queries)),
            role("scores", 1, vec![repeat(Extent::Tiles, scores)]),
            role("softmax", READERS, storing_tiles(softmax_tile, self.staging)),
            role("values", 1, vec![repeat(Extent::Tiles, values)]),
        ]
    }
}

fn gemm_step(operands: BufferIndex, sums: BufferIndex) -> [Action; 3] {
    [
        wait_for(operands),
        multiply(Product::Gemm, operands, sums),
        release_when_done(operands),
    ]
}

fn scores_product(operands: BufferIndex, attention: &Attention) -> [Action; 3] {
    [
        acquire(attention.scores),
        multiply(Product::Scores, operands, attention.scores),
        publish_done(attention.scores),
    ]
}

fn softmax(attention: &Attention) -> [Action; 5] {
    [
        wait_for(attention.scores),
        acquire(attention.probabilities),
        Softmax {
            from: Some(attention.scores),
            to: Some(attention.probabilities),
        },
        now(attention.scores),
        publish(attention.probabilities, Signal::Now),
    ]
}

fn values_product(operands: BufferIndex, attention: &Attention, sums: BufferIndex) -> [Action; 4] {
    [
        wait_for(attention.probabilities),
        multiply(Product::Values, operands, sums),
        release_when_done(operands),
        release_when_done(attention.probabilities),
    ]
}

fn first_loads(operands: BufferIndex, stages: usize) -> Vec<Statement> {
    let load = when(Condition::FirstWarp, bulk_load(operands, 0).into());
    (stages > 1)
        .then(|| repeat(Extent::FirstSteps(stages - 1), vec![load]))
        .into_iter()
        .collect()
}

/// The loads of one warp on behalf of all in a step, before and after its product is issued. The slot that is filled
/// next is that of the previous product, so this product should be queued first.
fn loads_of_a_step(operands: BufferIndex, stages: usize) -> (Vec<Statement>, Vec<Statement>) {
    let ahead = stages - 1;
    let load = when(Condition::FirstWarp, bulk_load(operands, ahead).into());
    if stages == 1 {
        (vec![load], vec![])
    } else {
        (vec![], vec![when(Condition::HasStepAhead(ahead), vec![load])])
    }
}

fn first_warp(operations: impl IntoIterator<Item = Action>) -> Statement {
    when(Condition::FirstWarp, statements(operations))
}

fn statements(operations: impl IntoIterator<Item = Action>) -> Vec<Statement> {
    operations.into_iter().map(Statement::Do).collect()
}

fn multiply(product: Product, from: BufferIndex, to: BufferIndex) -> Action {
    Multiply {
        product,
        from,
        to: Some(to),
        asynchronous: true,
    }
}

fn publish_done(buffer: BufferIndex) -> Action {
    publish(buffer, Signal::ProductsDone)
}

fn release_when_done(buffer: BufferIndex) -> Action {
    release(buffer, Signal::ProductsDone)
}
