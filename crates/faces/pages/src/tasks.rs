//! Tasks: who leads, how often it was tried, and the times by case and device.

use std::collections::{BTreeMap, BTreeSet};

use gauntlet_judge::ledger::{Judged, RunId};
use gauntlet_report::{duration, visible};
use gauntlet_stats::percent;
use maud::{Markup, html};

use crate::address::Address;
use crate::error::PageError;
use crate::frame::moment;
use crate::listing::{table, task_name};
use crate::source::{Page, Source};
use crate::verdict::comparison;

/// How many comparisons, the newest first, are read for the times of a task.
const READ: usize = 40;

/// How many verdicts of a task are listed.
const NEWEST: usize = 20;

/// A candidate against a baseline, over all comparisons of the two.
struct Standing<'j> {
    kernel: &'j str,
    baseline: &'j str,
    comparisons: Vec<&'j Judged>,
}

impl Standing<'_> {
    fn adopted(&self) -> impl Iterator<Item = &Judged> {
        let adopts = |one: &&Judged| one.verdict.as_deref() == Some("adopt");
        self.comparisons.iter().copied().filter(adopts)
    }

    fn wins(&self) -> usize {
        self.adopted().count()
    }

    /// The least lower bound of its wins.
    fn gain(&self) -> f64 {
        let bounds = self.adopted().filter_map(|one| Some(one.speedup?.lower));
        bounds.fold(f64::INFINITY, f64::min)
    }
}

/// All candidates of a task that were compared, by what they are and were compared with. Pitches of rounds are not: a round names
/// them as it likes.
fn standings(verdicts: &[Judged]) -> Vec<Standing<'_>> {
    let mut all: BTreeMap<(&str, &str), Standing<'_>> = BTreeMap::new();
    for one in verdicts.iter().filter(|one| is_a_try(one)) {
        if let (Some(digest), Some(kernel), Some(baseline)) = (&one.kernel_digest, &one.kernel, &one.baseline)
        {
            let standing = all.entry((digest, baseline)).or_insert_with(|| Standing {
                kernel,
                baseline,
                comparisons: Vec::new(),
            });
            standing.comparisons.push(one);
        }
    }
    all.into_values().collect()
}

/// Whether a verdict says of a kernel whether it is faster, by measurements of this or another machine.
fn is_a_try(one: &Judged) -> bool {
    matches!(one.command.as_str(), "compare" | "judge") && !one.interrupted && !one.predicted
}

/// All tasks of the ledger.
pub fn list(source: &Source<'_>) -> Result<Page, PageError> {
    let tasks = source.by_task()?;
    let body = html! {
        header { h1 { "Tasks" } }
        @if tasks.is_empty() { p { "Nothing was judged yet." } }
        @else {
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "task" } th { "verdicts" } th { "tries" } th { "clients" } th { "confirmed wins" } th { "last" } } }
                    tbody {
                        @for (name, verdicts) in &tasks {
                            @let confirmed = standings(verdicts).iter().filter(|one| one.wins() > 1).count();
                            tr {
                                td { a href=(source.links.to(&Address::Task(name.clone()))) { (task_name(name)) } }
                                td.number { (verdicts.len()) }
                                td.number { (verdicts.iter().filter(|one| is_a_try(one)).count()) }
                                td.number { (clients(verdicts)) }
                                td.number { (confirmed) }
                                td.whole { @if let Some(last) = verdicts.first() { (moment(last.at)) } }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(Page::new("Tasks", body))
}

fn clients(verdicts: &[Judged]) -> usize {
    let clients: BTreeSet<_> = verdicts.iter().filter_map(|one| one.client.as_ref()).collect();
    clients.len()
}

/// A task.
pub fn page(source: &Source<'_>, name: &str) -> Result<Page, PageError> {
    let verdicts = source.by_task()?.remove(name).unwrap_or_default();
    let tries = verdicts.iter().filter(|one| is_a_try(one)).count();
    let body = html! {
        header {
            h1 { (task_name(name)) }
            p.title { "Comparisons of kernels: " (tries) ". Verdicts in all: " (verdicts.len()) "." }
        }
        section { h2 { "Who leads" } (leaders(&verdicts)) }
        section { h2 { "Times by case and device" } (times(source, &verdicts)?) }
        section {
            h2 { "Verdicts" }
            (table(&source.links, &verdicts[..verdicts.len().min(NEWEST)]))
        }
    };
    Ok(Page::new(task_name(name), body))
}

/// The confirmed wins: of many tries the luckiest looks better than it is, so one comparison makes no leader.
fn leaders(verdicts: &[Judged]) -> Markup {
    let mut standings = standings(verdicts);
    let once = standings.iter().filter(|one| one.wins() == 1).count();
    standings.retain(|one| one.wins() > 1);
    standings.sort_by(|one, other| other.gain().total_cmp(&one.gain()));
    html! {
        @if standings.is_empty() { p { "No kernel was found faster by the target in two comparisons." } }
        @else {
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "kernel" } th { "against" } th { "at least" } th { "adopted" } th { "last" } } }
                    tbody {
                        @for one in &standings {
                            tr {
                                td { (visible(one.kernel)) }
                                td { (visible(one.baseline)) }
                                td.number { (percent(one.gain())) }
                                td.number { (one.wins()) " of " (one.comparisons.len()) }
                                td.whole { @if let Some(last) = one.comparisons.first() { (moment(last.at)) } }
                            }
                        }
                    }
                }
            }
        }
        @if once > 0 { p.quiet { "Found faster once, which is no win yet: " (once) "." } }
    }
}

