//! The audit of a suite: the battery on its cases, and what they say together.

use std::collections::BTreeMap;

use gauntlet_task::{Case, FULL_BELOW, Suite};
use gauntlet_tensors::TensorSpec;

use crate::case::{CaseTrials, Depth, Trial, tried};
use crate::report::{AuditReport, Finding, KernelTried, Weight};
use crate::values::drawn_twice;
use crate::{Kind, NullKernel};

/// Bytes of operands and results up to which the reference is asked for other results of a case.
const WHOLE: u64 = 32 << 20;

/// The same up to which a case is audited at all, unless it is the smallest.
const LARGEST: u64 = 512 << 20;

/// The length that tails are told by.
const TAIL: usize = 8;

/// How far the bytes that a task states may be from those of its tensors, as a factor.
const STATED_BYTES: f64 = 4.0;

/// A case with what the battery found on it.
struct Audited<'s> {
    case: &'s Case,
    is_timed: bool,
    found: CaseTrials,
}

/// Tries the battery on the cases of a suite; `progress` receives a description of each step.
///
/// # Errors
/// When a generator or a reference fails on its own inputs.
pub fn audit(suite: &Suite, progress: &dyn Fn(&str)) -> Result<AuditReport, String> {
    let mut notes = suite.notes.clone();
    let mut audited: Vec<Audited> = Vec::new();
    for (case, is_timed) in chosen(suite, &mut notes) {
        if let Some(same) = audited.iter_mut().find(|known| known.case.sizes == case.sizes) {
            same.is_timed |= is_timed;
            continue;
        }
        progress(&format!("{}: {}", suite.name, case.name));
        let depth = match bytes(case) <= WHOLE {
            true => Depth::Whole,
            false => Depth::Results,
        };
        let found = tried(case, depth)?;
        audited.push(Audited {
            case,
            is_timed,
            found,
        });
    }
    let rows = Rows::of(&audited);
    let mut findings = rows.findings(&audited);
    findings.extend(of_remarks(&audited));
    findings.extend(of_draws(&audited)?);
    let notes_of_cases = audited.iter().flat_map(|audited| {
        let on = |note: &String| format!("on {}, {note}", audited.case.name);
        audited.found.notes.iter().map(on)
    });
    let noted = notes_of_cases.chain(of_shapes(suite)).map(|text| Finding {
        name: None,
        weight: Weight::Note,
        text,
    });
    findings.extend(noted);
    findings.sort_by_key(|finding| finding.weight);
    let blind = rows.0.iter().filter(|row| row.leaves_work_out());
    let tried = blind.clone().count();
    let refused = blind.filter(|row| !row.is_blind(&audited)).count();
    Ok(AuditReport {
        task: suite.name.clone(),
        notes,
        cases: audited.iter().map(|audited| audited.case.name.clone()).collect(),
        tried,
        refused,
        score: (tried > 0).then(|| refused as f64 / tried as f64),
        kernels: rows.0.iter().map(Row::tried).collect(),
        findings,
    })
}

fn bytes(case: &Case) -> u64 {
    let outputs: usize = case.sizes.outputs().iter().map(TensorSpec::bytes).sum();
    case.sizes.input_bytes().saturating_add(outputs as u64)
}

/// The cases that are not too large, those for correctness first, and whether each is timed. Of a suite of large ones the smallest.
fn chosen<'s>(suite: &'s Suite, notes: &mut Vec<String>) -> Vec<(&'s Case, bool)> {
    let correctness = suite.correctness.iter().map(|case| (case, false));
    let all = correctness.chain(suite.benchmark.iter().map(|case| (case, true)));
    let all: Vec<_> = all.collect();
    let (kept, left): (Vec<_>, Vec<_>) = all
        .iter()
        .copied()
        .partition(|(case, _)| bytes(case) <= LARGEST && case.sizes.flops().unwrap_or(0) <= FULL_BELOW);
    let kept = match kept.is_empty() {
        true => all
            .into_iter()
            .min_by_key(|(case, _)| bytes(case))
            .into_iter()
            .collect(),
        false => kept,
    };
    let is_left = |case: &Case| kept.iter().all(|(known, _)| known.name != case.name);
    let left: Vec<_> = left
        .iter()
        .filter(|(case, _)| is_left(case))
        .map(|(case, _)| format!("`{}`", case.name))
        .collect();
    if !left.is_empty() {
        notes.push(format!(
            "not audited, for their size: {}; a smaller case of each kind would be",
            left.join(", ")
        ));
    }
    kept
}

