//! What to try next, and what the hours brought that were spent.

use gauntlet_lab::forecast::{Prospect, Return, Roi};

use crate::figure::signed;
use crate::speedup::times;
use crate::table::{Column, table};
use crate::text::{dim, paint, paragraph, usable};
use crate::tone::Tone;

/// More than this is no advice; JSON holds all.
const MOST_ROWS: usize = 10;

/// Log speed-ups an hour are small.
const DIGITS: usize = 3;

/// What the columns mean.
const LEGEND: [&str; 3] = [
    "expected: of one that survives the gates, from claim, model and measurements, each weighted by its precision, the \
     claim as far as its contestant's record lets it be believed",
    "survives: the chance of coming as far as a comparison, by the pitch's odds and the record",
    "ln/h: the log speed-up that an hour of the stated work brings on average, and the range of eight outcomes in ten; \
     +0.05 is about 5 %",
];

/// What is still open, best first; nothing without any.
pub fn prospects(prospects: &[Prospect], width: usize) -> String {
    if prospects.is_empty() {
        return String::new();
    }
    let width = usable(width);
    let header = [
        ("pitch", Column::Words),
        ("so far", Column::Words),
        ("expected", Column::Figures),
        ("survives", Column::Figures),
        ("hours", Column::Figures),
        ("ln/h", Column::Whole),
    ];
    let mut text = table(
        &header,
        prospects.iter().take(MOST_ROWS).map(row).collect(),
        2,
        width,
    );
    if prospects.len() > MOST_ROWS {
        text += &dim(format!("  and {} more\n", prospects.len() - MOST_ROWS));
    }
    for line in LEGEND {
        text += &paragraph("  ", &dim(line), 4, width);
    }
    text
}

fn row(prospect: &Prospect) -> Vec<String> {
    let tone = Tone::from(prospect.verdict);
    vec![
        prospect.pitch.clone(),
        paint(prospect.verdict, tone.style()),
        times(prospect.roi.speedup.mean.exp()),
        format!("{:.0} %", prospect.roi.chance * 100.0),
        hours(prospect.roi.hours),
        range(&prospect.roi),
    ]
}

/// What came of the hours that were said to be spent; nothing without any.
pub fn returns(returns: &[Return], width: usize) -> String {
    if returns.is_empty() {
        return String::new();
    }
    let width = usable(width);
    let header = [
        ("pitch", Column::Words),
        ("verdict", Column::Words),
        ("hours", Column::Figures),
        ("ln/h expected", Column::Whole),
        ("found", Column::Figures),
    ];
    let row = |one: &Return| {
        let tone = Tone::from(one.verdict);
        vec![
            one.pitch.clone(),
            paint(one.verdict, tone.style()),
            hours(one.hours),
            range(&one.expected),
            signed(one.found, DIGITS),
        ]
    };
    table(&header, returns.iter().map(row).collect(), 2, width)
}

/// `+0.031 [−0.120 … +0.200]`.
fn range(roi: &Roi) -> String {
    format!(
        "{} [{} … {}]",
        per_hour(roi),
        signed(roi.low, DIGITS),
        signed(roi.high, DIGITS)
    )
}

/// The mean alone: `+0.031`.
pub fn per_hour(roi: &Roi) -> String {
    signed(roi.mean, DIGITS)
}

fn hours(hours: f64) -> String {
    format!("{hours}")
}
