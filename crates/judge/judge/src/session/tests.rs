//! How far `worth it` relies on the model, and which side is at fault when a worker cannot serve at all.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use gauntlet_device::Device;
use gauntlet_parameters::Parameters;
use gauntlet_stats::Criteria;
use gauntlet_worker::{Limits, Timeouts, WorkerCommand};

use super::*;
use crate::evidence::{
    AbortRule, Candidate, Condition, Measurement, Metrics, PREDICTED_SPEEDUP, Proposal, Setting,
};
use crate::observer::Blind;
use crate::runner::{Executor, Workshop};

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
    let examination = Examination {
        setting: &setting,
        candidate: &candidate,
        baseline: &candidate,
        proposal: None,
        executor: &Executor::Live(workshop),
        observer: &Blind,
        metrics: Metrics::new(),
        findings: Vec::new(),
        comparison: None,
    };
    Ok(examine(&Compiles, &examination)?.unwrap())
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

/// The result of `worth it` for a candidate that the model predicts to be slower on a device, with an abort rule for a
/// predicted speed-up under 0.9. The examination keeps the finding.
fn judged_by_the_model(device: &str, then: impl FnOnce(&Examination)) -> Finding {
    let suite = gauntlet_families::suite("group-gemm").unwrap();
    let setting = Setting::new(
        Device::builtin(device).unwrap(),
        &suite,
        Measurement::default(),
        Criteria::default(),
    );
    let staged = Parameters::new().with("stages", 4_usize);
    let baseline = Candidate::new("baseline", staged.clone());
    // With one stage no copy overlaps with products.
    let candidate = Candidate::new("candidate", staged.with("stages", 1_usize));
    let abort = [AbortRule {
        when: Condition::try_from("predicted.speedup < 0.9".to_owned()).unwrap(),
        why: "pointless".to_owned(),
    }];
    let mut examination = Examination {
        setting: &setting,
        candidate: &candidate,
        baseline: &baseline,
        proposal: Some(Proposal {
            abort: &abort,
            claim: 1.2,
        }),
        executor: &Executor::Predicted,
        observer: &Blind,
        metrics: Metrics::new(),
        findings: Vec::new(),
        comparison: None,
    };
    let finding = examine(&WorthIt, &examination).unwrap().unwrap();
    examination.add(finding.clone());
    assert!(examination.metrics[PREDICTED_SPEEDUP] < 0.9, "{}", finding.reason);
    then(&examination);
    finding
}

#[test]
fn the_model_stops_a_pitch_where_it_passed_its_test() {
    let finding = judged_by_the_model("h200", |examination| {
        assert_eq!(examination.abort_rules(examination.prediction()).count(), 1);
    });
    assert_eq!(finding.stops(), Some(Verdict::Aborted), "{}", finding.reason);
}

#[test]
fn where_the_model_failed_its_test_or_was_never_tested_its_word_stops_nothing() {
    for (device, said) in [
        ("b200", "rank correlation -0.18 to 0.16"),
        (
            "b200",
            "(a constant rule: 3.6 %); too inaccurate to decide anything",
        ),
        ("h100", "the model is not validated on this device"),
    ] {
        let finding = judged_by_the_model(device, |examination| {
            // The rule does not stay open either, which would block the candidate at a later gate.
            assert_eq!(examination.abort_rules(examination.prediction()).count(), 0);
        });
        assert_eq!(finding.outcome, Outcome::Pass, "{}", finding.reason);
        for words in [
            said,
            "the model predicts 0.",
            "not applied for that reason: predicted.speedup is",
        ] {
            assert!(finding.reason.contains(words), "{device}: {}", finding.reason);
        }
        assert!(
            !finding.reason.contains("no kernel could gain"),
            "{}",
            finding.reason
        );
    }
}

/// Stops the kernel `wrong`; examinations of others wait for each other.
struct Meets(Barrier, AtomicUsize);

impl Gate for Meets {
    fn name(&self) -> &'static str {
        "meets"
    }

    fn examine(&self, examination: &Examination) -> Result<Answer, ExaminationFailure> {
        self.1.fetch_add(1, Ordering::Relaxed);
        if examination.candidate.name == "wrong" {
            return Ok(Found::stop(Verdict::Incorrect, "wrong", Evidence::Reason).into());
        }
        self.0.wait();
        Ok(Found::skip("met").into())
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
    let examinations = candidates.each_ref().map(|candidate| Examination {
        setting: &setting,
        candidate,
        baseline: &candidates[0],
        proposal: None,
        executor: &Executor::Predicted,
        observer: &Blind,
        metrics: Metrics::new(),
        findings: Vec::new(),
        comparison: None,
    });
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