/// A null kernel with its trial on each case.
struct Row<'a> {
    kernel: NullKernel,
    subject: Option<&'a str>,
    trials: Vec<(usize, &'a Trial)>,
}

struct Rows<'a>(Vec<Row<'a>>);

impl<'a> Rows<'a> {
    fn of(audited: &'a [Audited]) -> Self {
        let mut rows: BTreeMap<_, Vec<(usize, &Trial)>> = BTreeMap::new();
        for (index, audited) in audited.iter().enumerate() {
            for trial in &audited.found.trials {
                let key = (trial.kernel, trial.subject.as_deref());
                rows.entry(key).or_default().push((index, trial));
            }
        }
        let row = |((kernel, subject), trials)| Row {
            kernel,
            subject,
            trials,
        };
        Self(rows.into_iter().map(row).collect())
    }

    fn findings(&self, audited: &[Audited]) -> Vec<Finding> {
        let told = self.0.iter().filter(|row| !self.is_implied(row));
        told.filter_map(|row| row.finding(audited)).collect()
    }

    /// Whether another finding says as much: one on whole results, or one of the same results by a kernel that computes less.
    fn is_implied(&self, row: &Row) -> bool {
        let passes = |kernel: NullKernel, subject: Option<&str>| {
            let mut rows = self.0.iter();
            rows.any(|other| {
                other.kernel == kernel && other.subject == subject && other.passing().count() > 0
            })
        };
        let less = row.kernel.implied_by();
        row.subject.is_some() && passes(row.kernel, None)
            || less
                .iter()
                .any(|kernel| passes(*kernel, row.subject) || passes(*kernel, None))
    }
}

impl Row<'_> {
    fn passing(&self) -> impl Iterator<Item = &(usize, &Trial)> {
        self.trials.iter().filter(|(_, trial)| trial.passes)
    }

    fn leaves_work_out(&self) -> bool {
        let of_results = self.kernel.kind() == Kind::Blindness && self.subject.is_none();
        of_results || matches!(self.kernel, NullKernel::IgnoredInput | NullKernel::View)
    }

    /// Whether it passes where the task is timed, or wherever it could be tried: one correctness case may be there for its sizes
    /// alone. An input may be at rest in some cases, such as a mask that masks nothing, if it matters in others.
    fn is_blind(&self, audited: &[Audited]) -> bool {
        let blind = |(_, trial): &&(usize, &Trial)| trial.is_blind;
        let timed = |(index, _): &(usize, &Trial)| audited[*index].is_timed;
        let may_rest = self.kernel == NullKernel::IgnoredInput;
        !may_rest && self.trials.iter().any(|one| timed(one) && blind(&one))
            || self.trials.iter().all(|one| blind(&one))
    }

    fn tried(&self) -> KernelTried {
        KernelTried {
            kernel: self.kernel,
            of: self.subject.map(str::to_owned),
            cases: self.trials.len(),
            passes: self.passing().count(),
            leaves_work_out: self.leaves_work_out(),
        }
    }

    fn finding(&self, audited: &[Audited]) -> Option<Finding> {
        let is_blind = self.is_blind(audited);
        let timed = |(index, _): &&(usize, &Trial)| audited[*index].is_timed;
        let told = self.passing().find(timed).or_else(|| self.passing().next());
        let (index, trial) = told?;
        // Nearly every tolerance covers the smallest of many values.
        if self.kernel == NullKernel::ZeroForSmallest || trial.sentence.is_empty() {
            return None;
        }
        let case = audited[*index].case;
        let others = match self.trials.len() - self.passing().count() {
            0 => "",
            _ if is_blind => " (other cases tell it apart)",
            _ => " (cases that are timed, or others, tell it apart)",
        };
        let name = (self.kernel.kind() == Kind::Blindness).then(|| self.kernel.name());
        let accepted = name.is_some_and(|name| case.sizes.known_to_pass().iter().any(|known| known == name));
        let weight = match (is_blind, accepted) {
            (true, false) => Weight::Blind,
            (true, true) => Weight::Accepted,
            (false, _) => Weight::Note,
        };
        Some(Finding {
            name: name.map(str::to_owned),
            weight,
            text: format!("on {}, {}{others}", case.name, trial.sentence),
        })
    }
}

