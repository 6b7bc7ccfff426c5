//! Which entries are examined, and why the others are not.

use gauntlet_judge::{Candidate, ExecutorKind, Verdict};

use super::Player;
use super::entries::Entry;
use super::history::History;
use crate::outcome::Judged;

impl Player<'_> {
    /// The candidate of an entry, or why it is not examined at all.
    pub(super) fn admitted(
        &self,
        entry: &Entry,
        baseline: &Candidate,
        judged: &[Judged],
        history: &History,
    ) -> Result<Candidate, (Verdict, String)> {
        // What is barred is not built.
        let bar = || self.bar(entry, baseline, judged, history).map_or(Ok(()), Err);
        let is_built =
            self.round.changes.contains_key(&entry.pitch.name) || self.contestant_of(entry.pitch).is_some();
        if is_built {
            bar()?;
        }
        let candidate = self
            .candidate(entry, baseline)
            .map_err(|fault| (fault.verdict, fault.reason))?;
        let runs = self.round.file().executor != ExecutorKind::Replay;
        if runs && !candidate.differs_from(baseline) {
            let reason =
                "it changes nothing: what it builds on already has all of it, so there is nothing to compare";
            return Err((Verdict::Blocked, reason.to_owned()));
        }
        if !is_built {
            bar()?;
        }
        Ok(candidate)
    }

    /// Why a pitch is not examined at all.
    fn bar(
        &self,
        entry: &Entry,
        baseline: &Candidate,
        judged: &[Judged],
        history: &History,
    ) -> Option<(Verdict, String)> {
        let pitch = entry.pitch;
        if entry.is_fallback() {
            return None;
        }
        if let Some(reason) = &pitch.withdrawn {
            return Some((Verdict::Aborted, format!("withdrawn by its author: {reason}")));
        }
        if let Some(unbuilt) = self.round.unbuilt.get(&pitch.name) {
            return Some(unbuilt.clone());
        }
        if let Some(after) = &pitch.after
            && entry.baseline(judged, self.settings.measure).is_none()
        {
            let missing = if pitch.regardless || !self.settings.measure {
                "did not pass every gate before the comparison"
            } else {
                "was not adopted"
            };
            return Some((
                Verdict::Blocked,
                format!("it builds on `{after}`, which {missing}"),
            ));
        }
        if pitch.new_evidence.is_none()
            && let Some((round, verdict)) = history.settled(self.round, &self.identities(pitch, baseline))
        {
            let reason = format!(
                "the same change was judged {verdict} in {round}; say in `new-evidence` what is new since then"
            );
            return Some((Verdict::Blocked, reason));
        }
        None
    }
}
