//! Sets of operands in a worker: the worker reads them from files, or the coordinator writes them into its memory.

use gauntlet_task::Sizes;
use gauntlet_tensors::TensorFile;
use gauntlet_worker::{Operand, WorkerError, WorkerProcess};

use crate::evidence::JudgeError;
use crate::runner::operands::{Operands, Readers};

/// The readers of fresh sets, if both sides' workers are held or not.
pub fn readers(are_held: bool) -> Readers {
    if are_held {
        Readers::Coordinator
    } else {
        Readers::Workers
    }
}

/// Lets a worker load a known set and fresh ones, `copies` in all. A held worker makes room for as many copies, all of the
/// known set: it gets other values just before it computes on them.
pub fn load(
    worker: &mut WorkerProcess,
    known: &Operands,
    fresh: &[&Operands],
    copies: usize,
) -> Result<u64, WorkerError> {
    let read = if worker.is_held() { &[][..] } else { fresh };
    let of_fresh = read.iter().map(|set| set.path());
    let files: Vec<_> = std::iter::once(known.path()).chain(of_fresh).collect();
    worker.load(&files, copies)
}

/// What the coordinator writes into a held worker's memory before a call on this set: the inputs that differ between sets.
pub fn changing(sizes: &Sizes, operands: &Operands) -> Result<Vec<Operand>, JudgeError> {
    let stored = TensorFile::open(operands.path())?;
    let constant = sizes.constant_inputs();
    let inputs = sizes.inputs();
    let changing = inputs.iter().filter(|spec| !constant.contains(&spec.name));
    changing
        .map(|spec| {
            Ok(Operand {
                tensor: stored.tensor(spec)?,
                strides: sizes.strides(&spec.name),
            })
        })
        .collect()
}
