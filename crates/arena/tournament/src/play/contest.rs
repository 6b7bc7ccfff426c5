//! Rounds in which contestants and panellists act: who is asked what, when, and what becomes of the answers.
//!
//! Every answer is a record before anything follows from it. A resumed run reads the answers that it has and asks on from
//! there; a replayed one reads them all. So an answer counts as it is recorded: a change made in a workspace as a patch.

mod bench;
mod building;
mod lessons;
mod panel;
mod pitching;
mod situation;

use std::cell::RefCell;
use std::collections::BTreeMap;

use gauntlet_contestants::{Contestant, Tools, Whose};
use gauntlet_judge::ledger::RecordKind;
use gauntlet_judge::{ExecutorKind, RecordPlace};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub use self::situation::Situation;
use super::Player;
use crate::error::TournamentError;
use crate::messages::{Message, PROTOCOL, Phase};
use crate::round::{Participant, digest_of};

/// The participants of a tournament, with what they have used of their budgets.
#[derive(Debug, Default)]
pub struct Floor(RefCell<BTreeMap<String, Contestant>>);

/// A question to a participant.
pub struct Inquiry<'q> {
    /// Who is asked.
    pub who: &'q Participant,
    /// What.
    pub phase: Phase,
    /// The pitch that it is about, and that distinguishes it from others of its phase.
    pub pitch: Option<&'q str>,
    /// What the phase needs beside the situation.
    pub more: Value,
}

impl Player<'_> {
    /// Asks, or reads the recorded answer. None if there was no answer, which is recorded with the reason and announced.
    ///
    /// `accepts` makes of an answer what counts and is recorded, or refuses it.
    fn asked<Answer: DeserializeOwned>(
        &self,
        inquiry: &Inquiry,
        situation: &Situation,
        tools: Option<&mut dyn Tools>,
        accepts: &dyn Fn(Answer) -> Result<Value, String>,
    ) -> Result<Option<Value>, TournamentError> {
        let label = match inquiry.pitch {
            Some(pitch) => format!("{} {pitch}", inquiry.phase),
            None => inquiry.phase.to_string(),
        };
        let place = RecordPlace {
            pitch: Some(&inquiry.who.name),
            gate: Some(&label),
            ..self.place()
        };
        let message = match self.journal.message(place) {
            Some(known) => self.remembered(inquiry, known)?,
            None if self.journal.is_replay() => {
                return Err(TournamentError::NotRecorded {
                    what: format!("what {} answered ({label})", inquiry.who.name),
                    round: self.round.file().name.clone(),
                });
            }
            None => {
                self.observer.asks(&inquiry.who.name, &label);
                self.answered(inquiry, situation, tools, accepts)?
            }
        };
        self.journal.write(RecordKind::Message, place, &message)?;
        self.observer.answered(&message);
        let answer = message.answer.clone();
        self.messages.borrow_mut().push(message);
        Ok(answer)
    }

    /// A recorded answer: what it cost is spent.
    fn remembered(&self, inquiry: &Inquiry, known: Value) -> Result<Message, TournamentError> {
        let message: Message =
            serde_json::from_value(known).map_err(|error| TournamentError::NotRecorded {
                what: format!("a readable answer of {} ({error})", inquiry.who.name),
                round: self.round.file().name.clone(),
            })?;
        self.with(inquiry.who, |contestant| contestant.spend(&message.used));
        Ok(message)
    }

    fn answered<Answer: DeserializeOwned>(
        &self,
        inquiry: &Inquiry,
        situation: &Situation,
        tools: Option<&mut dyn Tools>,
        accepts: &dyn Fn(Answer) -> Result<Value, String>,
    ) -> Result<Message, TournamentError> {
        let mut question = Map::from_iter([
            ("protocol".to_owned(), json!(PROTOCOL)),
            ("phase".to_owned(), json!(inquiry.phase)),
            ("you".to_owned(), json!(inquiry.who.name)),
            ("tournament".to_owned(), json!(self.tournament.name)),
            ("round".to_owned(), json!(self.round.file().name)),
            ("situation".to_owned(), situation.value(self)?),
        ]);
        if let Value::Object(more) = &inquiry.more {
            question.extend(more.clone());
        }
        let question = Value::Object(question);
        let counts = RefCell::new(Value::Null);
        let refused = RefCell::new(Vec::new());
        let accepts = |answer: &Value| {
            let read = Answer::deserialize(answer).map_err(|error| error.to_string());
            match read.and_then(accepts) {
                Ok(accepted) => {
                    counts.replace(accepted);
                    Ok(())
                }
                Err(why) => {
                    refused.borrow_mut().push(why.clone());
                    Err(why)
                }
            }
        };
        let form = inquiry.phase.form();
        let (before, asked, after) = self.with(inquiry.who, |contestant| {
            let before = contestant.used().clone();
            let asked = contestant.ask(&question, &form, tools, &accepts);
            (before, asked, contestant.used().clone())
        });
        let answer = asked.is_ok().then(|| counts.into_inner());
        let text = answer.as_ref().map(Value::to_string).unwrap_or_default();
        Ok(Message {
            who: inquiry.who.name.clone(),
            phase: inquiry.phase,
            pitch: inquiry.pitch.map(str::to_owned),
            question: digest_of(&[question.to_string()]),
            digest: digest_of(&[text]),
            answer,
            refused: refused.into_inner(),
            blameless: asked
                .as_ref()
                .is_err_and(|fault| fault.whose() == Whose::Environment),
            fault: asked.err().map(|fault| fault.to_string()),
            used: after.since(&before),
        })
    }

    /// Does something with a participant, who is the same over all rounds of a tournament.
    fn with<T>(&self, who: &Participant, act: impl FnOnce(&mut Contestant) -> T) -> T {
        let mut floor = self.floor.0.borrow_mut();
        let contestant = floor
            .entry(who.name.clone())
            .or_insert_with(|| Contestant::new(who.name.clone(), who.engine.clone(), &who.folder));
        act(contestant)
    }

    /// Whether anybody takes part who acts. Where nothing is measured nobody is asked: answers cost time and money.
    pub(super) fn is_live(&self) -> bool {
        let settles = matches!(self.round.file().executor, ExecutorKind::Cpu | ExecutorKind::Cuda);
        self.settings.measure
            && settles
            && (!self.round.contestants.is_empty() || self.voters().next().is_some())
    }

    /// The panellists who are asked.
    fn voters(&self) -> impl Iterator<Item = &Participant> {
        self.round.panellists.iter().filter(|one| one.acts())
    }
}

/// An answer that was accepted before it was recorded.
fn accepted<T: DeserializeOwned>(answer: Value) -> Result<T, TournamentError> {
    serde_json::from_value(answer).map_err(|error| TournamentError::NotRecorded {
        what: format!("an answer of the form that this version reads ({error})"),
        round: String::new(),
    })
}
