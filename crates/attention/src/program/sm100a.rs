//! sm_100a: bulk copies, `tcgen05` issued by one warp, sums in tensor memory.

use gauntlet_operations::resources::{TENSOR_MEMORY_COLUMNS, tensor_memory_columns, tile_sums};
use gauntlet_operations::{Operation, Roles, Schedule};
use gauntlet_task::program::Action::Softmax;
use gauntlet_task::program::{
    Action, BufferIndex, Condition, Contents, Extent, Filled, Guard, Product, Role, Signal, Statement,
    TileProgram,
};
use gauntlet_tiles::program::{
    Buffers, EVERYONE, READERS, acquire, asynchronous, bulk_epilogue, bulk_load, bulk_producer, first_loads,
    first_warp, loads_of_a_step, now, publish, publish_done, release_when_done, repeat, role, stages,
    statements, storing_tiles, synchronise, wait_for, when,
};

pub(super) fn program(schedule: &Schedule, operation: &Operation) -> TileProgram {
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    let mut add = |contents, slots, filled| buffers.add(contents, slots, filled, Guard::Barriers);
    let sums = add(
        Contents::Accumulators,
        tile_sums(schedule, operation),
        Filled::Tile,
    );
    let queries = add(Contents::Queries, 1, Filled::Tile);
    let scores = add(Contents::Scores, score_slots(schedule, operation), Filled::Step);
    let probabilities = add(Contents::Probabilities, 1, Filled::Step);
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
        queries,
        scores,
        probabilities,
        staging,
        finish,
    };
    buffers.program(match schedule.roles {
        Roles::Unified => vec![parts.one_role(stages(schedule))],
        Roles::Specialised => parts.roles(),
    })
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

/// The buffers, and how a tile ends.
struct Parts {
    operands: BufferIndex,
    sums: BufferIndex,
    queries: BufferIndex,
    scores: BufferIndex,
    /// One slot: the warps of the softmax also rescale the sums of the values, so they must not begin before the
    /// product before is done.
    probabilities: BufferIndex,
    staging: Option<BufferIndex>,
    finish: Vec<Statement>,
}

impl Parts {
    /// Four warps, the first of which loads and multiplies.
    fn one_role(&self, stages: usize) -> Role {
        let mut tile = vec![when(Condition::FirstWarp, bulk_load(self.queries, 0).into())];
        tile.extend(first_loads(self.operands, stages));
        tile.push(first_warp([wait_for(self.queries), acquire(self.sums)]));
        let (mut body, after) = loads_of_a_step(self.operands, stages);
        body.push(first_warp(self.scores_step()));
        // The copy ahead waits for the product of the values of the step before, so the scores go first.
        body.extend(after);
        body.extend(statements(self.softmax()));
        body.push(first_warp(self.values_product()));
        tile.push(repeat(Extent::Steps, body));
        tile.push(first_warp([
            release_when_done(self.queries),
            publish_done(self.sums),
        ]));
        tile.extend(self.finish.clone());
        role(EVERYONE, READERS, storing_tiles(tile, self.staging))
    }

    /// One warp issues each of the two products, so that neither waits for the other's operands. The product of the
    /// values is the later one, and gives the slot of both back.
    fn roles(&self) -> Vec<Role> {
        let scores = vec![
            wait_for(self.queries).into(),
            repeat(Extent::Steps, statements(self.scores_step())),
            release_when_done(self.queries).into(),
        ];
        let values_step = [wait_for(self.operands)].into_iter().chain(self.values_product());
        let values = vec![
            acquire(self.sums).into(),
            repeat(Extent::Steps, statements(values_step)),
            publish_done(self.sums).into(),
        ];
        let mut softmax_tile = vec![repeat(Extent::Steps, statements(self.softmax()))];
        softmax_tile.extend(self.finish.clone());
        vec![
            bulk_producer(self.operands, Some(self.queries)),
            role("scores", 1, vec![repeat(Extent::Tiles, scores)]),
            role("softmax", READERS, storing_tiles(softmax_tile, self.staging)),
            role("values", 1, vec![repeat(Extent::Tiles, values)]),
        ]
    }

    fn scores_step(&self) -> [Action; 4] {
        [
            wait_for(self.operands),
            acquire(self.scores),
            asynchronous(Product::Scores, self.operands, Some(self.scores)),
            publish_done(self.scores),
        ]
    }

    fn softmax(&self) -> [Action; 5] {
        [
            wait_for(self.scores),
            acquire(self.probabilities),
            Softmax {
                from: Some(self.scores),
                to: Some(self.probabilities),
            },
            now(self.scores),
            publish(self.probabilities, Signal::Now),
        ]
    }

    fn values_product(&self) -> [Action; 4] {
        [
            wait_for(self.probabilities),
            asynchronous(Product::Values, self.operands, Some(self.sums)),
            release_when_done(self.operands),
            release_when_done(self.probabilities),
        ]
    }
}
