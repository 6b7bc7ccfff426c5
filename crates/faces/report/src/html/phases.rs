//! Where the time of a call goes: one bar per candidate.

use gauntlet_judge::Finding;
use gauntlet_tournament::RoundReport;
use maud::{Markup, html};

use super::chart::{LEFT, ROW, WIDTH, at, label, svg};
use crate::bar::phase_order;
use crate::outline::phases as phases_of;

/// Height of a bar.
const BAR: f64 = 14.0;

/// A narrower part has no room for its figure.
const ROOM_FOR_FIGURE: f64 = 34.0;

/// The baseline and every candidate with a profile; nothing without profiles.
pub fn phases(report: &RoundReport) -> Markup {
    let all = std::iter::once(("baseline", &report.baseline.findings)).chain(
        report
            .judged
            .iter()
            .map(|judged| (judged.name.as_str(), &judged.findings)),
    );
    let of = |(name, findings): (&'_ str, &'_ Vec<Finding>)| (name.to_owned(), phases_of(findings));
    let rows: Vec<_> = all.map(of).filter(|(_, phases)| !phases.is_empty()).collect();
    let mut names: Vec<&str> = rows
        .iter()
        .flat_map(|(_, phases)| phases)
        .map(|(phase, _)| phase.as_str())
        .collect();
    names.sort_by_key(|name| (phase_order(name), *name));
    names.dedup();
    if rows.is_empty() {
        return html! {};
    }
    let chart = svg(
        rows.len() as f64 * ROW,
        "shares of each phase",
        html! {
            @for (index, (name, phases)) in rows.iter().enumerate() { (bar(name, phases, (index as f64 + 0.5) * ROW)) }
        },
    );
    html! {
        figure tabindex="0" {
            (chart)
            figcaption.legend {
                "Where the time of a call goes: "
                @for name in names { span { i class={ "swatch " (class(name)) } {} " " (name) } " " }
            }
        }
    }
}

fn bar(name: &str, phases: &[(String, f64)], middle: f64) -> Markup {
    let sum: f64 = phases.iter().map(|(_, share)| share).sum();
    let mut x = LEFT;
    let parts: Vec<_> = phases
        .iter()
        .map(|(phase, share)| {
            let width = share / sum.max(f64::MIN_POSITIVE) * (WIDTH - LEFT);
            x += width;
            (phase, share, x - width, width)
        })
        .collect();
    html! {
        (label(name, middle))
        @for (phase, share, x, width) in parts {
            rect class={ "phase " (class(phase)) } x=(at(x)) y=(at(middle - BAR / 2.0)) width=(at(width)) height=(at(BAR)) {
                title { (phase) " " (format!("{:.1} %", share * 100.0)) }
            }
            @if width > ROOM_FOR_FIGURE {
                text.inside x=(at(x + width / 2.0)) y=(at(middle + 4.0)) text-anchor="middle" { (format!("{:.0} %", share * 100.0)) }
            }
        }
    }
}

/// The style of a phase; phases without their own style share one.
fn class(phase: &str) -> &'static str {
    ["setup", "load", "multiply", "epilogue", "wait"]
        .get(phase_order(phase))
        .copied()
        .unwrap_or("other")
}
