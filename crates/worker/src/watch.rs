//! Whether a worker keeps within its limits, looked at while it is awaited.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::census::Group;
use crate::limits::Limits;
use crate::pipes::Complaints;

/// How often to look. Calls shorter than this are not disturbed; in longer ones a look of half a millisecond takes less
/// than a hundredth of one processor.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// After so many looks at processes there is one at the files, which takes longer.
const LOOKS_FOR_EACH_AT_FILES: u32 = 10;

/// More files than this are too many whatever their size: it takes too long to count them.
const MOST_FILES: usize = 100_000;

/// What was too much, and what would have been allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub what: String,
    pub limit: String,
}

/// Looks at one worker.
pub(crate) struct Watch {
    limits: Limits,
    folder: PathBuf,
    looks: u32,
    last: Instant,
}

impl Watch {
    pub fn new(limits: Limits, folder: PathBuf) -> Self {
        Self {
            limits,
            folder,
            looks: 0,
            last: Instant::now(),
        }
    }

    /// Whether the last look was so long ago that short calls, too, must be looked at.
    pub fn is_overdue(&self) -> bool {
        self.last.elapsed() > INTERVAL * LOOKS_FOR_EACH_AT_FILES
    }

    /// What is too much, if anything.
    pub fn excess(&mut self, group: &mut Group, complaints: &Complaints) -> Option<Excess> {
        self.last = Instant::now();
        self.looks += 1;
        let at_files = self.looks.is_multiple_of(LOOKS_FOR_EACH_AT_FILES);
        self.of_output(complaints)
            .or_else(|| self.of_processes(group))
            .or_else(|| at_files.then(|| self.of_files()).flatten())
    }

    /// Too much on standard error.
    pub fn of_output(&self, complaints: &Complaints) -> Option<Excess> {
        let limit = self.limits.standard_error;
        (complaints.volume() > limit).then(|| Excess {
            what: format!("over {} on standard error", mebibytes(limit)),
            limit: mebibytes(limit),
        })
    }

    fn of_processes(&self, group: &mut Group) -> Option<Excess> {
        let census = group.count()?;
        let counted = |count: usize, limit: usize, what: &str| {
            (count > limit).then(|| Excess {
                what: format!("{count} {what}"),
                limit: limit.to_string(),
            })
        };
        counted(census.processes, self.limits.processes, "processes")
            .or_else(|| counted(census.threads, self.limits.threads, "threads"))
            .or_else(|| {
                let limit = self.limits.memory;
                // What is shared was counted in each; the exact sum takes longer, and is only needed here.
                let bytes = (census.resident_bytes > limit).then(|| group.proportional_bytes())?;
                (bytes > limit).then(|| Excess {
                    what: format!("{} of memory", mebibytes(bytes)),
                    limit: mebibytes(limit),
                })
            })
    }

    fn of_files(&self) -> Option<Excess> {
        let (files, bytes) = content(&self.folder);
        if files > MOST_FILES {
            return Some(Excess {
                what: format!("over {MOST_FILES} files"),
                limit: MOST_FILES.to_string(),
            });
        }
        (bytes > self.limits.folder).then(|| Excess {
            what: format!("{} in its folder", mebibytes(bytes)),
            limit: mebibytes(self.limits.folder),
        })
    }
}

/// Files in a folder, and the bytes that they take up; no further than one over [`MOST_FILES`].
fn content(folder: &Path) -> (usize, u64) {
    let mut folders = vec![folder.to_owned()];
    let (mut files, mut bytes) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Of a link, this tells of the link itself.
            let Ok(found) = entry.metadata() else { continue };
            files += 1;
            bytes += 512 * found.blocks();
            if files > MOST_FILES {
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
        let (files, bytes) = content(place.path());
        assert_eq!(files, 5);
        assert!((3 << 20..4 << 20).contains(&bytes), "{bytes}");
    }
}
