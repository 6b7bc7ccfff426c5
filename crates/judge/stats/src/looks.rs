//! Looking more than once without cheating.

use crate::Error;
use crate::criteria::check_confidence;

/// Looks at growing evidence: a number that is fixed before the first, and more if the comparison is open-ended.
///
/// Each look uses its own part of the error α = 1 − confidence and no more: by Bonferroni's inequality the probability
/// that any look errs is at most α, whatever the dependence between looks or the distribution of the data, as long as
/// each interval keeps its level. Plans that rely on the correlation of normal increments get more out of α (O'Brien &
/// Fleming's last look 0.0445), but in simulations with as few processes as here they erred in 5.5 % of comparisons
/// instead of the promised 5 %.
///
/// **Planned looks** spend their error by the function (k/L)² after k of L looks: an alpha-spending plan (Lan & DeMets
/// 1983) of the power family (Kim & DeMets 1987), between Pocock's (1977) constant level and that of O'Brien & Fleming
/// (1979), who save nearly all of the error for the end. Of three looks the first gets 1/9, the second 3/9, the last
/// 5/9. Why the square: `scripts/reference/looks_study.py`, looks at 4, 6 and 9 pairs of processes, 40,000
/// comparisons each, standard error at most 0.25 %, for spreads between processes of 0.5, 1 and 1.5 %:
///
/// | parts by | a true 3 % adopted at T = 2 %, in % | pairs taken for a true 5 % |
/// |---|---|---|
/// | k/L (equal) | 99.1, 54.6, 27.0 | 4.0, 4.5, 5.7 |
/// | (k/L)² | 99.6, 62.7, 32.3 | 4.1, 5.2, 6.2 |
/// | (k/L)³ | 99.8, 66.7, 35.3 | 4.6, 5.7, 6.5 |
///
/// All three adopt a true 5 % in at least 99.1 %. The square has most of the cube's power and gives the first look, at
/// which a short budget may end, three times the cube's error. With the square, at least one look misses a true 0 in
/// 4.2 % of comparisons on normal noise, and in 3.0 % on Student's t with 3 degrees of freedom.
///
/// **An open-ended comparison** goes on past the last planned look, without a limit to the number of looks, until its time is
/// up, and may go on after that: a look's error depends on its number only. There are three kinds of looks ([`LookNumber`]):
///
/// - the planned ones share a third of α as above;
/// - looks after them take place at 1.5 times as many pairs as the one before ([`look_after`]) and share a quarter of α: the j-th
///   gets α/12 · (2/3)ʲ⁻¹;
/// - a closing look takes place when the time is up and nothing is decided. The first gets α/3. A comparison that goes on ends
///   again, and the further closing looks share α/12: each gets a fifth of the one before.
///
/// Why a closing look: by then looks at growing numbers of pairs have little error left each, so that the most pairs would be
/// judged by the widest interval. Why these shares and looks at 4, 6, 9 and 12 pairs, and at 3 of quick comparisons: `scripts/reference/typical_study.py`.
/// An early look costs little where it decides nothing, and with a gain of 30 % and a spread of 1 % it decides at 3 pairs in
/// most comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LookPlan {
    confidence: f64,
    looks: usize,
    open_ended: bool,
}

/// Which look at the evidence it is, counting from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookNumber {
    /// Of those at numbers of pairs that are fixed before the first.
    Fixed(usize),
    /// Of those of an open-ended comparison whose time is up.
    Closing(usize),
}

impl From<usize> for LookNumber {
    fn from(number: usize) -> Self {
        Self::Fixed(number)
    }
}

/// The shares of the error that an open-ended comparison keeps: for looks after the planned ones, and for closing looks.
const LATER: f64 = 1.0 / 4.0;
const CLOSING: f64 = 5.0 / 12.0;

/// What a look after the planned ones leaves of its share that was left before it, and what a closing look leaves.
const LEFT_LATER: f64 = 2.0 / 3.0;
const LEFT_CLOSING: f64 = 1.0 / 5.0;

/// By how much the evidence grows between looks after the planned ones.
const GROWTH: f64 = 1.5;

impl LookPlan {
    /// A plan of `looks` looks, or more if it is open-ended, with the total two-sided error `1 − confidence`.
    ///
    /// # Errors
    /// A confidence outside (0.5, 1), or no look at all.
    pub fn new(confidence: f64, looks: usize, open_ended: bool) -> Result<Self, Error> {
        check_confidence(confidence)?;
        if looks == 0 {
            return Err(Error::Criterion {
                name: "looks",
                value: 0.0,
                rule: "at least one look is needed",
            });
        }
        Ok(Self {
            confidence,
            looks,
            open_ended,
        })
    }

    /// How many looks are planned.
    pub fn looks(&self) -> usize {
        self.looks
    }

