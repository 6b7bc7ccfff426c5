//! Three loops like those in the tournament's records, each with the fault that went unnoticed there. All are attention
//! with `cp.async` and scores in shared memory.

use gauntlet_tile_program::{
    Action, Buffer, BufferIndex, Condition, Contents, CopyMethod, Extent, Filled, Guard, Product, Role,
    Statement, TileProgram,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the loops, named as in a pitch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedLoop {
    /// [`barrier_removed`]
    BarrierRemoved,
    /// [`waits_for_the_copy_just_committed`]
    WaitsForTheCopyJustCommitted,
    /// [`races_on_the_last_step`]
    RacesOnTheLastStep,
}

impl RecordedLoop {
    /// The task whose kernels had these loops.
    pub const TASK: &str = "attention";

    /// All three.
    pub const ALL: [Self; 3] = [
        Self::BarrierRemoved,
        Self::WaitsForTheCopyJustCommitted,
        Self::RacesOnTheLastStep,
    ];

    /// Its name in a pitch.
    pub fn name(self) -> &'static str {
        match self {
            Self::BarrierRemoved => "barrier-removed",
            Self::WaitsForTheCopyJustCommitted => "waits-for-the-copy-just-committed",
            Self::RacesOnTheLastStep => "races-on-the-last-step",
        }
    }

    /// The loop of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The tile program of the loop.
    pub fn program(self) -> TileProgram {
        match self {
            Self::BarrierRemoved => barrier_removed(),
            Self::WaitsForTheCopyJustCommitted => waits_for_the_copy_just_committed(),
            Self::RacesOnTheLastStep => races_on_the_last_step(),
        }
    }
}

const OPERANDS: BufferIndex = 0;
const SCORES: BufferIndex = 1;

/// The barrier between writing the scores and their softmax is missing.
pub fn barrier_removed() -> TileProgram {
    let mut step = vec![
        Action::AwaitCopies { outstanding: 0 }.into(),
        Action::Synchronise.into(),
        if_ahead(1, vec![load(1).into()]),
        Action::CommitCopies.into(),
    ];
    let mut products = products();
    products.remove(1);
    step.extend(products);
    attention(2, vec![prologue(1), Statement::Repeat(Extent::Steps, step)])
}

/// The loop "with two stages": it starts the copy of the next step and then waits for that same copy.
pub fn waits_for_the_copy_just_committed() -> TileProgram {
    let mut step = vec![
        if_ahead(1, vec![load(1).into()]),
        Action::CommitCopies.into(),
        Action::AwaitCopies { outstanding: 0 }.into(),
        Action::Synchronise.into(),
    ];
    step.extend(products());
    step.push(Action::Synchronise.into());
    attention(2, vec![prologue(1), Statement::Repeat(Extent::Steps, step)])
}

/// The loop with three stages: in the last steps nothing is left to load and nothing is committed, so the wait for all
/// groups but one does not cover the group that is needed.
pub fn races_on_the_last_step() -> TileProgram {
    let mut step = vec![
        Action::AwaitCopies { outstanding: 1 }.into(),
        Action::Synchronise.into(),
        if_ahead(2, vec![load(2).into(), Action::CommitCopies.into()]),
    ];
    step.extend(products());
    attention(3, vec![prologue(2), Statement::Repeat(Extent::Steps, step)])
}

fn attention(stages: usize, mut tile: Vec<Statement>) -> TileProgram {
    tile.push(Action::Store { from: None, to: None }.into());
    let buffer = |contents, slots| Buffer {
        contents,
        slots,
        filled: Filled::Step,
        guard: Guard::Block,
    };
    TileProgram {
        buffers: vec![buffer(Contents::Operands, stages), buffer(Contents::Scores, 1)],
        roles: vec![Role {
            name: "everyone",
            warps: 4,
            body: vec![Statement::Repeat(Extent::Tiles, tile)],
        }],
    }
}

/// The copies of the first steps, each a group.
fn prologue(steps: usize) -> Statement {
    Statement::Repeat(
        Extent::Times(steps),
        vec![if_ahead(0, vec![load(0).into()]), Action::CommitCopies.into()],
    )
}

fn products() -> Vec<Statement> {
    let multiply = |product, to| Action::Multiply {
        product,
        from: OPERANDS,
        to,
        asynchronous: false,
    };
    [
        multiply(Product::Scores, Some(SCORES)),
        Action::Synchronise,
        Action::Softmax {
            from: Some(SCORES),
            to: Some(SCORES),
        },
        Action::Synchronise,
        multiply(Product::Values, None),
    ]
    .map(Statement::Do)
    .into()
}

fn load(ahead: usize) -> Action {
    Action::Load {
        buffer: OPERANDS,
        ahead,
        copy: CopyMethod::Asynchronous,
    }
}

fn if_ahead(ahead: usize, body: Vec<Statement>) -> Statement {
    Statement::If(Condition::HasStepAhead(ahead), body)
}
