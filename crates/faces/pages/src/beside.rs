//! Two comparisons side by side.

use std::collections::BTreeMap;

use gauntlet_judge::ComparisonReport;
use gauntlet_report::{badge, duration, visible};
use maud::{Markup, html};

use crate::error::PageError;
use crate::pages::{Page, Source};
use crate::verdict::{comparison, heading, record};

/// Two runs.
pub fn page(source: &Source<'_>, runs: [&str; 2]) -> Result<Page, PageError> {
    let read = |run: &str| {
        let (id, found) = record(source, run)?;
        let report = comparison(&found)
            .ok_or_else(|| PageError::Unknown(format!("run `{}` is no comparison", visible(run))))?;
        Ok::<_, PageError>((source.ledger.run(&id)?.started, report))
    };
    let [one, other] = runs.map(read);
    let sides = [one?, other?];
    let body = html! {
        header { h1 { "Side by side" } }
        p.notice {
            "The two were measured at different times. Each interval holds within its own comparison; to know which of the kernels is faster, compare them."
        }
        div.sides {
            @for (at, report) in &sides {
                section {
                    (heading(*at, report))
                    p.outcome { (badge(report.verdict)) " " (visible(&report.reason)) }
                }
            }
        }
        section { h2 { "Case by case" } (cases(&[&sides[0].1, &sides[1].1])) }
        section { h2 { "Where they come from" } (environments(&[&sides[0].1, &sides[1].1])) }
    };
    Ok(Page {
        title: "Side by side".to_owned(),
        body,
    })
}

/// The times of both comparisons, by case. Void times are left out.
fn cases(reports: &[&ComparisonReport; 2]) -> Markup {
    let figures = reports.map(|report| report.believed().map_or_else(Vec::new, gauntlet_report::cases));
    let mut names: Vec<&str> = Vec::new();
    for line in figures.iter().flatten() {
        if !names.contains(&line.name) {
            names.push(line.name);
        }
    }
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        th { "case" }
                        @for report in reports { th { (visible(&report.baseline.name)) } th { (visible(&report.candidate.name)) } th { "speed-up" } }
                    }
                }
                tbody {
                    @for name in names {
                        tr {
                            td { (visible(name)) }
                            @for lines in &figures {
                                @match lines.iter().find(|line| line.name == name) {
                                    Some(line) => {
                                        td.number { (duration(line.baseline)) }
                                        td.number { (duration(line.candidate)) }
                                        td.number { (line.speedup) }
                                    },
                                    None => { td { "–" } td { "–" } td { "–" } },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What their figures depend on, with the differences first.
fn environments(reports: &[&ComparisonReport; 2]) -> Markup {
    let of = reports.map(|report| {
        let mut facts = report.environment.clone();
        facts.insert("gauntlet".to_owned(), report.version.clone());
        facts
    });
    let mut names: Vec<&String> = of.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    names.sort_by_key(|name| of[0].get(*name) == of[1].get(*name));
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { td {} th { "first" } th { "second" } } }
                tbody {
                    @for name in names {
                        @let [one, other] = [0, 1].map(|side: usize| of[side].get(name).map_or("–", String::as_str));
                        tr {
                            th scope="row" { (visible(name)) @if one != other { " ≠" } }
                            td { (visible(one)) }
                            td { (visible(other)) }
                        }
                    }
                }
            }
        }
    }
}
