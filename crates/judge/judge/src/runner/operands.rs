//! Operands on disk, where workers read them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gauntlet_task::{Case, InputKind, Inputs, Sizes};
use gauntlet_tensors::{Tensor, TensorFile, TensorSpec, save_tensors};

use crate::evidence::JudgeError;
use crate::runner::workshop::Workshop;

/// The readers of a file of operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// All workers, as far as the system confines them, and the coordinator.
    Workers,
    /// The coordinator, which writes the values into the memory of workers that it holds.
    Coordinator,
}

/// A file of operands, deleted when it is dropped.
#[derive(Debug)]
pub struct Operands {
    path: PathBuf,
    digest: Option<blake3::Hash>,
}

impl Operands {
    /// Makes operands, or takes the case's own data, and writes them to a file.
    pub fn write(
        workshop: &Workshop,
        case: &Case,
        kind: InputKind,
        seed: u64,
    ) -> Result<(Box<dyn Inputs>, Self), JudgeError> {
        let (inputs, path) = workshop.write_inputs(case, kind, seed, Readers::Workers)?;
        let digest = digest(&path);
        Ok((inputs, Self { path, digest }))
    }

    /// Makes operands with the same values as `like` in the inputs that the case names as constant.
    pub fn write_like(
        workshop: &Workshop,
        case: &Case,
        (kind, seed): (InputKind, u64),
        like: &Self,
        readers: Readers,
    ) -> Result<(Box<dyn Inputs>, Self), JudgeError> {
        let (mut inputs, path) = workshop.write_inputs(case, kind, seed, readers)?;
        let constant = case.sizes.constant_inputs();
        if !constant.is_empty() && case.data.is_none() {
            take_over(&case.sizes, &constant, like.path(), &path)?;
            inputs = case.sizes.load(&path).map_err(JudgeError::Inputs)?;
        }
        let digest = digest(&path);
        Ok((inputs, Self { path, digest }))
    }

    /// Puts the file where these readers can read it, if only the coordinator could so far.
    pub fn open_to(&mut self, workshop: &Workshop, readers: Readers) -> Result<(), JudgeError> {
        if readers == Readers::Workers {
            self.path = workshop.open_to_workers(&self.path)?;
        }
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file still holds what was written: the other side's worker also computes from it.
    pub fn are_untouched(&self) -> bool {
        self.digest.is_some() && digest(&self.path) == self.digest
    }
}

impl Drop for Operands {
    fn drop(&mut self) {
        // If this fails, the file is removed with the workshop's folder.
        let _removed = std::fs::remove_file(&self.path);
    }
}

/// Replaces these tensors of a file of operands by those of another file.
fn take_over(sizes: &Sizes, names: &[String], from: &Path, to: &Path) -> Result<(), JudgeError> {
    let (source, target) = (TensorFile::open(from)?, TensorFile::open(to)?);
    let tensor = |spec: &TensorSpec| {
        if names.contains(&spec.name) {
            source.tensor(spec)
        } else {
            target.tensor(spec)
        }
    };
    let tensors: Vec<Tensor> = sizes.inputs().iter().map(tensor).collect::<Result<_, _>>()?;
    // Written beside the file and moved over it: the file is still read from.
    let fresh = to.with_extension("new");
    let each = tensors
        .iter()
        .map(|tensor| (&tensor.spec, tensor.bytes.as_slice()));
    save_tensors(each, &fresh)?;
    std::fs::rename(&fresh, to).map_err(|source| JudgeError::Files {
        what: "operands cannot be written".to_owned(),
        place: to.display().to_string(),
        source,
    })
}

/// Chunk size for digesting a file on several threads.
const PIECE: u64 = 16 << 20;

/// None for a file that cannot be read, for example because a worker removed it.
fn digest(path: &Path) -> Option<blake3::Hash> {
    let mut file = File::open(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = Vec::new();
    loop {
        piece.clear();
        if file.by_ref().take(PIECE).read_to_end(&mut piece).ok()? == 0 {
            return Some(hasher.finalize());
        }
        hasher.update_rayon(&piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changed_or_gone_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operands");
        std::fs::write(&path, "one").unwrap();
        let operands = Operands {
            digest: digest(&path),
            path,
        };
        assert!(operands.are_untouched());
        std::fs::write(operands.path(), "two").unwrap();
        assert!(!operands.are_untouched());
        std::fs::remove_file(operands.path()).unwrap();
        assert!(!operands.are_untouched());
    }
}
