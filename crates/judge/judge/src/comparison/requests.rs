//! Requests that a worker cannot predict: how many calls, on which copies, and whose results are asked for.
//!
//! Both sides get the same requests. All draws come from the thread's generator, whose state no worker can know.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

/// The number of calls of a request lies within this share of its target.
const SPREAD: f64 = 0.4;

/// The share of the measuring time that fetching results may take.
const CHECKING: f64 = 0.4;

/// Bounds of the probability that results of a request are asked for.
const PROBABILITY: [f64; 2] = [0.1, 1.0];

/// A request for timed calls.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedRequest {
    /// The copy for each call.
    pub copies: Vec<usize>,
    /// The calls that are the first on the values of their operands.
    pub fresh: Vec<usize>,
    /// The calls whose results are asked for, in order.
    pub checks: Vec<usize>,
    /// Whether it is a slot, after which the state of the device is read. Nothing of this reaches the worker.
    pub is_slot: bool,
    /// Seconds of load right before each call; empty if there is none.
    pub heat: Vec<f64>,
}

/// The copies of one load, as a deck of cards: dealt in random order without repetition, then shuffled again. So calls
/// keep leaving the last-level cache, and which operands come next is not known.
///
/// Copies of the known set, number 0, are left out unless that leaves fewer than two: a worker that has its result from
/// somewhere else would gain by them.
pub struct Deck {
    /// How many sets of operands there are; copy i holds set i modulo this.
    sets: usize,
    left: Vec<usize>,
    copies: usize,
    /// Sets whose values a call has used.
    used: Vec<bool>,
}

impl Deck {
    /// The copies of a load of that many sets. `known` sets have been computed with before.
    pub fn new(copies: usize, sets: usize, known: &[usize]) -> Self {
        Self {
            sets,
            left: Vec::new(),
            copies,
            used: (0..sets).map(|set| known.contains(&set)).collect(),
        }
    }

    /// A request on the next copies of the deck.
    pub fn deal(&mut self, calls: usize, rng: &mut impl Rng) -> TimedRequest {
        let mut copies = Vec::with_capacity(calls);
        while copies.len() < calls {
            if self.left.is_empty() {
                self.left = (0..self.copies).filter(|copy| copy % self.sets != 0).collect();
                if self.left.len() < 2 {
                    self.left = (0..self.copies).collect();
                }
                self.left.shuffle(rng);
                // Not the copy that was used last, so that no call finds its operands in a cache.
                let last = self.left.len() - 1;
                if last > 0 && self.left.last() == copies.last() {
                    self.left.swap(0, last);
                }
            }
            copies.extend(self.left.pop());
        }
        self.request(copies)
    }

    /// A request of one call on a copy of this set.
    pub fn lone(&mut self, set: usize, rng: &mut impl Rng) -> TimedRequest {
        let of_set = (self.copies - set).div_ceil(self.sets);
        self.request(vec![set + self.sets * rng.random_range(0..of_set)])
    }

    /// A request on copies of sets that calls have used, in random order. It leaves the deck as it is.
    pub fn known(&self, calls: usize, rng: &mut impl Rng) -> TimedRequest {
        let of = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..self.copies).filter(|copy| wanted(copy % self.sets)).collect()
        };
        let mut known = of(&|set| set != 0 && self.used[set]);
        if known.is_empty() {
            known = of(&|set| self.used[set]);
        }
        let drawn = (0..calls).filter_map(|_| known.get(rng.random_range(0..known.len().max(1))));
        TimedRequest {
            copies: drawn.copied().collect(),
            fresh: Vec::new(),
            checks: Vec::new(),
            is_slot: false,
            heat: Vec::new(),
        }
    }

    fn request(&mut self, copies: Vec<usize>) -> TimedRequest {
        let mut fresh = Vec::new();
        for (call, copy) in copies.iter().enumerate() {
            let set = copy % self.sets;
            if !std::mem::replace(&mut self.used[set], true) {
                fresh.push(call);
            }
        }
        TimedRequest {
            copies,
            fresh,
            checks: Vec::new(),
            is_slot: false,
            heat: Vec::new(),
        }
    }
}

