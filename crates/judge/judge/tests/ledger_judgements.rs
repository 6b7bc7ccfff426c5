//! What commands that judge leave in the ledger, ledgers of other machines, and the index beside the ledger.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use gauntlet_judge::ledger::{
    Index, Judged, JudgedKernel, JudgementRecord, Ledger, LedgerError, Record, RecordKind, RunId, RunStart,
    Verification, Wanted,
};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    (folder, path)
}

fn start(file: &str) -> RunStart {
    RunStart {
        version: "0.1.0".to_owned(),
        file: file.to_owned(),
        digest: "d1".to_owned(),
        environment: Value::Null,
    }
}

fn judgement(task: &str, kernel: &str, verdict: &str) -> JudgementRecord {
    let kernel = JudgedKernel {
        text: kernel.to_owned(),
        digest: blake3::hash(kernel.as_bytes()).to_hex().to_string(),
        commit: None,
    };
    JudgementRecord {
        command: vec!["compare".to_owned()],
        client: Some(format!("{task}'s")),
        task: task.to_owned(),
        kernels: vec![kernel],
        verdict: Some(verdict.to_owned()),
        reason: "measured".to_owned(),
        document: json!({ "schema": "gauntlet/comparison/2", "times": vec![0.5; 100] }),
        ..JudgementRecord::default()
    }
}

fn record(ledger: &Ledger, task: &str, kernel: &str) -> RunId {
    ledger
        .record_judgement(&start("compare"), &judgement(task, kernel, "adopt"), None)
        .unwrap()
}

fn kernels(judged: &[Judged]) -> Vec<&str> {
    judged.iter().map(|one| one.kernel.as_deref().unwrap()).collect()
}

fn found(ledger: &Ledger, wanted: &Wanted) -> Vec<Judged> {
    Index::of(ledger).unwrap().verdicts(wanted).unwrap()
}

fn all(ledger: &Ledger) -> Vec<Judged> {
    found(ledger, &Wanted::default())
}

fn intact(verification: &Verification) -> bool {
    matches!(verification, Verification::Intact { .. })
}

fn index_file(ledger: &Path) -> PathBuf {
    ledger.with_file_name("ledger.sqlite.index")
}

#[test]
fn a_judgement_is_a_run_that_ends_unless_it_was_interrupted_and_then_goes_on() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    let cut = JudgementRecord {
        interrupted: true,
        ..judgement("softmax", "fast", "inconclusive")
    };
    let run = ledger.record_judgement(&start("compare"), &cut, None).unwrap();
    assert_eq!(ledger.run(&run).unwrap().ended, None);
    assert_eq!(ledger.last_unfinished_run("d1").unwrap(), Some(run.clone()));
    assert_eq!(ledger.judgement(&run).unwrap(), Some(cut));
    assert!(all(&ledger)[0].interrupted);

    let whole = judgement("softmax", "fast", "adopt");
    let again = ledger
        .record_judgement(&start("compare"), &whole, Some(&run))
        .unwrap();
    assert_eq!(again, run);
    assert!(ledger.run(&run).unwrap().ended.is_some());
    assert_eq!(ledger.judgement(&run).unwrap(), Some(whole.clone()));
    assert_eq!(ledger.records(&run).unwrap().len(), 4, "nothing is replaced");
    assert_eq!(all(&ledger).len(), 1, "the last word counts");
    let refused = ledger
        .record_judgement(&start("compare"), &whole, Some(&run))
        .unwrap_err();
    assert!(matches!(refused, LedgerError::Ended { .. }), "{refused}");
    assert_eq!(ledger.newest_tournament().unwrap(), None);
    assert!(intact(&ledger.verify().unwrap()));
}

