//! The verdict on two sides that another program measured.

use std::collections::{HashMap, HashSet};

use gauntlet_judge::{CaseTimes, Comparison, Look};
use gauntlet_stats::{
    Assessment, Block, Calls, Criteria, Decision, Sample, compare as compare_samples, compare_calls, median,
};

use crate::error::SamplesError;
use crate::evidence::Evidence;
use crate::measurements::{Benchmark, Measurements, Order};

/// The sign-flip test's seed: the same files give the same verdict.
const SEED: u64 = 1;

/// More processes a side than anybody measures one by one. Working out the exact distribution of ranks takes seconds for so
/// many, and grows with the cube of their number.
const MAX_PROCESSES: usize = 2_000;

/// Times whose ratio is within this factor of a thousand, or of a power of it, may be in different units.
const NEAR_THOUSAND: f64 = 3.0;

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
/// Sides without a common benchmark, a benchmark that the candidate failed, one measurement on both sides, more processes than
/// anyone measures; criteria or a bound that make no sense.
pub fn compare(
    baseline: &Measurements,
    candidate: &Measurements,
    criteria: &Criteria,
    between: Option<f64>,
) -> Result<Compared, SamplesError> {
    let mut notes: Vec<String> = baseline.notes.iter().chain(&candidate.notes).cloned().collect();
    notes.dedup();
    for origin in &candidate.files {
        origin.refuse_copy(&baseline.files)?;
    }
    let cases = matched(baseline, candidate, &mut notes)?;
    cases.iter().try_for_each(|case| case.refuse_copies(candidate))?;
    notes.extend(cases.iter().find_map(Case::other_units));
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
    if processes > MAX_PROCESSES {
        return Err(SamplesError::whole(
            &candidate.path,
            format!("{processes} processes a side are more than {MAX_PROCESSES}"),
            "calls of one process do not count as processes: say in a column `process` which process made them",
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
    let are_paired = baseline.order == Order::SideBySide && candidate.order == Order::SideBySide;
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
        let assessment = of_processes(&cases, processes, criteria).map_err(failed)?;
        let order = if are_paired {
            "side by side"
        } else {
            "one side after the other, so that a change of the machine between them counts as a difference"
        };
        let design = format!("measured by {programs}, {processes} processes a side, {order}; {unchecked}");
        (assessment, design, None)
    };
    let evidence = Evidence::of(&cases, processes, are_paired);
    let assessment = match evidence.doubt(&assessment, criteria) {
        Some(reason) if assessment.decision != Decision::Inconclusive => assessment.undecided(reason),
        _ => assessment,
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
        trust: gauntlet_judge::Trust::Watched,
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
pub(crate) struct Case<'m> {
    pub(crate) name: String,
    pub(crate) baseline: &'m [Vec<f64>],
    pub(crate) candidate: &'m [Vec<f64>],
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

    /// Refuses a process whose calls are those of another, in whatever order: one measurement would count several times.
    fn refuse_copies(&self, candidate: &Measurements) -> Result<(), SamplesError> {
        let mut known: HashMap<Vec<u64>, (&str, usize)> = HashMap::new();
        for (side, processes) in [("baseline", self.baseline), ("candidate", self.candidate)] {
            for (index, calls) in processes.iter().enumerate() {
                let mut bits: Vec<u64> = calls.iter().map(|time| time.to_bits()).collect();
                bits.sort_unstable();
                let mut different = bits.clone();
                different.dedup();
                // Fewer different times can be equal by chance where the clock is coarse.
                if different.len() < TOO_MANY_BY_CHANCE {
                    continue;
                }
                if let Some((other, earlier)) = known.insert(bits, (side, index)) {
                    return Err(SamplesError::whole(
                        &candidate.path,
                        format!(
                            "process {} of the {side} has the very times of process {} of the {other} in `{}`",
                            index + 1,
                            earlier + 1,
                            self.name
                        ),
                        "a measurement counts once: name measurements of different processes",
                    ));
                }
            }
        }
        Ok(())
    }

    /// A hint at times in different units.
    fn other_units(&self) -> Option<String> {
        let ratio = median(&self.baseline.concat()) / median(&self.candidate.concat());
        let thousands = (ratio.log10() / 3.0).round();
        let off = (ratio.log10() - 3.0 * thousands).abs();
        (thousands != 0.0 && off <= NEAR_THOUSAND.log10()).then(|| {
            format!(
                "the times of `{}` differ by a factor of about {:.0}: is one side in another unit of time than its file says?",
                self.name,
                ratio.max(1.0 / ratio)
            )
        })
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

/// Different times of a process that do not all come again by chance.
const TOO_MANY_BY_CHANCE: usize = 5;

/// The benchmarks that both sides have, by name. A single benchmark on each side is compared whatever the names: the name
/// may be that of the kernel.
fn matched<'m>(
    baseline: &'m Measurements,
    candidate: &'m Measurements,
    notes: &mut Vec<String>,
) -> Result<Vec<Case<'m>>, SamplesError> {
    let has_failed = |name: &String| candidate.failed.iter().find(|(failed, _)| failed == name);
    if let Some((name, why)) = baseline.benchmarks.iter().find_map(|one| has_failed(&one.name)) {
        return Err(SamplesError::whole(
            &candidate.path,
            format!("`{name}`, which the baseline measured, failed in {why}"),
            "correct the candidate; or take the benchmark out of both sides",
        ));
    }
    if let ([one], [other]) = (&baseline.benchmarks[..], &candidate.benchmarks[..]) {
        let name = if one.name == other.name {
            one.name.clone()
        } else {
            format!("{} against {}", other.name, one.name)
        };
        return Ok(vec![case(name, one, other)]);
    }
    [baseline, candidate].into_iter().try_for_each(refuse_namesakes)?;
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

/// Refuses benchmarks of one name in a file: it could not be said which belongs to which of the other side.
fn refuse_namesakes(side: &Measurements) -> Result<(), SamplesError> {
    let mut names = HashSet::new();
    match side.benchmarks.iter().find(|one| !names.insert(&one.name)) {
        None => Ok(()),
        Some(twice) => Err(SamplesError::whole(
            &side.path,
            format!("two benchmarks are named `{}`", twice.name),
            "give each a name of its own",
        )),
    }
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
) -> Result<Assessment, gauntlet_stats::Error> {
    let mut problems = Vec::new();
    for case in cases {
        problems.push((case.name.clone(), Sample::from_blocks(&case.blocks(processes))?));
    }
    let criteria = Criteria {
        looks: 1,
        ..criteria.clone()
    };
    compare_samples(&problems, &criteria, 1, SEED)
}
