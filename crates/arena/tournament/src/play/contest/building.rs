//! What contestants hand in.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gauntlet_contestants::Tools;
use gauntlet_judge::{KernelForm, KernelText, Verdict};
use serde_json::{Value, json};

use super::super::entries::queue;
use super::super::history::History;
use super::bench::{Bench, change_to};
use super::{Inquiry, Player, Situation, accepted};
use crate::error::TournamentError;
use crate::messages::{Build, HandedIn, Phase};
use crate::panel::{Ranking, Standing};
use crate::pitch::Pitch;
use crate::round::{Participant, Round};
use crate::source::{SourceChange, Tree, effect, inside};

/// What else must be true of what is handed in, with the source that it makes.
pub type Admits<'a> = dyn Fn(&HandedIn, Option<&Tree>) -> Result<(), String> + 'a;

/// What a contestant is asked to make.
pub struct Commission<'c> {
    /// Who is asked.
    pub who: &'c Participant,
    /// [`Phase::Build`] or [`Phase::Mend`].
    pub phase: Phase,
    /// The pitch.
    pub name: &'c str,
    /// What the phase needs beside situation and workspace.
    pub more: Value,
    /// Changes that the workspace begins with, one upon another.
    pub below: &'c [SourceChange],
    /// What else must be true.
    pub admits: &'c Admits<'c>,
}

