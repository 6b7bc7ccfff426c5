//! Gates on their own: how far `worth it` relies on the model, and whose trouble a worker is that cannot serve at all.

use gauntlet_device::Device;
use gauntlet_executor::{Limits, Patience, WorkerCommand};
use gauntlet_problem::Suite;
use gauntlet_schedule::Schedule;
use gauntlet_stats::Criteria;

use super::compiles::Compiles;
use super::worth_it::WorthIt;
use super::*;
use crate::observer::Blind;
use crate::panel::fixture::pitch;
use crate::round::Measurement;

const SCRIPT: [&str; 2] = ["-c", "echo 'simd: unknown path `mmx`' >&2; exit 2"];

/// What the gate `compiles` makes of a candidate, where every worker ends as the script says.
fn examined(command: Option<Vec<&str>>) -> Result<Finding, LabError> {
    let ends = WorkerCommand::new("/bin/sh", SCRIPT.map(Into::into));
    let workshop = Workshop::new(ends, Patience::default(), Limits::default())?;
    let suite = Suite::builtin("group-gemm").unwrap();
    let round = Round::ad_hoc(
        Device::host(),
        &suite,
        Measurement::default(),
        Criteria::default(),
    );
    let candidate = Candidate {
        command: command.map(|words| words.into_iter().map(Into::into).collect()),
        ..Candidate::new("candidate", Schedule::baseline())
    };
    let examination = Examination {
        round: &round,
        candidate: &candidate,
        control: &candidate,
        pitch: None,
        executor: &Executor::Live(workshop),
        observer: &Blind,
        metrics: Metrics::new(),
        findings: Vec::new(),
        comparison: None,
    };
    examine(&Compiles, &examination)
}

#[test]
fn an_executor_that_cannot_serve_is_no_verdict_on_a_candidate() {
    let Err(error) = examined(None) else {
        panic!("a verdict on a candidate that nobody was told of");
    };
    assert!(matches!(error, LabError::Executor(_)), "{error}");
    let said = error.to_string();
    for words in ["mmx", "GAUNTLET_SIMD", "doctor"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_program_of_its_own_that_cannot_serve_is_the_candidates_trouble() {
    let [option, script] = SCRIPT;
    let finding = examined(Some(vec!["/bin/sh", option, script])).unwrap();
    assert_eq!(
        finding.stops(),
        Some(Verdict::DoesNotCompile),
        "{}",
        finding.reason
    );
}

/// What `worth it` makes of a candidate that the model predicts to be slower on a device. The pitch gives up when the
/// predicted speed-up is under 0.9. The examination is left with the finding in it.
fn judged_by_the_model(device: &str, then: impl FnOnce(&Examination)) -> Finding {
    let suite = Suite::builtin("group-gemm").unwrap();
    let round = Round::ad_hoc(
        Device::builtin(device).unwrap(),
        &suite,
        Measurement::default(),
        Criteria::default(),
    );
    let staged = Schedule {
        stages: 4,
        ..Schedule::baseline()
    };
    let control = Candidate::new("baseline", staged.clone());
    // One stage hides no copy behind products.
    let candidate = Candidate::new("candidate", Schedule { stages: 1, ..staged });
    let pitch = pitch("fewer-stages");
    let mut examination = Examination {
        round: &round,
        candidate: &candidate,
        control: &control,
        pitch: Some(&pitch),
        executor: &Executor::Predicted,
        observer: &Blind,
        metrics: Metrics::new(),
        findings: Vec::new(),
        comparison: None,
    };
    let finding = examine(&WorthIt, &examination).unwrap();
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
            // Nor does the rule stay open, which would block the candidate at a later gate.
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
