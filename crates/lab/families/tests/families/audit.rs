//! The built-in tasks notice every kernel that leaves work out.

use gauntlet_audit::{Weight, audit};
use gauntlet_families::{suite, suite_names};

#[test]
fn no_built_in_task_is_blind() {
    for name in suite_names() {
        let mut suite = suite(name).unwrap();
        // The smallest case tries as many null kernels as the others, and the oracle computes it in no time.
        let cases = suite.correctness.drain(..).chain(suite.benchmark.drain(..));
        let smallest = cases
            .min_by_key(|case| (case.sizes.flops(), case.sizes.bytes()))
            .unwrap();
        suite.correctness.push(smallest);
        let report = audit(&suite, &|_| {}).unwrap();
        let accused: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.weight == Weight::Blind)
            .collect();
        assert!(accused.is_empty(), "{name}: {accused:#?}");
        assert!(
            report.tried >= 6 && report.score == Some(1.0),
            "{name}: {:#?}",
            report.kernels
        );
    }
}
