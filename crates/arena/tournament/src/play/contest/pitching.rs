//! Before the panel: research where it is due, kernels mended, pitches heard.

use gauntlet_judge::Verdict;
use gauntlet_judge::session::conclude;
use gauntlet_parameters::Parameters;
use serde_json::{Value, json};

use super::super::PATIENT_ROUNDS;
use super::super::history::{History, Stopped};
use super::bench::findings;
use super::building::Commission;
use super::{Inquiry, Player, Situation, accepted};
use crate::error::TournamentError;
use crate::messages::{HandedIn, Phase, Pitching, Research};
use crate::pitch::Pitch;
use crate::round::{Participant, Round, live_pitch};
use crate::source::Tree;

/// The name of a kernel that is to take the place of a wrong one.
const MENDED: &str = "the mended kernel";

impl Player<'_> {
    /// The round with the pitches of its contestants.
    pub(in crate::play) fn heard(
        &self,
        situation: &Situation,
        history: &mut History,
    ) -> Result<(Round, Vec<String>), TournamentError> {
        let mut round = self.round.clone();
        let mut notices = Vec::new();
        let research_is_due = history.rounds_without_adoption(self.round) >= PATIENT_ROUNDS;
        for who in &self.round.contestants {
            if research_is_due && !self.has_researched(who, situation)? {
                notices.extend(self.notify(vec![format!(
                    "{} has not named what bounds the baseline, so it does not pitch in this round",
                    who.name
                )])?);
                continue;
            }
            if let Some(stopped) = history.stopped(self.round, &who.name).cloned() {
                if !self.has_mended(who, &stopped, situation)? {
                    notices.extend(self.notify(vec![format!(
                        "{} does not pitch in this round: its `{}` was not right, and it has not mended it",
                        who.name, stopped.pitch
                    )])?);
                    continue;
                }
                history.mended(self.round, &who.name);
            }
            round
                .pitches
                .extend(self.pitch_of(who, &round, situation, history)?);
        }
        if research_is_due {
            history.researched(self.round);
        }
        Ok((round, notices))
    }

    fn has_researched(&self, who: &Participant, situation: &Situation) -> Result<bool, TournamentError> {
        let inquiry = Inquiry {
            who,
            phase: Phase::Research,
            pitch: None,
            more: Value::Null,
        };
        let found = self.asked(&inquiry, situation, None, &|research: Research| {
            if research.bound_by.trim().is_empty() || research.evidence.is_empty() {
                return Err(
                    "say in `bound-by` what bounds the baseline, and give evidence for it".to_owned(),
                );
            }
            Ok(json!(research))
        })?;
        Ok(found.is_some())
    }

    /// Whether a contestant hands in a right kernel in place of the one that was wrong.
    fn has_mended(
        &self,
        who: &Participant,
        stopped: &Stopped,
        situation: &Situation,
    ) -> Result<bool, TournamentError> {
        let commission = Commission {
            who,
            phase: Phase::Mend,
            name: &stopped.pitch,
            more: json!({ "mend": { "pitch": stopped.pitch, "reason": stopped.reason } }),
            below: stopped.change.as_slice(),
            admits: &|handed_in, changed| self.is_right(handed_in, changed, situation),
        };
        let handed_in = self.handed_in(&commission, situation)?;
        Ok(matches!(
            handed_in,
            Some(HandedIn::Source(_) | HandedIn::Schedule(_))
        ))
    }

    /// Whether what is handed in passes all gates that measure nothing.
    fn is_right(
        &self,
        handed_in: &HandedIn,
        changed: Option<&Tree>,
        situation: &Situation,
    ) -> Result<(), String> {
        let baseline = situation.baseline();
        let candidate = match (handed_in, changed) {
            (HandedIn::Schedule(schedule), _) => {
                let changed = baseline.changed(MENDED, schedule);
                if !changed.differs_from(baseline) {
                    return Err("it changes nothing".to_owned());
                }
                changed
            }
            (HandedIn::Source(change), Some(tree)) => {
                let of_source = self.builds.source_of(baseline).map(|(_, kernel)| kernel);
                let kernel = change.kernel.clone().or(of_source).unwrap_or_default();
                let built = self
                    .builds
                    .candidate(MENDED, self.round, tree, &kernel, &Parameters::new());
                built.map_err(|fault| fault.reason)?
            }
            _ => return Ok(()),
        };
        let findings = findings(self, situation.executor(), baseline, &candidate)?;
        match conclude(&findings) {
            (Verdict::Adopt, _) => Ok(()),
            (Verdict::Blocked, reason) => Err(format!("the machine kept it from being examined: {reason}")),
            (_, reason) => Err(format!("it is not right yet: {reason}")),
        }
    }

    fn pitch_of(
        &self,
        who: &Participant,
        round: &Round,
        situation: &Situation,
        history: &History,
    ) -> Result<Option<Pitch>, TournamentError> {
        let inquiry = Inquiry {
            who,
            phase: Phase::Pitch,
            pitch: None,
            more: Value::Null,
        };
        let answer = self.asked(&inquiry, situation, None, &|answer: Pitching| match &answer {
            Pitching::Pass(_) => Ok(json!(answer)),
            Pitching::Pitch(keys) => {
                let mut keys = keys.clone();
                keys.insert("author".to_owned(), json!(who.name));
                let pitch: Pitch =
                    serde_json::from_value(Value::Object(keys.clone())).map_err(|error| error.to_string())?;
                live_pitch(&pitch, &round.pitches, &self.round.setting.parameters)?;
                if let Some(settled) = history
                    .said_before(self.round, &pitch)
                    .filter(|_| pitch.new_evidence.is_none())
                {
                    return Err(settled);
                }
                Ok(json!(Pitching::Pitch(keys)))
            }
        })?;
        Ok(match answer.map(accepted).transpose()? {
            Some(Pitching::Pitch(keys)) => Some(accepted(Value::Object(keys))?),
            _ => None,
        })
    }
}
