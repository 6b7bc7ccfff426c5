//! Candidates that are changes to the round's source.

use std::collections::BTreeMap;

use gauntlet_judge::Candidate;

use super::Player;
use super::entries::Entry;
use crate::outcome::Judged;
use crate::pitch::Pitch;
use crate::source::{Fault, SourceChange, Tree, effect};

impl Player<'_> {
    /// The candidate that an entry makes from the candidate it changes.
    ///
    /// # Errors
    /// If a change to the source does not apply, or what it makes cannot be built.
    pub(super) fn candidate(&self, entry: &Entry, baseline: &Candidate) -> Result<Candidate, Fault> {
        if let Some(change) = entry.fallback_change {
            return Ok(baseline.changed(&entry.name, change));
        }
        match self.round.changes.get(&entry.pitch.name) {
            Some(change) => self.built(entry.pitch, change, baseline),
            None => Ok(self.round.pitched(entry.pitch, baseline)),
        }
    }

    fn built(&self, pitch: &Pitch, change: &SourceChange, onto: &Candidate) -> Result<Candidate, Fault> {
        let (tree, kernel) = self.changed(change, onto)?;
        self.builds
            .candidate(&pitch.name, self.round, &tree, &kernel, &pitch.schedule)
    }

    /// A source and its kernel after a change.
    pub(super) fn changed(&self, change: &SourceChange, onto: &Candidate) -> Result<(Tree, String), Fault> {
        let (tree, kernel) = self
            .builds
            .source_of(onto)
            .ok_or_else(|| Fault::of_change("it changes a source, and what it builds on is none"))?;
        let tree = change
            .edit
            .applied(&tree, &self.round.protected)
            .map_err(Fault::of_change)?;
        Ok((tree, change.kernel.clone().unwrap_or(kernel)))
    }

    /// What makes a pitch the same as another: its words, the lines that it changes, and the source that it leads to.
    pub(super) fn identities(&self, pitch: &Pitch, onto: &Candidate) -> Vec<String> {
        let change = self.round.changes.get(&pitch.name);
        let changed = change.and_then(|change| self.changed(change, onto).ok());
        let effect = changed.map(|(tree, kernel)| effect(&tree, &kernel, &pitch.schedule));
        std::iter::once(self.round.identity(pitch))
            .chain(effect)
            .collect()
    }

    /// The sources that changes led to, by pitch, as far as they were built.
    pub(super) fn effects(&self, judged: &[Judged]) -> BTreeMap<String, String> {
        let of_pitch = |pitch: &Pitch| {
            let one = judged.iter().find(|one| one.name == pitch.name)?;
            let (tree, kernel) = self.builds.source_of(one.candidate.as_ref()?)?;
            Some((one.name.clone(), effect(&tree, &kernel, &pitch.schedule)))
        };
        let changes = |pitch: &&Pitch| self.round.changes.contains_key(&pitch.name);
        let changing = self.round.pitches.iter().filter(changes);
        changing.filter_map(of_pitch).collect()
    }

    /// The files that a candidate changes, with the lines that come and go, such as `kernel.py +3 −2`.
    pub(super) fn changed_files(&self, baseline: &Candidate, candidate: &Candidate) -> Vec<String> {
        let sources = [baseline, candidate].map(|one| self.builds.source_of(one));
        let [Some((before, _)), Some((after, _))] = sources else {
            return Vec::new();
        };
        let lines = |path: &String| {
            let diff = before.only(path).diff(&after.only(path));
            let count = |sign: char, header: &str| {
                let is_changed = |line: &&str| line.starts_with(sign) && !line.starts_with(header);
                diff.lines().filter(is_changed).count()
            };
            format!("{path} +{} \u{2212}{}", count('+', "+++ "), count('-', "--- "))
        };
        before.differing(&after).iter().map(lines).collect()
    }
}
