-- What schema 3 adds: records of other ledgers, each chain apart and as it was written there. A record of the kind
-- `imported` in the own chain says up to where.

CREATE TABLE imported_run (
    origin      TEXT NOT NULL,
    id          TEXT NOT NULL PRIMARY KEY,
    started_at  TEXT NOT NULL,
    version     TEXT NOT NULL,
    file        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (json_valid(environment))
) STRICT;

-- `origin` is the digest of the first record of the other ledger, `link` the number of the record of the own chain that
-- brought this one.
CREATE TABLE imported_record (
    origin   TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    link     INTEGER NOT NULL REFERENCES record (sequence),
    run      TEXT NOT NULL REFERENCES imported_run (id),
    at       TEXT NOT NULL,
    kind     TEXT NOT NULL,
    round    TEXT,
    pitch    TEXT,
    gate     TEXT,
    body     TEXT NOT NULL CHECK (json_valid(body)),
    digest   TEXT NOT NULL,
    PRIMARY KEY (origin, sequence)
) STRICT;

CREATE INDEX imported_record_run ON imported_record (run, kind);
CREATE INDEX imported_record_link ON imported_record (link);
CREATE INDEX record_kind ON record (kind);

CREATE TRIGGER imported_run_update BEFORE UPDATE ON imported_run BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a run may not be changed');
END;
CREATE TRIGGER imported_run_delete BEFORE DELETE ON imported_run BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a run may not be deleted');
END;
CREATE TRIGGER imported_record_update BEFORE UPDATE ON imported_record BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a record may not be changed');
END;
CREATE TRIGGER imported_record_delete BEFORE DELETE ON imported_record BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a record may not be deleted');
END;
CREATE TRIGGER imported_run_replace BEFORE INSERT ON imported_run
WHEN EXISTS (SELECT 1 FROM imported_run WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a run may not be replaced');
END;
CREATE TRIGGER imported_record_replace BEFORE INSERT ON imported_record
WHEN EXISTS (SELECT 1 FROM imported_record WHERE origin = NEW.origin AND sequence = NEW.sequence) BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only: a record may not be replaced');
END;
