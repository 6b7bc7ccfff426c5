//! What the GPU did in traced calls, in each kind of report.

#![expect(clippy::unwrap_used, reason = "tests")]

use anstream::adapter::strip_str;
use gauntlet_judge::Comparison;
use gauntlet_report::{Detail, Rendered, comparison};
use insta::assert_snapshot;
use serde_json::json;

use crate::fixture;
use crate::results::judged;

/// A comparison whose baseline was traced in two cases, and whose candidate in one before its worker gave up.
fn traced() -> Comparison {
    let (mut comparison, _) = fixture::looked_at();
    let case = |name: &str, more: serde_json::Value| {
        let mut case = json!({
            "case": name, "calls": 3, "kernels": 1.0, "copies": 0.0, "fills": 0.0, "streams": 1.0, "work": 12.1e-6,
            "busy": 12.1e-6, "span": 12.1e-6, "window": 14.0e-6, "before": 0.0, "after": 0.0
        });
        let fields = case.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        case
    };
    let long = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_";
    let baseline = json!({ "cases": [
        case("small", json!({ "longest": [{ "name": "softmax", "launches": 3, "seconds": 12.1e-6 }], "after": 0.1e-6 })),
        case("large", json!({
            "kernels": 3.0, "copies": 1.0, "fills": 2.0, "streams": 2.0, "work": 20.2e-6, "busy": 17.2e-6, "span": 18.0e-6,
            "window": 19.5e-6, "left-out": 7, "longest": [
                { "name": long, "launches": 6, "seconds": 9.0e-6 }, { "name": "triton_red_0", "launches": 3, "seconds": 3.2e-6 }
            ]
        })),
    ] });
    let candidate = json!({
        "cases": [case("small", json!({
            "busy": 58.0e-6, "span": 60.0e-6, "before": 5.0e-6, "after": 41.0e-6
        }))],
        "untraced": "the worker ended in `activity`"
    });
    let conduct = json!({
        "by-coordinator": null, "own-clock": null, "memory": null, "idle-baseline": null, "idle-candidate": null,
        "suspicion": null, "device-activity": { "baseline": baseline, "candidate": candidate }
    });
    comparison.conduct = serde_json::from_value(conduct).unwrap();
    comparison
}

#[test]
fn traced_calls_at_80_columns() {
    let (_, criteria) = fixture::looked_at();
    let text = strip_str(&comparison(&traced(), None, &criteria, 80)).to_string();
    let section = text.split("Activity").nth(1).unwrap();
    assert_snapshot!(format!("Activity{section}"));
    for width in 70..160 {
        let text = comparison(&traced(), None, &criteria, width);
        assert!(
            text.lines()
                .all(|line| textwrap::core::display_width(line) <= width),
            "{width}:\n{text}"
        );
    }
}

#[test]
fn pages_and_comments_say_the_same() {
    let mut report = judged();
    report.comparison = Some(traced());
    let said = "at work outside of the call's events: 5.00\u{a0}µs before the call's begin, 41.0\u{a0}µs after the call's end";
    for text in [
        report.html(),
        report.markdown(),
        report.text(Detail::Outcome, 400),
    ] {
        let text = text
            .replace("\u{a0}", " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains(&said.replace('\u{a0}', " ")), "{text}");
        assert!(text.contains("not traced: the worker ended in"), "{text}");
    }
}

#[test]
fn without_a_trace_nothing_is_said() {
    let report = judged();
    for text in [report.html(), report.markdown(), report.text(Detail::Samples, 80)] {
        assert!(!text.contains("Activity of the GPU"), "{text}");
    }
}
