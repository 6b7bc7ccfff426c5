//! Playing rounds: the panel ranks, each candidate passes through the gates and gets a verdict, and the adopted
//! candidate becomes the next baseline. Everything is in the ledger before the next step begins.

mod admission;
mod baseline;
mod clock;
mod contest;
mod elsewhere;
mod entries;
mod history;
mod sentence;
mod sharing;
mod sources;
mod watched;
mod wave;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use gauntlet_gates::predict;
use gauntlet_judge::gates::{Examination, Gate};
use gauntlet_judge::ledger::RecordKind;
use gauntlet_judge::session::examine;
use gauntlet_judge::{
    Candidate, Executor, ExecutorKind, Finding, Journal, Proposal, RecordPlace, Verdict, Workers,
};
use gauntlet_worker::{Limits, Timeouts};
use serde_json::json;

use self::baseline::{baseline_of, metrics_of, next_baseline};
use self::clock::Clock;
use self::contest::{Floor, Situation};
use self::entries::{most_to_come, next_wave, queue};
use self::history::History;
pub(crate) use self::watched::{Watching, measured};
pub(crate) use self::wave::WATCHED;
use self::wave::{Played, Underway};
use crate::errand::Elsewhere;
use crate::error::TournamentError;
use crate::forecast::{prospects, returns};
use crate::messages::Message;
use crate::observer::RoundObserver;
use crate::outcome::{BaselineReport, Judged, RoundReport, TournamentReport};
use crate::panel::{Dossier, Panel, Ranking};
use crate::pitch::Pitch;
use crate::records::{Notice, RoundEnded, RoundStarted, VerdictRecord};
use crate::round::Round;
use crate::source::Builds;
use crate::tournament::Tournament;

/// Rounds without an adoption after which the practice calls for research before more pitches.
const PATIENT_ROUNDS: usize = 3;

/// How candidates are run.
#[derive(Clone)]
pub struct Settings {
    /// The programs that serve the executors.
    pub workers: Workers,
    /// Timeouts for workers.
    pub timeouts: Timeouts,
    /// Resource limits of a worker.
    pub limits: Limits,
    /// Whether to run the gates that measure.
    pub measure: bool,
    /// The program's version.
    pub version: String,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// Where candidates are examined in place of this machine.
    pub elsewhere: Option<Rc<dyn Elsewhere>>,
}

/// Plays a tournament from its first round, or from the point where an earlier run of the journal stopped.
pub fn play(
    tournament: &Tournament,
    journal: &Journal,
    settings: &Settings,
    observer: &dyn RoundObserver,
) -> Result<TournamentReport, TournamentError> {
    let mut history = History::new(journal.run().clone(), journal.verdicts_before()?, tournament);
    let mut rounds = Vec::new();
    let floor = Floor::default();
    let shared = settings.elsewhere.as_ref().map(|elsewhere| elsewhere.builds());
    let builds = Builds::new(settings.timeouts.build, shared).map_err(TournamentError::NoFolder)?;
    let mut results: Vec<(&Round, Candidate)> = Vec::new();
    for round in &tournament.rounds {
        let Some(baseline) = baseline_of(round, &results, &builds)? else {
            continue;
        };
        let player = Player {
            tournament,
            round,
            journal,
            settings,
            observer,
            builds: &builds,
            floor: &floor,
            messages: &RefCell::default(),
        };
        let report = player.play(&baseline, &mut history)?;
        results.push((round, next_baseline(&report, baseline)));
        observer.round_ends(&report);
        rounds.push(report);
    }
    let outcome = json!({ "rounds": rounds.len() });
    journal.write(RecordKind::RunEnded, RecordPlace::default(), &outcome)?;
    Ok(TournamentReport {
        run: journal.run().clone(),
        name: tournament.name.clone(),
        title: tournament.title.clone(),
        version: settings.version.clone(),
        environment: settings.environment.clone(),
        prospects: prospects(history.answers(), journal.run(), history.forecasts()),
        returns: returns(&rounds),
        rounds,
    })
}

/// A round in progress.
#[derive(Clone, Copy)]
struct Player<'a> {
    tournament: &'a Tournament,
    round: &'a Round,
    journal: &'a Journal<'a>,
    settings: &'a Settings,
    observer: &'a dyn RoundObserver,
    builds: &'a Builds,
    floor: &'a Floor,
    /// What was asked and answered in this round.
    messages: &'a RefCell<Vec<Message>>,
}

