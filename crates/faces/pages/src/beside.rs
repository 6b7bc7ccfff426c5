//! Any two verdicts side by side.

use std::collections::BTreeMap;

use gauntlet_history::surroundings::{Changed, Layer, changed, circumstances};
use gauntlet_judge::ComparisonReport;
use gauntlet_judge::ledger::Judged;
use gauntlet_report::{duration, visible};
use gauntlet_stats::percent_interval;
use maud::{Markup, html};

use crate::address::Address;
use crate::error::PageError;
use crate::frame::moment;
use crate::listing::{place, speedup, task_name, verdict};
use crate::source::{Page, Source};
use crate::verdict::{comparison, record};

/// One of the two.
struct Side {
    judged: Judged,
    report: Option<ComparisonReport>,
}

impl Side {
    fn of(source: &Source<'_>, run: &str) -> Result<Self, PageError> {
        let (run, record) = record(source, run)?;
        let judged = source.index.of_run(&run)?.pop();
        let unknown = || {
            PageError::Unknown(format!(
                "the ledger has no verdict of a run `{}`",
                visible(run.as_str())
            ))
        };
        Ok(Self {
            judged: judged.ok_or_else(unknown)?,
            report: comparison(&record),
        })
    }

    /// The times of a case, and the speed-up.
    fn case(&self, name: &str) -> Option<Markup> {
        let found = self.report.as_ref()?.believed()?;
        let case = found.cases.iter().find(|case| case.case == name)?;
        let problem = found.assessment.problems.iter().find(|one| one.name == name);
        let interval = problem.and_then(|problem| problem.interval.as_ref());
        Some(html! {
            (duration(case.baseline)) " → " (duration(case.candidate))
            @if let Some(interval) = interval { br; (percent_interval(interval)) }
        })
    }

    fn circumstances(&self) -> BTreeMap<String, String> {
        let report = self.report.as_ref();
        report.map_or_else(BTreeMap::new, |report| {
            circumstances(&report.environment, &report.version)
        })
    }
}

/// Two verdicts: what was judged, the times of each case, and in what the surroundings differ.
pub fn page(source: &Source<'_>, runs: &[String; 2]) -> Result<Page, PageError> {
    let sides = [Side::of(source, &runs[0])?, Side::of(source, &runs[1])?];
    let mut cases: Vec<&str> = Vec::new();
    for report in sides.iter().filter_map(|side| side.report.as_ref()) {
        for case in report.believed().iter().flat_map(|found| &found.cases) {
            if !cases.contains(&case.case.as_str()) {
                cases.push(&case.case);
            }
        }
    }
    let text = |text: &Option<String>| html! { (visible(text.as_deref().unwrap_or("–"))) };
    let body = html! {
        header { h1 { "Two verdicts" } }
        div.scroll tabindex="0" {
            table {
                thead { tr { td {} @for name in ["left", "right"] { th scope="col" { (name) } } } }
                tbody {
                    (row("when", &sides, |side| html! { a href=(source.links.to(&place(&side.judged))) { (moment(side.judged.at)) } }))
                    (row("task", &sides, |side| {
                        let task = side.judged.task.clone().unwrap_or_default();
                        html! { a href=(source.links.to(&Address::Task(task.clone()))) { (task_name(&task)) } }
                    }))
                    (row("kernel", &sides, |side| text(&side.judged.kernel)))
                    (row("against", &sides, |side| text(&side.judged.baseline)))
                    (row("verdict", &sides, |side| verdict(&side.judged)))
                    (row("speed-up", &sides, |side| speedup(&side.judged)))
                    (row("reason", &sides, |side| html! { (visible(&side.judged.reason)) }))
                }
            }
        }
        @if !cases.is_empty() {
            section {
                h2 { "By case" }
                p.quiet { "Each side's baseline → kernel. Only within a side were they measured in turns: the left and the right do not compare." }
                div.scroll tabindex="0" {
                    table {
                        thead { tr { th scope="col" { "case" } th scope="col" { "left" } th scope="col" { "right" } } }
                        tbody { @for case in cases { (row(case, &sides, |side| side.case(case).unwrap_or_else(|| html! { "–" }))) } }
                    }
                }
            }
        }
        (surroundings(&sides))
        p { a href=(source.links.to(&Address::Beside([runs[1].clone(), runs[0].clone()]))) { "The other way round" } }
    };
    Ok(Page::new("Two verdicts", body))
}

fn row(name: &str, sides: &[Side; 2], cell: impl Fn(&Side) -> Markup) -> Markup {
    html! { tr { th scope="row" { (visible(name)) } @for side in sides { td { (cell(side)) } } } }
}

/// In what the two measurements differ beside the kernels.
fn surroundings([left, right]: &[Side; 2]) -> Markup {
    if left.report.is_none() || right.report.is_none() {
        return html! {};
    }
    let differing = changed(&left.circumstances(), &right.circumstances());
    html! {
        section {
            h2 { "What else differs" }
            @if differing.is_empty() { p { "Nothing: the machine, the software on it and the method are the same." } }
            @else {
                div.scroll tabindex="0" {
                    table {
                        thead { tr { th { "of" } th { "name" } th { "left" } th { "right" } } }
                        tbody { @for one in &differing { (differs(one)) } }
                    }
                }
            }
        }
    }
}

fn differs(one: &Changed) -> Markup {
    let layer = match one.layer {
        Layer::Stack => "software",
        Layer::Machine => "machine",
        Layer::Method => "method",
    };
    let text = |value: &Option<String>| visible(value.as_deref().unwrap_or("not told")).into_owned();
    html! { tr { td { (layer) } td { (visible(&one.name)) } td { (text(&one.was)) } td { (text(&one.is)) } } }
}
