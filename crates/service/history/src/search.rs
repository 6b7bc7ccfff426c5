//! The search for the commit that made a kernel slower.
//!
//! The regression is shown first, between the good commit and the bad one. Each step then compares a commit with the good one, and
//! counts only if its whole interval lies on one side of half the regression; if it does not, pairs are added. A commit that stays
//! undecided or does not build is passed over. The last commit is blamed only after it has been compared with the one just before it,
//! on pairs of its own; in every other case the answer is a range.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much longer a commit takes than the one that it is compared with, as a fraction: 0.05 is 5 % longer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowdown {
    /// The lower bound.
    pub lower: f64,
    /// The best guess.
    pub estimate: f64,
    /// The upper bound.
    pub upper: f64,
}

/// A comparison that is asked for. Commits are numbered from the good one, which is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The commit that is compared with.
    pub base: usize,
    /// The commit that may be slower.
    pub commit: usize,
    /// The slowdown that the interval is to lie above or below.
    pub threshold: f64,
    /// Two-sided confidence of the interval, all its looks together.
    pub confidence: f64,
    /// How many times pairs were added to this comparison before; 0 begins it.
    pub round: usize,
}

/// What a comparison says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The slowdown. None if the times allow no interval, or cannot be believed.
    Measured(Option<Slowdown>),
    /// There is nothing to compare: it does not build, or is wrong.
    Unusable(String),
}

/// Whoever compares commits.
pub trait Comparer {
    /// What keeps it from comparing any further.
    type Error;

    /// Compares two commits, or adds pairs to their comparison.
    ///
    /// # Errors
    /// If the search cannot go on.
    fn compare(&mut self, question: &Question) -> Result<Answer, Self::Error>;
}

/// What is known of a commit after its comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Shown to be without the regression.
    Good,
    /// Shown to have it.
    Bad,
    /// Neither is shown, with all pairs that were allowed.
    Undecided,
    /// It cannot be compared, and why.
    Unusable(String),
}

/// A comparison with what it showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The last question, with the most pairs.
    pub question: Question,
    /// The slowdown.
    pub slowdown: Option<Slowdown>,
    /// What is known by it.
    pub standing: Standing,
}

/// What is searched for, and how sure each step is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// The least slowdown that counts as a regression.
    pub least: f64,
    /// Two-sided confidence of each comparison.
    pub confidence: f64,
    /// How many times pairs are added to an undecided comparison.
    pub rounds: usize,
    /// How many commits may stay undecided before the search ends with a range.
    pub undecided: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            least: 0.01,
            confidence: 0.99,
            rounds: 4,
            undecided: 3,
        }
    }
}

impl Rules {
    /// How many comparisons a search among so many commits after the good one takes, if each of them decides: the first, a
    /// halving at a time, and the last.
    pub fn comparisons(commits: usize) -> usize {
        let halvings = usize::BITS - commits.saturating_sub(1).leading_zeros();
        2 + halvings as usize
    }
}

/// What a search comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The bad commit is shown not to be slower by as much as counts.
    NoRegression,
    /// The first comparison shows neither a regression nor that there is none.
    Unshown,
    /// This commit is slower than the one just before it, which has no part of the regression.
    Culprit {
        /// The commit.
        commit: usize,
        /// By how much.
        slowdown: Slowdown,
    },
    /// The regression came after `after` and not later than `upto`.
    Range {
        /// The last commit that is known to be without it.
        after: usize,
        /// The first one that is known to have it.
        upto: usize,
        /// Why it is no single commit.
        why: Why,
    },
}

/// Why a search ends with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The commits within stay undecided, or cannot be compared.
    PassedOver,
    /// The last commit, against the one just before it, stays undecided.
    Unconfirmed,
    /// The last commit is shown to be as fast as the one just before it: an earlier step erred, or times depend on more than the code.
    Contradicted,
}

/// The search, with all its steps in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What it comes to.
    pub outcome: Outcome,
    /// What was compared.
    pub steps: Vec<Step>,
}

/// Searches the commits 1 to `bad`, of which 0 is good, for the one that made the kernel slower.
///
/// # Errors
/// If the comparer cannot go on.
pub fn search<C: Comparer>(bad: usize, rules: &Rules, comparer: &mut C) -> Result<Search, C::Error> {
    let mut searching = Searching {
        rules,
        comparer,
        steps: Vec::new(),
    };
    let outcome = searching.outcome(bad)?;
    Ok(Search {
        outcome,
        steps: searching.steps,
    })
}

