//! Several programs appending concurrently, and programs killed in the middle.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_judge::ledger::{Ledger, Record, RecordKind, RunId, RunStart, Verification};
use serde_json::{Value, json};

const LEDGER: &str = "GAUNTLET_TEST_LEDGER";
const ACKNOWLEDGED: &str = "GAUNTLET_TEST_ACKNOWLEDGED";

fn start(file: &str) -> RunStart {
    RunStart {
        version: "0.1.0".to_owned(),
        file: file.to_owned(),
        digest: "d1".to_owned(),
        environment: Value::Null,
    }
}

fn finding(run: &RunId, number: u64) -> Record {
    Record {
        run: run.clone(),
        kind: RecordKind::Finding,
        round: None,
        pitch: None,
        gate: None,
        body: json!({ "number": number, "samples": vec![0.125; 200] }),
    }
}

#[test]
fn many_may_start_on_the_same_new_ledger_and_append_at_once() {
    const WRITERS: usize = 4;
    const RECORDS: u64 = 25;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let together = Barrier::new(WRITERS);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (path, together) = (&path, &together);
            scope.spawn(move || {
                together.wait();
                let ledger = Ledger::open(path).unwrap();
                let run = ledger.start_run(&start(&writer.to_string())).unwrap();
                for number in 0..RECORDS {
                    ledger.append(&finding(&run, number)).unwrap();
                }
                let numbers: Vec<_> = ledger
                    .findings(&run)
                    .unwrap()
                    .iter()
                    .map(|entry| entry.record.body["number"].clone())
                    .collect();
                assert_eq!(numbers, (0..RECORDS).map(Value::from).collect::<Vec<_>>());
            });
        }
    });
    let ledger = Ledger::open_read_only(&path).unwrap();
    assert_eq!(ledger.runs().unwrap().len(), WRITERS);
    let total = WRITERS as u64 * (RECORDS + 1);
    assert!(matches!(ledger.verify().unwrap(), Verification::Intact { records, .. } if records == total));
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "drafts of the ledger are cleared away"
    );
}

#[test]
fn what_was_acknowledged_survives_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let acknowledged = folder.path().join("acknowledged");
    for kill in 0..6 {
        let before = lines(&acknowledged).len();
        let mut child = spawn_appender(&path, &acknowledged);
        let deadline = Instant::now() + Duration::from_secs(240);
        while lines(&acknowledged).len() < before + 5 {
            assert!(Instant::now() < deadline, "the child does not append");
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            thread::sleep(Duration::from_millis(1));
        }
        // Delays that kill the child at different places of its loop.
        thread::sleep(Duration::from_micros(700 * kill));
        child.kill().unwrap();
        child.wait().unwrap();

        // First as `ledger show` reads it after the kill, then as `run --resume` does.
        check(&Ledger::open_read_only(&path).unwrap(), &acknowledged, kill + 1);
        check(&Ledger::open(&path).unwrap(), &acknowledged, kill + 1);
    }
}

/// Asserts that all acknowledged records exist, and at most one more for each kill.
fn check(ledger: &Ledger, acknowledged: &Path, kills: u64) {
    let acknowledged = lines(acknowledged);
    for (sequence, number) in &acknowledged {
        let entry = ledger.record(*sequence).unwrap().unwrap();
        assert_eq!(entry.record, finding(&entry.record.run, *number));
    }
    let starts = ledger.runs().unwrap().len() as u64;
    assert_eq!(starts, kills);
    let appended = acknowledged.len() as u64 + starts;
    let verification = ledger.verify().unwrap();
    assert!(
        matches!(verification, Verification::Intact { records, .. } if (appended..=appended + kills).contains(&records)),
        "{verification:?}, {appended} acknowledged"
    );
    assert!(ledger.last_unfinished_run("d1").unwrap().is_some());
}

/// Sequence number and content of each acknowledged record; a line cut short by the kill was not acknowledged.
fn lines(acknowledged: &Path) -> Vec<(u64, u64)> {
    let text = fs::read_to_string(acknowledged).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole
        .map(|line| {
            let (sequence, number) = line.trim_end().split_once(' ').unwrap();
            (sequence.parse().unwrap(), number.parse().unwrap())
        })
        .collect()
}

/// Starts this test program again, as a process that only appends.
fn spawn_appender(ledger: &Path, acknowledged: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "appender", "--nocapture"])
        .env(LEDGER, ledger)
        .env(ACKNOWLEDGED, acknowledged)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test: the process that [`spawn_appender`] starts and that is then killed.
#[test]
fn appender() {
    let (Some(ledger), Some(acknowledged)) = (std::env::var_os(LEDGER), std::env::var_os(ACKNOWLEDGED))
    else {
        return;
    };
    let ledger = Ledger::open(ledger).unwrap();
    let mut acknowledged = OpenOptions::new()
        .append(true)
        .create(true)
        .open(acknowledged)
        .unwrap();
    let run = ledger.start_run(&start("killed")).unwrap();
    for number in 0.. {
        let sequence = ledger.append(&finding(&run, number)).unwrap();
        acknowledged
            .write_all(format!("{sequence} {number}\n").as_bytes())
            .unwrap();
    }
}
