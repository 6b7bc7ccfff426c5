//! The pitches of a round: those that its file names, and those that agents put into its folders.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gauntlet_entrants::{EntrantError, FileError, Source};
use gauntlet_task::{DispatchTable, Suite};

use super::kernels::Named;
use super::{RoundFile, changes, check, kernels, named};
use crate::pitch::Pitch;
use crate::source::SourceChange;

/// The pitches of a round with what they name.
pub struct Pitches {
    /// Those that can be played, in order.
    pub all: Vec<Source<Pitch>>,
    /// What is wrong with each of those that cannot: only files in folders, which anyone may put there, are left out.
    pub left_out: Vec<FileError>,
    /// Dispatch tables, those of the round among them, by their paths as written.
    pub dispatch: BTreeMap<PathBuf, DispatchTable>,
    /// Changes to the source, by pitch.
    pub changes: BTreeMap<String, SourceChange>,
    /// The kernels of the baseline and of pitches.
    pub kernels: Named,
}

impl Pitches {
    /// Reads and checks them.
    ///
    /// # Errors
    /// If something is wrong with the round, or with a pitch that its file names or holds.
    pub fn load(source: &Source<RoundFile>, suite: &Suite) -> Result<Self, EntrantError> {
        let mut all = Vec::new();
        let mut left_out = Vec::new();
        let mut open = Vec::new();
        for (file, is_open) in files(source) {
            match Source::read(&file, "pitch") {
                Ok(pitch) => all.push(pitch),
                Err(error) if is_open => left_out.push(error),
                Err(error) => return Err(error.into()),
            }
            open.extend(is_open.then_some(file));
        }
        all.extend(source.value.pitch.iter().map(|pitch| source.with(pitch.clone())));
        loop {
            let fault = match Self::checked(source, suite, &all) {
                Ok((dispatch, changes, kernels)) => {
                    return Ok(Self {
                        all,
                        left_out,
                        dispatch,
                        changes,
                        kernels,
                    });
                }
                Err(EntrantError::File(fault)) => fault,
                Err(other) => return Err(other),
            };
            // The last one, since a name that two have belongs to the first.
            let culprit = all.iter().rposition(|pitch| pitch.path == fault.path);
            match culprit.filter(|_| open.contains(&fault.path)) {
                Some(culprit) => {
                    all.remove(culprit);
                    left_out.push(fault);
                }
                None => return Err(fault.into()),
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn checked(
        source: &Source<RoundFile>,
        suite: &Suite,
        all: &[Source<Pitch>],
    ) -> Result<
        (
            BTreeMap<PathBuf, DispatchTable>,
            BTreeMap<String, SourceChange>,
            Named,
        ),
        EntrantError,
    > {
        let dispatch = named::load_dispatch(source, all)?;
        check::check(source, all, &suite.parameters())?;
        let changes = changes::load_changes(all, source.value.source.is_some())?;
        Ok((dispatch, changes, kernels::load_kernels(source, all, suite)?))
    }
}

/// The files of a round's pitches, and whether each is one of those that end in `.toml` in a folder that the round names.
fn files(source: &Source<RoundFile>) -> Vec<(PathBuf, bool)> {
    let mut files = Vec::new();
    for named in &source.value.pitches {
        let path = source.resolve(named);
        let Ok(entries) = std::fs::read_dir(&path) else {
            files.push((path, false));
            continue;
        };
        let entries = entries.flatten().map(|entry| entry.path());
        let mut within: Vec<_> = entries
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .map(|path| (path, true))
            .collect();
        within.sort();
        files.extend(within);
    }
    files
}
