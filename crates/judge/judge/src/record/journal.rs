//! One run's part of the ledger: reads the records that exist and appends more.

use serde::Serialize;
use serde_json::Value;

use crate::evidence::Finding;
use crate::record::ledger::{Entry, Ledger, LedgerError, Record, RecordKind, RunId};

/// Writes a run's records as they happen. A journal of a resumed run knows the earlier records and writes none twice.
pub struct Journal<'a> {
    ledger: &'a Ledger,
    run: RunId,
    known: Vec<Entry>,
    /// The records of the run that this one replays.
    replayed: Option<Vec<Entry>>,
}

/// The position of a record in a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordPlace<'p> {
    /// The round.
    pub round: Option<&'p str>,
    /// The pitch.
    pub pitch: Option<&'p str>,
    /// The gate.
    pub gate: Option<&'p str>,
}

impl<'a> Journal<'a> {
    /// Opens the journal of a run that has been started.
    pub fn open(ledger: &'a Ledger, run: RunId) -> Result<Self, LedgerError> {
        let known = ledger.records(&run)?;
        Ok(Self {
            ledger,
            run,
            known,
            replayed: None,
        })
    }

    /// The same for a run that replays another: findings and answers are those of the other run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub fn replaying(self, other: &RunId) -> Result<Self, LedgerError> {
        Ok(Self {
            replayed: Some(self.ledger.records(other)?),
            ..self
        })
    }

    /// Whether it replays another run, so that nothing is measured and nobody is asked.
    pub fn is_replay(&self) -> bool {
        self.replayed.is_some()
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The verdicts of other runs that existed when this run was started, in order: they stay the same however often
    /// the run is resumed.
    pub fn verdicts_before(&self) -> Result<Vec<Entry>, LedgerError> {
        let start = self.replayed.as_ref().unwrap_or(&self.known).first();
        let start = start.map_or(0, |entry| entry.sequence);
        self.ledger.verdicts_before(start)
    }

    /// The earlier finding, if this gate has already examined this candidate.
    pub fn finding(&self, place: RecordPlace) -> Option<Finding> {
        let entry = self.recalled(RecordKind::Finding, place)?;
        serde_json::from_value(entry.record.body.clone()).ok()
    }

    /// The earlier answer to a question, if it was asked.
    pub fn message(&self, place: RecordPlace) -> Option<Value> {
        Some(self.recalled(RecordKind::Message, place)?.record.body.clone())
    }

    /// Writes a record, unless the same place already has one of its kind; a notice, unless the place has an identical
    /// one.
    pub fn write(
        &self,
        kind: RecordKind,
        place: RecordPlace,
        body: &impl Serialize,
    ) -> Result<(), LedgerError> {
        // Every body is a struct of this crate with string keys, which JSON can always hold.
        let body = serde_json::to_value(body).unwrap_or(Value::Null);
        let is_known = match kind {
            // A place may have several notices.
            RecordKind::Notice => self.known.iter().any(|entry| {
                entry.record.kind == kind && is_at(&entry.record, place) && entry.record.body == body
            }),
            _ => self.known(kind, place).is_some(),
        };
        if is_known {
            return Ok(());
        }
        let owned = |name: Option<&str>| name.map(str::to_owned);
        self.ledger.append(&Record {
            run: self.run.clone(),
            kind,
            round: owned(place.round),
            pitch: owned(place.pitch),
            gate: owned(place.gate),
            body,
        })?;
        Ok(())
    }

    /// A record of this run, or of the run that it replays.
    fn recalled(&self, kind: RecordKind, place: RecordPlace) -> Option<&Entry> {
        let is_it = |entry: &&Entry| entry.record.kind == kind && is_at(&entry.record, place);
        let replayed = self.replayed.iter().flatten();
        self.known.iter().chain(replayed).find(is_it)
    }

    fn known(&self, kind: RecordKind, place: RecordPlace) -> Option<&Entry> {
        self.known
            .iter()
            .find(|entry| entry.record.kind == kind && is_at(&entry.record, place))
    }
}

fn is_at(record: &Record, place: RecordPlace) -> bool {
    record.round.as_deref() == place.round
        && record.pitch.as_deref() == place.pitch
        && record.gate.as_deref() == place.gate
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::ledger::RunStart;

    fn start() -> RunStart {
        RunStart {
            version: String::new(),
            file: String::new(),
            digest: String::new(),
            environment: Value::Null,
        }
    }

    #[test]
    fn a_resumed_run_writes_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path().join("ledger.sqlite")).unwrap();
        let run = ledger.start_run(&start()).unwrap();
        let write = || {
            let journal = Journal::open(&ledger, run.clone()).unwrap();
            let place = RecordPlace {
                round: Some("one"),
                ..RecordPlace::default()
            };
            journal.write(RecordKind::Ranking, place, &json!({})).unwrap();
            for notice in ["research is due", "and so is rest"] {
                journal
                    .write(RecordKind::Notice, place, &json!({ "notice": notice }))
                    .unwrap();
            }
        };
        write();
        write();
        assert_eq!(ledger.records(&run).unwrap().len(), 4);
    }

    #[test]
    fn what_falls_after_the_start_of_a_run_is_not_known_to_it_even_when_it_is_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path().join("ledger.sqlite")).unwrap();
        let [earlier, run, other] = [0; 3].map(|_| ledger.start_run(&start()).unwrap());
        let judge = |run: &RunId| {
            let journal = Journal::open(&ledger, run.clone()).unwrap();
            let place = RecordPlace {
                round: Some("one"),
                pitch: Some("stages"),
                ..RecordPlace::default()
            };
            journal.write(RecordKind::Verdict, place, &json!({})).unwrap();
        };
        let late = ledger.start_run(&start()).unwrap();
        [&earlier, &run, &other].into_iter().for_each(judge);
        let known = |run: &RunId| {
            Journal::open(&ledger, run.clone())
                .unwrap()
                .verdicts_before()
                .unwrap()
        };
        assert_eq!((known(&run).len(), known(&late).len()), (0, 0));
        let last = ledger.start_run(&start()).unwrap();
        assert_eq!(known(&last).len(), 3);
        judge(&last);
        assert_eq!(known(&last).len(), 3, "its own are not among them");
    }
}
