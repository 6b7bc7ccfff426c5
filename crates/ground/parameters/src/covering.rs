//! A small set of candidates that contains every pair of values that can occur together.
//!
//! Faults that depend on one or two parameters show in such a set, at a fraction of the cost of all combinations.

use std::collections::HashSet;

use crate::{Parameters, Value};

/// Values to combine: a list for each parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Space(Vec<(String, Vec<Value>)>);

impl Space {
    /// A space of no parameters, which has one point.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the values of one more parameter.
    #[must_use]
    pub fn with<V: Into<Value>>(mut self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        self.0
            .push((name.to_owned(), values.into_iter().map(Into::into).collect()));
        self
    }

    /// The number of combinations.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(_, values)| values.len()).product()
    }

    /// Whether a parameter has no values, so that there is no combination.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every combination; the last parameter changes fastest.
    pub fn combinations(&self) -> impl Iterator<Item = Parameters> + '_ {
        (0..self.len()).map(|number| {
            let mut rest = number;
            let value = |(name, values): &(String, Vec<Value>)| {
                let index = rest % values.len();
                rest /= values.len();
                (name.clone(), values[index].clone())
            };
            self.0.iter().rev().map(value).collect()
        })
    }
}

/// A set of accepted combinations in which every pair of values of two parameters that occurs in any accepted
/// combination occurs at least once. A space of one parameter gives each of its accepted values, and one without parameters
/// its one point. The same space gives the same set, in the same order.
///
/// Greedy: each step takes the combination that covers most of the missing pairs; the first one on a tie.
pub fn pairwise(space: &Space, accepts: impl Fn(&Parameters) -> bool) -> Vec<Parameters> {
    let accepted: Vec<Parameters> = space.combinations().filter(accepts).collect();
    if space.0.len() < 2 {
        return accepted;
    }
    let covered: Vec<Vec<Pair>> = accepted.iter().map(|point| pairs(space, point)).collect();
    let mut missing: HashSet<Pair> = covered.iter().flatten().copied().collect();
    let mut chosen = Vec::new();
    while !missing.is_empty() {
        let mut best: Option<(usize, usize)> = None;
        for (index, pairs) in covered.iter().enumerate() {
            let gain = pairs.iter().filter(|pair| missing.contains(*pair)).count();
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, index));
            }
        }
        let Some((_, index)) = best else { break };
        for pair in &covered[index] {
            missing.remove(pair);
        }
        chosen.push(accepted[index].clone());
    }
    chosen
}

/// Two parameters, each with the index of its value in its list.
type Pair = [(usize, usize); 2];

fn pairs(space: &Space, point: &Parameters) -> Vec<Pair> {
    let places: Vec<(usize, usize)> = space
        .0
        .iter()
        .enumerate()
        .filter_map(|(parameter, (name, values))| {
            let given = point.get(name)?;
            Some((parameter, values.iter().position(|value| value == given)?))
        })
        .collect();
    let mut pairs = Vec::with_capacity(places.len() * places.len() / 2);
    for (index, &one) in places.iter().enumerate() {
        pairs.extend(places[index + 1..].iter().map(|&other| [one, other]));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space::new()
            .with("a", [1_usize, 2, 3])
            .with("b", [false, true])
            .with("c", ["x", "y", "z"])
            .with("d", [1_usize, 2])
    }

    /// Two is refused together with `true`.
    fn accepts(point: &Parameters) -> bool {
        point.get("a") != Some(&Value::Number(2)) || point.get("b") != Some(&Value::Flag(true))
    }

    #[test]
    fn every_pair_that_can_occur_occurs_in_a_small_set() {
        let (space, chosen) = (space(), pairwise(&space(), accepts));
        let of = |points: &[Parameters]| -> HashSet<Pair> {
            points.iter().flat_map(|point| pairs(&space, point)).collect()
        };
        let all: Vec<Parameters> = space.combinations().filter(accepts).collect();
        assert_eq!(all.len(), 30);
        assert_eq!(of(&chosen), of(&all));
        assert!(chosen.len() <= 12, "{}", chosen.len());
        assert!(chosen.iter().all(accepts));
        assert_eq!(chosen, pairwise(&space, accepts));
    }

    #[test]
    fn a_space_too_small_for_pairs_is_covered_whole() {
        let one = Space::new().with("a", [1_usize, 2, 3]);
        let chosen = pairwise(&one, |point| point.get("a") != Some(&Value::Number(2)));
        let shown: Vec<String> = chosen.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a=1", "a=3"]);
        assert_eq!(pairwise(&Space::new(), |_| true), [Parameters::new()]);
    }

    #[test]
    fn the_last_parameter_changes_fastest() {
        let second = space().combinations().nth(1).unwrap();
        assert_eq!(second.to_string(), "a=1, b=false, c=x, d=2");
    }
}
