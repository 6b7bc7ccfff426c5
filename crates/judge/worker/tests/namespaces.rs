//! A worker in a PID namespace reaches neither the coordinator nor its rival, and is still measured and ended.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::process::ExitStatus;

use common::{DESCRIPTION, eventually, said, start};
use gauntlet_worker::{WorkerError, WorkerProcess};
use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The variable that makes [`reach_others`] try its tricks on these processes.
const TARGETS: &str = "GAUNTLET_TEST_TARGETS";

/// Whether workers get a namespace here; prints the reason if not.
fn has_namespaces() -> bool {
    common::has("sees and reaches only its own processes")
}

fn call(number: libc::c_long, arguments: [libc::c_long; 4]) -> Result<(), Errno> {
    let [first, second, third, fourth] = arguments;
    // SAFETY: the callers pass numbers and null pointers only, so the kernel writes to no memory of this process.
    Errno::result(unsafe { libc::syscall(number, first, second, third, fourth) }).map(drop)
}

/// Not a test of its own: run by the workers of other tests, with processes to reach in [`TARGETS`].
#[test]
fn reach_others() {
    let Ok(targets) = std::env::var(TARGETS) else {
        return;
    };
    for target in targets.split(',') {
        let id: i32 = target.parse().unwrap();
        let number = libc::c_long::from(id);
        let process = libc::c_long::from(libc::PRIO_PROCESS);
        // IOPRIO_WHO_PROCESS, and the idle class.
        let (who, idle) = (1, 3 << 13);
        let tries = [
            (
                "affinity",
                sched_setaffinity(Pid::from_raw(id), &only_the_first()),
            ),
            ("affinity read", sched_getaffinity(Pid::from_raw(id)).map(drop)),
            ("signal", call(libc::SYS_kill, [number, 0, 0, 0])),
            ("pidfd", call(libc::SYS_pidfd_open, [number, 0, 0, 0])),
            ("priority", call(libc::SYS_setpriority, [process, number, 19, 0])),
            ("scheduler", call(libc::SYS_sched_setscheduler, [number, 3, 0, 0])),
            ("io priority", call(libc::SYS_ioprio_set, [who, number, idle, 0])),
            (
                "trace",
                call(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), number, 0, 0]),
            ),
            ("pages", call(libc::SYS_migrate_pages, [number, 0, 0, 0])),
            ("memory", call(libc::SYS_process_vm_readv, [number, 0, 0, 0])),
            ("limits", call(libc::SYS_prlimit64, [number, 0, 0, 0])),
        ];
        for (what, result) in tries {
            println!(
                "{what} of {id}: {}",
                result.map_or_else(|errno| errno.to_string(), |()| "reached".to_owned())
            );
        }
        for file in ["stat", "maps", "mem", "environ", "oom_score_adj", "task"] {
            let found = fs::exists(format!("/proc/{id}/{file}")).unwrap_or(true);
            println!("{file} of {id}: {}", if found { "reached" } else { "hidden" });
        }
    }
    println!("tried everything");
}

fn only_the_first() -> CpuSet {
    let mut set = CpuSet::new();
    set.set(0).unwrap();
    set
}

/// The command that runs [`reach_others`].
fn reach(targets: &[u32]) -> String {
    let targets: Vec<_> = targets.iter().map(ToString::to_string).collect();
    format!(
        "{TARGETS}={} '{}' --exact reach_others --nocapture",
        targets.join(","),
        std::env::current_exe().unwrap().display()
    )
}

fn waiting() -> WorkerProcess {
    start(&format!("read line; echo '{DESCRIPTION}'; read line")).unwrap()
}

#[test]
fn neither_rival_nor_coordinator_is_reached_by_any_call() {
    if !has_namespaces() {
        return;
    }
    let rival = waiting();
    let before = sched_getaffinity(Pid::from_raw(i32::try_from(rival.id()).unwrap())).unwrap();
    let told = said(&reach(&[rival.id(), std::process::id()]));
    assert!(told.contains("tried everything"), "{told}");
    assert!(!told.contains("reached"), "{told}");
    // The namespace refuses it and not a filter: there is no such process.
    assert!(
        told.contains(&format!("affinity of {}: {}", rival.id(), Errno::ESRCH)),
        "{told}"
    );
    let after = sched_getaffinity(Pid::from_raw(i32::try_from(rival.id()).unwrap())).unwrap();
    assert_eq!(before, after);
}

/// The same program reaches a process of its own, so the refusals above are not its fault.
#[test]
fn its_own_processes_are_reached() {
    if !has_namespaces() {
        return;
    }
    let own = reach(&[7]).replacen("=7", "=$!", 1);
    let told = said(&format!("sleep 60 & {own}"));
    for what in ["affinity of ", "signal of ", "stat of "] {
        let line = told.lines().find(|line| line.contains(what)).unwrap_or_default();
        assert!(line.ends_with("reached"), "{told}");
    }
}

#[test]
fn its_proc_lists_its_own_processes_only() {
    if !has_namespaces() {
        return;
    }
    let _rival = waiting();
    let told =
        said("for entry in /proc/[0-9]*; do echo ${entry#/proc/}; done; echo self $$; cat /proc/$$/comm");
    let listed: Vec<u32> = told.lines().map_while(|line| line.parse().ok()).collect();
    // Process 1 reaps orphans, and the worker is the second.
    assert_eq!(listed, [1, 2], "{told}");
    assert!(told.ends_with("self 2\nsh\n"), "{told}");
}

#[test]
fn how_it_ended_is_known() {
    for (script, code, signal) in [
        ("exit 3", Some(3), None),
        ("kill -9 $$", None, Some(libc::SIGKILL)),
        ("kill -SEGV $$", None, Some(libc::SIGSEGV)),
    ] {
        let error = start(&format!("read line; {script}")).err().unwrap();
        let WorkerError::Died {
            status: Some(status), ..
        } = &error
        else {
            panic!("{error}");
        };
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(
            (ExitStatus::code(status), status.signal()),
            (code, signal),
            "{error}"
        );
    }
}

/// Without the filter of system calls a process could leave the group; the namespace ends it all the same.
#[test]
fn all_of_the_namespace_ends_with_it() {
    if !has_namespaces() {
        return;
    }
    let mut worker = start(&format!(
        "read line; (sleep 300 & sleep 300 &); (trap '' TERM; sleep 300) & echo '{DESCRIPTION}'; read line"
    ))
    .unwrap();
    assert!(eventually(|| worker.census().unwrap().processes >= 4));
    let namespace = fs::read_link(format!("/proc/{}/ns/pid", worker.id())).unwrap();
    let inside = || {
        let listed = fs::read_dir("/proc").unwrap().flatten();
        listed
            .filter(|entry| fs::read_link(entry.path().join("ns/pid")).is_ok_and(|link| link == namespace))
            .count()
    };
    assert!(inside() >= 5);
    drop(worker);
    assert_eq!(inside(), 0);
}

#[test]
fn orphans_time_is_counted_though_another_process_reaps_them() {
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let mut worker = start(&format!(
        "read line; (({burn}) &); echo '{DESCRIPTION}'; read line"
    ))
    .unwrap();
    let mut last = 0.0;
    assert!(eventually(|| {
        last = worker.census().unwrap().cpu_seconds;
        worker.census().unwrap().processes == 1
    }));
    let told = worker.census().unwrap().cpu_seconds;
    assert!(told >= last - 0.02 && told > 0.03, "{told} after {last}");
}