#[test]
fn verdicts_are_found_by_task_kernel_and_client_the_newest_first() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    let runs: Vec<RunId> = [("softmax", "slow"), ("norm", "fast"), ("softmax", "fast")]
        .map(|(task, kernel)| record(&ledger, task, kernel))
        .into();
    let round = ledger.start_run(&start("round.toml")).unwrap();
    for (kind, body) in [
        (
            RecordKind::RoundStarted,
            json!({ "file": { "suite": "softmax" } }),
        ),
        (
            RecordKind::Verdict,
            json!({ "verdict": "regression", "reason": "slower", "predicted": true }),
        ),
    ] {
        let pitch = (kind == RecordKind::Verdict).then(|| "stages".to_owned());
        let (run, round) = (round.clone(), Some("one".to_owned()));
        ledger
            .append(&Record {
                run,
                kind,
                round,
                pitch,
                gate: None,
                body,
            })
            .unwrap();
    }
    let of_task = |task: &str| Wanted {
        task: Some(task.to_owned()),
        ..Wanted::default()
    };
    assert_eq!(kernels(&all(&ledger)), ["stages", "fast", "fast", "slow"]);
    let softmax = found(&ledger, &of_task("softmax"));
    assert_eq!(kernels(&softmax), ["stages", "fast", "slow"]);
    assert_eq!(softmax[0].verdict.as_deref(), Some("regression"));
    assert!(softmax[0].predicted && softmax[0].command == "run");
    let newest = Wanted {
        newest: Some(1),
        client: Some("softmax's".to_owned()),
        ..Wanted::default()
    };
    assert_eq!(found(&ledger, &newest)[0].run, runs[2]);
    let fast = blake3::hash(b"fast").to_hex();
    for beginning in [&fast[..8], &fast[..]] {
        let wanted = Wanted {
            kernel: Some(beginning.to_owned()),
            ..Wanted::default()
        };
        assert_eq!(found(&ledger, &wanted).len(), 2);
    }
    let index = Index::of(&ledger).unwrap();
    assert_eq!(index.of_run(&runs[1]).unwrap()[0].task.as_deref(), Some("norm"));
    assert_eq!(index.count().unwrap(), 4);
}

#[test]
fn an_index_that_is_deleted_damaged_behind_or_of_another_ledger_is_not_believed() {
    let (_folder, path) = place();
    let ledger = Ledger::open(&path).unwrap();
    record(&ledger, "softmax", "one");
    let before = all(&ledger);
    let file = index_file(&path);
    let kept = fs::read(&file).unwrap();

    fs::remove_file(&file).unwrap();
    assert_eq!(all(&ledger), before);
    assert!(file.exists(), "it is made again");

    // Each byte in turn: of the head, of a row, of the digest.
    let at = kept.windows(8).position(|bytes| bytes == b"measured").unwrap();
    for place in [0, 30, at, kept.len() - 1] {
        let mut damaged = kept.clone();
        damaged[place] ^= 1;
        fs::write(&file, &damaged).unwrap();
        assert_eq!(all(&ledger), before, "byte {place}");
        assert_eq!(fs::read(&file).unwrap().len(), kept.len());
    }
    for cut in [0, 10, kept.len() / 2] {
        fs::write(&file, &kept[..cut]).unwrap();
        assert_eq!(all(&ledger), before);
    }

    record(&ledger, "softmax", "two");
    fs::write(&file, &kept).unwrap();
    assert_eq!(kernels(&all(&ledger)), ["two", "one"], "it reads on");

    let (_elsewhere, other_path) = place();
    let other = Ledger::open(&other_path).unwrap();
    record(&other, "norm", "three");
    record(&other, "norm", "four");
    fs::write(index_file(&other_path), fs::read(&file).unwrap()).unwrap();
    assert_eq!(kernels(&all(&other)), ["four", "three"]);
}

#[test]
fn a_read_only_ledger_is_indexed_without_a_file() {
    let (folder, path) = place();
    record(&Ledger::open(&path).unwrap(), "softmax", "one");
    // A folder in the index's place: it can be neither read nor replaced.
    fs::create_dir(index_file(&path)).unwrap();
    let ledger = Ledger::open_read_only(&path).unwrap();
    assert_eq!(kernels(&all(&ledger)), ["one"]);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no draft is left"
    );
}

#[test]
fn ledgers_of_other_machines_are_imported_once_with_their_chains() {
    let ((_here, path), (_there, other_path), (_beyond, third_path)) = (place(), place(), place());
    let [ledger, other, third] = [&path, &other_path, &third_path].map(|path| Ledger::open(path).unwrap());
    record(&ledger, "softmax", "own");
    let theirs = record(&other, "softmax", "theirs");
    record(&third, "softmax", "third's");
    other.import(&third).unwrap();
    // Enough for several parts.
    let long = other.start_run(&start("round.toml")).unwrap();
    for number in 0..600 {
        let (run, kind, body) = (
            long.clone(),
            RecordKind::Notice,
            json!({ "number": number, "x": 1e300 }),
        );
        other
            .append(&Record {
                run,
                kind,
                round: None,
                pitch: None,
                gate: None,
                body,
            })
            .unwrap();
    }

    let imported = ledger
        .import(&Ledger::open_read_only(&other_path).unwrap())
        .unwrap();
    assert_eq!(imported.len(), 2, "the other's own, and what it had imported");
    assert_eq!(ledger.import(&other).unwrap(), []);
    assert_eq!(ledger.import(&third).unwrap(), []);
    assert_eq!(ledger.import(&ledger).unwrap(), []);
    assert!(intact(&ledger.verify().unwrap()));
    let verified = ledger.verify_imported().unwrap();
    assert!(
        verified.len() == 2 && verified.iter().all(|(_, one)| intact(one)),
        "{verified:?}"
    );

    let mut known = kernels(&all(&ledger))
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    known.sort();
    assert_eq!(known, ["own", "theirs", "third's"]);
    let records = ledger.records(&theirs).unwrap();
    let origin = records[0].origin.clone();
    assert!(origin.is_some());
    let as_there: Vec<_> = records
        .iter()
        .map(|entry| (entry.sequence, &entry.digest, &entry.record))
        .collect();
    let there = other.records(&theirs).unwrap();
    assert_eq!(
        as_there,
        there
            .iter()
            .map(|entry| (entry.sequence, &entry.digest, &entry.record))
            .collect::<Vec<_>>()
    );
    assert_eq!(ledger.run(&theirs).unwrap().origin, origin);
    assert_eq!(ledger.records(&long).unwrap().len(), 601);

    // It grows there, and the rest comes.
    record(&other, "softmax", "later");
    let more = ledger.import(&other).unwrap();
    assert_eq!((more.len(), more[0].to - more[0].from), (1, 2));
    assert_eq!(kernels(&all(&ledger))[0], "later");
    assert!(
        ledger
            .verify_imported()
            .unwrap()
            .iter()
            .all(|(_, one)| intact(one))
    );
}

