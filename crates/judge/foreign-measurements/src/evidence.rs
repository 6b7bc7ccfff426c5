//! Whether the times of two sides can decide anything: how many there are, how fine their clock is, and in which order they
//! came.
//!
//! The interval takes processes to be independent and alike. Exports of other programs often are not, and then a narrow
//! interval is worth nothing. What cannot be tested, because there is too little, decides nothing either.

use gauntlet_stats::{Assessment, Criteria, Dependence, Interval, STABILITY_LEVEL, Trend, decide, median};

use crate::compare::Case;

/// With up to this many processes a side the test of a drift sees little, so that a weaker sign of one is enough.
const FEW: usize = 5;

/// The fewest processes a side that decide. A single look spends all of the error, and at three pairs the interval of skewed
/// effects would not keep it.
const MIN_PROCESSES: usize = 4;

/// The level of that weaker sign.
const LEVEL_OF_FEW: f64 = 0.05;

/// Values of a sequence that are tested; longer ones are cut into as many contiguous parts, because the test of a trend
/// compares all pairs.
const TESTED: usize = 500;

/// The same for the calls of one process. Neighbouring calls resemble each other, and the interval is that of such parts.
const TESTED_CALLS: usize = 10;

/// Units of time in which the step of a clock is looked for: picoseconds.
const FINEST: f64 = 1e-12;

/// A step is visible if at least this share of the times equal another.
const TIED: f64 = 0.2;

/// Relative differences of times under this come from their being written as numbers.
const WRITTEN: f64 = 1e-9;

/// What was compared.
pub(crate) struct Evidence<'e> {
    cases: &'e [Case<'e>],
    /// Processes of each side, or pairs of them; calls, if there is one process a side.
    count: usize,
    /// What `count` counts, in the plural.
    counted: &'static str,
    /// Values of a sequence that are tested.
    tested: usize,
    /// Whether the i-th of both sides were measured together.
    are_paired: bool,
}

