//! Compiles a tile program for simulation: loops become jumps.

use gauntlet_tile_program::{Action, Buffer, Condition, Extent, Statement, TileProgram};

/// An instruction of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Moves to the block's next tile, or leaves the loop.
    NextTile { otherwise: usize },
    /// Moves to the tile's first step, or leaves the loop if there is none.
    FirstStep { otherwise: usize },
    /// Moves to the next of at most `limit` steps, or continues.
    NextStep { again: usize, limit: usize },
    /// Counts steps from the first, whether the tile has them or not.
    FirstTime,
    /// Counts on to `times`.
    NextTime { again: usize, times: usize },
    /// Jumps.
    Jump { to: usize },
    /// Jumps unless the tile has a step `ahead` steps later.
    UnlessAhead { ahead: usize, otherwise: usize },
    /// Jumps unless this is the role's first group of warps.
    UnlessFirst { otherwise: usize },
    /// One operation.
    Do(Action),
}

/// A role's program and size.
#[derive(Debug, Clone)]
pub(super) struct RoleCode {
    pub(super) name: &'static str,
    /// Groups of up to four warps, one on each scheduler of a multiprocessor. Warps of different groups overlap; the
    /// warps of one group do the same at the same time.
    pub(super) groups: usize,
    pub(super) instructions: Vec<Instruction>,
    /// Whether it starts copies, and so needs a tile's descriptors.
    pub(super) copies: bool,
}

/// How many groups of warps fill and empty a slot of a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Users {
    pub(super) publishing: usize,
    pub(super) releasing: usize,
}

/// A tile program, compiled for simulation.
#[derive(Debug, Clone)]
pub struct Code {
    pub(super) buffers: Vec<Buffer>,
    /// The index of each buffer's first slot among all slots.
    pub(super) first_slots: Vec<usize>,
    pub(super) slots: usize,
    pub(super) roles: Vec<RoleCode>,
    pub(super) users: Vec<Users>,
}

/// Warps that a multiprocessor issues from per clock.
const SCHEDULERS: usize = 4;

impl Code {
    /// Compiles a program.
    pub fn of(program: &TileProgram) -> Self {
        let mut users = vec![Users::default(); program.buffers.len()];
        let roles = program
            .roles
            .iter()
            .map(|role| {
                let groups = role.warps.div_ceil(SCHEDULERS).max(1);
                count_users(&role.body, groups, &mut users);
                let mut instructions = Vec::new();
                write(&role.body, &mut instructions);
                RoleCode {
                    name: role.name,
                    groups,
                    copies: instructions
                        .iter()
                        .any(|instruction| matches!(instruction, Instruction::Do(Action::Load { .. }))),
                    instructions,
                }
            })
            .collect();
        let mut slots = 0;
        let first_slots = program
            .buffers
            .iter()
            .map(|buffer| {
                slots += buffer.slots;
                slots - buffer.slots
            })
            .collect();
        Self {
            buffers: program.buffers.clone(),
            first_slots,
            slots,
            roles,
            users,
        }
    }
}

fn count_users(body: &[Statement], groups: usize, users: &mut [Users]) {
    for statement in body {
        match statement {
            Statement::Repeat(_, body) | Statement::If(Condition::HasStepAhead(_), body) => {
                count_users(body, groups, users);
            }
            Statement::If(Condition::FirstWarp, body) => count_users(body, 1, users),
            Statement::Do(Action::Publish { buffer, .. }) => users[*buffer].publishing += groups,
            Statement::Do(Action::Release { buffer, .. }) => users[*buffer].releasing += groups,
            Statement::Do(_) => {}
        }
    }
}

fn write(body: &[Statement], into: &mut Vec<Instruction>) {
    for statement in body {
        match statement {
            Statement::Do(operation) => into.push(Instruction::Do(*operation)),
            Statement::If(condition, body) => {
                let at = open(into);
                write(body, into);
                let otherwise = into.len();
                into[at] = match *condition {
                    Condition::FirstWarp => Instruction::UnlessFirst { otherwise },
                    Condition::HasStepAhead(ahead) => Instruction::UnlessAhead { ahead, otherwise },
                };
            }
            Statement::Repeat(Extent::Tiles, body) => {
                let at = open(into);
                write(body, into);
                into.push(Instruction::Jump { to: at });
                into[at] = Instruction::NextTile {
                    otherwise: into.len(),
                };
            }
            Statement::Repeat(Extent::Times(times), body) => {
                if *times > 0 {
                    into.push(Instruction::FirstTime);
                    let again = into.len();
                    write(body, into);
                    into.push(Instruction::NextTime { again, times: *times });
                }
            }
            Statement::Repeat(Extent::FirstSteps(limit), body) => write_steps(*limit, body, into),
            Statement::Repeat(Extent::Steps, body) => write_steps(usize::MAX, body, into),
        }
    }
}

fn write_steps(limit: usize, body: &[Statement], into: &mut Vec<Instruction>) {
    if limit == 0 {
        return;
    }
    let at = open(into);
    write(body, into);
    into.push(Instruction::NextStep { again: at + 1, limit });
    into[at] = Instruction::FirstStep {
        otherwise: into.len(),
    };
}

/// Reserves an instruction whose jump target is set later.
fn open(into: &mut Vec<Instruction>) -> usize {
    into.push(Instruction::Jump { to: 0 });
    into.len() - 1
}