/// A number of calls around a target.
pub fn length(target: usize, most: usize, rng: &mut impl Rng) -> usize {
    let target = target as f64;
    let drawn = rng.random_range((1.0 - SPREAD) * target..=(1.0 + SPREAD) * target);
    (drawn.round() as usize).clamp(1, most)
}

/// How often results are asked for, so that this takes a bounded share of the time.
pub fn checking(slot: f64, fetch: f64) -> f64 {
    (CHECKING * slot / fetch.max(1e-9)).clamp(PROBABILITY[0], PROBABILITY[1])
}

/// Draws one or two calls whose results are asked for, in order, with this probability.
pub fn draw_checks(calls: usize, probability: f64, rng: &mut impl Rng) -> Vec<usize> {
    if !rng.random_bool(probability) {
        return Vec::new();
    }
    let mut drawn = vec![rng.random_range(0..calls), rng.random_range(0..calls)];
    if probability < PROBABILITY[1] {
        drawn.truncate(1);
    }
    drawn.sort_unstable();
    drawn.dedup();
    drawn
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn a_deck_deals_every_copy_once_before_any_comes_again() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut deck = Deck::new(6, 3, &[0]);
        let first = deck.deal(4, &mut rng);
        let mut sorted = first.copies.clone();
        sorted.sort_unstable();
        // The known set is left out.
        assert_eq!(sorted, [1, 2, 4, 5]);
        // Two sets are fresh, each in its first call only.
        assert_eq!(first.fresh.len(), 2);
        for call in &first.fresh {
            let set = first.copies[*call] % 3;
            assert!(set != 0 && first.copies[..*call].iter().all(|copy| copy % 3 != set));
        }
        assert_eq!(deck.deal(6, &mut rng).fresh, [0; 0]);
        for _ in 0..50 {
            let dealt = deck.deal(13, &mut rng);
            assert!(
                dealt.copies.windows(2).all(|pair| pair[0] != pair[1]),
                "{dealt:?}"
            );
        }
        let mut few = Deck::new(2, 2, &[0]).deal(2, &mut rng).copies;
        few.sort_unstable();
        assert_eq!(few, [0, 1]);
    }

    #[test]
    fn a_lone_call_is_on_any_copy_of_its_set() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut deck = Deck::new(7, 3, &[]);
        assert_eq!(deck.lone(1, &mut rng).fresh, [0]);
        let copies: std::collections::BTreeSet<usize> =
            (0..99).map(|_| deck.lone(0, &mut rng).copies[0]).collect();
        assert_eq!(copies.into_iter().collect::<Vec<_>>(), [0, 3, 6]);
        assert_eq!(deck.lone(1, &mut rng).fresh, [0; 0]);
    }

    #[test]
    fn a_request_on_known_values_takes_none_that_are_new() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut deck = Deck::new(6, 3, &[0]);
        let sets = |deck: &Deck, rng: &mut ChaCha8Rng| -> std::collections::BTreeSet<usize> {
            deck.known(50, rng).copies.iter().map(|copy| copy % 3).collect()
        };
        assert_eq!(sets(&deck, &mut rng), [0].into());
        deck.lone(2, &mut rng);
        assert_eq!(sets(&deck, &mut rng), [2].into());
        assert_eq!(deck.deal(4, &mut rng).fresh.len(), 1, "set 1 is still new");
    }

    #[test]
    fn lengths_and_checks_vary_within_their_bounds() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let lengths: Vec<usize> = (0..500).map(|_| length(50, 65, &mut rng)).collect();
        let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        assert!((30..34).contains(least) && *most == 65, "{least} to {most}");
        assert_eq!(length(1, 1, &mut rng), 1);

        let asked = (0..1000)
            .filter(|_| !draw_checks(9, 0.25, &mut rng).is_empty())
            .count();
        assert!((180..320).contains(&asked), "{asked}");
        for _ in 0..100 {
            let drawn = draw_checks(9, 1.0, &mut rng);
            assert!((1..=2).contains(&drawn.len()) && drawn.iter().all(|call| *call < 9));
        }
        assert_eq!(checking(20e-3, 2e-3), 1.0);
        assert_eq!(checking(20e-3, 16e-3), 0.5);
        assert_eq!(checking(1e-3, 1.0), 0.1);
    }
}
