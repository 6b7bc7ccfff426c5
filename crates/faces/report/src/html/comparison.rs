//! One comparison as a page.

use gauntlet_judge::{Comparison, ComparisonReport};
use maud::{Markup, html};

use super::round::{case_by_case, gates, samples};
use super::{badge, header, origin};
use crate::outline::{criteria as criteria_line, side_name};
use crate::plain::plainly;

/// The verdict, the cases, the findings and the times of each process.
pub fn comparison_body(report: &ComparisonReport) -> Markup {
    let title = format!("{} against {}", report.candidate.text, report.baseline.text);
    html! {
        (header(&report.task, &title))
        section {
            h2 { "Verdict" }
            p.outcome {
                (badge(report.verdict)) " "
                @match report.believed() {
                    Some(comparison) => (plainly(comparison, &report.criteria, report.names())),
                    None => { (side_name(report.side)) ": " (report.reason) }
                }
            }
            p.quiet { (criteria_line(&report.criteria)) }
            @for note in &report.notes { p.notice { (note) } }
            @if let Some(doubt) = report.comparison.as_ref().and_then(Comparison::doubt) { p.notice { (doubt.to_string()) } }
            @if let Some(comparison) = &report.comparison { (case_by_case(comparison, report.verdict, &report.criteria)) }
            (gates(&report.findings))
            @if let Some(comparison) = &report.comparison { (samples(comparison)) }
        }
        (origin(None, &report.version, &report.environment))
    }
}
