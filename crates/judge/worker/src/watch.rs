//! Checks a worker's limits while the coordinator waits for it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::census::Group;
use crate::limits::Limits;
use crate::pipes::StandardError;

/// How often to check. Calls shorter than this are not disturbed; in longer ones a check of half a millisecond takes
/// less than a hundredth of one processor.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// The files are checked once per this many checks of processes, since that takes longer.
const LOOKS_FOR_EACH_AT_FILES: u32 = 10;

/// More files than this exceed the limit whatever their size: counting them takes too long.
const MAX_FILES: usize = 100_000;

/// A limit that was exceeded, and the allowed amount.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub what: String,
    pub limit: String,
    /// Whether the limit follows from the memory of the machine or job.
    pub is_of_memory: bool,
}

impl Excess {
    fn new(what: String, limit: String) -> Self {
        Self {
            what,
            limit,
            is_of_memory: false,
        }
    }
}

/// Checks one worker.
pub(crate) struct Watch {
    limits: Limits,
    /// The folders that it may write to.
    folders: Vec<PathBuf>,
    looks: u32,
    last: Instant,
}

impl Watch {
    pub fn new(limits: Limits, folders: Vec<PathBuf>) -> Self {
        Self {
            limits,
            folders,
            looks: 0,
            last: Instant::now(),
        }
    }

    /// Whether the last check was so long ago that a check is due even during short calls.
    pub fn is_overdue(&self) -> bool {
        self.last.elapsed() > INTERVAL * LOOKS_FOR_EACH_AT_FILES
    }

    /// The limit that is exceeded, if any.
    pub fn excess(&mut self, group: &mut Group, standard_error: &StandardError) -> Option<Excess> {
        self.last = Instant::now();
        self.looks += 1;
        let at_files = self.looks.is_multiple_of(LOOKS_FOR_EACH_AT_FILES);
        self.of_output(standard_error)
            .or_else(|| self.of_processes(group))
            .or_else(|| at_files.then(|| self.of_files()).flatten())
    }

    /// An exceeded limit on standard error.
    pub fn of_output(&self, standard_error: &StandardError) -> Option<Excess> {
        let limit = self.limits.standard_error;
        (standard_error.volume() > limit).then(|| {
            let limit = mebibytes(limit);
            Excess::new(format!("over {limit} on standard error"), limit)
        })
    }

    fn of_processes(&self, group: &mut Group) -> Option<Excess> {
        let census = group.count()?;
        let counted = |count: usize, limit: usize, what: &str| {
            (count > limit).then(|| Excess::new(format!("{count} {what}"), limit.to_string()))
        };
        counted(census.processes, self.limits.processes, "processes")
            .or_else(|| counted(census.threads, self.limits.threads, "threads"))
            .or_else(|| {
                let limit = self.limits.memory;
                // This sum counts shared memory once per process; the exact sum takes longer, so it is computed only
                // here.
                let bytes = (census.resident_bytes > limit).then(|| group.proportional_bytes())?;
                (bytes > limit).then(|| Excess {
                    what: format!("{} of memory", mebibytes(bytes)),
                    limit: mebibytes(limit),
                    is_of_memory: true,
                })
            })
    }

    fn of_files(&self) -> Option<Excess> {
        let (files, bytes) = content(self.folders.clone());
        if files > MAX_FILES {
            return Some(Excess::new(
                format!("over {MAX_FILES} files"),
                MAX_FILES.to_string(),
            ));
        }
        (bytes > self.limits.folder).then(|| {
            Excess::new(
                format!("{} in its folder", mebibytes(bytes)),
                mebibytes(self.limits.folder),
            )
        })
    }
}

/// The number of files in some folders, and the bytes that they occupy; stops at one over [`MAX_FILES`].
fn content(mut folders: Vec<PathBuf>) -> (usize, u64) {
    let (mut files, mut bytes) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // For a link, these are the metadata of the link itself.
            let Ok(found) = entry.metadata() else { continue };
            files += 1;
            bytes += 512 * found.blocks();
            if files > MAX_FILES {
                return (files, bytes);
            }
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    (files, bytes)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_by_the_room_that_they_take_up() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("full"), vec![1; 3 << 20]).unwrap();
        fs::File::create(place.path().join("hole"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        std::os::unix::fs::symlink("/", place.path().join("link")).unwrap();
        let (files, bytes) = content(vec![place.path().to_owned()]);
        assert_eq!(files, 5);
        assert!((3 << 20..4 << 20).contains(&bytes), "{bytes}");
    }
}
