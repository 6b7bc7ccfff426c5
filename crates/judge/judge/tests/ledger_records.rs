//! Everything written to a ledger can be read back unchanged: runs, records, findings, exports.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use gauntlet_judge::ledger::{Entry, Ledger, LedgerError, Record, RecordKind, RunId, RunStart, Verification};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept/here/ledger.sqlite");
    (folder, path)
}

fn start(digest: &str) -> RunStart {
    RunStart {
        version: "0.1.0 (abc)".to_owned(),
        file: "rounds/one.toml".to_owned(),
        digest: digest.to_owned(),
        environment: json!({ "device": "cpu", "cores": 2 }),
    }
}

fn record(run: &RunId, kind: RecordKind, body: Value) -> Record {
    Record {
        run: run.clone(),
        kind,
        round: None,
        pitch: None,
        gate: None,
        body,
    }
}

fn finding(run: &RunId, pitch: &str, gate: &str) -> Record {
    Record {
        round: Some("one".to_owned()),
        pitch: Some(pitch.to_owned()),
        gate: Some(gate.to_owned()),
        ..record(run, RecordKind::Finding, json!({ "pass": true }))
    }
}

#[test]
fn a_run_is_kept_over_reopening() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    let run = ledger.start_run(&start("d1")).unwrap();
    let wanted = [
        finding(&run, "tile-size", "feasible"),
        finding(&run, "tile-size", "right"),
        Record {
            pitch: Some("tile-size".to_owned()),
            ..record(&run, RecordKind::Verdict, json!("adopt"))
        },
        record(&run, RecordKind::RunEnded, json!({})),
    ];
    let sequences: Vec<u64> = wanted
        .iter()
        .map(|record| ledger.append(record).unwrap())
        .collect();
    assert_eq!(sequences, [2, 3, 4, 5]);
    drop(ledger);

    let ledger = Ledger::open(&path).unwrap();
    let entries = ledger.records(&run).unwrap();
    assert_eq!(
        entries[0].record,
        record(&run, RecordKind::RunStarted, json!(start("d1")))
    );
    assert_eq!(
        entries[1..].iter().map(|entry| &entry.record).collect::<Vec<_>>(),
        wanted.iter().collect::<Vec<_>>()
    );
    assert_eq!(ledger.record(3).unwrap().as_ref(), Some(&entries[2]));
    assert_eq!(ledger.record(6).unwrap(), None);
    assert_eq!(ledger.record(u64::MAX).unwrap(), None);
    assert_eq!(ledger.findings(&run).unwrap(), entries[1..3]);
    assert_eq!(
        ledger.verify().unwrap(),
        Verification::Intact {
            records: 5,
            head: entries[4].digest.clone()
        }
    );
}

#[test]
fn runs_are_listed_newest_first_with_their_counts() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.runs().unwrap(), []);
    let older = ledger.start_run(&start("d1")).unwrap();
    let newer = ledger.start_run(&start("d2")).unwrap();
    ledger.append(&finding(&older, "a", "feasible")).unwrap();
    ledger.append(&finding(&older, "b", "feasible")).unwrap();
    ledger
        .append(&record(&older, RecordKind::Verdict, json!(1)))
        .unwrap();
    let end = ledger
        .append(&record(&older, RecordKind::RunEnded, json!(1)))
        .unwrap();

    let runs = ledger.runs().unwrap();
    assert_eq!(
        runs.iter().map(|run| &run.id).collect::<Vec<_>>(),
        [&newer, &older]
    );
    assert_eq!(
        (runs[0].records, runs[0].findings, runs[0].verdicts, runs[0].ended),
        (1, 0, 0, None)
    );
    assert_eq!((runs[1].records, runs[1].findings, runs[1].verdicts), (5, 2, 1));
    assert_eq!(runs[1].ended, Some(ledger.record(end).unwrap().unwrap().at));
    assert_eq!(runs[1].start, start("d1"));
}

#[test]
fn the_run_to_resume_is_the_newest_unfinished_one_of_the_same_digest() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.last_unfinished_run("d1").unwrap(), None);
    let first = ledger.start_run(&start("d1")).unwrap();
    let second = ledger.start_run(&start("d1")).unwrap();
    ledger.start_run(&start("d2")).unwrap();
    assert_eq!(ledger.last_unfinished_run("d1").unwrap(), Some(second.clone()));
    ledger
        .append(&record(&second, RecordKind::RunEnded, json!({})))
        .unwrap();
    assert_eq!(ledger.last_unfinished_run("d1").unwrap(), Some(first));
    assert_eq!(ledger.last_unfinished_run("d3").unwrap(), None);
}

