//! Work outside of timed calls is charged to the side that does it.
//!
//! A worker times its own calls, so what it does while it loads operands, hands out a result, or waits for the next
//! request is free unless it is counted. What one side spends there beyond 1.1 times the other's, for the same bytes, is added to
//! each of its calls, since every call in earnest comes with operands and wants its result. CPU time is
//! converted to elapsed time at the rate of the baseline's calls, which may use several threads.
//!
//! A slot stands for its typical call, which a side could make short by making others long. The share by which the mean
//! exceeds it, beyond the other side's share, is charged too. Lone calls decide nothing, so a side could compute the
//! results of later calls there: what all lone calls take beyond as many typical ones, and beyond the baseline's, is spread
//! over the calls of slots. Where held workers compute on a GPU, moving operands there and results back takes both sides equally
//! long, so what it takes a side longer is charged too.
//!
//! Kernels without code in the process that clocks them can do no work outside of their calls. How long these take
//! is what that process reports, which is more exact than the coordinator's clock.
//!
//! Uneven calls and lone calls are charged to the candidate only, because a candidate could make the baseline's calls uneven. All other
//! work is charged to both sides by the same rules. Only what the scatter between pairs does not explain is charged, but a gain is
//! adopted only if it remains with all of it ([`with_all_work`]).

use gauntlet_stats::{Block, least_mean, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CaseConduct;
use crate::evidence::{Charges, SideCharge};

/// Confidence, for each kind of work and side, that there is a difference to charge at all.
const CONFIDENCE: f64 = 0.995;

/// Work outside of calls is charged beyond this factor of the other side's: the same work takes two programs unequally long.
/// The factor is a choice and not a measurement.
const SLACK: f64 = 1.1;

/// Python touches a returned result before it is moved, which takes some ten microseconds. So much is not charged, and a candidate can
/// hide that much of each call on a GPU.
const MOVING_SLACK: f64 = 15e-6;

/// Differences under this share of a call are not charged: half of a negligible effect.
const NEGLIGIBLE: f64 = 0.005;

/// The work of both sides in one pair, in seconds of elapsed time for each unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfPair {
    /// Outside of timed calls.
    pub sides: [SideCharge; 2],
    /// Within slots.
    pub shares: Shares,
}

/// The calls of both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Shares {
    /// The typical call, in seconds.
    pub typical: [f64; 2],
    /// How much longer the mean call is, as a share.
    pub uneven: [f64; 2],
    /// What lone calls take beyond typical ones, with their messages, in seconds for each call of a slot.
    pub alone: [f64; 2],
    /// What moving operands to a GPU and results back takes around a call, in seconds.
    pub moving: [f64; 2],
}

impl Shares {
    /// What the candidate's mean call takes beyond its typical one, and beyond the baseline's share of that, in seconds.
    fn excess_uneven(&self) -> f64 {
        (self.uneven[1] - self.uneven[0]) * self.typical[1]
    }

    /// What the candidate's lone calls take beyond the baseline's, in seconds for each call of a slot.
    fn excess_alone(&self) -> f64 {
        self.alone[1] - SLACK * self.alone[0].max(0.0)
    }

    /// What a side takes to move operands and results beyond the other side, in seconds for each call: the same bytes on
    /// the same bus.
    fn excess_moving(&self, side: usize) -> f64 {
        self.moving[side] - self.moving[1 - side] - MOVING_SLACK
    }
}

/// A kind of work: how to read and how to write it.
type Kind = (fn(&SideCharge) -> f64, fn(&mut SideCharge) -> &mut f64);

/// The charge of each side in each pair of one case.
pub fn charges_of_pairs(pairs: &[CaseConduct]) -> Vec<[SideCharge; 2]> {
    let mut charges = vec![[SideCharge::default(); 2]; pairs.len()];
    for side in 0..2 {
        let kinds: [Kind; 3] = [
            (|work| work.loading, |charge| &mut charge.loading),
            (|work| work.results, |charge| &mut charge.results),
            (|work| work.idle, |charge| &mut charge.idle),
        ];
        for (of, charge) in kinds {
            let excess =
                |pair: &CaseConduct| of(&pair.work.sides[side]) - SLACK * of(&pair.work.sides[1 - side]);
            add(pairs, &mut charges, side, excess, charge);
        }
        let moving = |pair: &CaseConduct| pair.work.shares.excess_moving(side);
        add(pairs, &mut charges, side, moving, |charge| &mut charge.loading);
    }
    let uneven = |pair: &CaseConduct| pair.work.shares.excess_uneven();
    let alone = |pair: &CaseConduct| pair.work.shares.excess_alone();
    add(pairs, &mut charges, 1, uneven, |charge| &mut charge.uneven);
    add(pairs, &mut charges, 1, alone, |charge| &mut charge.uneven);
    charges
}

