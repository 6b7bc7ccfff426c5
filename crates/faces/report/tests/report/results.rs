//! One comparison in each of its forms.

use std::collections::BTreeMap;

use anstream::adapter::strip_str;
use gauntlet_judge::{ComparisonReport, KernelReport, Outcome, Verdict};
use gauntlet_report::{Detail, Rendered};
use gauntlet_stats::{Arm, Block};
use insta::assert_snapshot;

use crate::fixture;

fn kernel(text: &str, name: &str) -> KernelReport {
    KernelReport {
        text: text.to_owned(),
        name: name.to_owned(),
        described: text.to_owned(),
        parameters: None,
        command: None,
        dispatch: None,
    }
}

/// A judged kernel, with the findings of two gates.
pub fn judged() -> ComparisonReport {
    let (mut comparison, criteria) = fixture::looked_at();
    for case in &mut comparison.cases {
        let block = |process| Block::new(process, vec![case.baseline; 2], vec![case.candidate; 2]);
        case.blocks = (0..3).map(block).collect();
    }
    ComparisonReport {
        task: "softmax".to_owned(),
        notes: vec!["the task's `check` stands beside the tolerance".to_owned()],
        baseline: kernel("softmax.py:slow", "slow"),
        candidate: kernel("softmax.py:fast_with_a|pipe<b>", "fast_with_a|pipe<b>"),
        criteria,
        version: "1.2.3".to_owned(),
        environment: BTreeMap::from([("processor".to_owned(), "one".to_owned())]),
        findings: vec![
            fixture::finding("right", Outcome::Pass, "all elements of 4 cases are right", 1.5),
            fixture::finding("worth it", Outcome::Skip, "it has no model", 0.0),
        ],
        side: Arm::Candidate,
        verdict: Verdict::from(comparison.assessment.decision),
        reason: comparison.reason(),
        comparison: Some(comparison),
        kept: None,
    }
}

/// A baseline that is wrong, so that nothing was compared.
fn stopped() -> ComparisonReport {
    ComparisonReport {
        comparison: None,
        findings: Vec::new(),
        side: Arm::Baseline,
        verdict: Verdict::Incorrect,
        reason: "case odd: 3 of 9 elements differ".to_owned(),
        ..judged()
    }
}

fn plain(text: &str) -> String {
    strip_str(text).to_string()
}

#[test]
fn on_a_terminal_with_as_much_detail_as_is_wanted() {
    let report = judged();
    let [outcome, findings, samples] =
        [Detail::Outcome, Detail::Findings, Detail::Samples].map(|detail| plain(&report.text(detail, 100)));
    for part in [
        "baseline   softmax.py:slow",
        "note: the task's `check`",
        "dual-1",
        "pairs of processes",
    ] {
        assert!(outcome.contains(part), "no {part} in {outcome}");
    }
    assert!(
        !outcome.contains("Gates") && findings.contains("Gates"),
        "{findings}"
    );
    assert!(
        findings.contains("– worth it") && findings.contains("it has no model"),
        "{findings}"
    );
    assert!(
        !findings.contains("Process by process") && samples.contains("Process by process: dual-2"),
        "{samples}"
    );
    let processes = report.comparison.as_ref().unwrap().cases[0]
        .blocks
        .last()
        .unwrap()
        .process;
    assert!(
        samples
            .lines()
            .any(|line| line.trim_start().starts_with(&format!("{processes} "))),
        "{samples}"
    );
    assert_eq!(
        plain(&stopped().text(Detail::Outcome, 100)),
        "baseline: incorrect: case odd: 3 of 9 elements differ\n"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in 70..150 {
        for report in [judged(), stopped()] {
            let text = report.text(Detail::Samples, width);
            let longest = text.lines().map(textwrap::core::display_width).max().unwrap();
            assert!(longest <= width, "{width}:\n{}", plain(&text));
        }
    }
}

#[test]
fn as_a_comment() {
    let comment = judged().markdown();
    for part in [
        "against `softmax.py:slow`",
        "fast\\_with\\_a\\|pipe&lt;b&gt; is faster than slow by",
        "| dual-1 | 2.0",
        "<details><summary>Gates</summary>",
        "| – | worth it | it has no model |",
    ] {
        assert!(comment.contains(part), "no {part} in {comment}");
    }
    assert_snapshot!(stopped().markdown(), @r"
    ### ✗ baseline: incorrect: case odd: 3 of 9 elements differ

    Task `softmax`: `softmax.py:fast_with_a|pipe<b>` against `softmax.py:slow`.

    > the task's \`check\` stands beside the tolerance

    adopted from +2 %, no difference within ±1 %, no case below −5 %, 95 % confidence.

    <sub>gauntlet 1.2.3 · processor one</sub>
    ");
}

#[test]
fn as_tests_of_a_build_server() {
    let xml = judged().junit().unwrap();
    for part in [
        "<testsuite name=\"softmax\"",
        "name=\"right\" classname=\"softmax.py:fast_with_a|pipe&lt;b&gt;\" time=\"1.500\"",
        "<skipped message=\"it has no model\"",
        "<property name=\"processor\" value=\"one\"/>",
    ] {
        assert!(xml.contains(part), "no {part} in {xml}");
    }
    assert!(!xml.contains("<failure"), "{xml}");
    let wrong = stopped().junit().unwrap();
    let failure = "<failure message=\"baseline: case odd: 3 of 9 elements differ\" type=\"incorrect\"";
    assert!(wrong.contains(failure), "{wrong}");
}

#[test]
fn as_a_page_without_markup_of_its_names() {
    let page = judged().html();
    assert!(
        page.contains("process by process") && page.contains("fast_with_a|pipe&lt;b&gt;"),
        "{page}"
    );
    assert!(stopped().html().contains("baseline: case odd"));
}

#[test]
fn a_result_survives_its_file() {
    for report in [judged(), stopped()] {
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<ComparisonReport>(&text).unwrap(), report);
    }
}
