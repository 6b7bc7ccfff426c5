//! More pairs for a comparison that ended undecided: what is kept of it, and how it goes on.
//!
//! The looks stay those of the plan, so that all of them together err no more often than promised, however often a
//! comparison goes on: see [`gauntlet_stats::LookPlan`].

use gauntlet_stats::Block;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseConduct, PairedComparison};
use crate::evidence::{Candidate, Comparison, JudgeError, Setting};
use crate::runner::{ExaminationFailure, Workshop};

/// What is kept of a comparison beside its result, so that pairs can be added to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Observations {
    /// The pairs that were measured in one go, in order.
    pub batches: Vec<Batch>,
    /// What the judge saw of both sides: for each case, each pair.
    pub cases: Vec<Vec<CaseConduct>>,
    /// Whether it was interrupted, and goes on as it was planned (`--resume`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// Pairs of processes that were measured in one go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Batch {
    /// How many pairs.
    pub pairs: usize,
    /// When it began.
    pub began: Timestamp,
    /// The seed of its orders of blocks and of its operands.
    pub seed: u64,
    /// Whether a pair was measured once more after a failure that may not be the kernels'.
    pub measured_again: bool,
}

impl Observations {
    /// How many pairs there are in all.
    pub fn pairs(&self) -> usize {
        let each = self.batches.iter().map(|batch| batch.pairs);
        each.fold(0, usize::saturating_add)
    }

    /// Whether these are the observations of a comparison: of each of its cases and pairs.
    pub fn belong_to(&self, comparison: &Comparison) -> bool {
        let pairs = self.pairs();
        // First, since a damaged file may name any number.
        if self.cases.iter().any(|seen| seen.len() != pairs) {
            return false;
        }
        let pairs: Vec<usize> = (0..pairs).collect();
        let of_blocks = |blocks: &[Block]| {
            let mut processes: Vec<usize> = blocks.iter().map(|block| block.process).collect();
            processes.dedup();
            processes
        };
        let of_conduct = |seen: &[CaseConduct]| seen.iter().map(|one| one.process).collect::<Vec<_>>();
        self.cases.len() == comparison.cases.len()
            && comparison
                .cases
                .iter()
                .all(|case| of_blocks(&case.blocks) == pairs)
            && self.cases.iter().all(|seen| of_conduct(seen) == pairs)
    }
}

impl<'a> PairedComparison<'a> {
    /// A comparison that goes on: with everything that was measured of it so far, as if it had never ended. `seed` is for the
    /// operands and orders of its further pairs, and must be a new one, or a worker could know them.
    ///
    /// # Errors
    /// Observations that do not belong to the comparison, or cases that are not those of the setting.
    pub fn resume(
        workshop: &'a Workshop,
        setting: &'a Setting,
        [baseline, candidate]: [Candidate; 2],
        (comparison, observed): (&Comparison, &Observations),
        seed: u64,
    ) -> Result<Self, ExaminationFailure> {
        let names = comparison.cases.iter().map(|case| &case.case);
        let are_the_same = names.eq(setting.benchmark_cases.iter().map(|case| &case.name));
        if !are_the_same || !observed.belong_to(comparison) {
            return Err(JudgeError::Observations.into());
        }
        let mut resumed = Self::new(workshop, setting, baseline, candidate, seed)?;
        for ((one, times), seen) in resumed
            .cases
            .iter_mut()
            .zip(&comparison.cases)
            .zip(&observed.cases)
        {
            one.blocks.clone_from(&times.blocks);
            one.conduct.clone_from(seen);
        }
        resumed.test_seed = comparison.seed;
        resumed.pairs = observed.pairs();
        resumed.earlier.clone_from(&observed.batches);
        resumed.spent_on = comparison.spent.unwrap_or_default();
        resumed.looks.clone_from(&comparison.looks);
        resumed.assessment = comparison.assessment.clone();
        resumed.suspicion = comparison.suspicion_at_last_look();
        Ok(resumed)
    }

    /// What is kept for further pairs.
    pub(super) fn observations(&self) -> Observations {
        let batch = Batch {
            pairs: self.pairs_of_batch(),
            began: self.began,
            seed: self.seed,
            measured_again: self.forgiven,
        };
        Observations {
            batches: self.earlier.iter().cloned().chain([batch]).collect(),
            cases: self.cases.iter().map(|one| one.conduct.clone()).collect(),
            interrupted: self.interrupted,
        }
    }

