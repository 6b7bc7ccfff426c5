//! Programs with one operation taken out.

use gauntlet_schedule::program::{Operation, Statement, TileProgram};

/// The program without its `nth` operation that keeps roles or engines apart, with that operation and its role's
/// name; none if there are not so many.
pub fn without(program: &TileProgram, nth: usize) -> Option<(TileProgram, &'static str, Operation)> {
    let mut program = program.clone();
    let mut left = nth;
    for role in &mut program.roles {
        if let Some(operation) = remove(&mut role.body, &mut left) {
            let name = role.name;
            return Some((program, name, operation));
        }
    }
    None
}

fn remove(body: &mut Vec<Statement>, left: &mut usize) -> Option<Operation> {
    for index in 0..body.len() {
        match &mut body[index] {
            Statement::Repeat(_, inner) | Statement::If(_, inner) => {
                if let Some(operation) = remove(inner, left) {
                    return Some(operation);
                }
            }
            Statement::Do(operation) if keeps_apart(operation) => {
                if *left == 0 {
                    let operation = *operation;
                    body.remove(index);
                    return Some(operation);
                }
                *left -= 1;
            }
            Statement::Do(_) => {}
        }
    }
    None
}

fn keeps_apart(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Acquire { .. }
            | Operation::CommitCopies
            | Operation::AwaitCopies { .. }
            | Operation::Publish { .. }
            | Operation::Await { .. }
            | Operation::Release { .. }
            | Operation::AwaitProducts { .. }
            | Operation::AwaitStore
            | Operation::Synchronise
            | Operation::SynchroniseRole
    )
}
