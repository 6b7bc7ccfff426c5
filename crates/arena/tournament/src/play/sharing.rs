//! Spends time where it changes a verdict: every comparison gets its first look, then the comparison closest to a
//! decision continues.

use std::time::Duration;

use gauntlet_judge::{ExaminationFailure, Observer, PairedComparison};

/// A comparison that is measured in steps, so that several can share time.
pub trait SharedTime {
    /// Measures up to its next look; false if the allowed time is too short for that.
    fn advance(&mut self, allowed: Duration, observer: &dyn Observer) -> Result<bool, ExaminationFailure>;
    /// Whether further measurements would not change it.
    fn is_over(&self) -> bool;
    /// The estimated number of further pairs of processes until it is decided; none without an estimate.
    fn lacks(&self) -> Option<usize>;
    /// The time it has taken.
    fn spent(&self) -> Duration;
}

impl SharedTime for PairedComparison<'_> {
    fn advance(&mut self, allowed: Duration, observer: &dyn Observer) -> Result<bool, ExaminationFailure> {
        PairedComparison::advance(self, allowed, observer)
    }

    fn is_over(&self) -> bool {
        PairedComparison::is_over(self)
    }

    fn lacks(&self) -> Option<usize> {
        Some(self.needed()?.saturating_sub(self.pairs()))
    }

    fn spent(&self) -> Duration {
        PairedComparison::spent(self)
    }
}

/// A comparison that has ended or failed.
pub struct Closed<B> {
    /// Its index among the given comparisons.
    pub index: usize,
    /// The comparison, or the reason why it could not be finished.
    pub comparison: Result<B, ExaminationFailure>,
    /// The time it took.
    pub spent: Duration,
}

/// Spends `budget` on comparisons. `close` is called for each comparison when it ends, and for the rest at the end, and
/// returns the time that this frees for the others.
pub fn spend<B: SharedTime, E>(
    comparisons: Vec<B>,
    budget: Duration,
    observer: &dyn Observer,
    mut close: impl FnMut(Closed<B>) -> Result<Duration, E>,
) -> Result<(), E> {
    let mut left = budget;
    let mut open: Vec<(usize, B)> = Vec::new();
    let count = comparisons.len();
    for (index, comparison) in comparisons.into_iter().enumerate() {
        let share = left / u32::try_from(count - index).unwrap_or(u32::MAX);
        let step = step(index, comparison, share, observer, &mut left);
        match step {
            Step::Open(comparison, _) => open.push((index, comparison)),
            Step::Closed(closed) => left += close(closed)?,
        }
    }
    while let Some(place) = nearest(&open) {
        let (index, comparison) = open.remove(place);
        match step(index, comparison, left, observer, &mut left) {
            Step::Open(comparison, true) => open.push((index, comparison)),
            // The time is too short for its next look, but may suffice for a cheaper comparison's.
            Step::Open(comparison, false) => {
                let spent = comparison.spent();
                let comparison = Ok(comparison);
                left += close(Closed {
                    index,
                    comparison,
                    spent,
                })?;
            }
            Step::Closed(closed) => left += close(closed)?,
        }
    }
    Ok(())
}

/// The comparison that needs the fewest further pairs; if none has an estimate, the first.
fn nearest<B: SharedTime>(open: &[(usize, B)]) -> Option<usize> {
    (0..open.len()).min_by_key(|place| open[*place].1.lacks().unwrap_or(usize::MAX))
}

enum Step<B> {
    Open(B, bool),
    Closed(Closed<B>),
}

fn step<B: SharedTime>(
    index: usize,
    mut comparison: B,
    allowed: Duration,
    observer: &dyn Observer,
    left: &mut Duration,
) -> Step<B> {
    let before = comparison.spent();
    let advanced = comparison.advance(allowed, observer);
    let spent = comparison.spent();
    *left = left.saturating_sub(spent - before);
    match advanced {
        Ok(advanced) if !comparison.is_over() => Step::Open(comparison, advanced),
        Ok(_) => Step::Closed(Closed {
            index,
            comparison: Ok(comparison),
            spent,
        }),
        Err(failure) => Step::Closed(Closed {
            index,
            comparison: Err(failure),
            spent,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use gauntlet_judge::Blind;

    /// Takes ten seconds for each look; is over after this many looks.
    struct Fake<'l> {
        name: char,
        looks: usize,
        over_after: usize,
        log: &'l RefCell<String>,
    }

    const LOOK: Duration = Duration::from_secs(10);

    impl SharedTime for Fake<'_> {
        fn advance(&mut self, allowed: Duration, _: &dyn Observer) -> Result<bool, ExaminationFailure> {
            if allowed < LOOK {
                return Ok(false);
            }
            self.looks += 1;
            self.log.borrow_mut().push(self.name);
            Ok(true)
        }

        fn is_over(&self) -> bool {
            self.looks >= self.over_after
        }

        fn lacks(&self) -> Option<usize> {
            (self.over_after < 100).then(|| self.over_after - self.looks)
        }

        fn spent(&self) -> Duration {
            LOOK * self.looks as u32
        }
    }

    /// The looks and the ends of comparisons, in order.
    fn played(comparisons: &[(char, usize)], seconds: u64) -> (String, String) {
        played_freeing(comparisons, seconds, "")
    }

    /// The same, where some comparisons free the time of a look when they end.
    fn played_freeing(comparisons: &[(char, usize)], seconds: u64, freeing: &str) -> (String, String) {
        let log = RefCell::new(String::new());
        let over = RefCell::new(String::new());
        let comparisons: Vec<Fake> = comparisons
            .iter()
            .map(|&(name, over_after)| Fake {
                name,
                looks: 0,
                over_after,
                log: &log,
            })
            .collect();
        let names: Vec<char> = comparisons.iter().map(|comparison| comparison.name).collect();
        spend(comparisons, Duration::from_secs(seconds), &Blind, |closed| {
            let is_over = closed.comparison.is_ok_and(|comparison| comparison.is_over());
            over.borrow_mut()
                .push(if is_over { names[closed.index] } else { '.' });
            let frees = is_over && freeing.contains(names[closed.index]);
            Ok::<_, ()>(if frees { LOOK } else { Duration::ZERO })
        })
        .unwrap();
        (log.into_inner(), over.into_inner())
    }

    #[test]
    fn all_get_a_first_look_and_then_whichever_lacks_least() {
        let (looks, over) = played(&[('a', 100), ('b', 3), ('c', 1), ('d', 2)], 80);
        // One look each; d needs one more and b two; the remaining time goes to a, which has no estimate.
        assert_eq!(looks, "abcddbba");
        assert_eq!(over, "cdb.");
    }

    #[test]
    fn nothing_is_spent_beyond_the_budget() {
        let (looks, over) = played(&[('a', 9), ('b', 9)], 35);
        assert_eq!(looks.len(), 3);
        assert_eq!(over, "..");
    }

    #[test]
    fn what_one_sets_free_the_others_take() {
        assert_eq!(played(&[('a', 2), ('b', 1)], 20).0, "ab");
        let (looks, over) = played_freeing(&[('a', 2), ('b', 1)], 20, "b");
        assert_eq!((looks.as_str(), over.as_str()), ("aba", "ba"));
    }
}
