//! Finds the part of a confinement that stops a worker, by leaving out one part at a time.

use std::path::Path;

use super::Measure;
use crate::launch::WorkerCommand;
use crate::limits::Limits;
use crate::process::WorkerProcess;
use crate::timeouts::Timeouts;

/// Which part of the confinement keeps a worker from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Culprits {
    /// It does not start unconfined either: the confinement is not the cause.
    None,
    /// It starts when any single one of these is left out.
    Any(Vec<Measure>),
    /// It starts unconfined, but not with only one measure left out.
    Several,
}

/// Starts a worker again with parts of its confinement left out, only until it has described itself. Only for
/// Gauntlet's own executors, since the confinement is weaker meanwhile.
pub fn culprits(
    command: &WorkerCommand,
    workers_folder: &Path,
    timeouts: Timeouts,
    limits: Limits,
) -> Culprits {
    let starts_without = |without: &[Measure]| {
        let mut command = command.clone();
        command.allowances.without = without.to_vec();
        WorkerProcess::start_within(&command, workers_folder, timeouts, limits).is_ok()
    };
    if !starts_without(&Measure::ALL) {
        return Culprits::None;
    }
    let alone: Vec<Measure> = Measure::ALL
        .into_iter()
        .filter(|measure| starts_without(&[*measure]))
        .collect();
    if alone.is_empty() {
        Culprits::Several
    } else {
        Culprits::Any(alone)
    }
}
