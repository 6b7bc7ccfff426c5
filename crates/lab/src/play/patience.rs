//! Spending time where it changes a verdict: every comparison gets its first look, then whichever lacks least goes on.

use std::time::Duration;

use crate::comparison::Contest;
use crate::gates::Trouble;
use crate::observer::Observer;

/// A comparison that is measured bit by bit.
pub trait Bout {
    /// Measures up to its next look; false when the time allowed does not reach so far.
    fn advance(&mut self, allowed: Duration, observer: &dyn Observer) -> Result<bool, Trouble>;
    /// Whether more would not change it.
    fn is_over(&self) -> bool;
    /// How many more pairs of processes would decide it; none when that cannot be told.
    fn lacks(&self) -> Option<usize>;
    /// The time it has taken.
    fn spent(&self) -> Duration;
}

impl Bout for Contest<'_> {
    fn advance(&mut self, allowed: Duration, observer: &dyn Observer) -> Result<bool, Trouble> {
        Contest::advance(self, allowed, observer)
    }

    fn is_over(&self) -> bool {
        Contest::is_over(self)
    }

    fn lacks(&self) -> Option<usize> {
        Some(self.needed()?.saturating_sub(self.pairs()))
    }

    fn spent(&self) -> Duration {
        Contest::spent(self)
    }
}

/// A bout that is over, or in trouble.
pub struct Closed<B> {
    /// Its place among the bouts given.
    pub index: usize,
    /// It, or what befell it.
    pub bout: Result<B, Trouble>,
    /// The time it took.
    pub spent: Duration,
}

/// Spends `budget` on bouts; `close` is told of each as soon as it is over, and of the rest in the end, and returns what
/// time that sets free for the others.
pub fn spend<B: Bout, E>(
    bouts: Vec<B>,
    budget: Duration,
    observer: &dyn Observer,
    mut close: impl FnMut(Closed<B>) -> Result<Duration, E>,
) -> Result<(), E> {
    let mut left = budget;
    let mut open: Vec<(usize, B)> = Vec::new();
    let count = bouts.len();
    for (index, bout) in bouts.into_iter().enumerate() {
        let share = left / u32::try_from(count - index).unwrap_or(u32::MAX);
        let step = step(index, bout, share, observer, &mut left);
        match step {
            Step::Open(bout, _) => open.push((index, bout)),
            Step::Closed(closed) => left += close(closed)?,
        }
    }
    while let Some(place) = nearest(&open) {
        let (index, bout) = open.remove(place);
        match step(index, bout, left, observer, &mut left) {
            Step::Open(bout, true) => open.push((index, bout)),
            // Its next look is out of reach, but a cheaper one's may not be.
            Step::Open(bout, false) => {
                let spent = bout.spent();
                let bout = Ok(bout);
                left += close(Closed { index, bout, spent })?;
            }
            Step::Closed(closed) => left += close(closed)?,
        }
    }
    Ok(())
}

/// The bout that lacks least; of those that cannot tell, the first.
fn nearest<B: Bout>(open: &[(usize, B)]) -> Option<usize> {
    (0..open.len()).min_by_key(|place| open[*place].1.lacks().unwrap_or(usize::MAX))
}

enum Step<B> {
    Open(B, bool),
    Closed(Closed<B>),
}

fn step<B: Bout>(
    index: usize,
    mut bout: B,
    allowed: Duration,
    observer: &dyn Observer,
    left: &mut Duration,
) -> Step<B> {
    let before = bout.spent();
    let advanced = bout.advance(allowed, observer);
    let spent = bout.spent();
    *left = left.saturating_sub(spent - before);
    match advanced {
        Ok(advanced) if !bout.is_over() => Step::Open(bout, advanced),
        Ok(_) => Step::Closed(Closed {
            index,
            bout: Ok(bout),
            spent,
        }),
        Err(trouble) => Step::Closed(Closed {
            index,
            bout: Err(trouble),
            spent,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::observer::Blind;

    /// Takes ten seconds a look; is over after so many.
    struct Fake<'l> {
        name: char,
        looks: usize,
        over_after: usize,
        log: &'l RefCell<String>,
    }

    const LOOK: Duration = Duration::from_secs(10);

    impl Bout for Fake<'_> {
        fn advance(&mut self, allowed: Duration, _: &dyn Observer) -> Result<bool, Trouble> {
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

    /// Which looks were taken, and which bouts were over, in order.
    fn played(bouts: &[(char, usize)], seconds: u64) -> (String, String) {
        played_freeing(bouts, seconds, "")
    }

    /// The same where the end of some sets a look's time free.
    fn played_freeing(bouts: &[(char, usize)], seconds: u64, freeing: &str) -> (String, String) {
        let log = RefCell::new(String::new());
        let over = RefCell::new(String::new());
        let bouts: Vec<Fake> = bouts
            .iter()
            .map(|&(name, over_after)| Fake {
                name,
                looks: 0,
                over_after,
                log: &log,
            })
            .collect();
        let names: Vec<char> = bouts.iter().map(|bout| bout.name).collect();
        spend(bouts, Duration::from_secs(seconds), &Blind, |closed| {
            let is_over = closed.bout.is_ok_and(|bout| bout.is_over());
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
        // One look each; d lacks one more, b two; what is left goes to a, which cannot tell.
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
