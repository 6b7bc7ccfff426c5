//! What is looked at in a kernel's instructions as a whole when it is read.

use std::collections::HashSet;

use crate::fault::Problem;
use crate::instruction::{Instruction, Operand, Operation, Own, Register, WarpOperation};
use crate::tensor_core::instruction::TensorWarpOperation;

/// Checks that all instructions of the tensor cores concern as many blocks, as the ISA demands.
pub(crate) fn check_groups(instructions: &[Instruction]) -> Result<(), (usize, Problem)> {
    let mut first = None;
    for instruction in instructions {
        let group = match &instruction.operation {
            Operation::Tensor(operation) => operation.group(),
            Operation::Warp(WarpOperation::Tensor(operation)) => operation.group(),
            _ => None,
        };
        if let Some(group) = group
            && *first.get_or_insert(group) != group
        {
            let problem =
                "another .cta_group than that of the kernel's first instruction of the tensor cores";
            return Err((instruction.at, problem.to_owned()));
        }
    }
    Ok(())
}

/// Gives each wait for loads the moves of loaded registers that stand between it and the loads before it.
///
/// The ISA respects true dependencies through registers, so a compiler may move the result of `tcgen05.ld` to another register,
/// or join two of them, before `tcgen05.wait::ld`. Here the results are there only after the wait, so that any other use before
/// it is seen; the wait executes such moves again. Only straight code is looked at: it ends at branches and at the
/// instructions in `labels`. `is_move` tells it of the instruction at a byte of the text.
pub(crate) fn find_moves(
    instructions: &mut [Instruction],
    labels: &HashSet<usize>,
    is_move: impl Fn(usize) -> bool,
) {
    let (mut loaded, mut found) = (HashSet::new(), Vec::new());
    for (index, instruction) in instructions.iter_mut().enumerate() {
        if labels.contains(&index) {
            loaded.clear();
            found.clear();
        }
        match &mut instruction.operation {
            Operation::Warp(WarpOperation::Tensor(TensorWarpOperation::Load { to, .. })) => {
                loaded.extend(to.iter().copied())
            }
            Operation::Warp(WarpOperation::Tensor(TensorWarpOperation::WaitForLoads { moves })) => {
                loaded.clear();
                moves.append(&mut found);
            }
            Operation::Own(Own::Branch(_)) => {
                loaded.clear();
                found.clear();
            }
            Operation::Own(own) => {
                let (to, from) = registers(own);
                let takes = from.iter().any(|register| loaded.contains(register));
                if takes && instruction.guard.is_none() && is_move(instruction.at) {
                    loaded.extend(to);
                    found.push(index);
                }
            }
            _ => {}
        }
    }
}

/// The registers that an instruction writes and those that it reads.
fn registers(own: &Own) -> (Vec<Register>, Vec<Register>) {
    let read = |from: &[Operand]| {
        let register = |operand: &Operand| match operand {
            Operand::Register(register) => Some(*register),
            _ => None,
        };
        from.iter().filter_map(register).collect()
    };
    match own {
        Own::Compute { to, from, .. } => (vec![*to], read(from)),
        Own::Join { to, from, .. } => (vec![*to], read(from)),
        Own::Split { to, from, .. } => (to.clone(), read(&[*from])),
        Own::Branch(_) | Own::Nothing => (Vec::new(), Vec::new()),
    }
}
