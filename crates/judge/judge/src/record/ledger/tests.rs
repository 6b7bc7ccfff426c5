//! Tests that need access to the ledger's internals: a full disk, a held lock, colliding names.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

fn start() -> RunStart {
    RunStart {
        version: "0.1.0".to_owned(),
        file: "round.toml".to_owned(),
        digest: "d1".to_owned(),
        environment: Value::Null,
    }
}

fn notice(run: &RunId, body: Value) -> Record {
    Record {
        run: run.clone(),
        kind: RecordKind::Notice,
        round: None,
        pitch: None,
        gate: None,
        body,
    }
}

#[test]
fn a_full_disk_loses_nothing_and_the_ledger_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let ledger = Ledger::open(&path).unwrap();
    let run = ledger.start_run(&start()).unwrap();
    let pages: u32 = ledger
        .connection
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    let limit = |pages: u32| {
        ledger
            .connection
            .pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))
            .unwrap()
    };

    limit(pages);
    let big = notice(&run, json!("x".repeat(100_000)));
    let error = ledger.append(&big).unwrap_err();
    assert!(matches!(error, LedgerError::Full { .. }), "{error}");
    assert!(error.to_string().contains(&path.display().to_string()));
    assert_eq!(ledger.verify().unwrap(), intact(&ledger, 1));

    limit(pages + 1000);
    assert_eq!(ledger.append(&big).unwrap(), 2);
    assert_eq!(ledger.verify().unwrap(), intact(&ledger, 2));
}

#[test]
fn a_ledger_that_stays_locked_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let ledger = Ledger::open_with_timeouts(&path, Duration::from_millis(20)).unwrap();
    let run = ledger.start_run(&start()).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let error = ledger.append(&notice(&run, json!(1))).unwrap_err();
    assert!(matches!(error, LedgerError::Locked { .. }), "{error}");

    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ledger.append(&notice(&run, json!(1))).unwrap(), 2);
}

#[test]
fn runs_that_start_at_the_same_instant_get_different_names() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path().join("ledger.sqlite")).unwrap();
    let at = Timestamp::now();
    let first = unused_name(&ledger.connection, at, &start()).unwrap();
    ledger
        .connection
        .execute(
            "INSERT INTO run VALUES (?1, ?2, '0.1.0', 'round.toml', 'd1', 'null')",
            params![first, at.to_string()],
        )
        .unwrap();
    assert_ne!(unused_name(&ledger.connection, at, &start()).unwrap(), first);
}

fn intact(ledger: &Ledger, records: u64) -> Verification {
    Verification::Intact {
        records,
        head: ledger.record(records).unwrap().unwrap().digest,
    }
}

/// A ledger as a program of an earlier schema made it.
fn of_schema(schema: i32) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut earlier = include_str!("schema.sql").replace(",\n        'judgement', 'imported'", "");
    if schema == 1 {
        earlier = earlier.replace(", 'message'", "");
    }
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(&earlier).unwrap();
    connection
        .pragma_update(None, "application_id", i32::from_be_bytes(*b"GNTL"))
        .unwrap();
    connection.pragma_update(None, "user_version", schema).unwrap();
    let refused = connection.execute(
        "INSERT INTO record (run, at, kind, body, digest) VALUES ('', '', 'judgement', '{}', '')",
        [],
    );
    assert!(refused.unwrap_err().to_string().contains("CHECK"));
    (folder, path)
}

#[test]
fn a_ledger_of_an_earlier_schema_takes_new_kinds_and_keeps_its_records() {
    for schema in [1, 2] {
        let (_folder, path) = of_schema(schema);
        let before = Ledger::open_read_only(&path).unwrap();
        assert_eq!(before.runs().unwrap().len(), 0, "it can be read as it is");
        assert_eq!(Index::of(&before).unwrap().count().unwrap(), 0);
        drop(before);
        let ledger = Ledger::open(&path).unwrap();
        let run = ledger.start_run(&start()).unwrap();
        let message = Record {
            kind: RecordKind::Message,
            ..notice(&run, json!({}))
        };
        ledger.append(&message).unwrap();
        ledger
            .record_judgement(&start(), &JudgementRecord::default(), None)
            .unwrap();
        drop(ledger);
        let again = Ledger::open(&path).unwrap();
        assert_eq!(again.records(&run).unwrap()[1].record.kind, RecordKind::Message);
        assert_eq!(again.verify().unwrap(), intact(&again, 5));
        assert_eq!(again.verify_imported().unwrap(), []);
    }
}
