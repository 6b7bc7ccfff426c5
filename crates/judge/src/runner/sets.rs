//! Sets of operands in a worker: the worker reads them from files, or the coordinator writes them into its memory.

use gauntlet_formats::{Tensor, TensorFile};
use gauntlet_stats::Arm;
use gauntlet_task::Sizes;
use gauntlet_worker::{WorkerError, WorkerProcess};

use crate::runner::failure::ExaminationFailure;
use crate::runner::operands::{Operands, Readers};

/// Whether the coordinator writes operands of this case into the worker's memory, and reads results out of it.
pub fn is_held(worker: &WorkerProcess, sizes: &Sizes) -> bool {
    worker.is_held() && sizes.lies_on_host()
}

/// The readers of fresh sets, if both sides' workers are held or not.
pub fn readers(are_held: bool) -> Readers {
    if are_held {
        Readers::Coordinator
    } else {
        Readers::Workers
    }
}

/// Lets a worker load a known set and fresh ones, `copies` in all. A held worker makes room for the fresh ones, and does
/// not get their values before they are [revealed](reveal).
pub fn load(
    worker: &mut WorkerProcess,
    sizes: &Sizes,
    known: &Operands,
    fresh: &[&Operands],
    copies: usize,
) -> Result<u64, WorkerError> {
    let is_held = is_held(worker, sizes);
    let of_fresh = fresh.iter().map(|set| if is_held { known } else { set }.path());
    let files: Vec<_> = std::iter::once(known.path()).chain(of_fresh).collect();
    worker.load(&files, copies)
}

/// Writes the values of a fresh set into a held worker's memory, in place of those of the known set: `file` counts the
/// sets of the last load, and the known one is 0. Does nothing for a worker that reads files.
pub fn reveal(
    arm: Arm,
    worker: &mut WorkerProcess,
    sizes: &Sizes,
    file: usize,
    operands: &Operands,
) -> Result<(), ExaminationFailure> {
    if !is_held(worker, sizes) {
        return Ok(());
    }
    let stored = TensorFile::open(operands.path())?;
    let constant = sizes.constant_inputs();
    let inputs = sizes.inputs();
    let changing = inputs.iter().filter(|spec| !constant.contains(&spec.name));
    let tensors: Vec<Tensor> = changing
        .map(|spec| stored.tensor(spec))
        .collect::<Result<_, _>>()?;
    let named = tensors
        .iter()
        .map(|tensor| (tensor.spec.name.as_str(), tensor.bytes.as_slice()));
    worker
        .reveal(file, named)
        .map_err(|error| ExaminationFailure::of(arm, error))
}