impl Player<'_> {
    /// The round with what its contestants hand in, asked in the order of the panel.
    pub(in crate::play) fn built_round(
        &self,
        ranking: &Ranking,
        situation: &Situation,
        history: &History,
    ) -> Result<Round, TournamentError> {
        let mut round = self.round.clone();
        let funded = self.funded(ranking);
        for (index, entry) in queue(&self.round.pitches, ranking).iter().enumerate() {
            let pitch = entry.pitch;
            let Some(who) = self.contestant_of(pitch).filter(|_| pitch.withdrawn.is_none()) else {
                continue;
            };
            if !funded.contains(&pitch.name) {
                let why = format!(
                    "the round's {} h were dealt to pitches that promise more an hour",
                    self.round.file().hours.unwrap_or_default()
                );
                round.unbuilt.insert(pitch.name.clone(), (Verdict::Blocked, why));
                continue;
            }
            let more = json!({ "pitch": pitch, "rank": index + 1, "terms": pitch.abort });
            let below = round.stacked(pitch.after.as_deref());
            let source = self.builds.source_of(situation.baseline());
            let kernel = source.map(|(_, kernel)| kernel).unwrap_or_default();
            let settled = |change: &SourceChange, tree: &Tree| {
                self.settled_before(pitch, change, tree, &kernel, history)
            };
            let commission = Commission {
                who,
                phase: Phase::Build,
                name: &pitch.name,
                more,
                below: &below,
                admits: &|handed_in, changed| match (handed_in, changed) {
                    (HandedIn::Source(change), Some(tree)) => settled(change, tree),
                    _ => Ok(()),
                },
            };
            let handed_in = self.handed_in(&commission, situation)?;
            let Some(pitch) = round.pitches.iter_mut().find(|one| one.name == pitch.name) else {
                continue;
            };
            match handed_in {
                Some(HandedIn::Source(change)) => {
                    round.changes.insert(pitch.name.clone(), change);
                }
                Some(HandedIn::Schedule(schedule)) => pitch.schedule = schedule,
                Some(HandedIn::Withdrawn(why)) => pitch.withdrawn = Some(why),
                None => {
                    let messages = self.messages.borrow();
                    let message = messages.last();
                    let fault = message
                        .and_then(|message| message.fault.clone())
                        .unwrap_or_default();
                    let unbuilt = match message.is_some_and(|message| message.blameless) {
                        true => (
                            Verdict::Blocked,
                            format!("its contestant could not be asked: {fault}"),
                        ),
                        false => (
                            Verdict::Aborted,
                            format!("its contestant handed in nothing: {fault}"),
                        ),
                    };
                    round.unbuilt.insert(pitch.name.clone(), unbuilt);
                }
            }
        }
        Ok(round)
    }

    /// The pitches of contestants that the round has hours for: those first from which an hour is expected to bring most, by
    /// claim, model and the credit of their authors.
    fn funded(&self, ranking: &Ranking) -> BTreeSet<String> {
        let Some(hours) = self.round.file().hours else {
            return self
                .round
                .pitches
                .iter()
                .map(|pitch| pitch.name.clone())
                .collect();
        };
        let mut standings: Vec<_> = ranking.standings.iter().collect();
        let promise = |standing: &Standing| standing.roi.as_ref().map_or(0.0, |roi| roi.dealt());
        standings.sort_by(|one, other| promise(other).total_cmp(&promise(one)));
        let mut left = hours;
        let mut funded = BTreeSet::new();
        for standing in standings {
            let pitch = self
                .round
                .pitches
                .iter()
                .find(|pitch| pitch.name == standing.pitch);
            let is_dealt = |pitch: &&Pitch| {
                let is_contestants = self.contestant_of(pitch).is_some() && pitch.withdrawn.is_none();
                is_contestants && pitch.cost.hours <= left
            };
            let Some(pitch) = pitch.filter(is_dealt) else {
                continue;
            };
            left -= pitch.cost.hours;
            funded.insert(pitch.name.clone());
        }
        funded
    }

    /// The contestant whose pitch it is; none if a person wrote it.
    pub(in crate::play) fn contestant_of(&self, pitch: &Pitch) -> Option<&Participant> {
        self.round.contestants.iter().find(|one| one.name == pitch.author)
    }

    fn settled_before(
        &self,
        pitch: &Pitch,
        change: &SourceChange,
        tree: &Tree,
        kernel: &str,
        history: &History,
    ) -> Result<(), String> {
        if pitch.new_evidence.is_some() {
            return Ok(());
        }
        let kernel = change.kernel.as_deref().unwrap_or(kernel);
        let effect = effect(tree, kernel, &pitch.schedule);
        let identities = [change.identity(&pitch.schedule), effect];
        match history.settled(self.round, &identities) {
            None => Ok(()),
            Some((round, verdict)) => Err(format!(
                "the same change was judged {verdict} in {round}, and the pitch names no new evidence: hand in another, or withdraw"
            )),
        }
    }

    /// Asks for a change. None if nothing acceptable was handed in.
    pub(super) fn handed_in(
        &self,
        commission: &Commission,
        situation: &Situation,
    ) -> Result<Option<HandedIn>, TournamentError> {
        let Commission {
            who,
            phase,
            name,
            below,
            admits,
            ..
        } = *commission;
        let mut more = commission.more.clone();
        let baseline = situation.baseline();
        let source = self.builds.source_of(baseline).map(|(tree, kernel)| {
            // What does not apply any more is left out with all that follows: the comparison says what became of it.
            below
                .iter()
                .try_fold((tree.clone(), kernel.clone()), |(tree, kernel), change| {
                    let changed = change.edit.applied(&tree, &self.round.protected).ok()?;
                    Some((changed, change.kernel.clone().unwrap_or(kernel)))
                })
                .unwrap_or((tree, kernel))
        });
        let mut bench = source
            .clone()
            .map(|source| Bench::new(self, situation.executor(), baseline, source))
            .transpose()
            .map_err(TournamentError::NoFolder)?;
        more["workspace"] = json!(bench.as_ref().map(Bench::folder));
        let inquiry = Inquiry {
            who,
            phase,
            pitch: Some(name),
            more,
        };
        let folder = bench.as_ref().map(Bench::folder);
        let workspace = || match (&source, &folder) {
            (Some((tree, _)), Some(folder)) => change_to(tree, folder),
            _ => Err("the kernel of this round is no source, so there is no workspace".to_owned()),
        };
        let accepts = |answer: Build| {
            let handed_in = answer.handed_in(workspace)?;
            self.is_admissible(&handed_in, source.as_ref(), admits)?;
            Ok(json!(handed_in))
        };
        let tools = bench.as_mut().map(|bench| bench as &mut dyn Tools);
        let answer = self.asked(&inquiry, situation, tools, &accepts)?;
        answer.map(accepted).transpose()
    }

    /// Whether what is handed in changes something, and nothing that it may not.
    fn is_admissible(
        &self,
        handed_in: &HandedIn,
        source: Option<&(Tree, String)>,
        admits: &Admits,
    ) -> Result<(), String> {
        match (handed_in, source) {
            (HandedIn::Withdrawn(_), _) => Ok(()),
            (HandedIn::Schedule(schedule), _) => {
                let checked = self.round.setting.parameters.check(schedule);
                checked.map_err(|error| error.to_string())?;
                admits(handed_in, None)
            }
            (HandedIn::Source(_), None) => {
                Err("the kernel of this round is no source: hand in a `schedule`, or withdraw".to_owned())
            }
            (HandedIn::Source(change), Some((tree, kernel))) => {
                let named = change.kernel.as_ref().unwrap_or(kernel);
                lies_inside(named)?;
                let changed = change.edit.applied(tree, &self.round.protected)?;
                if changed == *tree && named == kernel {
                    return Err("it changes nothing in the source".to_owned());
                }
                admits(handed_in, Some(&changed))
            }
        }
    }
}

/// Whether a kernel is one of the source's own files.
fn lies_inside(kernel: &str) -> Result<(), String> {
    let text: KernelText = kernel.parse().map_err(|error| format!("`kernel`: {error}"))?;
    let is_inside = |file: &PathBuf| inside(&file.to_string_lossy()).is_ok();
    match text.form() {
        KernelForm::File(file) if is_inside(&file.file) => Ok(()),
        _ => Err(format!(
            "`{kernel}` is not a function of a file of the source, and no other kernel can be handed in"
        )),
    }
}
