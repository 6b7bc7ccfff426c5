//! What to try next, and the returns of the hours spent.

use gauntlet_tournament::forecast::{Prospect, Return, Roi};

use crate::figure::signed;
use crate::speedup::times;
use crate::table::{columns, table};
use crate::text::{dim, paint, paragraph, usable};
use crate::tone::Tone;

/// More rows are not helpful; JSON has all.
const MAX_ROWS: usize = 10;

/// The meaning of the columns.
pub const LEGEND: [&str; 3] = [
    "expected: of one that survives the gates, from claim, model and measurements, each weighted by its precision, the \
     claim as far as its author's record lets it be believed",
    "chance: of surviving as far as a comparison, by the pitch's odds and the record",
    "%/h: what an hour of the stated work brings on average, in hundredths of log speed-up (+5 is about 5 % faster, +69 \
     twice as fast), and the range of eight outcomes in ten",
];

/// The open candidates, best first; nothing without any.
pub fn prospects(prospects: &[Prospect], width: usize) -> String {
    if prospects.is_empty() {
        return String::new();
    }
    let width = usable(width);
    let header = columns!(Words "pitch"; Whole "so far"; Figures "expected", "chance", "hours"; Whole "%/h");
    let mut text = table(
        &header,
        prospects.iter().take(MAX_ROWS).map(row).collect(),
        2,
        width,
    );
    if prospects.len() > MAX_ROWS {
        text += &dim(format!("  and {} more\n", prospects.len() - MAX_ROWS));
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

/// The returns of the hours that were reported as spent; nothing without any.
pub fn returns(returns: &[Return], width: usize) -> String {
    if returns.is_empty() {
        return String::new();
    }
    let width = usable(width);
    let header = columns!(Words "pitch", "verdict"; Figures "hours"; Whole "%/h expected"; Figures "found");
    let row = |one: &Return| {
        let tone = Tone::from(one.verdict);
        vec![
            one.pitch.clone(),
            paint(one.verdict, tone.style()),
            hours(one.hours),
            range(&one.expected),
            per_hour(one.found),
        ]
    };
    table(&header, returns.iter().map(row).collect(), 2, width)
}

/// The mean and the range of eight outcomes in ten: `+3.1 [−12.0 … +20.0]`.
pub fn range(roi: &Roi) -> String {
    format!(
        "{} [{} … {}]",
        per_hour(roi.mean),
        per_hour(roi.low),
        per_hour(roi.high)
    )
}

/// A log speed-up per hour in hundredths: `+3.1`.
pub fn per_hour(log: f64) -> String {
    signed(log * 100.0, 1)
}

fn hours(hours: f64) -> String {
    format!("{hours}")
}
