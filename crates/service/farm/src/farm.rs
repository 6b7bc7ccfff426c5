//! Tickets on their way through an engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gauntlet_queue::{JudgementKind, Queue, QueueError, Recorded, Ticket, this_worker};
use jiff::Timestamp;

use crate::engine::{Batch, Ending, Engine, EngineError};
use crate::event::Event;
use crate::shunned::Shunned;

/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(5);

/// How long no ticket is started after the scheduler refused some.
const REST: Duration = Duration::from_secs(10);

/// A ticket whose job was started.
#[derive(Debug)]
struct Placed {
    attempt: u32,
    job: String,
    /// Since when the scheduler does not know the job.
    gone: Option<Instant>,
    /// When it was last said that the attempt goes on; not yet, at first, since a scheduler may take long to take a job.
    renewed: Option<Instant>,
    /// Whether its ticket is still to be run by this attempt.
    is_wanted: bool,
}

impl Placed {
    fn new(attempt: u32, job: String) -> Self {
        Self {
            attempt,
            job,
            gone: None,
            renewed: None,
            is_wanted: true,
        }
    }

    /// Asks whether its ticket is still to be run by it, and says from time to time that the attempt goes on. Once it is not, it
    /// never is again: another attempt may have begun.
    fn renew(&mut self, queue: &Queue, ticket: &str) -> Result<(), QueueError> {
        if self.renewed.is_some_and(|renewed| renewed.elapsed() < RENEWAL) {
            self.is_wanted &= !queue.is_cancelled(ticket)?;
        } else {
            self.is_wanted &= queue.renew(ticket, self.attempt, Timestamp::now())?;
            self.renewed = Some(Instant::now());
        }
        Ok(())
    }
}

/// Leases tickets and starts a job for each, at most so many at a time.
pub struct Farm {
    queue: Arc<Queue>,
    engine: Box<dyn Engine + Send>,
    /// For each job that may be on its way, the ticket that it runs.
    places: Vec<Option<String>>,
    running: BTreeMap<String, Placed>,
    is_silent: bool,
    rests_until: Option<Instant>,
    /// Until when each place rests, as far as that was told.
    resting: BTreeMap<String, Timestamp>,
    shunned: Shunned,
    /// Jobs that were cancelled and may still be there.
    cancelled: BTreeSet<String>,
    /// How long after a job has gone its result may still arrive.
    late: Duration,
}

impl Farm {
    /// A farm for the tickets of a queue, with at most so many jobs at a time.
    pub fn new(queue: Arc<Queue>, engine: impl Engine + Send + 'static, most: usize) -> Self {
        let late = engine.late();
        Self {
            queue,
            engine: Box::new(engine),
            places: vec![None; most],
            running: BTreeMap::new(),
            is_silent: false,
            rests_until: None,
            resting: BTreeMap::new(),
            shunned: Shunned::default(),
            cancelled: BTreeSet::new(),
            late,
        }
    }

    /// Whether a job is on its way.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Runs tickets until its process ends, and tells what happens.
    pub fn run_forever(mut self, tell: impl Fn(&Event)) {
        loop {
            // A queue that cannot be used now may be usable later: its disk may have room again.
            self.step().unwrap_or_default().iter().for_each(&tell);
            sleep(self.pause());
        }
    }

    /// How long to wait between two steps.
    pub fn pause(&self) -> Duration {
        self.engine.pause()
    }

    /// Looks after the jobs, records what they published, and starts jobs for tickets that wait.
    ///
    /// # Errors
    /// If the queue cannot be used. What the scheduler cannot do is an event.
    pub fn step(&mut self) -> Result<Vec<Event>, QueueError> {
        let mut events = Vec::new();
        // First, since the scheduler may take its time to answer.
        for (id, placed) in &mut self.running {
            placed.renew(&self.queue, id)?;
        }
        let alive = self.alive(&mut events);
        for id in self.running.keys().cloned().collect::<Vec<_>>() {
            self.look_after(&id, alive.as_ref(), &mut events)?;
        }
        if let Some(alive) = &alive {
            self.cancel_given_up(alive)?;
        }
        if let Some(alive) = alive
            && self.rests_until.is_none_or(|until| until <= Instant::now())
        {
            self.start(&alive, &mut events)?;
        }
        Ok(events)
    }

    /// Ends the jobs of tickets that were given up while they waited for another attempt.
    fn cancel_given_up(&mut self, alive: &BTreeMap<String, String>) -> Result<(), QueueError> {
        self.cancelled
            .retain(|job| alive.values().any(|other| other == job));
        for (ticket, job) in alive {
            let is_ours = self.running.contains_key(ticket) || self.cancelled.contains(job);
            if !is_ours && self.queue.is_cancelled(ticket)? && self.engine.cancel(job).is_ok() {
                self.cancelled.insert(job.clone());
            }
        }
        Ok(())
    }

    /// The scheduler's jobs; none if it does not answer, which is told once.
    fn alive(&mut self, events: &mut Vec<Event>) -> Option<BTreeMap<String, String>> {
        match self.engine.alive() {
            Ok(alive) => {
                self.is_silent = false;
                Some(alive)
            }
            Err(error) => {
                self.silent(&error, events);
                None
            }
        }
    }

