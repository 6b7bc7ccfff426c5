//! How far `worth it` relies on the model.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_judge::gates::Examination;
use gauntlet_judge::session::examine;
use gauntlet_judge::{
    AbortRule, Blind, Candidate, Condition, Executor, Finding, Measurement, Outcome, PREDICTED_SPEEDUP,
    Proposal, Setting, Verdict,
};
use gauntlet_parameters::Parameters;
use gauntlet_stats::Criteria;
use gauntlet_worker::Record;

use super::*;

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
    let executor = Executor::Recorded(Record {
        source: "a test".to_owned(),
        uncertainty: None,
        candidates: BTreeMap::new(),
        peers: BTreeMap::new(),
    });
    let mut examination = Examination {
        proposal: Some(Proposal {
            abort: &abort,
            claim: 1.2,
        }),
        ..Examination::new(&setting, [&baseline, &candidate], &executor, &Blind)
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
