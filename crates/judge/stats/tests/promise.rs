//! "All looks together never err more often than promised", whatever the shape of the noise: simulated open-ended
//! comparisons with known truth.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_stats::{
    Assessment, Block, Criteria, Decision, Effects, Ground, Interval, LookNumber, Sample, compare, decide,
    log_speedup, look_after,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

/// The plan of quick comparisons, which looks once more than that of watched ones.
const LOOKS: [usize; 5] = [3, 4, 6, 9, 12];

/// The time of a comparison is up after this many pairs.
const PAIRS: usize = 27;

/// What a pair of processes adds to the typical effect, with a median of 0.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Student's t with two degrees of freedom.
    HeavyTailed,
    /// e^(σZ) − 1, in its own standard deviations, with this σ.
    LogNormal(f64),
    /// This share of pairs is slow, and the others differ by little: luck of one side.
    Slow(f64),
}

impl Noise {
    fn draw(self, generator: &mut ChaCha8Rng) -> f64 {
        let mut normal = || Normal::standard().inverse_cdf(generator.random::<f64>());
        match self {
            Self::Normal => normal(),
            Self::HeavyTailed => normal() / ((normal().powi(2) + normal().powi(2)) / 2.0).sqrt(),
            Self::LogNormal(sigma) => {
                let variance = (sigma * sigma).exp_m1() * (sigma * sigma).exp();
                (sigma * normal()).exp_m1() / variance.sqrt()
            }
            Self::Slow(share) => {
                // The median of all pairs, as a quantile of the others.
                let typical = Normal::standard().inverse_cdf(1.0 - 0.5 / (1.0 - share));
                let usual = 0.05 * (normal() - typical);
                let slow = generator.random::<f64>() < share;
                if slow { usual - 3.0 } else { usual }
            }
        }
    }
}

fn criteria() -> Criteria {
    Criteria {
        looks: LOOKS.len(),
        open_ended: true,
        resamples: 200,
        ..Criteria::default()
    }
}

/// The looks of a comparison that decides nothing before its time is up, with the number of pairs at each.
fn plan() -> Vec<(usize, LookNumber)> {
    let mut plan = Vec::new();
    let mut pairs = look_after(&LOOKS, 0);
    while pairs <= PAIRS {
        plan.push((pairs, LookNumber::Fixed(plan.len() + 1)));
        pairs = look_after(&LOOKS, pairs);
    }
    plan.push((PAIRS, LookNumber::Closing(1)));
    plan
}

/// One block for each pair, with an effect of `centre` and noise of `spread`.
fn blocks(centre: f64, spread: f64, noise: Noise, seed: u64) -> Vec<Block> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut block = |pair| {
        let effect = centre + spread * noise.draw(&mut generator);
        Block::new(pair, vec![effect.exp()], vec![1.0])
    };
    (0..PAIRS).map(&mut block).collect()
}

fn samples(blocks: &[Block]) -> impl Iterator<Item = (Sample, LookNumber)> {
    let sample = |pairs| Sample::from_blocks(&blocks[..pairs]).unwrap();
    plan().into_iter().map(move |(pairs, look)| (sample(pairs), look))
}

/// The decision of the first look that has one, of intervals around 0 moved to `centre` and, if `mirrored`, turned round.
fn decision(intervals: &[Interval], centre: f64, mirrored: bool) -> Decision {
    let moved = intervals.iter().map(|interval| match mirrored {
        false => [interval.lower, interval.upper],
        true => [-interval.upper, -interval.lower],
    });
    let mut decisions = moved.zip(intervals).map(|([lower, upper], interval)| {
        let interval = Interval {
            lower: centre + lower,
            upper: centre + upper,
            ..interval.clone()
        };
        decide(Some(&interval), &criteria())
    });
    let decided = decisions.find(|decision| *decision != Decision::Inconclusive);
    decided.unwrap_or(Decision::Inconclusive)
}

