//! What a comparison that still runs has shown at the looks of its plan.
//!
//! Between two looks an interval promises nothing, so that nothing of it is told: whoever ended a comparison when it looks good would
//! be wrong more often than its level says.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gauntlet_stats::{Criteria, Interval};
use serde::{Deserialize, Serialize};

use crate::job::looks_file;
use crate::queue::Queue;

/// The variable by which a job names the file of the looks to the command that judges.
const VARIABLE: &str = "GAUNTLET_LOOKS";

/// The looks so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Looks {
    /// Pairs of processes measured.
    pub pairs: usize,
    /// The number of pairs at which it is looked at next; none before the first pair.
    pub next: usize,
    /// The criteria that judge it.
    pub criteria: Criteria,
    /// What was seen at each look.
    pub seen: Vec<Seen>,
}

/// What was seen at a look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Seen {
    /// Pairs of processes measured by then.
    pub pairs: usize,
    /// The suite's speed-up.
    pub interval: Interval,
}

impl Looks {
    /// The looks in a file; none if there is no such file, or it is not what this program writes.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// The file's name to the command that judges.
    pub(crate) fn variable(path: &Path) -> (&'static str, &Path) {
        (VARIABLE, path)
    }
}

impl Queue {
    /// What the comparison of a ticket has shown at its looks so far; none before the first. A job that was killed leaves what it
    /// had seen until the next attempt begins.
    pub fn looks(&self, ticket: &str) -> Option<Looks> {
        Looks::read(&looks_file(&self.results(), ticket))
    }
}

/// Writes the looks of a comparison to the file that a job wants them in.
#[derive(Debug)]
pub struct LookLog {
    path: PathBuf,
    looks: Mutex<Option<Looks>>,
}

impl LookLog {
    /// Into the file that the job names; none outside of a job.
    pub fn of_environment() -> Option<Self> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        Some(Self::at(path.into()))
    }

    fn at(path: PathBuf) -> Self {
        Self {
            path,
            looks: Mutex::default(),
        }
    }

    /// A further pair was measured, and the interval is now this one. It is kept only at a look.
    pub fn narrowed(&self, pairs: usize, next: usize, interval: &Interval, criteria: &Criteria) {
        let mut kept = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let looks = kept.get_or_insert_with(|| Looks {
            pairs,
            next,
            criteria: criteria.clone(),
            seen: Vec::new(),
        });
        looks.pairs = pairs;
        looks.next = next;
        if pairs == next {
            looks.seen.push(Seen {
                pairs,
                interval: interval.clone(),
            });
        }
        let draft = self.path.with_extension("draft");
        // It is only shown: without it the comparison goes on all the same.
        let _written = fs::write(&draft, serde_json::to_vec(looks).unwrap_or_default())
            .and_then(|()| fs::rename(&draft, &self.path));
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_stats::declared_interval;

    use super::*;

    #[test]
    fn an_interval_is_told_at_a_look_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.looks");
        assert_eq!(Looks::read(&path), None);
        let log = LookLog::at(path.clone());
        let interval = declared_interval(1.0, 1.1, 0.03).unwrap();
        let seen_at = |pairs: usize, next: usize| {
            log.narrowed(pairs, next, &interval, &Criteria::default());
            let looks = Looks::read(&path).unwrap();
            assert_eq!((looks.pairs, looks.next), (pairs, next));
            looks.seen.iter().map(|seen| seen.pairs).collect::<Vec<_>>()
        };
        assert_eq!(seen_at(5, 6), Vec::<usize>::new());
        assert_eq!(seen_at(6, 6), [6]);
        assert_eq!(seen_at(7, 12), [6]);
        assert_eq!(seen_at(12, 12), [6, 12]);
    }
}
