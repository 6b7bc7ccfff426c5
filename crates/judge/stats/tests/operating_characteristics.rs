//! Does the interval cover the truth, and do the verdicts keep their error rates? Simulated comparisons with known
//! truth.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_stats::{
    Aim, Block, Criteria, Decision, Effects, FloorFinding, Ground, Sample, Spread, compare, log_speedup,
    look_after, power, required_processes,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

/// The spread of log speed-ups between processes, and between the blocks of a process.
struct Noise {
    between: f64,
    within: f64,
}

struct Laboratory {
    generator: ChaCha8Rng,
}

impl Laboratory {
    fn new(seed: u64) -> Self {
        Self {
            generator: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    fn normal(&mut self) -> f64 {
        Normal::standard().inverse_cdf(self.generator.random::<f64>())
    }

    fn blocks(&mut self, effect: f64, noise: &Noise, processes: usize, blocks: usize) -> Vec<Block> {
        let mut measured = Vec::new();
        for process in 0..processes {
            let centre = effect + noise.between * self.normal();
            for _ in 0..blocks {
                let log_speedup = centre + noise.within * self.normal();
                measured.push(Block::new(process, vec![1e-3 * log_speedup.exp()], vec![1e-3]));
            }
        }
        measured
    }

    /// Blocks as the lab measures them, with two pairs of times each; `noise.within` is the spread of the pairs.
    fn paired(&mut self, effect: f64, noise: &Noise, processes: usize, blocks: usize) -> Sample {
        let mut measured = Vec::new();
        for process in 0..processes {
            let centre = effect + noise.between * self.normal();
            for _ in 0..blocks {
                let times = [(); 2].map(|()| 1e-3 * (centre + noise.within * self.normal()).exp());
                measured.push(Block::new(process, times.to_vec(), vec![1e-3; 2]));
            }
        }
        Sample::from_blocks(&measured).unwrap()
    }

    fn sample(&mut self, effect: f64, noise: &Noise, processes: usize, blocks: usize) -> Sample {
        Sample::from_blocks(&self.blocks(effect, noise, processes, blocks)).unwrap()
    }
}

/// The share of 400 simulated 95 % intervals that hold the truth, and their mean half-width.
fn coverage(truth: f64, mut sample: impl FnMut() -> Sample) -> (f64, f64) {
    const REPLICATIONS: usize = 400;
    let (mut covering, mut width) = (0, 0.0);
    for _ in 0..REPLICATIONS {
        let interval = Effects::of(&[sample()]).unwrap().suite.interval(0.95).unwrap();
        covering += usize::from(interval.lower <= truth && truth <= interval.upper);
        width += interval.half_width();
    }
    (covering as f64 / REPLICATIONS as f64, width / REPLICATIONS as f64)
}

#[test]
fn few_processes_do_not_under_cover() {
    // Both extremes and the middle: only luck of the process, only noise of the block, both.
    for (between, within) in [(0.01, 0.002), (0.01, 0.02), (0.0, 0.02)] {
        for processes in [3, 4, 5, 6] {
            let noise = Noise { between, within };
            let truth = log_speedup(0.03);
            let mut laboratory = Laboratory::new(processes as u64);
            let (share, width) = coverage(truth, || laboratory.sample(truth, &noise, processes, 6));
            println!(
                "between {between} within {within} processes {processes}: coverage {share}, half-width {width:.5}"
            );
            assert!(
                share >= 0.93,
                "between {between} within {within} processes {processes}: {share}"
            );
        }
    }
}

/// Log speed-ups of 3 blocks, by noise that is not normal, symmetric around 0.
fn odd_blocks(kind: &str, laboratory: &mut Laboratory) -> [f64; 3] {
    let mut normal = || laboratory.normal();
    match kind {
        // Student's t with 2 degrees of freedom: no variance.
        "heavy-tailed" => [(); 3].map(|()| {
            let squares = normal().powi(2) + normal().powi(2);
            0.007 * normal() / (squares / 2.0).sqrt()
        }),
        "autocorrelated" => {
            let first = normal();
            let second = 0.8 * first + 0.6 * normal();
            [first, second, 0.8 * second + 0.6 * normal()].map(|effect| 0.01 * effect)
        }
        // Each side starts in its slow mode three times out of ten.
        "bimodal" => {
            let slow = |draw: f64| if draw < -0.524 { 0.03 } else { 0.0 };
            let mode = slow(normal()) - slow(normal());
            [(); 3].map(|()| mode + 0.002 * normal())
        }
        other => unreachable!("{other}"),
    }
}

#[test]
fn odd_noise_does_not_under_cover() {
    for kind in ["heavy-tailed", "autocorrelated", "bimodal"] {
        for processes in [4, 6, 9] {
            let mut laboratory = Laboratory::new(processes as u64);
            let (share, width) = coverage(0.0, || {
                let blocks = (0..processes).flat_map(|process| {
                    let block = |effect: f64| Block::new(process, vec![effect.exp()], vec![1.0]);
                    odd_blocks(kind, &mut laboratory).map(block)
                });
                Sample::from_blocks(&blocks.collect::<Vec<_>>()).unwrap()
            });
            println!("{kind} processes {processes}: coverage {share}, half-width {width:.5}");
            assert!(share >= 0.93, "{kind} processes {processes}: {share}");
        }
    }
}

#[test]
fn an_identical_candidate_is_neither_adopted_nor_a_regression_over_all_looks() {
    // Strict criteria, so that the whole error the confidence allows can show: any interval that excludes
    // zero decides. Evidence grows from look to look.
    const REPLICATIONS: usize = 400;
    let criteria = |open_ended| Criteria {
        target: 1e-9,
        practically_zero: 0.0,
        looks: 3,
        open_ended,
        resamples: 1000,
        ..Criteria::default()
    };
    // Looks after 2, 4 and 6 pairs of processes, and five more where there is time.
    let planned = told_apart(REPLICATIONS, &criteria(false), 3);
    let open_ended = told_apart(REPLICATIONS, &criteria(true), 8);
    println!("{planned} and {open_ended} of {REPLICATIONS} wrong");
    // Nominal 5 % = 20 of 400; binomial standard deviation 4.4.
    assert!(
        planned.max(open_ended) <= 28,
        "{planned} and {open_ended} of {REPLICATIONS} identical candidates were told apart"
    );
}

/// Compares identical candidates `replications` times; returns how many comparisons tell them apart at one of `looks` looks.
fn told_apart(replications: usize, criteria: &Criteria, looks: usize) -> usize {
    let mut laboratory = Laboratory::new(1);
    let noise = Noise {
        between: 0.01,
        within: 0.01,
    };
    let mut wrong = 0;
    for seed in 0..replications as u64 {
        let mut blocks: Vec<Block> = Vec::new();
        let mut processes = 0;
        let mut decided = false;
        for look in 1..=looks {
            let until = look_after(&[2, 4, 6], processes);
            let more = laboratory.blocks(0.0, &noise, until - processes, 5);
            blocks.extend(more.into_iter().map(|block| Block {
                process: block.process + processes,
                ..block
            }));
            processes = until;
            let sample = Sample::from_blocks(&blocks).unwrap();
            let decision = compare(&[("same".into(), sample)], criteria, look, seed)
                .unwrap()
                .decision;
            decided |= matches!(decision, Decision::Adopt | Decision::Regression);
        }
        wrong += usize::from(decided);
    }
    wrong
}

#[test]
fn true_effects_are_found() {
    let criteria = Criteria {
        resamples: 1000,
        ..Criteria::default()
    };
    let noise = Noise {
        between: 0.003,
        within: 0.01,
    };
    let mut laboratory = Laboratory::new(2);
    for (effect, expected) in [
        (0.06, Decision::Adopt),
        (-0.05, Decision::Regression),
        (0.0, Decision::ValidNegative),
    ] {
        let found = (0..100)
            .filter(|seed| {
                let sample = laboratory.sample(log_speedup(effect), &noise, 6, 10);
                compare(&[("one".into(), sample)], &criteria, 1, *seed)
                    .unwrap()
                    .decision
                    == expected
            })
            .count();
        println!("{effect}: {expected:?} in {found} of 100");
        assert!(found >= 90, "{effect}: {expected:?} in {found} of 100");
    }
}

#[test]
fn one_bad_case_turns_a_good_mean_into_a_regression() {
    let noise = Noise {
        between: 0.003,
        within: 0.01,
    };
    let mut laboratory = Laboratory::new(3);
    let mut suite = |last: f64, processes| {
        let effects = [("a", 0.2), ("b", 0.2), ("c", 0.2), ("d", last)];
        let problems = effects.map(|(name, effect)| {
            (
                name.to_owned(),
                laboratory.sample(log_speedup(effect), &noise, processes, 8),
            )
        });
        compare(&problems, &Criteria::default(), 1, 9).unwrap()
    };

    let broken = suite(-0.12, 5);
    assert_eq!(broken.decision, Decision::Regression);
    assert_eq!(
        broken.ground,
        Ground::BrokenFloor {
            problems: vec!["d".into()],
            otherwise: Decision::Adopt
        }
    );
    assert_eq!(broken.claim_refuted(0.3), Some(true));

    let possible = suite(-0.05, 5);
    assert_eq!(possible.decision, Decision::Adopt);
    assert_eq!(possible.problems[3].floor, FloorFinding::PossiblyBroken);

    let held = suite(0.0, 5);
    assert_eq!(
        (held.decision, held.ground),
        (Decision::Adopt, Ground::SuiteInterval)
    );
    assert!(
        held.problems
            .iter()
            .all(|problem| problem.floor == FloorFinding::Held)
    );
}

#[test]
fn ten_thousand_resamples_of_a_suite_take_a_moment() {
    let mut laboratory = Laboratory::new(4);
    let noise = Noise {
        between: 0.01,
        within: 0.02,
    };
    let suite = ["a", "b", "c", "d"].map(|name| (name.to_owned(), laboratory.sample(0.0, &noise, 9, 10)));
    let criteria = Criteria::default();
    assert_eq!(criteria.resamples, 10_000);
    let before = seconds_on_cpu();
    compare(&suite, &criteria, 1, 0).unwrap();
    let Some(seconds) = seconds_on_cpu().zip(before).map(|(after, before)| after - before) else {
        return;
    };
    // 1.7 ms on a Xeon (tests are compiled with optimisation).
    assert!(seconds < 0.5, "{seconds} s");
}

/// CPU time of this thread, which other programs do not add to; none where the system does not report it.
fn seconds_on_cpu() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = stat.split_whitespace().next()?.parse().ok()?;
    Some(1e-9 * nanoseconds)
}

/// The plan must use the same effect as the comparison: a process's effect is the median over pairs of times.
#[test]
fn a_plan_expects_the_spread_that_process_effects_have() {
    const PROCESSES: usize = 20_000;
    let noise = Noise {
        between: 0.002,
        within: 0.02,
    };
    let planned = Spread {
        between: noise.between,
        within: noise.within,
    };
    let mut laboratory = Laboratory::new(5);
    for blocks in [1, 2, 3, 6, 12] {
        let effects = laboratory
            .paired(0.0, &noise, PROCESSES, blocks)
            .process_effects();
        let squares: f64 = effects.iter().map(|effect| effect * effect).sum();
        let found = (squares / PROCESSES as f64).sqrt();
        let expected = planned.of_process(blocks);
        println!("{blocks} blocks: found {found:.5}, planned {expected:.5}");
        assert!(
            (expected / found - 1.0).abs() < 0.025,
            "{blocks} blocks: {found} and {expected}"
        );
    }
}

#[test]
fn a_plan_from_a_pilot_has_the_power_that_it_promises() {
    const REPLICATIONS: usize = 1000;
    let noise = Noise {
        between: 0.01,
        within: 0.03,
    };
    let aim = Aim {
        effect: 0.05,
        boundary: 0.02,
        confidence: 0.95,
        power: 0.8,
    };
    let mut laboratory = Laboratory::new(6);
    let pilot = Spread::estimate(&[laboratory.paired(0.0, &noise, 1000, 3)]).unwrap();
    assert!((pilot.within / noise.within - 1.0).abs() < 0.05, "{pilot:?}");
    assert!((pilot.between / noise.between - 1.0).abs() < 0.15, "{pilot:?}");
    let processes = required_processes(&pilot, 3, &aim).unwrap().unwrap();
    let promised = power(&pilot, processes, 3, &aim).unwrap();
    let mut shown = 0;
    for _ in 0..REPLICATIONS {
        let sample = laboratory.paired(log_speedup(aim.effect), &noise, processes, 3);
        let interval = Effects::of(&[sample])
            .unwrap()
            .suite
            .interval(aim.confidence)
            .unwrap();
        shown += usize::from(interval.lower >= log_speedup(aim.boundary));
    }
    let share = shown as f64 / REPLICATIONS as f64;
    println!("{processes} processes: {share} of {promised}");
    // The interval is never narrower than the plan's, and now and then a little wider.
    assert!(
        (promised - 0.08..promised + 0.03).contains(&share),
        "{processes} processes: {share} of {promised}"
    );
}
