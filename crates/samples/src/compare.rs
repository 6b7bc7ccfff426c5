//! The verdict on two sides that another program measured.

use gauntlet_judge::{CaseTimes, Comparison, Look};
use gauntlet_stats::{
    Assessment, Block, Calls, Criteria, STABILITY_LEVEL, Sample, Trend, compare as compare_samples,
    compare_calls, median,
};

use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements, Order};

/// The bootstrap's seed: the same files give the same verdict.
const SEED: u64 = 1;

/// A comparison, and what was left out of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The comparison.
    pub comparison: Comparison,
    /// What was left out, in words.
    pub notes: Vec<String>,
}

/// Judges two sides. `between` is the bound, as a fraction, within which the user declares the typical call of any other
/// process to lie; it is only for measurements of one process a side.
///
/// # Errors
/// Sides without a common benchmark; criteria or a bound that make no sense.
pub fn compare(
    baseline: &Measurements,
    candidate: &Measurements,
    criteria: &Criteria,
    between: Option<f64>,
) -> Result<Compared, SamplesError> {
    let mut notes: Vec<String> = baseline.notes.iter().chain(&candidate.notes).cloned().collect();
    notes.dedup();
    let cases = matched(baseline, candidate, &mut notes)?;
    let counts = cases
        .iter()
        .flat_map(|case| [case.baseline.len(), case.candidate.len()]);
    let processes = counts.clone().min().unwrap_or_default();
    if counts.max().unwrap_or_default() > processes {
        notes.push(format!(
            "only the first {processes} processes of each side are compared: the sides or benchmarks have different numbers \
             of them"
        ));
    }
    let failed = |error: gauntlet_stats::Error| {
        SamplesError::whole(
            &baseline.path,
            format!("it cannot be compared with {}: {error}", candidate.path.display()),
            "check the times and the bounds that were given",
        )
    };
    let programs = if baseline.program == candidate.program {
        baseline.program.to_owned()
    } else {
        format!("{} and {}", baseline.program, candidate.program)
    };
    let unchecked = "whether either result is right was not checked";
    let (assessment, design, declared) = if processes < 2 {
        let assessment = of_one_process(&cases, criteria, between).map_err(failed)?;
        let design = format!("measured by {programs}, one process a side; {unchecked}");
        let declared = between.map(|bound| {
            format!(
                "one process a side says nothing about other processes, so the typical call of any other is taken to be within \
                 {:.1} %, as declared",
                bound * 100.0
            )
        });
        (assessment, design, declared)
    } else {
        let are_paired = baseline.order == Order::SideBySide && candidate.order == Order::SideBySide;
        let assessment = of_processes(&cases, processes, criteria, are_paired).map_err(failed)?;
        let order = if are_paired {
            "side by side"
        } else {
            "one side after the other, so that a change of the machine between them counts as a difference"
        };
        let design = format!("measured by {programs}, {processes} processes a side, {order}; {unchecked}");
        (assessment, design, None)
    };
    let looks = match processes {
        0 | 1 => Vec::new(),
        _ => vec![Look {
            processes,
            interval: assessment.suite.clone(),
            decision: assessment.decision,
            closing: false,
        }],
    };
    let comparison = Comparison {
        assessment,
        cases: cases.iter().map(|case| case.times(processes)).collect(),
        regime: None,
        scope: None,
        looks,
        seed: SEED,
        conduct: None,
        declared,
        design: Some(design),
        predicted: None,
        ended_early: None,
        spent: None,
    };
    Ok(Compared { comparison, notes })
}

/// A benchmark of both sides.
struct Case<'m> {
    name: String,
    baseline: &'m [Vec<f64>],
    candidate: &'m [Vec<f64>],
}

impl Case<'_> {
    /// A block for each pair of processes: the i-th of both sides.
    fn blocks(&self, processes: usize) -> Vec<Block> {
        let pairs = self.baseline.iter().zip(self.candidate).take(processes);
        pairs
            .enumerate()
            .map(|(process, (baseline, candidate))| Block::new(process, baseline.clone(), candidate.clone()))
            .collect()
    }

    fn times(&self, processes: usize) -> CaseTimes {
        let all = |side: &[Vec<f64>]| {
            side.iter()
                .take(processes)
                .flatten()
                .copied()
                .collect::<Vec<f64>>()
        };
        CaseTimes {
            case: self.name.clone(),
            baseline: median(&all(self.baseline)),
            candidate: median(&all(self.candidate)),
            blocks: self.blocks(processes),
        }
    }
}