    fn silent(&mut self, error: &EngineError, events: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.is_silent, true) {
            events.push(Event::Silent(format!(
                "{} does not answer: {error}",
                self.engine.name()
            )));
        }
    }

    fn look_after(
        &mut self,
        id: &str,
        alive: Option<&BTreeMap<String, String>>,
        events: &mut Vec<Event>,
    ) -> Result<(), QueueError> {
        let Some(placed) = self.running.get_mut(id) else {
            return Ok(());
        };
        let attempt = placed.attempt;
        if let Some(result) = self.queue.published(id) {
            let outcome = match &result.verdict {
                Some(verdict) => format!("{}: {verdict}", result.state),
                None => result.state.to_string(),
            };
            let recorded = self.queue.record(attempt, &result)?;
            let outcome = match recorded {
                Recorded::First => outcome,
                Recorded::Late => format!("{outcome}, too late to count"),
            };
            self.leave(id);
            events.push(Event::Ended {
                ticket: id.to_owned(),
                outcome,
            });
            return Ok(());
        }
        placed.renew(&self.queue, id)?;
        if !placed.is_wanted {
            let reason = "its client, or another attempt, was first";
            // A job that cannot be cancelled now publishes what nobody reads.
            if self.engine.cancel(&placed.job).is_ok() {
                self.cancelled.insert(placed.job.clone());
            }
            self.queue.end_attempt(id, attempt, reason, false)?;
            self.leave(id);
            events.push(Event::Void {
                ticket: id.to_owned(),
                reason: reason.to_owned(),
            });
            return Ok(());
        }
        match alive {
            None => {}
            Some(alive) if alive.contains_key(id) => placed.gone = None,
            Some(_) if placed.gone.get_or_insert_with(Instant::now).elapsed() < self.late => {}
            Some(_) => {
                let Ending { said, node, was_told } = self.engine.ending(&placed.job).unwrap_or(Ending {
                    said: "it is forgotten".to_owned(),
                    node: None,
                    was_told: false,
                });
                let reason = format!(
                    "job {} of {} published nothing ({said})",
                    placed.job,
                    self.engine.name()
                );
                self.queue.end_attempt(id, attempt, &reason, !was_told)?;
                if let Some(node) = node.filter(|_| !was_told)
                    && let Some(tickets) = self.shunned.died(&node, id, Instant::now())
                {
                    events.push(Event::Shunned { node, tickets });
                }
                self.leave(id);
                events.push(Event::Void {
                    ticket: id.to_owned(),
                    reason,
                });
            }
        }
        Ok(())
    }

    fn leave(&mut self, id: &str) {
        self.running.remove(id);
        for place in &mut self.places {
            place.take_if(|ticket| ticket == id);
        }
    }

    /// Starts jobs for the tickets that wait, as far as there are places. A ticket whose job is still there from an earlier attempt
    /// keeps that job.
    fn start(&mut self, alive: &BTreeMap<String, String>, events: &mut Vec<Event>) -> Result<(), QueueError> {
        // A place whose job never began, since the queue failed in between, is free again.
        let running = &self.running;
        for place in &mut self.places {
            place.take_if(|ticket| !running.contains_key(ticket));
        }
        let mut batches: [Vec<(Ticket, u32)>; 2] = [Vec::new(), Vec::new()];
        for (number, place) in self.places.iter_mut().enumerate() {
            if place.is_some() {
                continue;
            }
            let name = self.engine.place(number);
            // Where attempts die one after another there is a pause; other places are asked all the same.
            if let Some(rest) = self.queue.rest(&name, Timestamp::now())? {
                if self.resting.insert(name.clone(), rest.until) != Some(rest.until) {
                    events.push(Event::Resting {
                        place: name,
                        deaths: rest.deaths,
                        reason: rest.reason,
                        until: rest.until,
                    });
                }
                continue;
            }
            // Another program may have the place, which leaves the next one.
            let Some((ticket, attempt)) = self.queue.lease(&this_worker(), &name, Timestamp::now())? else {
                continue;
            };
            *place = Some(ticket.id.clone());
            if let Some(job) = alive.get(&ticket.id) {
                events.push(Event::Started {
                    ticket: ticket.id.clone(),
                    job: job.clone(),
                });
                self.running.insert(ticket.id, Placed::new(attempt, job.clone()));
                continue;
            }
            let is_check = ticket.judgement.command == JudgementKind::Check;
            batches[usize::from(is_check)].push((ticket, attempt));
        }
        for (is_of_checks, batch) in [false, true].into_iter().zip(batches) {
            if !batch.is_empty() {
                self.submit(&batch, is_of_checks, events)?;
            }
        }
        Ok(())
    }

    fn submit(
        &mut self,
        batch: &[(Ticket, u32)],
        is_of_checks: bool,
        events: &mut Vec<Event>,
    ) -> Result<(), QueueError> {
        let tickets: Vec<String> = batch.iter().map(|(ticket, _)| ticket.id.clone()).collect();
        let avoided = self.shunned.now(Instant::now());
        let started = self.engine.start(&Batch {
            tickets: &tickets,
            is_of_checks,
            avoided: &avoided,
            ticket_folder: &self.queue.tickets(),
            results: &self.queue.results(),
        });
        match started {
            Ok(jobs) => {
                for ((ticket, attempt), job) in batch.iter().zip(jobs) {
                    events.push(Event::Started {
                        ticket: ticket.id.clone(),
                        job: job.clone(),
                    });
                    self.running.insert(ticket.id.clone(), Placed::new(*attempt, job));
                }
            }
            Err(error) => {
                self.rests_until = Some(Instant::now() + REST);
                for (ticket, attempt) in batch {
                    self.queue.give_back(&ticket.id, *attempt)?;
                    self.leave(&ticket.id);
                }
                events.push(Event::Refused(format!(
                    "{} takes no job: {error}",
                    self.engine.name()
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