#[test]
fn a_ledger_that_was_changed_or_went_on_as_a_copy_is_not_imported() {
    let ((_here, path), (_there, other_path)) = (place(), place());
    let ledger = Ledger::open(&path).unwrap();
    record(&ledger, "softmax", "own");
    let copy = path.with_file_name("copy.sqlite");
    drop(ledger);
    fs::copy(&path, &copy).unwrap();
    let (ledger, copy) = (Ledger::open(&path).unwrap(), Ledger::open(&copy).unwrap());
    assert_eq!(ledger.import(&copy).unwrap(), []);
    record(&copy, "softmax", "the copy's");
    let forked = ledger.import(&copy).unwrap_err();
    assert!(
        matches!(forked, LedgerError::Forked { sequence: 4, .. }),
        "{forked}"
    );
    record(&ledger, "softmax", "own again");
    assert!(matches!(
        ledger.import(&copy).unwrap_err(),
        LedgerError::Forked { .. }
    ));

    let other = Ledger::open(&other_path).unwrap();
    record(&other, "softmax", "theirs");
    drop(other);
    let tamper = |path: &Path, table: &str| {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(&format!(
                "DROP TRIGGER {table}_update; UPDATE {table} SET body = replace(body, 'adopt', 'blocked') WHERE kind = 'judgement'"
            ))
            .unwrap();
    };
    ledger.import(&Ledger::open(&other_path).unwrap()).unwrap();
    tamper(&other_path, "record");
    let other = Ledger::open_read_only(&other_path).unwrap();
    let damaged = ledger.import(&other).unwrap_err();
    assert!(matches!(damaged, LedgerError::Damaged { .. }), "{damaged}");
    drop(ledger);

    tamper(&path, "imported_record");
    let ledger = Ledger::open_read_only(&path).unwrap();
    assert!(intact(&ledger.verify().unwrap()));
    let [(_, verification)] = &ledger.verify_imported().unwrap()[..] else {
        panic!("one ledger was imported")
    };
    assert!(
        matches!(verification, Verification::Broken { sequence: 2, .. }),
        "{verification:?}"
    );
}

/// Leaves the ledger in the place that GAUNTLET_TEST_LEDGER names, where its lists can be timed.
#[test]
#[ignore = "long: ten thousand verdicts, each durable before the next"]
fn ten_thousand_verdicts_are_listed_from_a_few_of_their_records() {
    let (_folder, usual) = place();
    let path = std::env::var_os("GAUNTLET_TEST_LEDGER").map_or(usual, PathBuf::from);
    let ledger = Ledger::open(&path).unwrap();
    for number in 0..10_000 {
        let one = JudgementRecord {
            document: json!({ "schema": "gauntlet/comparison/2", "times": vec![0.000_123_456; 1300] }),
            ..judgement(
                &format!("task {}", number % 100),
                &format!("kernel {number}"),
                "marginal",
            )
        };
        ledger.record_judgement(&start("compare"), &one, None).unwrap();
    }
    drop(ledger);
    let ledger = Ledger::open_read_only(&path).unwrap();
    assert_eq!(ledger.newest_runs(50).unwrap().len(), 50);
    let of_one = Wanted {
        task: Some("task 7".to_owned()),
        ..Wanted::default()
    };
    assert_eq!(found(&ledger, &of_one).len(), 100);
}
