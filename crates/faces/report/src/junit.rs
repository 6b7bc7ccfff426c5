//! Results as JUnit XML, as build servers read it.
//!
//! Evidence against a kernel is a failure: a gate that stopped it, or a regression. No evidence either way is a skipped
//! test: an inconclusive, aborted or blocked candidate. Everything else passes, also a candidate that is no faster: it
//! did no harm.

use std::collections::BTreeMap;
use std::time::Duration;

use gauntlet_judge::{Comparison, ComparisonReport, Finding, Outcome, Verdict};
use gauntlet_tournament::{RoundReport, TournamentReport};
use quick_junit::{NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use thiserror::Error;

use crate::outline::{Floor, cases, side_name};
use crate::plain::plainly;

/// The XML could not be written.
#[derive(Debug, Error)]
#[error("the result cannot be written as JUnit XML: {0}")]
pub struct UnwritableXml(#[from] SerializeError);

/// One comparison: a test for each gate that examined the candidate (of `judge`), each case, and the verdict.
pub fn comparison(report: &ComparisonReport) -> Result<String, UnwritableXml> {
    let mut suite = TestSuite::new(report.task.clone());
    properties(&mut suite, &report.version, &report.environment);
    for note in &report.notes {
        suite.add_property(Property::new("note", note));
    }
    let class = &report.subject().text;
    suite.add_test_cases(report.findings.iter().map(|finding| of_finding(class, finding)));
    if let Some(comparison) = report.believed() {
        suite.add_test_cases(of_cases(class, comparison));
    }
    let said = match report.believed() {
        Some(comparison) => plainly(comparison, &report.criteria, report.names()),
        None => format!("{}: {}", side_name(report.side), report.reason),
    };
    suite.add_test_case(of_verdict(class, "verdict", report.verdict, &said));
    written("gauntlet", [suite])
}

/// A tournament: a suite for each round, in it a test for each pitch and each of its gates.
pub fn tournament(report: &TournamentReport) -> Result<String, UnwritableXml> {
    let of_round = |round: &RoundReport| {
        let mut suite = TestSuite::new(round.name.clone());
        properties(&mut suite, &report.version, &report.environment);
        let of = |class: &str, findings: &[Finding]| -> Vec<TestCase> {
            findings
                .iter()
                .map(|finding| of_finding(class, finding))
                .collect()
        };
        suite.add_test_cases(of("baseline", &round.baseline.findings));
        for judged in &round.judged {
            suite.add_test_cases(of(&judged.name, &judged.findings));
            suite.add_test_case(of_verdict(
                &judged.name,
                "verdict",
                judged.verdict,
                &judged.reason,
            ));
        }
        suite
    };
    written(&report.name, report.rounds.iter().map(of_round))
}

fn written(name: &str, suites: impl IntoIterator<Item = TestSuite>) -> Result<String, UnwritableXml> {
    let mut report = Report::new(name);
    report.add_test_suites(suites);
    Ok(report.to_string()?)
}

fn properties(suite: &mut TestSuite, version: &str, environment: &BTreeMap<String, String>) {
    suite.add_property(Property::new("gauntlet", version));
    for (name, value) in environment {
        suite.add_property(Property::new(name, value));
    }
}

fn of_finding(class: &str, finding: &Finding) -> TestCase {
    let mut test = match finding.outcome {
        Outcome::Pass => named(class, &finding.gate, TestCaseStatus::success()),
        Outcome::Skip => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(&finding.reason);
            named(class, &finding.gate, status)
        }
        Outcome::Stop(verdict) => of_verdict(class, &finding.gate, verdict, &finding.reason),
    };
    // A time that is not a number of seconds is left out.
    if let Ok(time) = Duration::try_from_secs_f64(finding.seconds) {
        test.set_time(time);
    }
    test
}

fn of_cases(class: &str, comparison: &Comparison) -> Vec<TestCase> {
    let of_case = |line: crate::outline::CaseLine<'_>| {
        let status = match line.floor {
            Some(floor @ Floor::Under) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status
                    .set_type("regression")
                    .set_message(format!("{}: {floor}", line.speedup));
                status
            }
            Some(Floor::PerhapsUnder) | None => TestCaseStatus::success(),
        };
        let mut test = named(class, &format!("case {}", line.name), status);
        test.set_system_out(&line.speedup);
        test
    };
    cases(comparison).into_iter().map(of_case).collect()
}

fn of_verdict(class: &str, name: &str, verdict: Verdict, said: &str) -> TestCase {
    let mut status = match verdict {
        Verdict::Adopt | Verdict::Marginal | Verdict::ValidNegative => TestCaseStatus::success(),
        Verdict::Inconclusive | Verdict::Aborted | Verdict::Blocked => TestCaseStatus::skipped(),
        Verdict::Regression
        | Verdict::Infeasible
        | Verdict::OverBudget
        | Verdict::DoesNotCompile
        | Verdict::Incorrect
        | Verdict::Racy => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    // A test that passes has no message: its words go to its output.
    status.set_type(verdict.to_string()).set_message(said);
    let mut test = named(class, name, status);
    test.set_system_out(format!("{verdict}: {said}"));
    test
}

fn named(class: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut test = TestCase::new(name, status);
    test.set_classname(class);
    test
}