#[test]
fn a_run_starts_once_and_takes_nothing_after_its_end() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    let run = ledger.start_run(&start("d1")).unwrap();

    let error = ledger
        .append(&record(&run, RecordKind::RunStarted, json!({})))
        .unwrap_err();
    assert!(matches!(error, LedgerError::Started { .. }), "{error}");
    ledger
        .append(&record(&run, RecordKind::RunEnded, json!({})))
        .unwrap();
    for kind in [RecordKind::Finding, RecordKind::RunEnded] {
        let error = ledger.append(&record(&run, kind, json!({}))).unwrap_err();
        assert!(matches!(error, LedgerError::Ended { .. }), "{error}");
    }
    let stranger = RunId::new("20260314-150926-a1b2c3");
    for error in [
        ledger
            .append(&record(&stranger, RecordKind::Finding, json!({})))
            .unwrap_err(),
        ledger.records(&stranger).unwrap_err(),
        ledger.findings(&stranger).unwrap_err(),
        ledger.export(Vec::new(), Some(&stranger)).unwrap_err(),
    ] {
        assert!(matches!(error, LedgerError::UnknownRun { .. }), "{error}");
        assert!(error.to_string().contains("20260314-150926-a1b2c3"), "{error}");
    }
    assert_eq!(ledger.records(&run).unwrap().len(), 2);
}

#[test]
fn an_export_holds_every_record_of_a_run_or_of_all() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    let first = ledger.start_run(&start("d1")).unwrap();
    let second = ledger.start_run(&start("d2")).unwrap();
    ledger
        .append(&finding(&first, "line\nbreak \"quoted\" µ", "feasible"))
        .unwrap();

    let all = exported(&ledger, None);
    assert_eq!(
        all.iter().map(|entry| entry.sequence).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(exported(&ledger, Some(&first)), ledger.records(&first).unwrap());
    assert_eq!(exported(&ledger, Some(&second)), [all[1].clone()]);
}

#[test]
fn an_export_that_cannot_be_written_fails() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    ledger.start_run(&start("d1")).unwrap();
    let error = ledger.export(Closed, None).unwrap_err();
    assert!(
        matches!(&error, LedgerError::Export { source } if source.kind() == std::io::ErrorKind::BrokenPipe),
        "{error}"
    );
}

fn exported(ledger: &Ledger, run: Option<&RunId>) -> Vec<Entry> {
    let mut text = Vec::new();
    ledger.export(&mut text, run).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn any_body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

fn any_record(run: RunId) -> impl Strategy<Value = Record> {
    let kind = prop::sample::select(vec![RecordKind::Finding, RecordKind::Notice, RecordKind::Verdict]);
    (kind, any::<[Option<String>; 3]>(), any_body()).prop_map(move |(kind, [round, pitch, gate], body)| {
        Record {
            run: run.clone(),
            kind,
            round,
            pitch,
            gate,
            body,
        }
    })
}

/// Every number survives the file and an export bit for bit. All cases are runs of one ledger, since making a ledger waits
/// for the disk many times.
#[test]
fn any_record_comes_back_as_it_was() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    let records = prop::collection::vec(any_record(RunId::new("to be started")), 1..8);
    proptest!(ProptestConfig::with_cases(24), |(records in records)| {
        let run = ledger.start_run(&start("d1")).unwrap();
        let records: Vec<Record> =
            records.into_iter().map(|record| Record { run: run.clone(), ..record }).collect();
        for record in &records {
            ledger.append(record).unwrap();
        }
        let entries = ledger.records(&run).unwrap();
        let stored: Vec<&Record> = entries[1..].iter().map(|entry| &entry.record).collect();
        prop_assert_eq!(stored, records.iter().collect::<Vec<_>>());
        prop_assert_eq!(exported(&ledger, Some(&run)), entries);
        let intact = matches!(ledger.verify().unwrap(), Verification::Intact { .. });
        prop_assert!(intact);
    });
}
