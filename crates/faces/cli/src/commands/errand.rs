//! `gauntlet errand`, and rounds whose candidates are examined by a farm.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;

use gauntlet_farm::Farm;
use gauntlet_judge::Finding;
use gauntlet_judge::ledger::RunId;
use gauntlet_queue::{ERRAND, Judgement, JudgementKind, Queue, QueueError, State, Status, Submission};
use gauntlet_tournament::{Done, Elsewhere, Errand, RoundObserver, Settings, Tournament, TournamentError};
use serde::{Deserialize, Serialize};

use crate::arguments::{ErrandArguments, Run};
use crate::commands::mcp::enter;
use crate::commands::queue::folder;
use crate::commands::run::{holds, settings, this_program};
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::sink;

/// What an errand found.
#[derive(Serialize, Deserialize)]
struct Found {
    findings: Vec<Finding>,
}

/// Takes one candidate of a round through the gates.
pub fn errand(arguments: &ErrandArguments) -> Result<Exit, CliError> {
    let json = std::path::absolute(&arguments.json).unwrap_or_else(|_| arguments.json.clone());
    let errand = read(&arguments.file)?;
    // Names of devices and tasks may be relative to it.
    enter(&errand.folder)?;
    let mut tournament = Tournament::load(&errand.tournament, &errand.overrides)?;
    let is_known = errand.round_of(&tournament).is_some();
    tournament
        .rounds
        .retain(|round| round.file().name == errand.round);
    let Some(round) = tournament.rounds.first().filter(|_| is_known) else {
        return Err(CliError::bad_input(
            format!(
                "{} says something else of the round {} than when the run began",
                errand.tournament.display(),
                errand.round
            ),
            "leave the files of a run as they are until it has ended, where all nodes see the same ones",
        ));
    };
    let settings = Settings {
        measure: true,
        ..settings(&tournament, true)?
    };
    let _holds = holds(&tournament)?;
    let findings = errand.run(round, &settings, &Progress::new())?;
    sink::write_json(&json, &Found { findings })?;
    Ok(Exit::Done)
}

fn read(file: &Path) -> Result<Errand, CliError> {
    let wrong = |why: String| {
        CliError::bad_input(
            format!("{}: {why}", file.display()),
            "only `gauntlet run --farm` writes errands",
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

/// A farm that examines the candidates of a run, each by a ticket of the queue beside the ledger.
pub struct OnFarm {
    queue: Arc<Queue>,
    farm: RefCell<Farm>,
    /// In whose name tickets are queued.
    client: String,
    builds: PathBuf,
}

impl OnFarm {
    /// The farm of a run.
    ///
    /// # Errors
    /// If the queue or the scheduler cannot be used.
    pub fn new(arguments: &Run, run: &RunId) -> Result<Self, CliError> {
        let ledger = &arguments.ledger.path;
        let place = folder(None, ledger);
        let queue = Arc::new(Queue::open(&place)?);
        let workplace = arguments.farm.workplace();
        let farm = workplace.farm(queue.clone(), this_program()?, ledger.clone())?;
        Ok(Self {
            queue,
            farm: RefCell::new(farm),
            client: format!("run {run}"),
            builds: place.join("built"),
        })
    }

    /// The ticket of an errand: that of before, if the run goes on. None if too many wait already.
    fn ticket(&self, errand: &Errand) -> Result<Option<String>, QueueError> {
        let key = format!("{} of {}", errand.candidate.name, errand.round);
        if let Some(known) = self.queue.by_key(&self.client, &key)? {
            return Ok(Some(known));
        }
        let judgement = Judgement::new(JudgementKind::Errand, &errand.round, &[&errand.candidate.name]);
        let contents = serde_json::to_vec(errand).unwrap_or_default();
        let submitted = self.queue.submit(&Submission {
            key: Some(key),
            files: BTreeMap::from([(ERRAND.to_owned(), contents)]),
            ..Submission::new(&self.client, judgement)
        });
        match submitted {
            Ok(ticket) => Ok(Some(ticket.id)),
            Err(QueueError::Full { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn step(
        &self,
        waiting: &mut [(Option<String>, bool)],
        errands: &[Errand],
        observer: &dyn RoundObserver,
        done: &mut Done<'_>,
    ) -> Result<(), TournamentError> {
        let cannot = |error: QueueError| TournamentError::Elsewhere(error.to_string());
        for ((ticket, _), errand) in waiting.iter_mut().zip(errands) {
            if ticket.is_none() {
                *ticket = self.ticket(errand).map_err(cannot)?;
            }
        }
        for event in self.farm.borrow_mut().step().map_err(cannot)? {
            observer.notice(&event.to_string());
        }
        for (index, (ticket, is_over)) in waiting.iter_mut().enumerate() {
            let Some(ticket) = ticket.as_ref().filter(|_| !*is_over) else {
                continue;
            };
            let status = self.queue.status(ticket).map_err(cannot)?;
            if status.state.is_final() {
                *is_over = true;
                done(index, found(status))?;
            }
        }
        Ok(())
    }
}

/// What a ticket that is over found, or why it found nothing.
fn found(status: Status) -> Result<Vec<Finding>, String> {
    let ticket = &status.id;
    let document = status.result.and_then(|result| result.result);
    let found: Option<Found> = document.and_then(|document| serde_json::from_value(document).ok());
    match (found, status.state) {
        (Some(found), _) => Ok(found.findings),
        (None, State::Cancelled) => Err(format!("its ticket {ticket} was given up")),
        (None, state) => Err(format!(
            "its ticket {ticket} is {state}: {}",
            status.reason.unwrap_or_else(|| "it holds no findings".to_owned())
        )),
    }
}

impl Elsewhere for OnFarm {
    fn builds(&self) -> PathBuf {
        self.builds.clone()
    }

    fn run(
        &self,
        errands: &[Errand],
        observer: &dyn RoundObserver,
        done: &mut Done<'_>,
    ) -> Result<(), TournamentError> {
        let mut waiting = vec![(None, false); errands.len()];
        loop {
            self.step(&mut waiting, errands, observer, done)?;
            if waiting.iter().all(|(_, is_over)| *is_over) {
                return Ok(());
            }
            sleep(self.farm.borrow().pause());
        }
    }
}