struct Searching<'s, C> {
    rules: &'s Rules,
    comparer: &'s mut C,
    steps: Vec<Step>,
}

impl<C: Comparer> Searching<'_, C> {
    fn outcome(&mut self, bad: usize) -> Result<Outcome, C::Error> {
        let shown = match self.step(0, bad, self.rules.least)? {
            (Standing::Bad, Some(slowdown)) => slowdown,
            (Standing::Good, _) => return Ok(Outcome::NoRegression),
            _ => return Ok(Outcome::Unshown),
        };
        // A commit has all of the regression or nothing of it. One that has half of it stays undecided, as it should.
        let threshold = shown.estimate / 2.0;
        let mut bounds = vec![(0, bad)];
        let mut passed = BTreeSet::new();
        let mut undecided = 0;
        let (mut good, mut bad) = (0, bad);
        while let Some(commit) = middle(good, bad, &passed).filter(|_| undecided < self.rules.undecided) {
            match self.step(0, commit, threshold)?.0 {
                Standing::Good => good = commit,
                Standing::Bad => bad = commit,
                standing => {
                    undecided += usize::from(standing == Standing::Undecided);
                    passed.insert(commit);
                    continue;
                }
            }
            bounds.push((good, bad));
        }
        if bad - good > 1 {
            return Ok(range(good, bad, Why::PassedOver));
        }
        Ok(match self.step(good, bad, threshold)? {
            (Standing::Bad, Some(slowdown)) => Outcome::Culprit {
                commit: bad,
                slowdown,
            },
            // A range of one commit would blame it all the same.
            (Standing::Good, _) => range(0, bounds[0].1, Why::Contradicted),
            _ => {
                let (after, upto) = wider(&bounds, good, bad);
                range(after, upto, Why::Unconfirmed)
            }
        })
    }

    /// Compares a commit with `base`, with more pairs as long as nothing is shown.
    fn step(
        &mut self,
        base: usize,
        commit: usize,
        threshold: f64,
    ) -> Result<(Standing, Option<Slowdown>), C::Error> {
        let mut question = Question {
            base,
            commit,
            threshold,
            confidence: self.rules.confidence,
            round: 0,
        };
        loop {
            let (standing, slowdown) = match self.comparer.compare(&question)? {
                Answer::Unusable(why) => (Standing::Unusable(why), None),
                Answer::Measured(slowdown) => (standing(slowdown, threshold), slowdown),
            };
            if standing == Standing::Undecided && question.round < self.rules.rounds {
                question.round += 1;
                continue;
            }
            self.steps.push(Step {
                question,
                slowdown,
                standing: standing.clone(),
            });
            return Ok((standing, slowdown));
        }
    }
}

/// What an interval shows.
fn standing(slowdown: Option<Slowdown>, threshold: f64) -> Standing {
    match slowdown {
        Some(slowdown) if slowdown.lower > threshold => Standing::Bad,
        Some(slowdown) if slowdown.upper < threshold => Standing::Good,
        _ => Standing::Undecided,
    }
}

/// The commit nearest to the middle between two that was not passed over.
fn middle(good: usize, bad: usize, passed: &BTreeSet<usize>) -> Option<usize> {
    let center = good + (bad - good) / 2;
    let open = (good + 1..bad).filter(|commit| !passed.contains(commit));
    open.min_by_key(|commit| commit.abs_diff(center))
}

/// The bounds just before the good one was reached, and before the bad one was.
fn wider(bounds: &[(usize, usize)], good: usize, bad: usize) -> (usize, usize) {
    let before =
        |is_now: &dyn Fn(&(usize, usize)) -> bool| bounds.iter().rev().find(|pair| !is_now(pair)).copied();
    let after = before(&|pair| pair.0 == good).map_or(good, |pair| pair.0);
    let upto = before(&|pair| pair.1 == bad).map_or(bad, |pair| pair.1);
    (after, upto)
}

