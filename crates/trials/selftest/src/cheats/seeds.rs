//! A cheat that tries to recover the seed of its operands from what it sees of their files.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gauntlet_problems::Inputs;
use gauntlet_task::InputKind;
use gauntlet_worker::protocol::Failure;

use super::work::{Call, Trick, Work, broken};

/// Operands whose seeds follow the recovered one, for which results are computed ahead.
const AHEAD: u64 = 8;

/// Tries numbers that may be the seed of its operands. Once it has found one, it computes the results of the following
/// seeds ahead, in `load`, and hands them out.
#[derive(Default)]
pub struct GuessesSeeds {
    /// Operands made from predicted seeds, as bytes, and their results.
    known: Vec<(Vec<u8>, Vec<u8>)>,
    /// The operands of each copy, as bytes.
    copies: Vec<Vec<u8>>,
}

impl Trick for GuessesSeeds {
    fn loaded(&mut self, work: &mut Work, files: &[PathBuf]) -> Result<(), Failure> {
        self.copies = files
            .iter()
            .map(|file| std::fs::read(file).map_err(broken))
            .collect::<Result<_, _>>()?;
        let (Some(file), Some(bytes)) = (files.first(), self.copies.first()) else {
            return Ok(());
        };
        let recovered = guesses(file)
            .into_iter()
            .find(|seed| generated(work, *seed).is_some_and(|guess| guess == *bytes));
        let Some(seed) = recovered else {
            return Ok(());
        };
        for seed in seed.wrapping_add(1)..=seed.wrapping_add(AHEAD) {
            let Some(bytes) = generated(work, seed) else {
                continue;
            };
            let path = Path::new("predicted");
            std::fs::write(path, &bytes).map_err(broken)?;
            let predicted = Inputs::load(path, &work.problem).map_err(broken)?;
            let before = std::mem::replace(&mut work.copies, vec![predicted]);
            work.compute(0)?;
            work.copies = before;
            self.known.push((bytes, work.output.bytes.clone()));
        }
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        let bytes = self.copies.get(copy % self.copies.len().max(1));
        let known = self.known.iter().find(|(operands, _)| Some(operands) == bytes);
        match known.filter(|(_, result)| result.len() == work.output.bytes.len()) {
            Some((_, result)) => {
                work.output.bytes.copy_from_slice(result);
                Ok(())
            }
            None => work.compute(copy),
        }
    }
}

/// Numbers that a careless coordinator might have used as a seed: the file's name, its times, its inode, and the ids of
/// processes.
fn guesses(file: &Path) -> Vec<u64> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut guesses = vec![
        0,
        1,
        u64::from(std::process::id()),
        u64::from(std::os::unix::process::parent_id()),
    ];
    guesses.extend(u64::from_str_radix(&name, 16));
    guesses.extend(name.parse::<u64>());
    if let Ok(found) = std::fs::metadata(file) {
        let seconds = found.mtime().unsigned_abs();
        let nanoseconds = found.mtime_nsec().unsigned_abs();
        guesses.extend([
            found.ino(),
            seconds,
            nanoseconds,
            seconds * 1_000_000_000 + nanoseconds,
        ]);
    }
    guesses
}

/// The file of operands that this seed gives, as bytes.
fn generated(work: &Work, seed: u64) -> Option<Vec<u8>> {
    let operation = serde_json::to_value(&work.problem).ok()?;
    let sizes = gauntlet_families::open(&operation).ok()?;
    let path = Path::new("guess");
    sizes
        .generate(InputKind::Competition, seed)
        .ok()?
        .save(path)
        .ok()?;
    std::fs::read(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_in_the_name_is_among_the_guesses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("00000000000000ff.inputs");
        std::fs::write(&file, "").unwrap();
        let guesses = guesses(&file);
        assert!(guesses.contains(&255), "{guesses:?}");
        let inode = std::fs::metadata(&file).unwrap().ino();
        assert!(guesses.contains(&inode), "{guesses:?}");
    }
}