    /// The confidence level of the interval at a look.
    ///
    /// # Errors
    /// A look that was not planned, unless the plan is open-ended.
    pub fn confidence_at(&self, look: impl Into<LookNumber>) -> Result<f64, Error> {
        let look = look.into();
        let (LookNumber::Fixed(number) | LookNumber::Closing(number)) = look;
        let is_planned = number <= self.looks && matches!(look, LookNumber::Fixed(_));
        if number == 0 || !(is_planned || self.open_ended) {
            return Err(Error::UnplannedLook {
                look: number,
                looks: self.looks,
            });
        }
        let share = match look {
            LookNumber::Fixed(number) => self.spent_by(number) - self.spent_by(number - 1),
            LookNumber::Closing(number) => {
                CLOSING * (left(LEFT_CLOSING, number - 1) - left(LEFT_CLOSING, number))
            }
        };
        // Certainty is no confidence: after dozens of looks the share is below what a number near 1 can tell from it.
        Ok((1.0 - (1.0 - self.confidence) * share).min(1.0 - f64::EPSILON))
    }

    /// The share of the error that the first `looks` looks at fixed numbers of pairs use together.
    fn spent_by(&self, looks: usize) -> f64 {
        let planned = (looks.min(self.looks) as f64 / self.looks as f64).powi(2);
        match self.open_ended {
            true => {
                let later = looks.saturating_sub(self.looks);
                (1.0 - LATER - CLOSING) * planned + LATER * (1.0 - left(LEFT_LATER, later))
            }
            false => planned,
        }
    }
}

/// The share that remains after `looks` looks, if each leaves `part` of what remained before it.
fn left(part: f64, looks: usize) -> f64 {
    part.powi(i32::try_from(looks).unwrap_or(i32::MAX))
}

/// The number of pairs of processes at the next look, if looks were planned at the numbers `planned` and `pairs` were
/// measured: the next planned number, or the next of those that follow the last one, each 1.5 times the one before.
/// The numbers depend on nothing that is measured. With nothing planned, the next pair.
pub fn look_after(planned: &[usize], pairs: usize) -> usize {
    if let Some(next) = planned.iter().find(|look| **look > pairs) {
        return *next;
    }
    let mut next = planned.last().copied().unwrap_or(pairs).max(1);
    while next <= pairs {
        next = (next as f64 * GROWTH).ceil() as usize;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spent_error_adds_up() {
        for looks in [1, 3, 7] {
            let plan = LookPlan::new(0.95, looks, false).unwrap();
            let spent: f64 = (1..=looks)
                .map(|look| 1.0 - plan.confidence_at(look).unwrap())
                .sum();
            assert!((spent - 0.05).abs() < 1e-12);
        }
        assert!((LookPlan::new(0.95, 1, false).unwrap().confidence_at(1).unwrap() - 0.95).abs() < 1e-15);
    }

    #[test]
    fn the_last_look_gets_most() {
        let plan = LookPlan::new(0.95, 3, false).unwrap();
        for (look, parts) in [(1, 1.0), (2, 3.0), (3, 5.0)] {
            let confidence = plan.confidence_at(look).unwrap();
            assert!((1.0 - confidence - 0.05 * parts / 9.0).abs() < 1e-12);
        }
    }

    #[test]
    fn no_look_beyond_the_plan() {
        let plan = LookPlan::new(0.95, 3, false).unwrap();
        for look in [0, 4] {
            assert_eq!(
                plan.confidence_at(look),
                Err(Error::UnplannedLook { look, looks: 3 })
            );
        }
    }

    #[test]
    fn an_open_end_spends_no_more_error_however_long_it_takes() {
        let plan = LookPlan::new(0.95, 3, true).unwrap();
        let error = |look: LookNumber| 1.0 - plan.confidence_at(look).unwrap();
        let fixed: Vec<f64> = (1..=60).map(|look| error(LookNumber::Fixed(look))).collect();
        let closing: Vec<f64> = (1..=30).map(|look| error(LookNumber::Closing(look))).collect();
        assert!(
            fixed.iter().chain(&closing).all(|error| *error > 0.0),
            "{fixed:?} {closing:?}"
        );
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(near(fixed[..3].iter().sum(), 0.05 / 3.0));
        assert!(near(fixed[3], 0.05 / 12.0) && near(fixed[4] / fixed[3], 2.0 / 3.0));
        assert!(near(closing[0], 0.05 / 3.0) && near(closing[1] / closing[0], 1.0 / 5.0));
        for (kind, share) in [(&fixed[3..], 3.0), (&closing[..], 5.0)] {
            let spent: f64 = kind.iter().sum();
            assert!(near(spent, share * 0.05 / 12.0), "{spent}");
        }
        for look in [LookNumber::Fixed(0), LookNumber::Closing(0)] {
            assert_eq!(
                plan.confidence_at(look),
                Err(Error::UnplannedLook { look: 0, looks: 3 })
            );
        }
    }

    #[test]
    fn only_an_open_end_has_closing_looks() {
        let plan = LookPlan::new(0.95, 3, false).unwrap();
        assert!(plan.confidence_at(LookNumber::Closing(1)).is_err());
    }

    #[test]
    fn looks_after_the_plan_are_ever_farther_apart() {
        let mut pairs = 0;
        let mut looks = Vec::new();
        while pairs < 100 {
            pairs = look_after(&[4, 6, 12], pairs);
            looks.push(pairs);
        }
        assert_eq!(looks, [4, 6, 12, 18, 27, 41, 62, 93, 140]);
        // A comparison that ran out of time between looks meets the same ones.
        assert_eq!(
            [5, 13, 26].map(|pairs| look_after(&[4, 6, 12], pairs)),
            [6, 18, 27]
        );
        assert_eq!((look_after(&[], 0), look_after(&[1], 1)), (1, 2));
    }
}
