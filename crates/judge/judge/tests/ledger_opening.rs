//! Which files open as ledgers, which are refused, and that refused files stay unchanged.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use gauntlet_judge::ledger::{Ledger, LedgerError, Record, RecordKind, RunStart, Verification};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::{Value, json};

fn start() -> RunStart {
    RunStart {
        version: "0.1.0".to_owned(),
        file: "round.toml".to_owned(),
        digest: "d1".to_owned(),
        environment: Value::Null,
    }
}

/// Every file of a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    files
        .map(|file| (file.file_name(), fs::read(file.path()).unwrap()))
        .collect()
}

/// Asserts that both ways of opening refuse `path` with an error that satisfies `expected` and names the file, and that
/// every file stays unchanged (except the log's shared index, which holds no data).
fn refused(path: &Path, expected: fn(&LedgerError) -> bool) -> String {
    let folder = path.parent().unwrap();
    let contents = || {
        let mut contents = contents(folder);
        contents.retain(|name, _| !name.to_string_lossy().ends_with("-shm"));
        contents
    };
    let before = contents();
    let errors = [
        Ledger::open_read_only(path).unwrap_err(),
        Ledger::open(path).unwrap_err(),
    ];
    assert_eq!(before, contents());
    for error in &errors {
        assert!(expected(error), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.to_string().contains("--ledger"), "{error}");
    }
    errors[1].to_string()
}

#[test]
fn a_newer_schema_is_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    Ledger::open(&path).unwrap().start_run(&start()).unwrap();
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 7)
        .unwrap();

    let message = refused(&path, |error| {
        matches!(
            error,
            LedgerError::Newer {
                found: 7,
                known: 3,
                ..
            }
        )
    });
    assert!(
        message.contains("schema 7") && message.contains("schemas up to 3"),
        "{message}"
    );
    assert_eq!(contents(folder.path()).len(), 1);
}

#[test]
fn a_newer_schema_that_is_still_in_the_log_is_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    Ledger::open(&path).unwrap().start_run(&start()).unwrap();
    let newer = Connection::open(&path).unwrap();
    newer
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .unwrap();
    newer.pragma_update(None, "user_version", 7).unwrap();
    drop(newer);
    assert!(
        fs::metadata(folder.path().join("ledger.sqlite-wal"))
            .unwrap()
            .len()
            > 0
    );

    refused(&path, |error| {
        matches!(
            error,
            LedgerError::Newer {
                found: 7,
                known: 3,
                ..
            }
        )
    });
}

#[test]
fn files_that_are_no_ledgers_are_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("short", b"SQLite format 3\0"),
        ("notes.txt", &[b'x'; 5000]),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        refused(&path, |error| matches!(error, LedgerError::NotALedger { .. }));
    }
    let path = folder.path().join("bookmarks.sqlite");
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE bookmark (address TEXT)")
        .unwrap();
    let message = refused(&path, |error| matches!(error, LedgerError::NotALedger { .. }));
    assert!(message.contains("another program"), "{message}");
}

