//! A ledger cannot be changed by accident, and a deliberate change is detected.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gauntlet_judge::ledger::{Breach, Ledger, Record, RecordKind, RunId, RunStart, Verification};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

/// A ledger of two runs and six records: 1 and 2 start the runs, 3 to 6 are findings of the first. It is written once and
/// copied, since the disk is waited for after every record.
fn filled() -> (TempDir, PathBuf) {
    static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        fill(&path);
        assert!(!path.with_extension("sqlite-wal").exists(), "all is in the file");
        std::fs::read(&path).unwrap()
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    std::fs::write(&path, &*FILE).unwrap();
    (folder, path)
}

fn fill(path: &Path) {
    let ledger = Ledger::open(path).unwrap();
    let start = RunStart {
        version: "0.1.0".to_owned(),
        file: "round.toml".to_owned(),
        digest: "d1".to_owned(),
        environment: json!({ "cores": 2 }),
    };
    let run = ledger.start_run(&start).unwrap();
    ledger.start_run(&start).unwrap();
    for number in 3..=6 {
        assert_eq!(ledger.append(&finding(&run, number)).unwrap(), number);
    }
}

fn finding(run: &RunId, number: u64) -> Record {
    Record {
        run: run.clone(),
        kind: RecordKind::Finding,
        round: Some("one".to_owned()),
        pitch: Some("tile-size".to_owned()),
        gate: None,
        body: json!({ "number": number }),
    }
}

/// Changes the file like an attacker who knows SQLite and drops the triggers first.
fn tamper(path: &PathBuf, statement: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
    let triggers: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(!triggers.is_empty());
    for trigger in triggers {
        connection
            .execute_batch(&format!("DROP TRIGGER {trigger}"))
            .unwrap();
    }
    connection
        .execute_batch(&format!("PRAGMA foreign_keys = OFF; {statement}"))
        .unwrap();
    assert!(connection.changes() > 0, "nothing changed by {statement}");
}

#[test]
fn rows_can_be_neither_changed_nor_deleted_nor_replaced() {
    let (_folder, path) = filled();
    let before = Ledger::open_read_only(&path).unwrap().verify().unwrap();
    let connection = Connection::open(&path).unwrap();
    for statement in [
        "UPDATE record SET body = '{}' WHERE sequence = 4",
        "UPDATE record SET sequence = 40 WHERE sequence = 4",
        "DELETE FROM record WHERE sequence = 6",
        "DELETE FROM record",
        "INSERT OR REPLACE INTO record SELECT sequence, run, at, kind, round, pitch, gate, '{}', digest FROM record WHERE sequence = 4",
        "UPDATE run SET digest = 'd2'",
        "DELETE FROM run",
        "INSERT OR REPLACE INTO run SELECT id, started_at, version, file, 'd2', environment FROM run",
    ] {
        let error = connection.execute_batch(statement).unwrap_err();
        assert!(error.to_string().contains("append-only"), "{statement}: {error}");
    }
    drop(connection);
    let after = Ledger::open_read_only(&path).unwrap().verify().unwrap();
    assert!(matches!(after, Verification::Intact { records: 6, .. }));
    assert_eq!(before, after);
}

#[test]
fn the_first_broken_record_is_named() {
    for (statement, sequence, breach) in [
        (
            "UPDATE record SET body = '{\"number\":40}' WHERE sequence = 4",
            4,
            Breach::Altered,
        ),
        (
            "UPDATE record SET body = '{\"number\": 4}' WHERE sequence = 4",
            4,
            Breach::Altered,
        ),
        (
            "UPDATE record SET body = '{}' WHERE sequence IN (5, 6)",
            5,
            Breach::Altered,
        ),
        (
            "UPDATE record SET at = '2020-01-01T00:00:00Z' WHERE sequence = 6",
            6,
            Breach::Altered,
        ),
        (
            "UPDATE record SET kind = 'notice' WHERE sequence = 3",
            3,
            Breach::Altered,
        ),
        (
            "UPDATE record SET round = NULL WHERE sequence = 3",
            3,
            Breach::Altered,
        ),
        (
            "UPDATE record SET gate = '' WHERE sequence = 3",
            3,
            Breach::Altered,
        ),
        (
            "UPDATE record SET round = 'onetile', pitch = '-size' WHERE sequence = 3",
            3,
            Breach::Altered,
        ),
        (
            "UPDATE record SET run = (SELECT run FROM record WHERE sequence = 2) WHERE sequence = 5",
            5,
            Breach::Altered,
        ),
        (
            "UPDATE record SET digest = (SELECT digest FROM record WHERE sequence = 4) WHERE sequence = 5",
            5,
            Breach::Altered,
        ),
        ("DELETE FROM record WHERE sequence = 3", 3, Breach::Missing),
        ("DELETE FROM record WHERE sequence = 6", 6, Breach::Missing),
        ("DELETE FROM record", 1, Breach::Missing),
        (
            "DELETE FROM record WHERE sequence = 5; UPDATE record SET sequence = 5 WHERE sequence = 6",
            5,
            Breach::Altered,
        ),
        (
            "UPDATE run SET digest = 'd2' WHERE id = (SELECT run FROM record WHERE sequence = 2)",
            2,
            Breach::RunAltered,
        ),
        (
            "UPDATE run SET environment = '{\"cores\":64}'",
            1,
            Breach::RunAltered,
        ),
        (
            "UPDATE run SET started_at = '2020-01-01T00:00:00Z'",
            1,
            Breach::RunAltered,
        ),
        ("DELETE FROM run", 1, Breach::RunAltered),
    ] {
        let (_folder, path) = filled();
        tamper(&path, statement);
        let found = Ledger::open_read_only(&path).unwrap().verify().unwrap();
        assert_eq!(found, Verification::Broken { sequence, breach }, "{statement}");
    }
}

#[test]
fn records_cut_off_at_the_end_stay_missing_when_others_follow() {
    let (_folder, path) = filled();
    tamper(&path, "DELETE FROM record WHERE sequence >= 5");
    let ledger = Ledger::open(&path).unwrap();
    let run = ledger.record(1).unwrap().unwrap().record.run;
    assert_eq!(ledger.append(&finding(&run, 7)).unwrap(), 7);
    assert_eq!(
        ledger.verify().unwrap(),
        Verification::Broken {
            sequence: 5,
            breach: Breach::Missing
        }
    );
}
