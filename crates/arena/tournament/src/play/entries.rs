//! The entries of a round and their order.

use gauntlet_parameters::Parameters;

use crate::outcome::Judged;
use crate::panel::Ranking;
use crate::pitch::{FALLBACK, Pitch};
use gauntlet_judge::Candidate;
use gauntlet_judge::Finding;
use gauntlet_judge::Verdict;
use gauntlet_judge::gates::{Faster, Gate};

/// A pitch, or its fallback, waiting to be examined.
pub struct Entry<'a> {
    /// Unique in the round.
    pub name: String,
    /// The pitch, or the pitch whose fallback this is.
    pub pitch: &'a Pitch,
    /// A fallback's change; a pitch's change is in the pitch.
    pub fallback_change: Option<&'a Parameters>,
}

/// Pitches in the panel's order, each after the pitch it builds on.
pub fn queue<'a>(pitches: &'a [Pitch], ranking: &Ranking) -> Vec<Entry<'a>> {
    let mut waiting: Vec<&Pitch> = ranking
        .standings
        .iter()
        .filter_map(|standing| pitches.iter().find(|pitch| pitch.name == standing.pitch))
        .collect();
    let mut queue: Vec<Entry> = Vec::new();
    while !waiting.is_empty() {
        let placed = |name: &String| queue.iter().any(|entry| entry.name == *name);
        // Round files with circular dependencies between pitches are rejected, so there is always a next pitch.
        let next = waiting
            .iter()
            .position(|pitch| pitch.after.as_ref().is_none_or(placed))
            .unwrap_or(0);
        let pitch = waiting.remove(next);
        queue.push(Entry {
            name: pitch.name.clone(),
            pitch,
            fallback_change: None,
        });
    }
    queue
}

/// Takes the entries that are ready: the entry they build on, if any, has its verdict.
pub fn next_wave<'a>(waiting: &mut Vec<Entry<'a>>) -> Vec<Entry<'a>> {
    let names: Vec<String> = waiting.iter().map(|entry| entry.name.clone()).collect();
    let waits = |entry: &mut Entry| {
        let after = entry.pitch.after.as_ref();
        after.is_none_or(|after| !names.contains(after))
    };
    waiting.extract_if(.., waits).collect()
}

impl<'a> Entry<'a> {
    /// Whether it is a fallback.
    pub fn is_fallback(&self) -> bool {
        self.fallback_change.is_some()
    }

    /// The candidate that this one builds on, if it was adopted. If it was not adopted, reaching the comparison is
    /// enough for a pitch with `regardless`, and also if nothing is `measured`, since nothing can be adopted then. None
    /// for a pitch that builds on the baseline.
    pub fn baseline<'j>(&self, judged: &'j [Judged], measured: bool) -> Option<&'j Candidate> {
        let after = self.pitch.after.as_ref()?;
        let is_enough = self.pitch.regardless || !measured;
        let stands = |one: &Judged| one.verdict == Verdict::Adopt || is_enough && survived(one);
        let found = judged.iter().find(|one| one.name == *after);
        found.filter(|one| stands(one))?.candidate.as_ref()
    }

    /// The change of its fallback; a fallback has none itself.
    fn change_instead(&self) -> Option<&'a Parameters> {
        let change = self.pitch.fallback.schedule.as_ref();
        change.filter(|_| !self.is_fallback())
    }

    /// The fallback, to be tried immediately, if this entry was tried and not adopted.
    pub fn fallback(&self, verdict: Verdict) -> Option<Entry<'a>> {
        let change = self.change_instead()?;
        let failed = !matches!(verdict, Verdict::Adopt | Verdict::Aborted | Verdict::Blocked);
        failed.then(|| Entry {
            name: format!("{}{FALLBACK}", self.name),
            pitch: self.pitch,
            fallback_change: Some(change),
        })
    }

    /// Whether time was reserved for a fallback that the verdict makes unnecessary.
    pub fn spares_its_fallback(&self, verdict: Verdict) -> bool {
        self.change_instead().is_some() && self.fallback(verdict).is_none()
    }
}

/// The largest number of comparisons still to come: the entries and their possible fallbacks.
pub fn most_to_come<'a, 'e: 'a>(entries: impl Iterator<Item = &'a Entry<'e>>) -> usize {
    entries
        .map(|entry| 1 + usize::from(entry.change_instead().is_some()))
        .sum()
}

/// Whether no gate other than the comparison stopped it.
fn survived(judged: &Judged) -> bool {
    let compares: &dyn Gate = &Faster;
    let stopped = |finding: &Finding| finding.stops().is_some() && !compares.found(finding);
    !judged.findings.is_empty() && !judged.findings.iter().any(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::fixture::pitch;

    fn entry(pitch: &Pitch) -> Entry<'_> {
        Entry {
            name: pitch.name.clone(),
            pitch,
            fallback_change: None,
        }
    }

    #[test]
    fn a_fallback_is_reckoned_with_until_it_is_needless() {
        let with = pitch("with");
        let mut without = pitch("without");
        without.fallback.schedule = None;
        let (with, without) = (entry(&with), entry(&without));
        assert_eq!(most_to_come([&with, &without].into_iter()), 3);
        let fallback = with.fallback(Verdict::Inconclusive).unwrap();
        assert_eq!(most_to_come([&fallback].into_iter()), 1);
        assert!(fallback.is_fallback() && fallback.fallback(Verdict::Inconclusive).is_none());
        assert!(with.spares_its_fallback(Verdict::Adopt));
        assert!(!with.spares_its_fallback(Verdict::Inconclusive));
        assert!(!without.spares_its_fallback(Verdict::Adopt), "it had none");
        assert!(!fallback.spares_its_fallback(Verdict::Adopt));
    }
}
