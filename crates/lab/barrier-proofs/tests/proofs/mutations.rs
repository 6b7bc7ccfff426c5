//! Programs with one safeguard removed: each shows that a proof can fail, or why it need not.

use std::collections::BTreeSet;

use gauntlet_barrier_proofs::prove;
use gauntlet_device::Arch;
use gauntlet_problems::{Epilogue, Roles};
use gauntlet_tile_program::{Action, Contents, Extent, Statement, TileProgram};

use crate::support::{Shipped, programs};

/// Safeguards that other safeguards of the same program make redundant. They are kept because the text is shared with
/// programs that need them. Each is listed here with its reason, so that a prover that overlooks a flaw is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Superfluous {
    /// sm_100a, unified: the warp that loads and multiplies has waited for the sums of the previous tile, and so for
    /// all of that tile's products.
    FirstWarpAwaitedTheTile,
    /// All warps of the block meet after the last use of the slot anyway: in the epilogue, or in each step's
    /// conversion.
    BlockMeets,
    /// Attention with specialised roles, with no more slots for operands than for scores or probabilities: a step's
    /// operands are not loaded before the values whose completion the safeguard would await are multiplied.
    OperandsComeLate,
    /// sm_80 attention with specialised roles: the signal that a step's copies are done also covers the queries.
    CopiesComeInOrder,
}

fn superfluous(shipped: &Shipped, operation: &Action, place: Place) -> Option<Superfluous> {
    use Superfluous::*;
    let schedule = &shipped.schedule;
    let contents = |buffer: usize| shipped.program.buffers[buffer].contents;
    let staged = schedule.epilogue == Epilogue::Staged;
    let acquired = match operation {
        Action::Acquire { buffer, .. } => Some(contents(*buffer)),
        _ => None,
    };
    let awaited = match operation {
        Action::Await { buffer } => Some(contents(*buffer)),
        _ => None,
    };
    match (shipped.arch, schedule.roles, shipped.attention) {
        (Arch::Sm100a, Roles::Unified, false) => match acquired? {
            Contents::Operands if place == Place::Prologue => Some(FirstWarpAwaitedTheTile),
            Contents::Accumulators if staged => Some(BlockMeets),
            _ => None,
        },
        (Arch::Sm90a, Roles::Unified, false) => match acquired? {
            Contents::Operands if !schedule.swap_ab => Some(BlockMeets),
            Contents::Operands if place == Place::Prologue && staged => Some(BlockMeets),
            _ => None,
        },
        (Arch::Sm80 | Arch::Sm89, Roles::Specialised, true) => match (operation, awaited) {
            (_, Some(Contents::Queries)) => Some(CopiesComeInOrder),
            (Action::SynchroniseRole, _) if schedule.stages == 1 && place == Place::EndOfLoop => {
                Some(OperandsComeLate)
            }
            _ => None,
        },
        _ => None,
    }
}

#[test]
fn without_any_one_safeguard_a_flaw_is_found() {
    let mut kinds = BTreeSet::new();
    let mut reasons = BTreeSet::new();
    let mut removed = 0;
    for shipped in programs() {
        for nth in 0.. {
            let Some(without) = without(&shipped.program, nth) else {
                break;
            };
            removed += 1;
            let Without {
                program,
                role,
                operation,
                place,
            } = without;
            let what = format!(
                "{} {} without {operation:?} of {role}",
                shipped.arch, shipped.schedule
            );
            let reason = superfluous(&shipped, &operation, place);
            match prove(&program) {
                Err(flaw) => {
                    assert_eq!(reason, None, "found in {what}: {flaw}");
                    kinds.insert(flaw.kind);
                }
                Ok(_) => {
                    reasons.insert(reason.unwrap_or_else(|| panic!("nothing found in {what}")));
                }
            }
        }
    }
    println!("{removed} removals: {kinds:?}; superfluous: {reasons:?}");
    assert!(removed > 2000 && kinds.len() >= 7, "{removed} {kinds:?}");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Prologue,
    EndOfLoop,
    Elsewhere,
}

struct Without {
    program: TileProgram,
    role: &'static str,
    operation: Action,
    place: Place,
}

/// The program without its safeguard number `nth`; `None` if there are fewer.
fn without(program: &TileProgram, nth: usize) -> Option<Without> {
    let mut program = program.clone();
    let mut left = nth;
    let found = program.roles.iter_mut().find_map(|role| {
        let (operation, place) = remove(&mut role.body, &mut left, Place::Elsewhere, false)?;
        Some((role.name, operation, place))
    });
    let (role, operation, place) = found?;
    Some(Without {
        program,
        role,
        operation,
        place,
    })
}

fn remove(body: &mut Vec<Statement>, left: &mut usize, place: Place, loops: bool) -> Option<(Action, Place)> {
    for index in 0..body.len() {
        match &mut body[index] {
            Statement::Repeat(extent, inner) => {
                let place = match extent {
                    Extent::FirstSteps(_) | Extent::Times(_) => Place::Prologue,
                    _ => place,
                };
                let loops = *extent == Extent::Steps;
                if let Some(found) = remove(inner, left, place, loops) {
                    return Some(found);
                }
            }
            Statement::If(_, inner) => {
                if let Some(found) = remove(inner, left, place, false) {
                    return Some(found);
                }
            }
            Statement::Do(operation) if is_safeguard(operation) => {
                if *left == 0 {
                    let operation = *operation;
                    body.remove(index);
                    let last = index == body.len();
                    return Some((operation, if last && loops { Place::EndOfLoop } else { place }));
                }
                *left -= 1;
            }
            Statement::Do(_) => {}
        }
    }
    None
}

fn is_safeguard(operation: &Action) -> bool {
    matches!(
        operation,
        Action::Acquire { .. }
            | Action::CommitCopies
            | Action::AwaitCopies { .. }
            | Action::Publish { .. }
            | Action::Await { .. }
            | Action::Release { .. }
            | Action::AwaitProducts { .. }
            | Action::AwaitStore
            | Action::Synchronise
            | Action::SynchroniseRole
    )
}
