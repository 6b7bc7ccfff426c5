//! A worker that cannot serve at all: whose trouble it is.

use gauntlet_device::Device;
use gauntlet_executor::{Limits, Patience, WorkerCommand};
use gauntlet_problem::Suite;
use gauntlet_schedule::Schedule;
use gauntlet_stats::Criteria;

use super::compiles::Compiles;
use super::*;
use crate::observer::Blind;
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
