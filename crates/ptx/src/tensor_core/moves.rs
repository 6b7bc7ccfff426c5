//! Moves of a load's results that a compiler puts before the load's wait.
//!
//! The ISA respects true dependencies through registers, so a compiler may move the result of `tcgen05.ld` to another register, or join
//! two of them, before `tcgen05.wait::ld`. Here the results are there only after the wait, so that any other use before it is
//! seen; the wait executes such moves again.

use std::collections::HashSet;

use crate::instruction::{Instruction, Operand, Operation, Own, Register, WarpOperation};
use crate::tensor_core::instruction::TensorWarpOperation;

/// Gives each wait for loads the moves between it and the loads before it. Only straight code is looked at: it ends at branches and
/// at the instructions in `labels`. `is_move` tells it of the instruction at a byte of the text.
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