/// The benchmarks that both sides have, by name. A single benchmark on each side is compared whatever the names: the name
/// may be that of the kernel.
fn matched<'m>(
    baseline: &'m Measurements,
    candidate: &'m Measurements,
    notes: &mut Vec<String>,
) -> Result<Vec<Case<'m>>, SamplesError> {
    if let ([one], [other]) = (&baseline.benchmarks[..], &candidate.benchmarks[..]) {
        let name = if one.name == other.name {
            one.name.clone()
        } else {
            format!("{} against {}", other.name, one.name)
        };
        return Ok(vec![case(name, one, other)]);
    }
    let mut cases = Vec::new();
    for one in &baseline.benchmarks {
        match candidate.benchmarks.iter().find(|other| other.name == one.name) {
            Some(other) => cases.push(case(one.name.clone(), one, other)),
            None => notes.push(format!(
                "`{}` is only in {} and is left out",
                one.name,
                baseline.path.display()
            )),
        }
    }
    let is_matched = |other: &&Benchmark| baseline.benchmarks.iter().any(|one| one.name == other.name);
    for other in candidate.benchmarks.iter().filter(|other| !is_matched(other)) {
        notes.push(format!(
            "`{}` is only in {} and is left out",
            other.name,
            candidate.path.display()
        ));
    }
    if cases.is_empty() {
        let names = |side: &Measurements| {
            let names: Vec<_> = side
                .benchmarks
                .iter()
                .map(|one| format!("`{}`", one.name))
                .collect();
            names.join(", ")
        };
        return Err(SamplesError::whole(
            &candidate.path,
            format!(
                "it shares no benchmark with {}: {} here, {} there",
                baseline.path.display(),
                names(candidate),
                names(baseline)
            ),
            "give both sides' benchmarks the same names, or one benchmark in each file",
        ));
    }
    Ok(cases)
}

fn case<'m>(name: String, baseline: &'m Benchmark, candidate: &'m Benchmark) -> Case<'m> {
    Case {
        name,
        baseline: &baseline.processes,
        candidate: &candidate.processes,
    }
}

fn of_one_process(
    cases: &[Case],
    criteria: &Criteria,
    between: Option<f64>,
) -> Result<Assessment, gauntlet_stats::Error> {
    let first = |side: &[Vec<f64>]| side.first().cloned().unwrap_or_default();
    let problems: Vec<_> = cases
        .iter()
        .map(|case| {
            let calls = Calls {
                baseline: first(case.baseline),
                candidate: first(case.candidate),
            };
            (case.name.clone(), calls)
        })
        .collect();
    compare_calls(&problems, criteria, between, SEED)
}

fn of_processes(
    cases: &[Case],
    processes: usize,
    criteria: &Criteria,
    are_paired: bool,
) -> Result<Assessment, gauntlet_stats::Error> {
    let mut problems = Vec::new();
    for case in cases {
        problems.push((case.name.clone(), Sample::from_blocks(&case.blocks(processes))?));
    }
    let criteria = Criteria {
        looks: 1,
        ..criteria.clone()
    };
    let assessment = compare_samples(&problems, &criteria, 1, SEED)?;
    let drifting = cases
        .iter()
        .filter(|_| !are_paired)
        .find_map(|case| case.drifting(processes));
    Ok(match drifting {
        Some(reason) => assessment.undecided(reason),
        None => assessment,
    })
}

impl Case<'_> {
    /// The side whose times drift from process to process: the machine changed while it was measured, and so it will have
    /// changed between the sides.
    fn drifting(&self, processes: usize) -> Option<String> {
        let sides = [("baseline", self.baseline), ("candidate", self.candidate)];
        sides.into_iter().find_map(|(side, times)| {
            let typical: Vec<f64> = times.iter().take(processes).map(|calls| median(calls).ln()).collect();
            let trend = Trend::of(&[&typical])?;
            (trend.p_value <= STABILITY_LEVEL).then(|| {
                format!(
                    "the {side}'s times of {} drift from process to process (p = {:.4}), and the sides were measured one after the \
                     other: the difference may be the machine's",
                    self.name, trend.p_value
                )
            })
        })
    }
}