impl<'e> Evidence<'e> {
    /// The evidence of this many processes a side.
    pub(crate) fn of(cases: &'e [Case<'e>], processes: usize, are_paired: bool) -> Self {
        let calls = || {
            let sides = cases.iter().flat_map(Case::sides);
            sides.map(|side| side.concat().len()).min().unwrap_or_default()
        };
        let (count, counted, tested) = match processes {
            0 | 1 => (calls(), "calls", TESTED_CALLS),
            processes if are_paired => (processes, "pairs", TESTED),
            processes => (processes, "processes", TESTED),
        };
        Self {
            cases,
            count,
            counted,
            tested,
            are_paired,
        }
    }

    /// Why an assessment of these times decides nothing, if that is so.
    pub(crate) fn doubt(&self, assessment: &Assessment, criteria: &Criteria) -> Option<String> {
        self.too_few()
            .or_else(|| self.cases.iter().find_map(Case::without_scatter))
            .or_else(|| self.in_steps(assessment, criteria))
            .or_else(|| self.drifting())
            .or_else(|| self.dependent())
    }

    fn too_few(&self) -> Option<String> {
        (self.count < MIN_PROCESSES).then(|| {
            format!(
                "{} {}{} are too few: a verdict on times of others needs at least {MIN_PROCESSES}",
                self.count,
                self.counted,
                if self.are_paired { "" } else { " a side" }
            )
        })
    }

    /// The step of the clock, if with it the interval would decide otherwise.
    fn in_steps(&self, assessment: &Assessment, criteria: &Criteria) -> Option<String> {
        let suite = assessment.suite.as_ref()?;
        let coarse = self
            .cases
            .iter()
            .max_by(|one, other| one.slack().total_cmp(&other.slack()))?;
        let slack = coarse.slack();
        let widened = Interval {
            lower: suite.lower - slack,
            upper: suite.upper + slack,
            ..suite.clone()
        };
        (decide(Some(&widened), criteria) != decide(Some(suite), criteria)).then(|| {
            format!(
                "the times of {} come in steps of {}, by the clock or by how they are written: the speed-up may be off by {:.1} % \
                 for that alone",
                coarse.name,
                seconds(coarse.step()),
                slack.exp_m1() * 100.0
            )
        })
    }

    /// What drifts: each side's times, or the speed-up of pairs. The suite's mean is tested, and each case.
    fn drifting(&self) -> Option<String> {
        let level = if self.count <= FEW {
            LEVEL_OF_FEW
        } else {
            STABILITY_LEVEL
        };
        let of = |name: &str, sequences: &[Vec<f64>], level: f64| {
            let sequences: Vec<Vec<f64>> = sequences.iter().map(|one| parts(one, self.tested)).collect();
            let sides: Vec<&[f64]> = sequences.iter().map(Vec::as_slice).collect();
            let tested = match &sides[..] {
                [baseline, candidate] => vec![
                    ("the times of both sides", vec![*baseline, *candidate]),
                    ("the baseline's times", vec![*baseline]),
                    ("the candidate's times", vec![*candidate]),
                ],
                pairs => vec![("the speed-up", pairs.to_vec())],
            };
            let trends = tested
                .into_iter()
                .filter_map(|(what, sequences)| Some((what, Trend::of(&sequences)?.p_value)));
            let (what, found) = trends.min_by(|one, other| one.1.total_cmp(&other.1))?;
            (found <= level).then(|| {
                let consequence = if self.are_paired {
                    "so the pairs are not alike"
                } else {
                    "and the sides were measured one after the other: the difference may be the machine's"
                };
                format!(
                    "{what} drift over the {} of {name} (p = {found:.4}), {consequence}",
                    self.counted
                )
            })
        };
        let each = level / self.cases.len() as f64;
        of("all cases", &self.mean_sequences(), level)
            .filter(|_| self.cases.len() > 1)
            .or_else(|| {
                let mut cases = self.cases.iter();
                cases.find_map(|case| of(&case.name, &self.sequences(case), each))
            })
    }

    /// Whether neighbours resemble each other, so that the interval counts more than there is.
    fn dependent(&self) -> Option<String> {
        if self.tested == TESTED_CALLS {
            return None;
        }
        let sequences = self.mean_sequences();
        let p_value = |sequences: Vec<Vec<f64>>| {
            let sides: Vec<&[f64]> = sequences.iter().map(Vec::as_slice).collect();
            Some(Dependence::of(&sides)?.p_value)
        };
        let first = sequences.iter().map(|one| one[..one.len().min(TESTED)].to_vec());
        let found = [
            first.collect(),
            sequences.iter().map(|one| parts(one, TESTED)).collect(),
        ];
        let found = found.into_iter().filter_map(p_value).min_by(f64::total_cmp)?;
        (found <= STABILITY_LEVEL).then(|| {
            format!(
                "neighbouring {} resemble each other (p = {found:.3}), as calls of one process do: they are not as many \
                 independent measurements as the interval counts",
                self.counted
            )
        })
    }

    /// The log times of each side in order, or the log speed-ups of the pairs.
    fn sequences(&self, case: &Case) -> Vec<Vec<f64>> {
        let [baseline, candidate] = case.sides().map(|side| logs(&self.typical(side)));
        match self.are_paired {
            true => vec![
                baseline
                    .iter()
                    .zip(&candidate)
                    .map(|(one, other)| one - other)
                    .collect(),
            ],
            false => vec![baseline, candidate],
        }
    }

    /// The same, the mean over cases.
    fn mean_sequences(&self) -> Vec<Vec<f64>> {
        let mut cases = self.cases.iter().map(|case| self.sequences(case));
        let mut sums = cases.next().unwrap_or_default();
        for case in cases {
            for (sums, values) in sums.iter_mut().zip(case) {
                sums.truncate(values.len());
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
        }
        sums
    }

    /// The typical time of each process, or each call of a single one.
    fn typical(&self, side: &[Vec<f64>]) -> Vec<f64> {
        match side {
            [calls] => calls.clone(),
            processes => processes
                .iter()
                .take(self.count)
                .map(|calls| median(calls))
                .collect(),
        }
    }
}