/// What the task noticed of its cases by itself, without what the battery says too.
fn of_remarks(audited: &[Audited]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let is_timed = audited.iter().any(|audited| audited.is_timed);
    for one in audited {
        let tried = |name: &str| {
            let mut trials = one.found.trials.iter();
            trials.any(|trial| trial.kernel.name() == name && trial.passes)
        };
        for remark in one.case.sizes.remarks() {
            if tried(remark.name) || remark.is_blind && is_timed && !one.is_timed {
                continue;
            }
            let accepted = one
                .case
                .sizes
                .known_to_pass()
                .iter()
                .any(|known| known == remark.name);
            findings.push(Finding {
                name: Some(remark.name.to_owned()),
                weight: match remark.is_blind {
                    true => Weight::Blind,
                    false if accepted => Weight::Accepted,
                    false => Weight::Note,
                },
                text: remark.text,
            });
        }
    }
    findings
}

/// Draws of the smallest case that repeat others.
fn of_draws(audited: &[Audited]) -> Result<Option<Finding>, String> {
    let Some(smallest) = audited.iter().min_by_key(|audited| bytes(audited.case)) else {
        return Ok(None);
    };
    let case = smallest.case;
    let accepted = case
        .sizes
        .known_to_pass()
        .iter()
        .any(|name| name == "same-inputs");
    Ok(drawn_twice(case)?.map(|[different, draws]| Finding {
        name: Some("same-inputs".to_owned()),
        weight: match accepted {
            true => Weight::Accepted,
            false => Weight::Blind,
        },
        text: format!(
            "on {}, {draws} seeds draw only {different} different sets of inputs: a kernel that remembers its results would pass; let \
             `generate` draw all values from its seed",
            case.name
        ),
    }))
}

/// What the sizes of all cases leave untried.
fn of_shapes(suite: &Suite) -> Vec<String> {
    let mut notes = Vec::new();
    let shapes = |case: &Case| -> Vec<Vec<usize>> {
        let inputs = case.sizes.inputs();
        inputs.into_iter().map(|spec| spec.shape).collect()
    };
    let all: Vec<_> = suite.cases().map(shapes).collect();
    if all.windows(2).all(|two| two[0] == two[1]) {
        notes.push(
            "all cases have inputs of one shape: a kernel that is wrong for others passes; add correctness cases of other sizes"
                .to_owned(),
        );
    }
    let lengths: Vec<usize> = all
        .iter()
        .flatten()
        .flatten()
        .copied()
        .filter(|length| *length > 1)
        .collect();
    if !lengths.is_empty() && lengths.iter().all(|length| length % TAIL == 0) {
        notes.push(format!(
            "every length of every input is a multiple of {TAIL}: a kernel that is wrong at tails passes; add correctness cases with \
             odd sizes"
        ));
    }
    for case in &suite.benchmark {
        let [stated, tensors] = [case.sizes.bytes(), bytes(case)].map(|bytes| bytes.max(1) as f64);
        if stated > STATED_BYTES * tensors || STATED_BYTES * stated < tensors {
            notes.push(format!(
                "on {}, the task states {stated:.0} bytes for a call, and its tensors have {tensors:.0}: correct `work`, unless a call \
                 moves only a part of them, or moves them several times",
                case.name
            ));
        }
    }
    notes
}
