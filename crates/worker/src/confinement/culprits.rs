//! Which part of a confinement stops a worker: found out by leaving out one part after the other.

use std::path::Path;

use super::Measure;
use crate::launch::WorkerCommand;
use crate::limits::Limits;
use crate::patience::Patience;
use crate::process::WorkerProcess;

/// What stops a worker that does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Culprits {
    /// It does not start unconfined either: the trouble is its own.
    None,
    /// It starts when any one of these is left out.
    Any(Vec<Measure>),
    /// It starts unconfined, and not with only one measure left out.
    Several,
}

/// Starts a worker again with parts of what holds it left out, for no longer than it takes to describe itself. Only for
/// Gauntlet's own executors, since they are then held by less.
pub fn culprits(command: &WorkerCommand, yard: &Path, patience: Patience, limits: Limits) -> Culprits {
    let starts_without = |without: &[Measure]| {
        let mut command = command.clone();
        command.allowances.without = without.to_vec();
        WorkerProcess::start_within(&command, yard, patience, limits).is_ok()
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