impl Case<'_> {
    fn sides(&self) -> [&[Vec<f64>]; 2] {
        [self.baseline, self.candidate]
    }

    fn calls(&self) -> impl Iterator<Item = f64> {
        self.sides().into_iter().flatten().flatten().copied()
    }

    /// Times that do not vary are no evidence: the clock is too coarse, or they were not measured one by one.
    fn without_scatter(&self) -> Option<String> {
        for (side, processes) in [("baseline", self.baseline), ("candidate", self.candidate)] {
            let typical: Vec<f64> = match processes {
                [calls] => calls.clone(),
                processes => processes.iter().map(|calls| median(calls)).collect(),
            };
            if typical.len() > 1 && are_equal(&logs(&typical)) {
                return Some(format!(
                    "the {side}'s times of {} do not vary, as measured times do: their clock is too coarse, or one measurement is \
                     counted several times",
                    self.name
                ));
            }
        }
        let pairs = self.baseline.iter().zip(self.candidate);
        let effects: Vec<f64> = pairs
            .map(|(one, other)| median(one).ln() - median(other).ln())
            .collect();
        (effects.len() > 1 && are_equal(&effects)).then(|| {
            format!(
                "the speed-up of {} is the same in all processes, as in no measurement: one side's times may be computed from \
                 the other's",
                self.name
            )
        })
    }

    /// How far the step of the clock may shift the log speed-up: both typical times by one step, in opposite directions.
    fn slack(&self) -> f64 {
        let step = self.step();
        let typical = |side: &[Vec<f64>]| median(&side.concat());
        self.sides()
            .map(|side| (step / typical(side)).ln_1p())
            .iter()
            .sum()
    }

    /// The step of the clock: the greatest time of which all times are multiples, or the least difference between times
    /// if many are equal.
    fn step(&self) -> f64 {
        let common = self
            .calls()
            .map(|time| (time / FINEST).round() as u64)
            .reduce(common_divisor)
            .unwrap_or_default();
        (common as f64 * FINEST).max(self.tied_step())
    }

    fn tied_step(&self) -> f64 {
        let mut times: Vec<f64> = self.calls().collect();
        times.sort_by(f64::total_cmp);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let least = times.first().copied().unwrap_or_default() * WRITTEN;
        let steps = gaps.iter().copied().filter(|gap| *gap > least);
        let tied = gaps.len() - steps.clone().count();
        if (tied as f64) < TIED * gaps.len() as f64 {
            return 0.0;
        }
        steps.min_by(f64::total_cmp).unwrap_or_default()
    }
}

fn logs(times: &[f64]) -> Vec<f64> {
    times.iter().map(|time| time.ln()).collect()
}

/// Whether logs differ by no more than the way in which the times are written.
fn are_equal(logs: &[f64]) -> bool {
    let first = logs.first().copied().unwrap_or_default();
    logs.iter().all(|log| (log - first).abs() <= WRITTEN)
}

fn common_divisor(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// At most `most` means of contiguous parts of a sequence, of equal length.
fn parts(sequence: &[f64], most: usize) -> Vec<f64> {
    let length = sequence.len().div_ceil(most).max(1);
    let means = sequence.chunks_exact(length);
    means
        .map(|part| part.iter().sum::<f64>() / length as f64)
        .collect()
}

fn seconds(time: f64) -> String {
    let (value, unit) = match time {
        _ if time < 1e-6 => (time * 1e9, "ns"),
        _ if time < 1e-3 => (time * 1e6, "µs"),
        _ if time < 1.0 => (time * 1e3, "ms"),
        _ => (time, "s"),
    };
    format!("{} {unit}", (value * 1000.0).round() / 1000.0)
}
