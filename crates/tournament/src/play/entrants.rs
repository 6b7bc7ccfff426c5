//! Who enters a round, and in which order.

use gauntlet_parameters::Parameters;

use crate::outcome::Judged;
use crate::panel::Ranking;
use crate::pitch::{FALLBACK, Pitch};
use gauntlet_judge::Candidate;
use gauntlet_judge::Finding;
use gauntlet_judge::Verdict;
use gauntlet_judge::gates::{Faster, Gate};

/// A pitch, or its fallback, waiting to be examined.
pub struct Entrant<'a> {
    /// Unique in the round.
    pub name: String,
    /// The pitch that it is, or falls back from.
    pub pitch: &'a Pitch,
    /// What a fallback changes in its control; a pitch itself says so in the pitch.
    pub fallback_change: Option<&'a Parameters>,
}

/// Pitches in the panel's order, each after what it builds on.
pub fn queue<'a>(pitches: &'a [Pitch], ranking: &Ranking) -> Vec<Entrant<'a>> {
    let mut waiting: Vec<&Pitch> = ranking
        .standings
        .iter()
        .filter_map(|standing| pitches.iter().find(|pitch| pitch.name == standing.pitch))
        .collect();
    let mut queue: Vec<Entrant> = Vec::new();
    while !waiting.is_empty() {
        let placed = |name: &String| queue.iter().any(|entrant| entrant.name == *name);
        // Round files with pitches that wait for one another in a circle are refused, so that there always is a next.
        let next = waiting
            .iter()
            .position(|pitch| pitch.after.as_ref().is_none_or(placed))
            .unwrap_or(0);
        let pitch = waiting.remove(next);
        queue.push(Entrant {
            name: pitch.name.clone(),
            pitch,
            fallback_change: None,
        });
    }
    queue
}

/// Takes those that wait for nobody: what they build on, if anything, has its verdict.
pub fn next_wave<'a>(waiting: &mut Vec<Entrant<'a>>) -> Vec<Entrant<'a>> {
    let names: Vec<String> = waiting.iter().map(|entrant| entrant.name.clone()).collect();
    let waits = |entrant: &mut Entrant| {
        let after = entrant.pitch.after.as_ref();
        after.is_none_or(|after| !names.contains(after))
    };
    waiting.extract_if(.., waits).collect()
}

impl<'a> Entrant<'a> {
    /// Whether it is a fallback.
    pub fn is_fallback(&self) -> bool {
        self.fallback_change.is_some()
    }

    /// The candidate that this one builds on: if it was adopted, or if it came as far as a comparison where that is enough.
    /// That is enough for a pitch with `regardless`, and where nothing is `measured`, since nothing can be adopted
    /// there. None for a pitch that builds on the baseline.
    pub fn control<'j>(&self, judged: &'j [Judged], measured: bool) -> Option<&'j Candidate> {
        let after = self.pitch.after.as_ref()?;
        let is_enough = self.pitch.regardless || !measured;
        let stands = |one: &Judged| one.verdict == Verdict::Adopt || is_enough && survived(one);
        let found = judged.iter().find(|one| one.name == *after);
        found.filter(|one| stands(one)).map(|one| &one.candidate)
    }

    /// What a fallback of it would change; a fallback has none.
    fn change_instead(&self) -> Option<&'a Parameters> {
        let change = self.pitch.fallback.schedule.as_ref();
        change.filter(|_| !self.is_fallback())
    }

    /// What is tried at once when this one was tried and not adopted.
    pub fn fallback(&self, verdict: Verdict) -> Option<Entrant<'a>> {
        let change = self.change_instead()?;
        let failed = !matches!(verdict, Verdict::Adopt | Verdict::Aborted | Verdict::Blocked);
        failed.then(|| Entrant {
            name: format!("{}{FALLBACK}", self.name),
            pitch: self.pitch,
            fallback_change: Some(change),
        })
    }

    /// Whether time was kept for a fallback that the verdict makes needless.
    pub fn spares_its_fallback(&self, verdict: Verdict) -> bool {
        self.change_instead().is_some() && self.fallback(verdict).is_none()
    }
}

/// How many may be compared before all is done: entrants, and the fallbacks that they may come to.
pub fn most_to_come<'a, 'e: 'a>(entrants: impl Iterator<Item = &'a Entrant<'e>>) -> usize {
    entrants
        .map(|entrant| 1 + usize::from(entrant.change_instead().is_some()))
        .sum()
}

/// Whether no gate stopped it but the one that compares.
fn survived(judged: &Judged) -> bool {
    let compares: &dyn Gate = &Faster;
    let stopped = |finding: &Finding| finding.stops().is_some() && !compares.found(finding);
    !judged.findings.is_empty() && !judged.findings.iter().any(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::fixture::pitch;

    fn entrant(pitch: &Pitch) -> Entrant<'_> {
        Entrant {
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
        let (with, without) = (entrant(&with), entrant(&without));
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