fn range(after: usize, upto: usize, why: Why) -> Outcome {
    Outcome::Range { after, upto, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits whose slowdowns against commit 0 are known, or that cannot be compared; every interval is this wide on each side, and
    /// narrower with each round.
    struct Known {
        slow: Vec<Option<f64>>,
        width: f64,
        asked: Vec<Question>,
    }

    impl Comparer for Known {
        type Error = ();

        fn compare(&mut self, question: &Question) -> Result<Answer, ()> {
            self.asked.push(*question);
            let Some(slow) = self.slow[question.commit] else {
                return Ok(Answer::Unusable("it does not build".to_owned()));
            };
            let base = self.slow[question.base].unwrap_or_default();
            let estimate = (1.0 + slow) / (1.0 + base) - 1.0;
            let width = self.width / (1 + question.round) as f64;
            Ok(Answer::Measured(Some(Slowdown {
                lower: estimate - width,
                estimate,
                upper: estimate + width,
            })))
        }
    }

    fn found(slow: Vec<Option<f64>>, width: f64) -> (Search, Vec<Question>) {
        let bad = slow.len() - 1;
        let mut known = Known {
            slow,
            width,
            asked: Vec::new(),
        };
        let search = search(bad, &Rules::default(), &mut known).unwrap();
        (search, known.asked)
    }

    fn planted(commits: usize, culprit: usize, size: f64) -> Vec<Option<f64>> {
        (0..=commits)
            .map(|commit| Some(if commit >= culprit { size } else { 0.0 }))
            .collect()
    }

    #[test]
    fn a_culprit_is_found_in_the_planned_number_of_comparisons_and_compared_with_its_parent() {
        for culprit in 1..=64 {
            let (search, asked) = found(planted(64, culprit, 0.1), 0.01);
            assert!(
                matches!(search.outcome, Outcome::Culprit { commit, .. } if commit == culprit),
                "{culprit}: {search:?}"
            );
            let last = asked.last().unwrap();
            assert_eq!((last.base, last.commit), (culprit - 1, culprit));
            assert!(asked.len() <= Rules::comparisons(64), "{}", asked.len());
        }
        assert_eq!([1, 2, 3, 64].map(Rules::comparisons), [2, 3, 4, 8]);
    }

    #[test]
    fn an_undecided_step_gets_more_pairs_before_anything_is_concluded() {
        let (search, asked) = found(planted(8, 5, 0.05), 0.06);
        assert!(
            matches!(search.outcome, Outcome::Culprit { commit: 5, .. }),
            "{search:?}"
        );
        assert!(asked.iter().any(|question| question.round > 0));
        assert_eq!(search.steps.len(), 5, "a step is a comparison with all its pairs");
    }

    #[test]
    fn without_a_regression_nobody_is_blamed() {
        assert_eq!(found(planted(8, 9, 0.0), 0.005).0.outcome, Outcome::NoRegression);
        assert_eq!(found(planted(8, 9, 0.0), 0.5).0.outcome, Outcome::Unshown);
        assert_eq!(found(vec![Some(0.0), None], 0.01).0.outcome, Outcome::Unshown);
    }

    #[test]
    fn commits_that_do_not_build_are_passed_over_and_may_leave_a_range() {
        let mut slow = planted(8, 7, 0.1);
        slow[4] = None;
        assert!(matches!(
            found(slow.clone(), 0.01).0.outcome,
            Outcome::Culprit { commit: 7, .. }
        ));
        slow[6] = None;
        let range = Outcome::Range {
            after: 5,
            upto: 7,
            why: Why::PassedOver,
        };
        assert_eq!(found(slow, 0.01).0.outcome, range);
    }

    #[test]
    fn a_regression_in_two_halves_is_a_range_that_holds_both() {
        let mut slow = planted(16, 12, 0.1);
        slow[5..12].fill(Some(0.05));
        let (search, _) = found(slow, 0.03);
        let Outcome::Range { after, upto, why } = search.outcome else {
            panic!("{search:?}");
        };
        assert!(after < 5 && upto >= 12, "{after} {upto}");
        assert_eq!(why, Why::PassedOver);
    }

    /// One comparison with the good commit lies.
    #[test]
    fn a_commit_that_is_as_fast_as_the_one_before_it_is_not_blamed() {
        struct Lying(Known);
        impl Comparer for Lying {
            type Error = ();
            fn compare(&mut self, question: &Question) -> Result<Answer, ()> {
                if (question.base, question.commit) == (0, 4) {
                    return Ok(Answer::Measured(Some(Slowdown {
                        lower: 0.09,
                        estimate: 0.1,
                        upper: 0.11,
                    })));
                }
                self.0.compare(question)
            }
        }
        let slow = planted(8, 7, 0.1);
        let mut lying = Lying(Known {
            slow,
            width: 0.01,
            asked: Vec::new(),
        });
        let search = search(8, &Rules::default(), &mut lying).unwrap();
        let whole = Outcome::Range {
            after: 0,
            upto: 8,
            why: Why::Contradicted,
        };
        assert_eq!(search.outcome, whole);
    }
}