#[test]
fn a_damaged_ledger_is_reported_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    Ledger::open(&path).unwrap().start_run(&start()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..].fill(0xa5);
    fs::write(&path, &bytes).unwrap();

    let error = Ledger::open_read_only(&path)
        .and_then(|ledger| ledger.runs())
        .unwrap_err();
    assert!(matches!(error, LedgerError::Damaged { .. }), "{error}");
    let error = Ledger::open(&path)
        .and_then(|ledger| ledger.start_run(&start()))
        .unwrap_err();
    assert!(matches!(error, LedgerError::Damaged { .. }), "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for path in [
        folder.path().join("file/ledger.sqlite"),
        folder.path().join("file/deeper/ledger.sqlite"),
    ] {
        let error = Ledger::open(&path).unwrap_err();
        assert!(matches!(error, LedgerError::Create { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
    let error = Ledger::open(folder.path()).unwrap_err();
    assert!(matches!(error, LedgerError::Unreadable { .. }), "{error}");
    assert_eq!(contents(folder.path()).len(), 1);
}

/// Passes trivially if permissions are not enforced, as for the superuser.
#[cfg(unix)]
#[test]
fn a_read_only_folder_is_refused_for_writing_and_read_without_a_trace() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let run = Ledger::open(&path).unwrap().start_run(&start()).unwrap();
    let permit = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    permit(0o555);
    let binding = fs::write(folder.path().join("probe"), "").is_err();
    if binding {
        let error = Ledger::open(&path).unwrap_err();
        assert!(matches!(error, LedgerError::ReadOnly { .. }), "{error}");
        let error = Ledger::open(folder.path().join("other.sqlite")).unwrap_err();
        assert!(matches!(error, LedgerError::Create { .. }), "{error}");
    }
    assert_eq!(
        Ledger::open_read_only(&path)
            .unwrap()
            .records(&run)
            .unwrap()
            .len(),
        1
    );
    permit(0o755);
}

#[test]
fn reading_makes_no_files_and_appends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let error = Ledger::open_read_only(&path).unwrap_err();
    assert!(matches!(error, LedgerError::Missing { .. }), "{error}");
    assert!(contents(folder.path()).is_empty());

    let run = Ledger::open(&path).unwrap().start_run(&start()).unwrap();
    let before = contents(folder.path());
    assert_eq!(
        before.len(),
        1,
        "closing leaves the one file, with nothing beside it"
    );
    let reader = Ledger::open_read_only(&path).unwrap();
    assert_eq!(reader.records(&run).unwrap().len(), 1);
    assert!(matches!(
        reader.verify().unwrap(),
        Verification::Intact { records: 1, .. }
    ));
    let error = reader.start_run(&start()).unwrap_err();
    assert!(matches!(error, LedgerError::ReadOnly { .. }), "{error}");
    drop(reader);
    assert_eq!(before, contents(folder.path()));
}

#[test]
fn an_empty_log_left_behind_does_not_keep_a_ledger_from_being_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let run = Ledger::open(&path).unwrap().start_run(&start()).unwrap();
    fs::write(folder.path().join("ledger.sqlite-wal"), "").unwrap();
    let before = contents(folder.path());
    assert_eq!(
        Ledger::open_read_only(&path)
            .unwrap()
            .records(&run)
            .unwrap()
            .len(),
        1
    );
    assert_eq!(before, contents(folder.path()));
}

#[test]
fn a_reader_sees_what_is_appended_meanwhile_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let writer = Ledger::open(&path).unwrap();
    let run = writer.start_run(&start()).unwrap();
    let files = || contents(folder.path()).into_keys().collect::<Vec<_>>();
    let before = files();

    let reader = Ledger::open_read_only(&path).unwrap();
    assert_eq!(reader.records(&run).unwrap().len(), 1);
    let notice = Record {
        run: run.clone(),
        kind: RecordKind::Notice,
        round: None,
        pitch: None,
        gate: None,
        body: json!(1),
    };
    writer.append(&notice).unwrap();
    assert_eq!(reader.records(&run).unwrap().len(), 2);
    let error = reader.append(&notice).unwrap_err();
    assert!(matches!(error, LedgerError::ReadOnly { .. }), "{error}");
    drop(reader);
    assert_eq!(before, files());
    writer.append(&notice).unwrap();
    assert!(matches!(
        writer.verify().unwrap(),
        Verification::Intact { records: 3, .. }
    ));
}

#[test]
fn a_reader_of_a_file_at_rest_sees_what_is_appended_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let run = Ledger::open(&path).unwrap().start_run(&start()).unwrap();
    let reader = Ledger::open_read_only(&path).unwrap();
    assert_eq!(reader.records(&run).unwrap().len(), 1);
    let notice = Record {
        run: run.clone(),
        kind: RecordKind::Notice,
        round: None,
        pitch: None,
        gate: None,
        body: json!("x".repeat(100_000)),
    };
    let writer = Ledger::open(&path).unwrap();
    writer.append(&notice).unwrap();
    assert_eq!(reader.records(&run).unwrap().len(), 2, "through the log");
    writer.append(&notice).unwrap();
    drop(writer);
    assert_eq!(reader.records(&run).unwrap().len(), 3, "from the file");
    assert!(matches!(
        reader.verify().unwrap(),
        Verification::Intact { records: 3, .. }
    ));
}
