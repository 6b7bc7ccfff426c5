//! Watches that nobody moves a side while it waits for its turn, and that no worker moves the coordinator: pinned to
//! fewer processors, or made less urgent, a side would lose whatever it computes.
//!
//! A worker may pin its own threads during its own turn.

use gauntlet_stats::Arm;
#[cfg(target_os = "linux")]
use gauntlet_worker::Placement;
use gauntlet_worker::WorkerProcess;

use crate::runner::ExaminationFailure;

/// The placement of a side and of the coordinator at the last look.
#[derive(Debug, Default)]
pub struct PlacementWatch {
    #[cfg(target_os = "linux")]
    side: Option<Placement>,
    #[cfg(target_os = "linux")]
    coordinator: Option<Placement>,
}

#[cfg(target_os = "linux")]
impl PlacementWatch {
    /// Looks before a turn of the side: nothing may have moved it since its last turn.
    ///
    /// # Errors
    /// The comparison is void if something has.
    pub fn before_turn(&mut self, arm: Arm, worker: &WorkerProcess) -> Result<(), ExaminationFailure> {
        let now = worker.placement();
        let change = self.side.take().and_then(|before| now.change_since(&before));
        self.coordinator = Some(Placement::of_this_program());
        let (side, other) = names(arm);
        void(change, || {
            format!("the {side} was moved while it waited and the {other} worked")
        })
    }

    /// Looks after a turn of the side: it may have moved itself, and not the coordinator.
    ///
    /// # Errors
    /// The comparison is void if the coordinator was moved.
    pub fn after_turn(&mut self, arm: Arm, worker: &WorkerProcess) -> Result<(), ExaminationFailure> {
        self.side = Some(worker.placement());
        let before = self.coordinator.take();
        let change = before.and_then(|before| Placement::of_this_program().change_since(&before));
        let (side, _) = names(arm);
        void(change, || {
            format!("the coordinator was moved while the {side} worked")
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl PlacementWatch {
    /// Only Linux reports the placement of other processes.
    pub fn before_turn(&mut self, _arm: Arm, _worker: &WorkerProcess) -> Result<(), ExaminationFailure> {
        Ok(())
    }

    /// Only Linux reports the placement of other processes.
    pub fn after_turn(&mut self, _arm: Arm, _worker: &WorkerProcess) -> Result<(), ExaminationFailure> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn names(arm: Arm) -> (&'static str, &'static str) {
    match arm {
        Arm::Baseline => ("baseline", "candidate"),
        Arm::Candidate => ("candidate", "baseline"),
    }
}

#[cfg(target_os = "linux")]
fn void(change: Option<String>, what: impl FnOnce() -> String) -> Result<(), ExaminationFailure> {
    change.map_or(Ok(()), |change| {
        Err(ExaminationFailure::Void(format!("{}: {change}", what())))
    })
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use gauntlet_worker::protocol::VERSION;
    use gauntlet_worker::{Timeouts, WorkerCommand};
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    use tempfile::TempDir;

    use super::*;

    /// Each test sees all threads of this program, and one of them is moved.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn worker() -> (WorkerProcess, TempDir) {
        let description = format!(
            r#"{{"id":1,"answer":"description","protocol":{VERSION},"worker":"shell","device":"host","details":{{}}}}"#
        );
        let script = format!("read line; echo '{description}'; read line");
        let folder = tempfile::tempdir().unwrap();
        let command = WorkerCommand::new("/bin/sh", ["-c".into(), script.into()]);
        let (worker, _) = WorkerProcess::start(&command, folder.path(), Timeouts::default()).unwrap();
        (worker, folder)
    }

    /// Pins a process to its first processor; false if it has no other one.
    fn pin(process: Pid) -> bool {
        let allowed = sched_getaffinity(process).unwrap();
        let mut members = (0..CpuSet::count()).filter(|one| allowed.is_set(*one).unwrap());
        let first = members.next().unwrap();
        if members.next().is_none() {
            println!("skipped, since this machine has only one processor");
            return false;
        }
        let mut one = CpuSet::new();
        one.set(first).unwrap();
        sched_setaffinity(process, &one).unwrap();
        true
    }

    fn reason(result: Result<(), ExaminationFailure>) -> String {
        match result {
            Err(ExaminationFailure::Void(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_side_moved_while_it_waits_voids_and_is_named() {
        let _alone = alone();
        let (worker, _folder) = worker();
        let mut watch = PlacementWatch::default();
        watch.before_turn(Arm::Baseline, &worker).unwrap();
        watch.after_turn(Arm::Baseline, &worker).unwrap();
        if !pin(Pid::from_raw(i32::try_from(worker.id()).unwrap())) {
            return;
        }
        let reason = reason(watch.before_turn(Arm::Baseline, &worker));
        assert!(
            reason.starts_with("the baseline was moved while it waited and the candidate worked: of thread"),
            "{reason}"
        );
    }

    #[test]
    fn a_side_may_be_moved_in_its_own_turn() {
        let _alone = alone();
        let (worker, _folder) = worker();
        let mut watch = PlacementWatch::default();
        watch.before_turn(Arm::Candidate, &worker).unwrap();
        if !pin(Pid::from_raw(i32::try_from(worker.id()).unwrap())) {
            return;
        }
        watch.after_turn(Arm::Candidate, &worker).unwrap();
        watch.before_turn(Arm::Candidate, &worker).unwrap();
    }

    /// The test pins the thread that it runs on, as a worker could have done.
    #[test]
    fn a_moved_coordinator_voids_too() {
        let _alone = alone();
        let moved = std::thread::spawn(|| {
            let (worker, _folder) = worker();
            let mut watch = PlacementWatch::default();
            watch.before_turn(Arm::Candidate, &worker).unwrap();
            pin(Pid::from_raw(0)).then(|| reason(watch.after_turn(Arm::Candidate, &worker)))
        });
        if let Some(reason) = moved.join().unwrap() {
            assert!(
                reason.starts_with("the coordinator was moved while the candidate worked"),
                "{reason}"
            );
        }
    }
}