    /// Pairs measured since the comparison began or went on.
    pub(super) fn pairs_of_batch(&self) -> usize {
        self.pairs - self.earlier.iter().map(|batch| batch.pairs).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;
    use gauntlet_parameters::Parameters;
    use gauntlet_stats::{Arm, Criteria, Decision, LookNumber, Origin};
    use gauntlet_worker::{Limits, Timeouts, WorkerCommand};
    use proptest::prelude::*;

    use super::*;
    use crate::comparison::side::Effort;
    use crate::comparison::slot::Slot;
    use crate::evidence::Measurement;
    use crate::evidence::Suspicion;

    const CALL: f64 = 1e-3;

    fn workshop() -> Workshop {
        Workshop::new(WorkerCommand::new("", []), Timeouts::default(), Limits::default()).unwrap()
    }

    fn setting() -> Setting {
        let mut suite = gauntlet_families::suite("rms-norm").unwrap();
        suite.benchmark.truncate(1);
        suite.benchmark[0].sizes = gauntlet_families::open(&serde_json::json!({
            "family": "rms-norm", "rows": 4, "columns": 16
        }))
        .unwrap();
        let criteria = Criteria {
            resamples: 400,
            ..Criteria::default()
        };
        Setting::new(Device::host(), &suite, Measurement::default(), criteria)
    }

    fn sides() -> [Candidate; 2] {
        ["baseline", "candidate"].map(|name| Candidate::new(name, Parameters::new()))
    }

    fn slot(call: f64) -> Slot {
        let effort = Effort {
            exchange: 20.0 * call + 150e-6,
            cpu: Some(20.0 * call),
            waited: Some(1e-6),
        };
        Slot::of(vec![call; 20], effort)
    }

    /// Adds pairs whose candidate is faster by these log speed-ups, and looks where the plan has looks.
    fn go_on(comparison: &mut PairedComparison, effects: &[f64]) {
        for effect in effects {
            let process = comparison.pairs;
            let times = [CALL, CALL * (-effect).exp()];
            let [baseline, candidate] = times.map(|call| vec![call; 2]);
            let one = &mut comparison.cases[0];
            one.blocks.push(Block::new(process, baseline, candidate));
            let mut conduct = CaseConduct::new(process, false);
            for fresh in [true, false, true] {
                conduct.note_alone(&times.map(slot));
                conduct.note_lone(fresh, times.map(slot));
            }
            let [baseline, candidate] = times.map(slot);
            conduct.note_slots(&[(Arm::Baseline, baseline), (Arm::Candidate, candidate)]);
            one.conduct.push(conduct);
            let target = comparison.setting.measurement.next_look(process);
            comparison.pairs += 1;
            if comparison.pairs == target {
                comparison.look(false).unwrap();
            }
        }
    }

    /// The same pairs, interrupted after these numbers of them; what is kept goes through a file each time.
    fn measured(effects: &[f64], cuts: &[usize]) -> (Comparison, Observations) {
        let (workshop, setting) = (workshop(), setting());
        let [baseline, candidate] = sides();
        let mut comparison = PairedComparison::new(&workshop, &setting, baseline, candidate, 7).unwrap();
        let mut done = 0;
        for cut in cuts {
            go_on(&mut comparison, &effects[done..*cut]);
            done = *cut;
            let text = serde_json::to_string(&comparison.finish_observed().unwrap()).unwrap();
            let (found, observed): (Comparison, Observations) = serde_json::from_str(&text).unwrap();
            let so_far = (&found, &observed);
            comparison = PairedComparison::resume(&workshop, &setting, sides(), so_far, 8).unwrap();
        }
        go_on(&mut comparison, &effects[done..]);
        comparison.finish_observed().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Cuts before the first look, and at looks. Only an undecided comparison that ended has closing looks.
        #[test]
        fn a_comparison_that_went_on_is_the_same_as_one_in_one_go(
            effects in prop::collection::vec(-0.03..0.05, 18),
            cuts in prop::sample::subsequence(vec![1usize, 2, 4, 6, 12], 1..4),
        ) {
            let (whole, seen) = measured(&effects, &[]);
            let (found, observed) = measured(&effects, &cuts);
            let fixed = |comparison: &Comparison| {
                let looks = comparison.looks.iter().filter(|look| !look.closing);
                looks.cloned().collect::<Vec<_>>()
            };
            prop_assert_eq!(fixed(&found), fixed(&whole));
            prop_assert_eq!(&found.cases, &whole.cases);
            let closing = found.looks.iter().filter(|look| look.closing);
            prop_assert!(closing.clone().count() <= cuts.len() + 1);
            if closing.count() == whole.looks.iter().filter(|look| look.closing).count() {
                prop_assert_eq!(&found.assessment, &whole.assessment);
                prop_assert_eq!(&found.conduct, &whole.conduct);
            }
            prop_assert_eq!(&observed.cases, &seen.cases);
            let mut batches: Vec<usize> = observed.batches.iter().map(|batch| batch.pairs).collect();
            prop_assert_eq!(batches.iter().sum::<usize>(), 18);
            batches.pop();
            let ends = batches.iter().scan(0, |end, pairs| { *end += pairs; Some(*end) });
            prop_assert_eq!(ends.collect::<Vec<_>>(), cuts);
        }
    }

    #[test]
    fn a_look_taken_when_the_time_was_up_has_used_its_share_of_the_error() {
        let effects: Vec<f64> = (0..18).map(|pair| 0.03 * f64::from(pair % 3 - 1)).collect();
        let (found, observed) = measured(&effects, &[8, 14]);
        let looks: Vec<usize> = found.looks.iter().map(|look| look.processes).collect();
        // At 8, at 14 and at the end the time was up.
        assert_eq!(looks, [4, 6, 8, 9, 12, 14, 18, 18]);
        let plan = setting().criteria.look_plan().unwrap();
        let numbers = [
            LookNumber::Fixed(1),
            LookNumber::Fixed(2),
            LookNumber::Closing(1),
            LookNumber::Fixed(3),
            LookNumber::Fixed(4),
            LookNumber::Closing(2),
            LookNumber::Fixed(5),
            LookNumber::Closing(3),
        ];
        for (look, number) in found.looks.iter().zip(numbers) {
            let origin = Origin::Measured {
                confidence: plan.confidence_at(number).unwrap(),
                processes: look.processes,
            };
            assert_eq!(look.interval.as_ref().unwrap().origin, origin, "{number:?}");
            assert_eq!(look.closing, matches!(number, LookNumber::Closing(_)));
        }
        assert_eq!(found.assessment.decision, Decision::Inconclusive);
        assert!(found.is_open());
        assert!(
            found
                .ended_early
                .unwrap()
                .contains("4 more pairs of processes were measured, 18 in all")
        );
        assert!(
            observed
                .batches
                .windows(2)
                .all(|two| two[0].began <= two[1].began)
        );
        assert_eq!(observed.batches[1].seed, 8);
        assert_eq!(found.seed, 7, "the sign-flip test's");
    }

    #[test]
    fn a_decided_comparison_is_closed() {
        let (found, _) = measured(&[0.1, 0.1, 0.1001, 0.1], &[]);
        assert_eq!(
            (found.assessment.decision, found.is_open()),
            (Decision::Adopt, false)
        );
    }

    #[test]
    fn a_gain_that_is_not_resolved_yet_needs_the_pairs_that_would_resolve_it() {
        let (mut found, _) = measured(&[0.1, 0.1, 0.1001, 0.1], &[]);
        assert_eq!(found.needed_pairs(), None);
        found.conduct.as_mut().unwrap().suspicion = Some(Suspicion::Unresolved {
            own: 1.1,
            lower: 0.9,
            upper: 1.3,
            pairs: 33,
        });
        assert_eq!((found.needed_pairs(), found.is_open()), (Some(33), true));
    }

    #[test]
    fn observations_of_other_pairs_are_refused() {
        let effects = [0.01, -0.02, 0.03, 0.0];
        let (found, observed) = measured(&effects, &[]);
        assert!(observed.belong_to(&found));
        let fewer = measured(&effects[..3], &[]);
        let doubled = Observations {
            batches: [&observed.batches[..], &observed.batches[..]].concat(),
            ..observed.clone()
        };
        let mut missing = observed;
        missing.cases[0].remove(1);
        let (workshop, setting) = (workshop(), setting());
        for wrong in [&fewer.1, &doubled, &missing] {
            let resumed = PairedComparison::resume(&workshop, &setting, sides(), (&found, wrong), 8);
            let failure = resumed.err().unwrap();
            assert!(matches!(
                failure,
                ExaminationFailure::Judge(JudgeError::Observations)
            ));
        }
    }
}