/// Adds an excess to a side's charges, pair by pair, if there surely is one. The charges' mean is the lower bound of the mean
/// excess: chance scatter sometimes passes the test, and its whole size, a third of a call on a busy machine, would make an
/// equal kernel a regression.
fn add(
    pairs: &[CaseConduct],
    charges: &mut [[SideCharge; 2]],
    side: usize,
    excess: impl Fn(&CaseConduct) -> f64,
    charge: fn(&mut SideCharge) -> &mut f64,
) {
    let found: Vec<f64> = pairs.iter().map(excess).collect();
    let calls: Vec<f64> = pairs.iter().map(|pair| pair.work.shares.typical[side]).collect();
    let least = least_mean(&found, CONFIDENCE).filter(|least| *least > NEGLIGIBLE * median(&calls));
    let Some(least) = least else { return };
    let found = found.into_iter().map(|one| one.max(0.0));
    let sure = least * found.len() as f64 / found.clone().sum::<f64>();
    for (charges, found) in charges.iter_mut().zip(found) {
        *charge(&mut charges[side]) += sure * found;
    }
}

/// The share of the baseline's time that the candidate saves in each pair, as the mean over cases, with all of its excess work counted,
/// surely there or not.
///
/// It is a share and no logarithm, since chance can make less work by more than a whole call on a GPU: what scatters by some
/// microseconds may then neither count as a call of no time nor spoil the mean of the other pairs.
pub fn with_all_work(cases: &[Vec<CaseConduct>]) -> Vec<f64> {
    let pairs = cases.iter().map(Vec::len).min().unwrap_or(0);
    let saved: Vec<Vec<f64>> = cases.iter().map(|seen| saved_with_all_work(seen)).collect();
    (0..pairs)
        .map(|pair| saved.iter().map(|of_case| of_case[pair]).sum::<f64>() / cases.len() as f64)
        .collect()
}

/// The share that is saved in each pair of a case, with all of the candidate's excess work counted.
fn saved_with_all_work(pairs: &[CaseConduct]) -> Vec<f64> {
    let kinds: [fn(&CaseConduct) -> f64; 4] = [
        |pair| {
            let [baseline, candidate] = pair.work.sides;
            candidate.total() - SLACK * baseline.total()
        },
        |pair| pair.work.shares.excess_uneven(),
        |pair| pair.work.shares.excess_alone(),
        |pair| pair.work.shares.excess_moving(1),
    ];
    let mut excess = vec![0.0; pairs.len()];
    for kind in kinds {
        let found: Vec<f64> = pairs.iter().map(kind).collect();
        // Less work of one kind than the baseline's makes up for no other. That is decided for all pairs together: counting only the
        // pairs that show more would add up scatter, which is larger than the gain of a short call on a GPU.
        if found.iter().sum::<f64>() > 0.0 {
            excess.iter_mut().zip(found).for_each(|(sum, one)| *sum += one);
        }
    }
    let saved = |(pair, excess): (&CaseConduct, f64)| {
        let [baseline, candidate] = pair.work.shares.typical;
        1.0 - (candidate + excess) / baseline
    };
    pairs.iter().zip(excess).map(saved).collect()
}

/// The blocks of a case with each pair's charges added to its times.
pub fn charged(blocks: &[Block], pairs: &[CaseConduct]) -> Vec<Block> {
    let charges = charges_of_pairs(pairs);
    let of_pair = |process: usize| {
        let place = pairs.iter().position(|pair| pair.process == process)?;
        Some(charges[place].map(|charge| charge.total()))
    };
    let add = |block: &Block| {
        let mut block = block.clone();
        if let Some([baseline, candidate]) = of_pair(block.process) {
            block.baseline.iter_mut().for_each(|time| *time += baseline);
            block.candidate.iter_mut().for_each(|time| *time += candidate);
        }
        block
    };
    blocks.iter().map(add).collect()
}

