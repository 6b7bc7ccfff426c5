//! How far a mean of differences may stray by chance.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::FixedState;

/// The most reference values for which differences are added up by value. Differences at any further value count one by one,
/// which bounds the memory. An output with so many differences is large, and the bound then lies far below the rules' limit.
const TOLD_APART: usize = 1 << 16;

/// Differences between results and the rounded reference, added up over elements with the same reference value.
///
/// A correct result differs from the rounded reference where the exact value lies near the middle between two numbers of the
/// format, and then up or down by chance. Where operands repeat, whole rows have the same exact value and differ in the same
/// direction: together they are one coincidence and not many.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// By the bits of the reference value. A large result has a million differences, so this must be fast: an ordered map took
    /// half a second for them, most of the time of a comparison. The fixed hash makes sums the same in every run.
    by_value: HashMap<u64, f64, FixedState>,
    /// The sum of squares of the differences that are not told apart.
    others: f64,
}

impl Differences {
    /// Adds the difference of an element.
    pub(crate) fn add(&mut self, expected: f64, difference: f64) {
        let has_room = self.by_value.len() < TOLD_APART;
        match self.by_value.entry(expected.to_bits()) {
            Entry::Occupied(mut sum) => *sum.get_mut() += difference,
            Entry::Vacant(place) if has_room => {
                place.insert(difference);
            }
            Entry::Vacant(_) => self.others += difference * difference,
        }
    }

    /// The differences of both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.others += other.others;
        for (bits, difference) in other.by_value {
            self.add(f64::from_bits(bits), difference);
        }
        self
    }

    /// The standard deviation of the sum of all differences if the sign of each is chance.
    pub(crate) fn deviation(&self) -> f64 {
        let squares = self.by_value.values().map(|sum| sum * sum).sum::<f64>();
        (squares + self.others).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_count_as_one_and_others_as_themselves() {
        let mut differences = Differences::default();
        for _ in 0..4 {
            differences.add(1.5, 0.5);
        }
        assert_eq!(differences.deviation(), 2.0);
        let mut others = Differences::default();
        for value in [2.5, 3.5, 4.5, 5.5] {
            others.add(value, -0.5);
        }
        assert_eq!(others.deviation(), 1.0);
        assert_eq!(differences.and(others).deviation(), 5.0_f64.sqrt());
    }

    #[test]
    fn beyond_the_values_that_are_told_apart_each_difference_counts_alone() {
        let mut differences = Differences::default();
        for value in 0..TOLD_APART {
            differences.add(value as f64, 0.0);
        }
        for _ in 0..9 {
            differences.add(-1.0, 1.0);
        }
        assert_eq!(differences.deviation(), 3.0);
    }
}
