-- Schema 3 of the ledger, with `imports.sql`. Rows are added and never changed: triggers refuse everything else, so that neither a bug in
-- this program nor a mistake at the sqlite3 shell rewrites a finding.

CREATE TABLE run (
    id          TEXT NOT NULL PRIMARY KEY,
    started_at  TEXT NOT NULL,
    version     TEXT NOT NULL,
    file        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (json_valid(environment))
) STRICT;

-- AUTOINCREMENT keeps the highest number ever given in sqlite_sequence, which reveals records cut off at the end.
CREATE TABLE record (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    run      TEXT NOT NULL REFERENCES run (id),
    at       TEXT NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN (
        'run-started', 'round-started', 'ranking', 'finding', 'verdict', 'round-ended', 'run-ended', 'notice', 'message',
        'judgement', 'imported'
    )),
    round    TEXT,
    pitch    TEXT,
    gate     TEXT,
    body     TEXT NOT NULL CHECK (json_valid(body)),
    digest   TEXT NOT NULL
) STRICT;

CREATE INDEX run_digest ON run (digest);
CREATE INDEX record_run ON record (run, kind);

CREATE TRIGGER run_update BEFORE UPDATE ON run BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a run may not be changed');
END;
CREATE TRIGGER run_delete BEFORE DELETE ON run BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a run may not be deleted');
END;
CREATE TRIGGER record_update BEFORE UPDATE ON record BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a record may not be changed');
END;
CREATE TRIGGER record_delete BEFORE DELETE ON record BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a record may not be deleted');
END;

-- INSERT OR REPLACE deletes the old row without firing the triggers on DELETE.
CREATE TRIGGER run_replace BEFORE INSERT ON run
WHEN EXISTS (SELECT 1 FROM run WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a run may not be replaced');
END;
CREATE TRIGGER record_replace BEFORE INSERT ON record
WHEN EXISTS (SELECT 1 FROM record WHERE sequence = NEW.sequence) BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a record may not be replaced');
END;
