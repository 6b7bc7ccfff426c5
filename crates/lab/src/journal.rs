//! One run's page of the ledger: what is already written there, and how more is added.

use serde::Serialize;
use serde_json::Value;

use crate::error::LabError;
use crate::finding::Finding;
use crate::ledger::{Entry, Ledger, Record, RecordKind, RunId};

/// Writes a run's records as they happen. Resumed, it knows those of before and writes none twice.
pub struct Journal<'a> {
    ledger: &'a Ledger,
    run: RunId,
    known: Vec<Entry>,
}

/// Where in a run a record belongs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place<'p> {
    /// The round.
    pub round: Option<&'p str>,
    /// The pitch.
    pub pitch: Option<&'p str>,
    /// The gate.
    pub gate: Option<&'p str>,
}

impl<'a> Journal<'a> {
    /// Opens the page of a run that has been started.
    pub fn open(ledger: &'a Ledger, run: RunId) -> Result<Self, LabError> {
        let known = ledger.records(&run)?;
        Ok(Self { ledger, run, known })
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// A finding of before, if this gate had already examined this candidate.
    pub fn finding(&self, place: Place) -> Option<Finding> {
        let entry = self.known(RecordKind::Finding, place)?;
        serde_json::from_value(entry.record.body.clone()).ok()
    }

    /// Writes a record, unless the same place already has one of its kind.
    pub fn write(&self, kind: RecordKind, place: Place, body: &impl Serialize) -> Result<(), LabError> {
        if kind != RecordKind::Notice && self.known(kind, place).is_some() {
            return Ok(());
        }
        let owned = |name: Option<&str>| name.map(str::to_owned);
        self.ledger.append(&Record {
            run: self.run.clone(),
            kind,
            round: owned(place.round),
            pitch: owned(place.pitch),
            gate: owned(place.gate),
            // Every body is a struct of this crate with string keys, which JSON can always hold.
            body: serde_json::to_value(body).unwrap_or(Value::Null),
        })?;
        Ok(())
    }

    fn known(&self, kind: RecordKind, place: Place) -> Option<&Entry> {
        self.known.iter().find(|entry| {
            let record = &entry.record;
            record.kind == kind
                && record.round.as_deref() == place.round
                && record.pitch.as_deref() == place.pitch
                && record.gate.as_deref() == place.gate
        })
    }
}
