//! Pages: those of a result stand alone, without scripts, fonts or files. Everything from outside is escaped.

mod chart;
mod claims;
mod commits;
mod comparison;
mod glance;
mod intervals;
mod labels;
mod phases;
mod prospects;
mod round;
mod scores;

use std::collections::BTreeMap;

pub use chart::at;
pub use commits::{CommitTime, commit_times};
pub use comparison::comparison_body;
use gauntlet_judge::Verdict;
use gauntlet_stats::{Criteria, Interval};
use gauntlet_tournament::TournamentReport;
pub use glance::glance;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use self::intervals::{Row, intervals};
use crate::lineage::lineages;
use crate::outline::{adoptions, verdict_counts};
use crate::tone::Tone;

/// Both themes; the reader's system selects one.
const STYLE: &str = include_str!("style.css");

/// A tournament with its pictures.
pub fn tournament_body(report: &TournamentReport) -> Markup {
    markup! {
        (header(&report.name, &report.title))
        (summary(report))
        @for one in &report.rounds { (round::round(one)) }
        (origin(Some(&report.run.to_string()), &report.version, &report.environment))
    }
}

/// A whole page; `navigation` has links to others, if there are others, and `head` what else belongs into the page's head.
pub fn page(title: &str, head: Option<&Markup>, navigation: Option<&Markup>, body: &Markup) -> String {
    markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Gauntlet" }
                style { (PreEscaped(STYLE)) }
                @if let Some(head) = head { (head) }
            }
            body {
                @if let Some(navigation) = navigation { (navigation) }
                main { (body) }
            }
        }
    }
    .into_string()
}

/// The speed-ups that a comparison has shown at its looks, after so many pairs each. Nothing is decided by their colour.
pub fn looks(seen: &[(usize, Interval)], criteria: &Criteria) -> Markup {
    let names: Vec<String> = seen
        .iter()
        .map(|(pairs, _)| format!("after {pairs} pairs"))
        .collect();
    let rows: Vec<Row> = names
        .iter()
        .zip(seen)
        .map(|(name, (_, interval))| Row {
            name,
            interval,
            tone: Tone::Open,
        })
        .collect();
    intervals(&rows, criteria)
}

/// A verdict as a coloured label.
pub fn badge(verdict: Verdict) -> Markup {
    let tone = Tone::from(verdict);
    markup! { span class={ "badge " (tone.name()) } { (tone.mark()) " " (verdict) } }
}

fn header(name: &str, title: &str) -> Markup {
    markup! {
        header {
            h1 { (name) }
            p.title { (title) }
        }
    }
}

fn summary(report: &TournamentReport) -> Markup {
    let adoptions = adoptions(report);
    markup! {
        section {
            h2 { "In all" }
            p.counts {
                @for (verdict, count) in verdict_counts(report) {
                    span.count { (count) " " (badge(verdict)) }
                }
            }
            @if adoptions.is_empty() { p { "Nothing was adopted." } }
            @else {
                ul {
                    @for (round, name) in adoptions { li { "round " (round.name) " adopted " b { (name) } } }
                }
            }
            (lineage(report))
            (claims::claims(report))
            (prospects::returns(&report.returns))
            (prospects::prospects(&report.prospects))
        }
    }
}

/// What was adopted one upon another, with the gain of each change.
fn lineage(report: &TournamentReport) -> Markup {
    markup! {
        @for lineage in lineages(report) {
            h3 { "Adopted one upon another: " (lineage.kernel) }
            @let steps = lineage.rows();
            @let rows: Vec<_> = steps.iter().map(|(name, interval)| Row { name, interval, tone: Tone::Good }).collect();
            (intervals(&rows, lineage.criteria))
        }
    }
}

/// The origin of the figures.
fn origin(run: Option<&str>, version: &str, environment: &BTreeMap<String, String>) -> Markup {
    markup! {
        footer {
            h2 { "Where this comes from" }
            dl {
                @if let Some(run) = run { dt { "run" } dd { (run) } }
                dt { "gauntlet" } dd { (version) }
                @for (name, value) in environment { dt { (name) } dd { (value) } }
            }
        }
    }
}
