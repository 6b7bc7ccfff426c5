//! Which side is at fault when a worker cannot serve at all, and how two kernels are examined at once.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use gauntlet_device::Device;
use gauntlet_parameters::Parameters;
use gauntlet_stats::Criteria;
use gauntlet_worker::{CandidateRecord, Limits, Timeouts, WorkerCommand};

use super::*;
use crate::evidence::Measurement;
use crate::runner::Workshop;

const SCRIPT: [&str; 2] = ["-c", "echo 'simd: unknown path `mmx`' >&2; exit 2"];

/// The result of the gate `compiles` for a candidate if every worker ends as the script says.
fn examined(command: Option<Vec<&str>>) -> Result<Finding, JudgeError> {
    let ends = WorkerCommand::new("/bin/sh", SCRIPT.map(Into::into));
    let workshop = Workshop::new(ends, Timeouts::default(), Limits::default())?;
    let suite = gauntlet_families::suite("group-gemm").unwrap();
    let setting = Setting::new(
        Device::host(),
        &suite,
        Measurement::default(),
        Criteria::default(),
    );
    let candidate = Candidate {
        command: command.map(|words| words.into_iter().map(Into::into).collect()),
        ..Candidate::new("candidate", Parameters::new())
    };
    let executor = Executor::Live(workshop);
    examine(
        &Compiles,
        &Examination::new(&setting, [&candidate; 2], &executor, &Blind),
    )
}

#[test]
fn an_executor_that_cannot_serve_is_no_verdict_on_a_candidate() {
    let Err(error) = examined(None) else {
        panic!("a verdict on a candidate that nobody was told of");
    };
    assert!(matches!(error, JudgeError::Executor(_)), "{error}");
    let said = error.to_string();
    for words in ["mmx", "GAUNTLET_SIMD", "doctor"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_program_of_its_own_that_cannot_serve_fails_its_candidate() {
    let [option, script] = SCRIPT;
    let finding = examined(Some(vec!["/bin/sh", option, script])).unwrap();
    assert_eq!(
        finding.stops(),
        Some(Verdict::DoesNotCompile),
        "{}",
        finding.reason
    );
}

/// Stops the kernel `wrong`; examinations of others wait for each other.
struct Meets(Barrier, AtomicUsize);

impl Gate for Meets {
    fn name(&self) -> &'static str {
        "meets"
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        self.1.fetch_add(1, Ordering::Relaxed);
        if examination.candidate.name == "wrong" {
            return Ok(Found::stop(Verdict::Incorrect, "wrong", Evidence::Reason));
        }
        self.0.wait();
        Ok(Found::skip("met"))
    }
}

/// Examines two kernels, with one case of a product with this many columns.
fn examined_both(gate: &Meets, names: [&str; 2], columns: usize) -> [Option<Finding>; 2] {
    let mut suite = gauntlet_families::suite("group-gemm").unwrap();
    let sizes = serde_json::json!({
        "family": "grouped-gemm", "groups": [{ "m": 2, "n": columns, "k": 16384 }]
    });
    suite.correctness.clear();
    suite.benchmark.truncate(1);
    suite.benchmark[0].sizes = gauntlet_families::open(&sizes).unwrap();
    let setting = Setting::new(
        Device::host(),
        &suite,
        Measurement::default(),
        Criteria::default(),
    );
    let candidates = names.map(|name| Candidate::new(name, Parameters::new()));
    let executor = Executor::without_times();
    let examinations = candidates
        .each_ref()
        .map(|candidate| Examination::new(&setting, [&candidates[0], candidate], &executor, &Blind));
    examine_both(gate, examinations).unwrap()
}

#[test]
fn two_kernels_are_examined_at_once_where_there_is_a_processor_for_each() {
    if std::thread::available_parallelism().is_ok_and(|count| count.get() > 1) {
        let gate = Meets(Barrier::new(2), AtomicUsize::new(0));
        let met = examined_both(&gate, ["one", "other"], 16);
        assert!(
            met.iter()
                .all(|finding| finding.as_ref().unwrap().reason == "met")
        );
    }
}

#[test]
fn two_kernels_with_large_operands_are_examined_one_after_the_other() {
    let gate = Meets(Barrier::new(1), AtomicUsize::new(0));
    let [first, second] = examined_both(&gate, ["wrong", "other"], 1 << 16);
    assert_eq!(first.unwrap().stops(), Some(Verdict::Incorrect));
    assert!(second.is_none() && gate.1.load(Ordering::Relaxed) == 1);
}

#[test]
fn without_a_comparison_nothing_is_adopted() {
    let suite = gauntlet_families::suite("group-gemm").unwrap();
    let setting = Setting::new(
        Device::host(),
        &suite,
        Measurement::default(),
        Criteria::default(),
    );
    let kernel = Candidate::new("kernel", Parameters::new());
    let mut executor = Executor::without_times();
    if let Executor::Recorded(record) = &mut executor {
        record
            .candidates
            .insert(kernel.name.clone(), CandidateRecord::default());
    }
    let session = Session::new(&setting, &executor, [&kernel; 2]);
    let found = session.through(&[&Right]).judge().unwrap();
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(found.reason.contains("no gate compared it"), "{}", found.reason);
}
