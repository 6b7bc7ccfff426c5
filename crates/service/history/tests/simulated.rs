//! Simulated histories: 64 commits with one regression or none, the noise of pairs as it was measured, and the judge's own intervals.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::convert::Infallible;

use gauntlet_history::search::{Answer, Comparer, Outcome, Question, Rules, Slowdown, search};
use gauntlet_stats::{Block, Effects, LookPlan, Sample};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StudentT};

/// Log ratios of the times of pairs of one C kernel against itself, in the order in which they were measured on a shared machine with a
/// load of 6 on two processors: `gauntlet compare K K --quick`.
const NOISE: &str = include_str!("pairs_of_one_kernel.txt");

/// On a machine that is as restless as this multiple of that one: two kernels alike differ by 1.4 % in a typical pair, and by up to 6 %.
const RESTLESS: f64 = 3.0;

/// What a commit changes without meaning to, as by moving code to other addresses: the scale of a Student's t of 3 degrees.
const DRIFT: f64 = 0.001;

/// Pairs of a comparison before any are added; each round doubles them, as `gauntlet bisect` does.
const PAIRS: usize = 12;

const COMMITS: usize = 64;

/// A repository of which the truth is known.
struct History {
    /// The log of each commit's time over that of the first one.
    times: Vec<f64>,
    noise: Vec<f64>,
    random: ChaCha8Rng,
    /// The log ratios of the pairs that were measured of the two commits that are compared.
    pairs: Vec<f64>,
}

impl History {
    fn new(seed: u64, regression: Option<(usize, f64)>) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let drift = StudentT::new(3.0).unwrap();
        let times = (0..=COMMITS).map(|commit| {
            let planted = regression.filter(|(culprit, _)| commit >= *culprit);
            DRIFT * drift.sample(&mut random) + planted.map_or(0.0, |(_, size)| size.ln_1p())
        });
        Self {
            times: times.collect(),
            noise: NOISE.lines().map(|line| line.parse().unwrap()).collect(),
            pairs: Vec::new(),
            random,
        }
    }

    /// So many pairs, whose noise is a stretch of what was measured, from either side.
    fn measure(&mut self, question: &Question, count: usize) {
        let truth = self.times[question.commit] - self.times[question.base];
        let from = self.random.random_range(0..self.noise.len());
        let sign = if self.random.random_bool(0.5) { 1.0 } else { -1.0 };
        let stretch = self.noise.iter().cycle().skip(from).take(count);
        self.pairs
            .extend(stretch.map(|noise| truth + sign * RESTLESS * noise));
    }
}

impl Comparer for History {
    type Error = Infallible;

    fn compare(&mut self, question: &Question) -> Result<Answer, Infallible> {
        if question.round == 0 {
            self.pairs.clear();
        }
        let count = (PAIRS << question.round) - self.pairs.len();
        self.measure(question, count);
        let pairs = self.pairs.iter().enumerate();
        let blocks: Vec<Block> = pairs
            .map(|(process, ratio)| Block::new(process, vec![ratio.exp()], vec![1.0]))
            .collect();
        let effects = Effects::of(&[Sample::from_blocks(&blocks).unwrap()]).unwrap();
        let plan = LookPlan::new(question.confidence, 1, true).unwrap();
        let confidence = plan.confidence_at(1 + question.round).unwrap();
        let interval = effects.suite.interval(confidence).unwrap();
        Ok(Answer::Measured(Some(Slowdown {
            lower: interval.lower.exp_m1(),
            estimate: interval.estimate.exp_m1(),
            upper: interval.upper.exp_m1(),
        })))
    }
}

/// Git's own bisection, where the estimate of the first pairs decides each step, whether its interval does or not. None without a first
/// slowdown.
fn by_estimates(history: &mut History) -> Option<usize> {
    let mut estimate = |commit: usize| {
        let question = Question {
            base: 0,
            commit,
            threshold: 0.0,
            confidence: 0.99,
            round: 0,
        };
        match history.compare(&question) {
            Ok(Answer::Measured(Some(slowdown))) => slowdown.estimate,
            _ => 0.0,
        }
    };
    let first = estimate(COMMITS);
    let (mut good, mut bad) = (0, COMMITS);
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        match estimate(middle) > first / 2.0 {
            true => bad = middle,
            false => good = middle,
        }
    }
    (first > Rules::default().least).then_some(bad)
}

#[derive(Debug, Default, PartialEq)]
struct Tally {
    right: usize,
    /// Another commit is blamed, or a range does not hold the culprit.
    wrong: usize,
    range: usize,
    nobody: usize,
}

/// A history with a regression of this size at a random commit, which is told; with none if the size is 0.
fn planted(seed: u64, size: f64) -> (History, Option<usize>) {
    let culprit = ChaCha8Rng::seed_from_u64(1000 + seed).random_range(1..=COMMITS);
    let planted = (size > 0.0).then_some((culprit, size));
    (History::new(seed, planted), planted.map(|(culprit, _)| culprit))
}

/// What becomes of all histories with regressions of a size.
fn tally(size: f64) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..HISTORIES {
        let (mut history, culprit) = planted(seed, size);
        let Ok(found) = search(COMMITS, &Rules::default(), &mut history);
        match found.outcome {
            Outcome::Culprit { commit, .. } if culprit == Some(commit) => tally.right += 1,
            Outcome::Range { after, upto, .. } if culprit.is_some_and(|it| after < it && it <= upto) => {
                tally.range += 1;
            }
            Outcome::NoRegression | Outcome::Unshown => tally.nobody += 1,
            Outcome::Culprit { .. } | Outcome::Range { .. } => tally.wrong += 1,
        }
    }
    println!("{:.0} %: {tally:?}", 100.0 * size);
    tally
}

const HISTORIES: u64 = 200;

#[test]
fn a_planted_regression_is_found_and_innocents_are_not_blamed() {
    for size in [0.02, 0.05, 0.2] {
        let found = tally(size);
        assert!(found.right as f64 >= 0.95 * HISTORIES as f64, "{size}: {found:?}");
        assert!(found.wrong as f64 <= 0.01 * HISTORIES as f64, "{size}: {found:?}");
    }
}

#[test]
fn in_a_history_without_a_regression_nobody_is_blamed() {
    let found = tally(0.0);
    assert_eq!(found.nobody as u64, HISTORIES, "{found:?}");
}

/// The noise is strong enough for these tests to tell rules apart.
#[test]
fn a_rule_that_blames_on_an_undecided_step_blames_innocents() {
    let wrong = (0..HISTORIES).filter(|seed| {
        let (mut history, culprit) = planted(*seed, 0.02);
        by_estimates(&mut history).is_some_and(|blamed| culprit != Some(blamed))
    });
    let wrong = wrong.count();
    println!("by estimates: {wrong} wrong");
    assert!(wrong as f64 > 0.02 * HISTORIES as f64, "{wrong}");
}
