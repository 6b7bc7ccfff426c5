//! `cp.async`, operands converted in registers, `mma.sync`: sm_80 and sm_89, and on sm_90a the kernels that need nothing
//! of Hopper.

use gauntlet_problems::{Roles, Schedule};
use gauntlet_tile_program::Action::{AwaitCopies, CommitCopies, Load, Store, Synchronise};
use gauntlet_tile_program::{
    Action, BufferIndex, Condition, CopyMethod, Extent, Signal, Statement, TileProgram,
};

use super::{
    Buffers, CONSUMER, EVERYONE, PRODUCER, acquire, now, publish, repeat, role, stages, synchronise,
    wait_for, when,
};

/// Sums that one thread keeps: half of the registers it can have.
const SUMS_OF_A_THREAD: usize = 128;

/// Warps that multiply, if as many are wanted: at least one for each of the four schedulers of a processor.
pub fn multiplying_warps(wanted: usize) -> usize {
    wanted.clamp(4, 16)
}

/// Warps that keep this many sums in their registers.
pub fn warps_for_sums(sums: usize) -> usize {
    multiplying_warps(sums.div_ceil(32 * SUMS_OF_A_THREAD).next_power_of_two())
}

/// A loop that copies operands and multiplies them by `mma.sync`.
#[derive(Debug)]
pub struct Pipeline {
    /// Warps that multiply.
    pub warps: usize,
    /// The operands of a step.
    pub operands: BufferIndex,
    /// The queries of a tile.
    pub queries: Option<BufferIndex>,
    /// The staging buffer.
    pub staging: Option<BufferIndex>,
    /// The products of a step.
    pub products: Vec<Action>,
    /// Whether warps meet at a barrier between the products of a step.
    pub meets: bool,
    /// Whether the first of these products overwrites what the last one reads.
    pub overwrites: bool,
    /// Whether warps leave their sums in the staging buffer and meet before anything is stored.
    pub merges: bool,
}

impl Pipeline {
    /// The program of this loop.
    pub fn program(self, buffers: Buffers, schedule: &Schedule) -> TileProgram {
        let barrier = synchronise(schedule);
        buffers.program(match schedule.roles {
            Roles::Unified => vec![role(
                EVERYONE,
                self.warps,
                vec![repeat(Extent::Tiles, self.unified(stages(schedule)))],
            )],
            Roles::Specialised => vec![
                role(
                    PRODUCER,
                    self.warps / 4,
                    vec![repeat(Extent::Tiles, self.produced())],
                ),
                role(
                    CONSUMER,
                    self.warps,
                    vec![repeat(Extent::Tiles, self.consumed(barrier))],
                ),
            ],
        })
    }

    fn step(&self) -> impl Iterator<Item = Statement> {
        self.products.iter().copied().map(Statement::Do)
    }

    fn unified(&self, stages: usize) -> Vec<Statement> {
        // The queries belong to the first group of copies.
        let mut tile: Vec<Statement> = self
            .queries
            .map(|queries| load(queries, 0).into())
            .into_iter()
            .collect();
        if stages == 1 {
            let mut step: Vec<Statement> = vec![
                load(self.operands, 0).into(),
                CommitCopies.into(),
                AwaitCopies { outstanding: 0 }.into(),
                Synchronise.into(),
            ];
            step.extend(self.step());
            step.push(Synchronise.into());
            tile.push(repeat(Extent::Steps, step));
        } else {
            let ahead = stages - 1;
            // A group for each step, even for those that a short tile lacks: the wait counts groups, not steps.
            tile.push(repeat(
                Extent::Times(ahead),
                vec![
                    when(Condition::HasStepAhead(0), vec![load(self.operands, 0).into()]),
                    CommitCopies.into(),
                ],
            ));
            let mut step: Vec<Statement> = vec![
                AwaitCopies {
                    outstanding: stages - 2,
                }
                .into(),
                // Every warp's part of this step has landed, and every warp is done with the slot that is filled next.
                Synchronise.into(),
                when(
                    Condition::HasStepAhead(ahead),
                    vec![load(self.operands, ahead).into()],
                ),
                CommitCopies.into(),
            ];
            step.extend(self.step());
            tile.push(repeat(Extent::Steps, step));
            if self.queries.is_some() && !self.meets && (self.merges || self.staging.is_none()) {
                // Neither a barrier inside a step nor one in the epilogue guarantees that every warp is done with the
                // queries.
                tile.push(Synchronise.into());
            }
        }
        // The steps of the next tile contain a barrier before the staging buffer is written again.
        tile.extend(self.epilogue(Synchronise));
        tile
    }

    fn produced(&self) -> Vec<Statement> {
        let fill = |buffer| -> Vec<Statement> {
            vec![
                acquire(buffer).into(),
                load(buffer, 0).into(),
                publish(buffer, Signal::CopiesDone).into(),
            ]
        };
        let mut produce = self.queries.map_or(vec![], fill);
        produce.push(repeat(Extent::Steps, fill(self.operands)));
        produce
    }

    fn consumed(&self, barrier: Action) -> Vec<Statement> {
        let mut step: Vec<Statement> = vec![wait_for(self.operands).into()];
        step.extend(self.step());
        step.push(now(self.operands).into());
        if self.overwrites {
            step.push(barrier.into());
        }
        let queries = self.queries;
        let mut consume: Vec<Statement> = queries
            .map(|buffer| wait_for(buffer).into())
            .into_iter()
            .collect();
        consume.push(repeat(Extent::Steps, step));
        consume.extend(queries.map(|queries| Statement::Do(now(queries))));
        consume.extend(self.epilogue(barrier));
        if self.staging.is_some() && !self.meets {
            // Nothing else keeps a fast warp from writing the next tile's results while a slow one copies these.
            consume.push(barrier.into());
        }
        consume
    }

    /// There are no bulk stores: from the staging buffer the warps copy whole rows.
    fn epilogue(&self, barrier: Action) -> impl Iterator<Item = Statement> {
        let (from, to) = (self.staging, None);
        let store = Store {
            from: None,
            to: self.staging,
        };
        let copy = from.map(|_| [barrier, Store { from, to }]);
        [store]
            .into_iter()
            .chain(copy.into_iter().flatten())
            .map(Statement::Do)
    }
}

fn load(buffer: BufferIndex, ahead: usize) -> Action {
    Load {
        buffer,
        ahead,
        copy: CopyMethod::Asynchronous,
    }
}