#[test]
fn all_looks_together_miss_the_typical_pair_in_no_more_than_5_percent() {
    const COMPARISONS: u64 = 1500;
    let criteria = criteria();
    let confidences = plan()
        .into_iter()
        .map(|(_, look)| criteria.look_plan().unwrap().confidence_at(look).unwrap());
    let confidences: Vec<f64> = confidences.collect();
    for (noise, most_adopted) in [
        (Noise::Normal, 0.025),
        (Noise::HeavyTailed, 0.025),
        (Noise::LogNormal(0.5), 0.025),
        (Noise::LogNormal(1.0), 0.025),
        (Noise::Slow(0.1), 0.025),
        (Noise::Slow(0.2), 0.025),
        // Nearly a third of slow pairs is at the edge of what the estimate withstands; the misses then lie on one side.
        (Noise::Slow(0.3), 0.05),
    ] {
        let mut missed = 0;
        let mut adopted = [0, 0];
        for seed in 0..COMPARISONS {
            let intervals: Vec<Interval> = samples(&blocks(0.0, 0.03, noise, seed))
                .zip(&confidences)
                .map(|((sample, _), confidence)| {
                    Effects::of(&[sample])
                        .unwrap()
                        .suite
                        .interval(*confidence)
                        .unwrap()
                })
                .collect();
            let misses = |interval: &Interval| interval.lower > 0.0 || interval.upper < 0.0;
            missed += usize::from(intervals.iter().any(misses));
            for (count, mirrored) in adopted.iter_mut().zip([false, true]) {
                let decision = decision(&intervals, criteria.log_target(), mirrored);
                *count += usize::from(decision == Decision::Adopt);
            }
        }
        let [missed, one, other] =
            [missed, adopted[0], adopted[1]].map(|count| count as f64 / COMPARISONS as f64);
        println!(
            "{noise:?}: some look misses in {missed:.4}, adopted at the target {one:.4}, mirrored {other:.4}"
        );
        // Two standard errors of chance: 1.1 % and 0.8 %.
        assert!(missed <= 0.05 + 0.011, "{noise:?}: {missed}");
        assert!(
            one.max(other) <= most_adopted + 0.008,
            "{noise:?}: {one} and {other}"
        );
    }
}

/// The looks of a comparison.
fn looks(centre: f64, spread: f64, noise: Noise, seed: u64) -> Vec<Assessment> {
    let judged = |(sample, look)| compare(&[("one".to_owned(), sample)], &criteria(), look, seed).unwrap();
    samples(&blocks(centre, spread, noise, seed))
        .map(judged)
        .collect()
}

/// Where it ends: at the first look that decides.
fn end(looks: &[Assessment]) -> &Assessment {
    let decided = looks.iter().find(|look| look.decision != Decision::Inconclusive);
    decided.unwrap_or(&looks[looks.len() - 1])
}

#[test]
fn a_candidate_with_rare_slow_processes_is_not_adopted_in_silence() {
    const COMPARISONS: u64 = 400;
    let (mut though_seen, mut by_rule) = (0, 0);
    for seed in 0..COMPARISONS {
        // 2.7 % faster in nine processes of ten and 21 % slower in the tenth, which is no gain on average.
        let looks = looks(log_speedup(0.027), 0.08, Noise::Slow(0.1), seed);
        let end = end(&looks);
        let slow = end.slow_pairs.as_ref().unwrap();
        if end.decision == Decision::Adopt {
            though_seen += usize::from(slow.candidate > 0);
            // If none was seen, the verdict says that a tenth of the processes may well be slow.
            assert!(slow.candidate > 0 || slow.unseen.unwrap() > 0.1, "{slow:?}");
        }
        let otherwise = Decision::Adopt;
        by_rule += usize::from(
            looks
                .iter()
                .any(|look| look.ground == Ground::SlowPairs { otherwise }),
        );
    }
    let [though_seen, by_rule] = [though_seen, by_rule].map(|count| count as f64 / COMPARISONS as f64);
    println!(
        "adopted though a slow process was seen: {though_seen:.4}; prevented at some look: {by_rule:.4}"
    );
    assert!(though_seen <= 0.025, "{though_seen}");
    assert!(by_rule > 0.2, "{by_rule}");
}

#[test]
fn a_gain_that_outweighs_the_slow_processes_is_adopted() {
    for seed in 0..100 {
        let looks = looks(log_speedup(0.5), 0.04, Noise::Slow(0.1), seed);
        assert_eq!(end(&looks).decision, Decision::Adopt, "{seed}");
    }
}

#[test]
fn a_factor_of_two_needs_three_pairs_and_a_third_hardly_more() {
    const COMPARISONS: u64 = 200;
    let mean_pairs = |gain: f64, spread: f64| {
        let pairs = |seed| {
            let looks = looks(log_speedup(gain), spread, Noise::Normal, seed);
            assert_eq!(end(&looks).decision, Decision::Adopt);
            end(&looks).slow_pairs.as_ref().unwrap().pairs as f64
        };
        (0..COMPARISONS).map(pairs).sum::<f64>() / COMPARISONS as f64
    };
    let [double, third] = [mean_pairs(1.0, 0.015), mean_pairs(0.3, 0.01)];
    println!("{double:.2} and {third:.2} pairs");
    assert!(double < 3.3 && third < 3.7, "{double} and {third} pairs");
}
