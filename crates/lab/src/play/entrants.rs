//! Who enters a round, and in which order.

use gauntlet_schedule::ScheduleChange;

use crate::candidate::Candidate;
use crate::finding::Finding;
use crate::gates::{Faster, Gate};
use crate::outcome::Judged;
use crate::panel::Ranking;
use crate::pitch::{FALLBACK, Pitch};
use crate::verdict::Verdict;

/// A pitch, or its fallback, waiting to be examined.
pub struct Entrant<'a> {
    /// Unique in the round.
    pub name: String,
    /// The pitch that it is, or falls back from.
    pub pitch: &'a Pitch,
    /// What it changes in its control.
    pub change: ScheduleChange,
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
            change: pitch.schedule.clone(),
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
        self.name != self.pitch.name
    }

    /// What it builds on, if that was adopted, or came as far as a comparison where that is enough; none for a pitch
    /// that builds on the baseline.
    pub fn control<'j>(&self, judged: &'j [Judged]) -> Option<&'j Candidate> {
        let after = self.pitch.after.as_ref()?;
        let stands = |one: &Judged| one.verdict == Verdict::Adopt || self.pitch.regardless && survived(one);
        let found = judged.iter().find(|one| one.name == *after);
        found.filter(|one| stands(one)).map(|one| &one.candidate)
    }

    /// What is tried at once when this one was tried and not adopted.
    pub fn fallback(&self, judged: &Judged) -> Option<Entrant<'a>> {
        let change = self.pitch.fallback.schedule.as_ref()?;
        let failed = !matches!(
            judged.verdict,
            Verdict::Adopt | Verdict::Aborted | Verdict::Blocked
        );
        (failed && !self.is_fallback()).then(|| Entrant {
            name: format!("{}{FALLBACK}", self.name),
            pitch: self.pitch,
            change: change.clone(),
        })
    }
}

/// Whether no gate stopped it but the one that compares.
fn survived(judged: &Judged) -> bool {
    let stopped = |finding: &Finding| finding.stops().is_some() && finding.gate != Faster.name();
    !judged.findings.is_empty() && !judged.findings.iter().any(stopped)
}
