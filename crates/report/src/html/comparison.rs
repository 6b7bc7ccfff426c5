//! One comparison as a page.

use std::collections::BTreeMap;

use gauntlet_judge::{Comparison, Finding, Verdict};
use gauntlet_stats::Criteria;
use maud::html;

use super::round::{case_by_case, gates};
use super::{badge, header, origin, page};
use crate::outline::criteria as criteria_line;
use crate::plain::plainly;

/// The contents of a page about one comparison.
pub struct ComparisonPage<'c> {
    /// The task.
    pub task: &'c str,
    /// How the baseline and the candidate were given.
    pub texts: [&'c str; 2],
    /// Their short names.
    pub names: [&'c str; 2],
    /// The outcome.
    pub verdict: Verdict,
    /// Its reason.
    pub reason: &'c str,
    /// What the gates found.
    pub findings: &'c [Finding],
    /// The times; none if a kernel was stopped before there were any.
    pub comparison: Option<&'c Comparison>,
    /// The rules of the verdict.
    pub criteria: &'c Criteria,
    /// The version of the program.
    pub version: &'c str,
    /// What the figures depend on.
    pub environment: &'c BTreeMap<String, String>,
}

impl ComparisonPage<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let [baseline, candidate] = self.texts;
        let title = format!("{candidate} against {baseline}");
        let times = self.comparison.filter(|_| self.verdict != Verdict::Blocked);
        let body = html! {
            (header(self.task, &title))
            section {
                h2 { "Verdict" }
                p.outcome {
                    (badge(self.verdict)) " "
                    @match times {
                        Some(comparison) => (plainly(comparison, self.criteria, self.names)),
                        None => (self.reason),
                    }
                }
                p.quiet { (criteria_line(self.criteria)) }
                @if let Some(comparison) = self.comparison { (case_by_case(comparison, self.criteria)) }
                (gates(self.findings))
            }
            (origin(None, self.version, self.environment))
        };
        page(self.task, &body)
    }
}
