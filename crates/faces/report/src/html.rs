//! A self-contained page: no scripts, no fonts, no files. Everything from outside is escaped.

mod chart;
mod claims;
mod comparison;
mod intervals;
mod labels;
mod phases;
mod plan;
mod prospects;
mod round;
mod scores;

use std::collections::BTreeMap;

pub use chart::at;
pub use comparison::comparison_html;
use gauntlet_judge::Verdict;
use gauntlet_tournament::{Judged, TournamentReport};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use self::intervals::{Row, intervals};
use crate::lineage::lineages;
use crate::outline::{PREDICTED, adoptions, mark, verdict_counts};
use crate::tone::Tone;

/// Both themes; the reader's system selects one.
const STYLE: &str = include_str!("style.css");

/// A tournament as a page with its pictures.
pub fn html(report: &TournamentReport) -> String {
    let body = markup! {
        (header(&report.name, &report.title))
        (summary(report))
        @for one in &report.rounds { (round::round(one)) }
        (origin(Some(&report.run.to_string()), &report.version, &report.environment))
    };
    page(&report.name, &body)
}

/// A whole page.
fn page(title: &str, body: &Markup) -> String {
    markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Gauntlet" }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
    .into_string()
}

/// A verdict as a coloured label.
fn badge(verdict: Verdict) -> Markup {
    let tone = Tone::from(verdict);
    markup! { span class={ "badge " (tone.name()) } { (tone.mark()) " " (verdict) } }
}

/// A candidate's verdict as a coloured label, marked if the model gave it.
fn verdict_badge(judged: &Judged) -> Markup {
    markup! { (badge(judged.verdict)) @if judged.predicted { " " span.badge.predicted { (PREDICTED) } } }
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
                    @for (round, name) in adoptions { li { "round " (round.name) " adopted " b { (name) } (mark(round)) } }
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