/// The charges of a case, each the mean over the pairs; none if nothing is charged.
pub fn summary(case: &str, pairs: &[CaseConduct]) -> Option<Charges> {
    let charges = charges_of_pairs(pairs);
    let of_side = |side: usize| {
        let of = |figure: fn(&SideCharge) -> f64| {
            charges.iter().map(|both| figure(&both[side])).sum::<f64>() / charges.len() as f64
        };
        SideCharge {
            loading: of(|charge| charge.loading),
            results: of(|charge| charge.results),
            idle: of(|charge| charge.idle),
            uneven: of(|charge| charge.uneven),
        }
    };
    if charges.is_empty() {
        return None;
    }
    let [baseline, candidate] = [0, 1].map(of_side);
    (baseline.total() + candidate.total() > 0.0).then(|| Charges {
        case: case.to_owned(),
        baseline,
        candidate,
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const CALL: f64 = 1e-3;

    /// Six pairs; the candidate's work outside of its calls exceeds the baseline's by these times, pair by pair.
    fn pairs(work: impl Fn(usize) -> SideCharge) -> Vec<CaseConduct> {
        let pair = |process| {
            let mut pair = CaseConduct::new(process, false);
            let base = SideCharge {
                loading: 2e-4,
                results: 1e-4,
                idle: 1e-6,
                uneven: 0.0,
            };
            let more = work(process);
            pair.work.sides = [
                base,
                SideCharge {
                    loading: base.loading + more.loading,
                    results: base.results + more.results,
                    idle: base.idle + more.idle,
                    uneven: 0.0,
                },
            ];
            pair.work.shares = Shares {
                typical: [CALL, 0.7 * CALL],
                uneven: [0.02, 0.02 + more.uneven],
                alone: [0.01 * CALL; 2],
                moving: [2.0 * CALL; 2],
            };
            pair
        };
        (0..6).map(pair).collect()
    }

    fn jitter(process: usize) -> f64 {
        1.0 + 0.005 * ((process * 7 % 5) as f64 - 2.0)
    }

    #[test]
    fn work_outside_of_calls_is_added_to_each_call() {
        let moved = |process: usize| SideCharge {
            loading: 0.2 * CALL * jitter(process),
            results: 0.1 * CALL * jitter(process + 1),
            ..SideCharge::default()
        };
        let pairs = pairs(moved);
        let told = summary("case", &pairs).unwrap();
        // A tenth of the baseline's own work is not charged.
        assert!((told.candidate.loading / CALL - 0.18).abs() < 0.01, "{told:?}");
        assert!((told.candidate.total() / CALL - 0.27).abs() < 0.02, "{told:?}");
        assert_eq!(told.baseline.total(), 0.0);
        let block = Block::new(3, vec![CALL], vec![0.7 * CALL]);
        let charged = charged(&[block], &pairs);
        assert_eq!(charged[0].baseline, [CALL]);
        assert!(
            (charged[0].candidate[0] / CALL - 0.97).abs() < 0.03,
            "{charged:?}"
        );
    }

    #[test]
    fn the_baseline_is_charged_by_the_same_rules() {
        let lighter = |process: usize| SideCharge {
            loading: -0.3 * CALL * jitter(process),
            ..SideCharge::default()
        };
        let told = summary("case", &pairs(lighter)).unwrap();
        assert!((told.baseline.loading / CALL - 0.3).abs() < 0.02, "{told:?}");
        assert_eq!(told.candidate.total(), 0.0);
    }

    #[test]
    fn scatter_and_accidents_are_not_charged() {
        assert_eq!(summary("case", &pairs(|_| SideCharge::default())), None);
        let accident = |process: usize| SideCharge {
            loading: if process == 2 { CALL } else { 0.0 },
            ..SideCharge::default()
        };
        assert_eq!(summary("case", &pairs(accident)), None);
        let scattered = |process: usize| SideCharge {
            results: 0.3 * CALL * if process.is_multiple_of(2) { 1.0 } else { -1.0 },
            ..SideCharge::default()
        };
        assert_eq!(summary("case", &pairs(scattered)), None);
        assert_eq!(summary("case", &pairs(|_| SideCharge::default())[..1]), None);
    }

    #[test]
    fn long_calls_beside_short_ones_are_charged() {
        let uneven = |process: usize| SideCharge {
            uneven: 0.4 * jitter(process),
            ..SideCharge::default()
        };
        let told = summary("case", &pairs(uneven)).unwrap();
        assert!(
            (told.candidate.uneven / (0.4 * 0.7 * CALL) - 1.0).abs() < 0.06,
            "{told:?}"
        );
    }

    #[test]
    fn lone_calls_longer_than_the_baselines_are_charged() {
        let ahead = |share: f64| {
            let mut pairs = pairs(|_| SideCharge::default());
            for (process, pair) in pairs.iter_mut().enumerate() {
                pair.work.shares.alone[1] += share * CALL * jitter(process);
            }
            pairs
        };
        let told = summary("case", &ahead(0.3)).unwrap();
        assert!((told.candidate.uneven / CALL - 0.3).abs() < 0.02, "{told:?}");
        // Shorter ones earn nothing.
        assert_eq!(summary("case", &ahead(-0.3)), None);
        let remaining = with_all_work(&[ahead(0.3)]);
        // 0.7 + 0.3.
        assert!(remaining.iter().all(|one| one.abs() < 0.05), "{remaining:?}");
        // Calls that are more even than the baseline's make up for nothing.
        let mut even = ahead(0.3);
        even.iter_mut()
            .for_each(|pair| pair.work.shares.uneven = [0.5, 0.0]);
        assert_eq!(with_all_work(&[even]), remaining);
    }

    #[test]
    fn work_while_tensors_are_moved_is_charged() {
        let mut pairs = pairs(|_| SideCharge::default());
        for (process, pair) in pairs.iter_mut().enumerate() {
            pair.work.shares.moving[1] += 0.4 * CALL * jitter(process);
        }
        let told = summary("case", &pairs).unwrap();
        assert!((told.candidate.loading / CALL - 0.385).abs() < 0.02, "{told:?}");
        let remaining = with_all_work(&[pairs]);
        // 0.7 + 0.385.
        assert!(
            remaining.iter().all(|one| (one + 0.08).abs() < 0.05),
            "{remaining:?}"
        );
    }

    #[test]
    fn work_moved_in_only_some_pairs_is_charged_in_those() {
        let sometimes = |process: usize| SideCharge {
            loading: if process < 5 {
                0.3 * CALL * jitter(process)
            } else {
                0.0
            },
            ..SideCharge::default()
        };
        let pairs = pairs(sometimes);
        let charges = charges_of_pairs(&pairs);
        assert_eq!(charges[5][1].loading, 0.0);
        // A tenth of the baseline's 0.2 calls of loading is not charged, nor what six such pairs leave open.
        let charged = charges[0][1].loading / CALL;
        assert!((0.02..0.26).contains(&charged), "{charges:?}");
    }

    #[test]
    fn scatter_is_not_added_up_as_work() {
        let mean = |pairs: Vec<CaseConduct>| with_all_work(&[pairs]).iter().sum::<f64>() / 6.0;
        let even = mean(pairs(|_| SideCharge::default()));
        let scattered = mean(pairs(|process| SideCharge {
            uneven: if process.is_multiple_of(2) { 0.3 } else { -0.31 },
            ..SideCharge::default()
        }));
        assert!((scattered - even).abs() < 1e-9, "{scattered} {even}");
        let worked = mean(pairs(|process| SideCharge {
            uneven: if process.is_multiple_of(2) { 0.3 } else { -0.1 },
            ..SideCharge::default()
        }));
        assert!(worked < even - 0.05, "{worked} {even}");
    }

    /// A Triton kernel of 7 us beside one of 14 us, on an H200: moving tensors took up to 12 us less in one pair and more in others.
    #[test]
    fn work_that_scatters_by_more_than_a_call_does_not_spoil_the_mean() {
        let mut pairs = pairs(|_| SideCharge::default());
        for (pair, scatter) in pairs.iter_mut().zip([-1.2, 0.3, 0.5, 0.2, 0.4, 0.1]) {
            pair.work.shares.moving[1] += scatter * CALL + MOVING_SLACK;
        }
        let saved = with_all_work(&[pairs]);
        assert!(
            (saved[0] - 1.5).abs() < 1e-9 && (saved[2] + 0.2).abs() < 1e-9,
            "{saved:?}"
        );
        let least = least_mean(&saved, 0.95).unwrap();
        assert!((-0.5..0.0).contains(&least), "{least}");
    }

    #[test]
    fn what_chance_shows_is_charged_in_small_part_only() {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let mut scatter = move || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let (mut charged, mut largest, mut found): (usize, f64, f64) = (0, 0.0, 0.0);
        for _ in 0..4000 {
            let mut pairs = pairs(|_| SideCharge::default());
            for pair in &mut pairs {
                pair.work.shares.alone[1] += 0.3 * CALL * scatter();
            }
            if let Some(told) = summary("case", &pairs) {
                charged += 1;
                largest = largest.max(told.candidate.uneven / CALL);
                let of = |pair: &CaseConduct| pair.work.shares.excess_alone() / CALL;
                found = found.max(pairs.iter().map(of).sum::<f64>() / 6.0);
            }
        }
        // One in two hundred, as the confidence says.
        assert!((5..40).contains(&charged), "{charged}");
        assert!(found > 0.4 && largest < 0.2, "{found} {largest}");
    }
}