/// The shortest time of each case on each device, with the kernel that took it.
fn times(source: &Source<'_>, verdicts: &[Judged]) -> Result<Markup, PageError> {
    struct Best {
        seconds: f64,
        kernel: String,
        run: RunId,
    }
    let mut cases: Vec<String> = Vec::new();
    let mut devices: BTreeMap<String, BTreeMap<String, Best>> = BTreeMap::new();
    let read: Vec<&Judged> = verdicts
        .iter()
        .filter(|one| is_a_try(one) && one.speedup.is_some())
        .take(READ)
        .collect();
    for one in &read {
        let Some(report) = source.ledger.judgement(&one.run)?.as_ref().and_then(comparison) else {
            continue;
        };
        let Some(found) = report.believed() else { continue };
        let device = ["gpu", "processor"]
            .iter()
            .find_map(|name| report.environment.get(*name));
        let best = devices
            .entry(device.cloned().unwrap_or_else(|| "this machine".to_owned()))
            .or_default();
        for case in &found.cases {
            if !cases.contains(&case.case) {
                cases.push(case.case.clone());
            }
            for (seconds, kernel) in [
                (case.baseline, &report.baseline),
                (case.candidate, &report.candidate),
            ] {
                if best.get(&case.case).is_none_or(|known| seconds < known.seconds) {
                    let fastest = Best {
                        seconds,
                        kernel: kernel.text.clone(),
                        run: one.run.clone(),
                    };
                    best.insert(case.case.clone(), fastest);
                }
            }
        }
    }
    Ok(html! {
        @if cases.is_empty() { p { "Nothing was timed." } }
        @else {
            p.quiet { "The shortest median of the newest " (read.len()) " comparisons. Times of different runs do not compare; a comparison does." }
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "case" } @for device in devices.keys() { th { (visible(device)) } } } }
                    tbody {
                        @for case in &cases {
                            tr {
                                td { (visible(case)) }
                                @for best in devices.values() {
                                    td {
                                        @if let Some(best) = best.get(case) {
                                            a href=(source.links.to(&Address::Verdict(best.run.to_string()))) { (duration(best.seconds)) }
                                            " " span.quiet { (visible(&best.kernel)) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(kernel: &str, verdict: &str, estimate: f64) -> Judged {
        serde_json::from_value(serde_json::json!({
            "run": "r", "sequence": 1, "at": "2026-11-03T00:00:00Z", "command": "compare", "task": "t",
            "kernel": kernel, "kernel-digest": kernel, "baseline": "plain", "verdict": verdict, "reason": "",
            "speedup": { "lower": estimate - 0.01, "estimate": estimate, "upper": estimate + 0.01 },
            "interrupted": false, "predicted": false,
        }))
        .expect("a verdict")
    }

    #[test]
    fn a_kernel_leads_by_two_comparisons_and_by_the_least_that_they_found() {
        let verdicts = [
            judged("lucky", "adopt", 0.9),
            judged("lucky", "inconclusive", 0.01),
            judged("steady", "adopt", 0.2),
            judged("steady", "adopt", 0.3),
        ];
        let shown = leaders(&verdicts).into_string();
        assert!(
            shown.contains("steady") && shown.contains("+19.0 %") && shown.contains("2 of 2"),
            "{shown}"
        );
        assert!(!shown.contains("<td>lucky"), "{shown}");
        assert!(shown.contains("no win yet: 1."), "{shown}");
    }
}
