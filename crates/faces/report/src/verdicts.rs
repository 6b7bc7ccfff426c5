//! The verdicts of a round: a table, the intervals on a common axis, the reasons.

use gauntlet_stats::percent_interval;
use gauntlet_tournament::{ClaimOutcome, Judged, RoundReport};

use crate::axis::Axis;
use crate::judged::details;
use crate::outline::{stop, suite};
use crate::picture::{Picture, legend, scale};
use crate::speedup::times;
use crate::table::{columns, table};
use crate::text::{bold, dim, fitted, paint, paragraph, widest};
use crate::tone::Tone;

/// Longer names are cut beside pictures.
const NAME_COLUMNS: usize = 24;

/// The verdicts as a table.
pub fn verdict_table(report: &RoundReport, width: usize) -> String {
    if report.judged.is_empty() {
        return String::new();
    }
    let header = columns!(Words "pitch", "changes"; Whole "verdict", "gate", "claimed → found");
    table(&header, report.judged.iter().map(row).collect(), 2, width)
}

fn row(judged: &Judged) -> Vec<String> {
    let tone = Tone::from(judged.verdict);
    let words = if judged.words.is_empty() {
        "—".to_owned()
    } else {
        judged.words.join("\n")
    };
    vec![
        judged.name.clone(),
        words,
        paint(format!("{} {}", tone.mark(), judged.verdict), tone.style()),
        stop(judged).map_or("—".to_owned(), |finding| finding.gate.clone()),
        judged.claim.map_or("—".to_owned(), claim),
    ]
}

fn claim(outcome: ClaimOutcome) -> String {
    let found = outcome.found.map_or("—".to_owned(), times);
    let mut text = format!("{} → {found}", times(outcome.claimed.q50));
    if outcome.refuted == Some(true) {
        text += &format!("\n{}", paint("refuted", Tone::Bad.style()));
    }
    text
}

/// The intervals on a common axis with their figures; nothing if there are none.
pub fn intervals(report: &RoundReport, width: usize) -> String {
    let criteria = &report.file.criteria;
    let shown: Vec<_> = report
        .judged
        .iter()
        .filter_map(|judged| Some((judged, suite(judged)?, percent_interval(suite(judged)?))))
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let axis = Axis::of_intervals(shown.iter().map(|(_, interval, _)| *interval), criteria);
    let names = widest(shown.iter().map(|(judged, ..)| judged.name.as_str())).min(NAME_COLUMNS);
    let figures = widest(shown.iter().map(|(.., text)| text.as_str()));
    let columns = width.saturating_sub(2 + names + 2 + 2 + figures).max(10);
    let mut text = String::new();
    for (judged, interval, figures) in &shown {
        let style = Tone::from(judged.verdict).style();
        let picture = Picture::with_guides(&axis, criteria, columns).interval(&axis, interval, style);
        text += &format!(
            "  {}  {}  {figures}\n",
            fitted(&judged.name, names),
            picture.text()
        );
    }
    let origin = shown.iter().map(|(_, interval, _)| &interval.origin);
    text += &format!("  {}  {}\n", " ".repeat(names), scale(&axis, criteria, columns));
    text + &paragraph("  ", &legend(criteria, origin), 2, width)
}

/// The reason of each verdict.
pub fn reasons(report: &RoundReport, width: usize) -> String {
    let reason = |judged: &Judged| {
        let on = match judged.baseline.as_str() {
            "baseline" => String::new(),
            baseline => dim(format!(" on {baseline}")),
        };
        format!("  {}{on}\n{}", bold(&judged.name), details(judged, 4, width))
    };
    report.judged.iter().map(reason).collect()
}