impl Player<'_> {
    fn play(&self, baseline: &Candidate, history: &mut History) -> Result<RoundReport, TournamentError> {
        let round = self.round;
        self.observer.round_begins(round);
        let fixed = RoundStarted {
            tournament: Some(self.tournament.name.clone()),
            title: Some(self.tournament.title.clone()),
            digest: round.digest.clone(),
            file: round.file().clone(),
            baseline: baseline.clone(),
            described: Some(round.described(baseline)),
            device: Some(round.setting.device.name.clone()),
        };
        self.journal
            .write(RecordKind::RoundStarted, self.place(), &fixed)?;
        let mut notices = self.notify([round.doubts_of_tables(), round.left_out.clone()].concat())?;
        let executor = executor_of(round, self.settings)?;
        let qualified = self
            .is_live()
            .then(|| self.qualify(baseline, &executor))
            .transpose()?;
        let situation = qualified
            .as_ref()
            .map(|report| Situation::new(baseline, report, &executor, history));
        // What contestants and panellists say makes another round of it.
        let mut played = Cow::Borrowed(round);
        if let Some(situation) = &situation {
            let (heard, said) = self.heard(situation, history)?;
            notices.extend(said);
            played = Cow::Owned(heard);
            let voted = self.of(&played).voted(baseline, situation, history)?;
            played = Cow::Owned(voted);
        }
        if situation.is_none() && !round.panellists.is_empty() {
            played = Cow::Owned(round.with_rules());
        }
        let ranking = self.of(&played).rank(baseline, history);
        self.journal.write(RecordKind::Ranking, self.place(), &ranking)?;
        self.observer.ranked(&ranking);
        let baseline_report = match &qualified {
            Some(report) => report.clone(),
            None => self.qualify(baseline, &executor)?,
        };
        if let Some(situation) = &situation {
            let built = self.of(&played).built_round(&ranking, situation, history)?;
            played = Cow::Owned(built);
        }
        let player = self.of(&played);
        let judged = player.judge(baseline, &baseline_report, &ranking, &executor, history)?;
        // A candidate that builds on something slower than the baseline may beat that and still be slower than the
        // baseline.
        let adopted = judged
            .iter()
            .filter(|one| one.verdict == Verdict::Adopt)
            .filter_map(|one| Some((one, one.gain.filter(|gain| *gain > 0.0)?)))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .map(|(one, _)| one.name.clone());
        history.votes(&played, &ranking, &judged);
        let patience = history.add(&played, &judged, &player.effects(&judged), adopted.is_some());
        // Contestants are asked what bounds the baseline; people have to be told.
        if situation.is_none() {
            notices.extend(self.notify(advice(patience))?);
        }
        if let Some(situation) = &situation {
            player.learned(&judged, situation, history)?;
        }
        let report = RoundReport {
            name: round.file().name.clone(),
            title: round.file().title.clone(),
            executor: round.file().executor,
            device: round.setting.device.name.clone(),
            digest: round.digest.clone(),
            file: round.file().clone(),
            baseline: baseline_report,
            ranking,
            judged,
            adopted,
            messages: self.messages.take(),
            notices,
        };
        self.journal.write(
            RecordKind::RoundEnded,
            self.place(),
            &RoundEnded {
                adopted: report.adopted.clone(),
            },
        )?;
        Ok(report)
    }

    /// Judges every pitch and every fallback, wave after wave: an entry waits for the verdict on the entry it builds
    /// on.
    fn judge(
        &self,
        baseline: &Candidate,
        report: &BaselineReport,
        ranking: &Ranking,
        executor: &Executor,
        history: &History,
    ) -> Result<Vec<Judged>, TournamentError> {
        let metrics = metrics_of(&report.findings);
        let mut judged: Vec<Judged> = Vec::new();
        let mut waiting = queue(&self.round.pitches, ranking);
        let mut clock = Clock::new(self.round.setting.measurement.budget.unsigned_abs());
        while !waiting.is_empty() {
            let wave = next_wave(&mut waiting);
            let mut underway = Vec::new();
            let mut played = Vec::new();
            for entry in wave {
                let own = entry.baseline(&judged, self.settings.measure).unwrap_or(baseline);
                let admitted = match &report.fault {
                    Some(fault) => Err((Verdict::Blocked, fault.clone())),
                    None => self.admitted(&entry, own, &judged, history),
                };
                match admitted {
                    Err((verdict, reason)) => {
                        let refused = self.refuse(&entry, own, verdict, reason);
                        self.announce(&refused)?;
                        played.push(Played::refused(entry, refused));
                    }
                    Ok(candidate) => underway.push(Underway::new(entry, own.clone(), candidate)),
                }
            }
            let entries = underway.iter().map(Underway::entry);
            let share = clock.share(most_to_come(entries.chain(&waiting)));
            self.play_wave(underway, executor, &metrics, share, |one| {
                self.announce(&one.judged)?;
                played.push(one);
                Ok(())
            })?;
            for one in played {
                clock.spend(one.spent);
                waiting.extend(one.entry.fallback(one.judged.verdict));
                judged.push(self.with_gain(one.judged, &one.entry, &judged));
            }
        }
        Ok(judged)
    }

    /// The same with another state of the round.
    fn of<'p>(&'p self, round: &'p Round) -> Player<'p> {
        Player { round, ..*self }
    }

    fn place(&self) -> RecordPlace<'_> {
        RecordPlace {
            round: Some(&self.round.file().name),
            ..RecordPlace::default()
        }
    }

    fn rank(&self, baseline: &Candidate, history: &History) -> Ranking {
        let round = self.round;
        let dossiers: Vec<Dossier> = round
            .pitches
            .iter()
            .map(|pitch| {
                let candidate = round.pitched(pitch, baseline);
                Dossier {
                    pitch,
                    violations: self.violations(&candidate),
                    predicted: predict(&round.setting, baseline, &candidate),
                    record: history.forecasts().record_of(&pitch.author),
                }
            })
            .collect();
        Panel::new(&round.file().judge)
            .with_credit(|judge| history.credit(judge))
            .rank(&dossiers)
    }

    /// Examines gate after gate until one stops the candidate or lacks pairs of processes. Findings that the ledger already
    /// holds are reused. Returns the gate that lacks pairs, if there is one.
    fn pass_gates<'g>(
        &self,
        examination: &mut Examination,
        gates: impl Iterator<Item = &'g dyn Gate>,
    ) -> Result<Option<&'g dyn Gate>, TournamentError> {
        for gate in gates.filter(|gate| self.settings.measure || !gate.measures()) {
            let finding = match self.known(examination, gate) {
                Some(known) => known,
                None if self.journal.is_replay() => {
                    return Err(TournamentError::NotRecorded {
                        what: format!(
                            "what the gate `{}` found of {}",
                            gate.name(),
                            examination.candidate.name
                        ),
                        round: self.round.file().name.clone(),
                    });
                }
                None if examination.lacks_pairs_for(gate) => return Ok(Some(gate)),
                None => {
                    let finding = examine(gate, examination)?;
                    let place = self.place_of_gate(examination.candidate, gate.name());
                    self.journal.write(RecordKind::Finding, place, &finding)?;
                    finding
                }
            };
            let stops = finding.stops().is_some();
            examination.add(finding);
            if stops {
                break;
            }
        }
        Ok(None)
    }

    /// The finding of a gate from before the run was interrupted.
    fn known(&self, examination: &Examination, gate: &dyn Gate) -> Option<Finding> {
        self.journal
            .finding(self.place_of_gate(examination.candidate, gate.name()))
    }

    /// Records a verdict and notifies the observer.
    fn announce(&self, judged: &Judged) -> Result<(), TournamentError> {
        self.write_verdict(judged)?;
        self.observer.judged(judged);
        Ok(())
    }

    fn write_verdict(&self, judged: &Judged) -> Result<(), TournamentError> {
        let place = RecordPlace {
            pitch: Some(&judged.name),
            ..self.place()
        };
        Ok(self
            .journal
            .write(RecordKind::Verdict, place, &VerdictRecord::of(judged))?)
    }

    /// Records notices and notifies the observer.
    fn notify(&self, notices: Vec<String>) -> Result<Vec<String>, TournamentError> {
        for notice in &notices {
            let body = Notice {
                notice: notice.clone(),
            };
            self.journal.write(RecordKind::Notice, self.place(), &body)?;
            self.observer.notice(notice);
        }
        Ok(notices)
    }
}

/// What examines the candidates of a round.
pub(crate) fn executor_of(round: &Round, settings: &Settings) -> Result<Executor, TournamentError> {
    Ok(match (round.file().executor, &round.record) {
        (ExecutorKind::Replay, Some(record)) => Executor::Recorded(record.clone()),
        (kind, _) => {
            let workers = match round.file().threads {
                Some(threads) => &settings.workers.with_threads(threads),
                None => &settings.workers,
            };
            workers.executor(kind, &round.setting.device, settings.timeouts, settings.limits)?
        }
    })
}

/// A pitch's commitments, in the form that the judge takes.
fn proposal(pitch: &Pitch) -> Proposal<'_> {
    Proposal {
        abort: &pitch.abort,
        claim: pitch.claim.speedup.q50,
    }
}

/// Advice that the practice gives once [`PATIENT_ROUNDS`] rounds have passed without an adoption.
fn advice(rounds_without_adoption: usize) -> Vec<String> {
    if rounds_without_adoption < PATIENT_ROUNDS {
        return Vec::new();
    }
    vec![format!(
        "{rounds_without_adoption} rounds without an adoption: before more pitches, a research round is due (profile the \
         baseline, explain its gap to the roofline; mark that round with research = true)"
    )]
}
