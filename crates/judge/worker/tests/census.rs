//! The census covers all processes of a worker's group.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::{DESCRIPTION, eventually};
use gauntlet_worker::WorkerProcess;

fn start(script: &str) -> WorkerProcess {
    common::start(script).unwrap()
}

#[test]
fn one_that_waits_takes_nothing() {
    let mut worker = start(&format!("read line; echo '{DESCRIPTION}'; read line"));
    let first = worker.census().unwrap();
    assert_eq!((first.processes, first.threads), (1, 1));
    assert!(first.resident_bytes > 10 << 10, "{first:?}");
    let before = worker.cpu_seconds().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(worker.cpu_seconds().unwrap() - before < 0.02);
}

#[test]
fn work_left_running_is_seen() {
    // The burner is a child that still runs long after the answer.
    let mut worker = start(&format!(
        "read line; (while :; do :; done) & echo '{DESCRIPTION}'; read line"
    ));
    assert!(eventually(|| worker.census().unwrap().processes == 2));
    let before = worker.cpu_seconds().unwrap();
    assert!(eventually(|| worker.cpu_seconds().unwrap() - before > 0.1));
}

#[test]
fn work_of_children_that_are_gone_is_not_forgotten() {
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    for script in [
        // In the first case its parent waits for it; in the second its parent leaves it behind.
        format!("({burn}); read line; echo '{DESCRIPTION}'; read line"),
        format!("(({burn}) &) ; sleep 0.05; read line; echo '{DESCRIPTION}'; read line"),
    ] {
        let mut worker = start(&script);
        let mut last = 0.0;
        assert!(eventually(|| {
            let census = worker.census().unwrap();
            assert!(
                census.cpu_seconds >= last - 0.02,
                "{} after {last}",
                census.cpu_seconds
            );
            last = census.cpu_seconds;
            census.processes == 1
        }));
        assert!(last > 0.03, "{last}");
    }
}

#[test]
fn asking_is_cheap() {
    let mut worker = start(&format!("read line; echo '{DESCRIPTION}'; read line"));
    // The processor time of this thread, which other programs do not affect.
    let on_cpu = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanoseconds = stat.split_whitespace().next().and_then(|word| word.parse().ok());
        Duration::from_nanos(nanoseconds.unwrap_or_default())
    };
    let mean = |calls: u32, ask: &mut dyn FnMut()| {
        let before = on_cpu();
        (0..calls).for_each(|_| ask());
        (on_cpu() - before) / calls
    };
    let clock = mean(1000, &mut || {
        worker.cpu_seconds().unwrap();
    });
    let census = mean(20, &mut || {
        worker.census().unwrap();
    });
    println!("cpu_seconds {clock:?}, census {census:?}");
    // A hundred times the measured time, so that any machine passes but a scan of /proc does not.
    assert!(clock < Duration::from_micros(100), "{clock:?}");
    assert!(census < Duration::from_millis(200), "{census:?}");
}
