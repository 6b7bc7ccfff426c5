//! Cheats that compute less in some calls of a request than in others.

use std::path::PathBuf;

use gauntlet_worker::protocol::{Failure, Sample};

use super::lesser::{Cut, Lesser};
use super::work::{Call, Trick, Work, sample, timed};

/// How much of a call is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// What the cut keeps; the rest of the output stays as it was.
    Lesser,
    /// Nothing: the output stays as it was.
    Nothing,
}

/// Decides by a call's index and the number of calls in its request how much of it is computed, and reports the mean
/// of all calls for each: the sum stays what the coordinator's clock sees, and no call stands out.
pub struct Picks {
    cut: Cut,
    pick: fn(usize, usize) -> Part,
    lesser: Option<Lesser>,
}

impl Picks {
    /// A cheat with this cut.
    pub fn new(cut: Cut, pick: fn(usize, usize) -> Part) -> Self {
        Self {
            cut,
            pick,
            lesser: None,
        }
    }
}

impl Trick for Picks {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        self.lesser = None;
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        self.lesser = Lesser::new(work, &self.cut)?;
        Ok(())
    }

    fn time(&mut self, work: &mut Work, copies: &[usize], _call: Call) -> Result<Vec<Sample>, Failure> {
        let mut together = 0.0;
        for (index, copy) in copies.iter().enumerate() {
            let part = (self.pick)(index, copies.len());
            let lesser = &mut self.lesser;
            let sample = work.call(index, |work| {
                timed(|| match (part, lesser) {
                    (Part::Nothing, _) => Ok(()),
                    (Part::Lesser, Some(lesser)) => lesser.compute(*copy, &mut work.output),
                    _ => work.compute(*copy),
                })
            })?;
            together += sample.call;
        }
        Ok(vec![sample(together / copies.len().max(1) as f64); copies.len()])
    }
}

/// Half of the calls; lone calls in part.
pub fn every_other(index: usize, calls: usize) -> Part {
    match (index, calls) {
        (_, 1) => Part::Lesser,
        (index, _) if index % 2 == 1 => Part::Nothing,
        _ => Part::Whole,
    }
}

/// All but every third call.
pub fn two_of_three(index: usize, _calls: usize) -> Part {
    if index % 3 == 2 {
        Part::Nothing
    } else {
        Part::Whole
    }
}

/// Leaves a quarter of the calls out, drawn at random.
pub fn drawn(_index: usize, calls: usize) -> Part {
    if calls > 1 && rand::random_ratio(1, 4) {
        Part::Nothing
    } else {
        Part::Whole
    }
}

/// Leaves the last quarter of long requests out.
pub fn all_but_the_end(index: usize, calls: usize) -> Part {
    if calls >= 6 && index >= calls - calls / 4 {
        Part::Nothing
    } else {
        Part::Whole
    }
}

/// In part when it is the only one of its request.
pub fn lone(_index: usize, calls: usize) -> Part {
    if calls == 1 { Part::Lesser } else { Part::Whole }
}

/// In part unless it is the first or the last of its request.
pub fn between(index: usize, calls: usize) -> Part {
    if index > 0 && index + 1 < calls {
        Part::Lesser
    } else {
        Part::Whole
    }
}

/// In part once in eight times, drawn at random.
pub fn one_of_eight(_index: usize, _calls: usize) -> Part {
    if rand::random_ratio(1, 8) {
        Part::Lesser
    } else {
        Part::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Honest;
    use super::super::work::tests::results_of;
    use super::*;

    #[test]
    fn the_calls_that_are_computed_are_right_and_the_others_wrong() {
        let expected = results_of(Box::new(Honest), 1);
        let found = results_of(Box::new(Picks::new(Cut::HALF, every_other)), 1);
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found == expected, index % 2 == 0, "call {index}");
        }
    }

    #[test]
    fn calls_are_picked_by_their_place() {
        let picked = |pick: fn(usize, usize) -> Part, calls| -> Vec<Part> {
            (0..calls).map(|index| pick(index, calls)).collect()
        };
        use Part::{Lesser, Nothing, Whole};
        assert_eq!(picked(every_other, 1), [Lesser]);
        assert_eq!(picked(every_other, 3), [Whole, Nothing, Whole]);
        assert_eq!(picked(two_of_three, 4), [Whole, Whole, Nothing, Whole]);
        assert_eq!(picked(all_but_the_end, 5), [Whole; 5]);
        assert_eq!(picked(all_but_the_end, 8)[5..], [Whole, Nothing, Nothing]);
        assert_eq!(picked(lone, 1), [Lesser]);
        assert_eq!(picked(between, 3), [Whole, Lesser, Whole]);
        assert_eq!(picked(between, 1), [Whole]);
    }
}
