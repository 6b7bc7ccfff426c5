//! Where the time of a predicted call goes: the gap from the roofline to the prediction, part by part.

mod cases;
mod difference;
mod header;
mod lines;
mod reading;

use gauntlet_device::Arch;
use gauntlet_problems::{Operation, Schedule};
use gauntlet_simulate::{Bound, Breakdown, Counts};
use owo_colors::Style;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bar::floating;
use crate::duration::duration;
use crate::table::{Column, columns, table};
use crate::text::{bold, dim, paint, paragraph, usable, widest};
use lines::{Line, lines};

/// One problem under one schedule on a device, with the parts of its time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Explanation {
    /// The name of the problem.
    pub case: String,
    /// The problem.
    #[serde(rename = "problem")]
    pub operation: Operation,
    /// The schedule.
    pub schedule: Schedule,
    /// The device.
    pub device: String,
    /// Its instruction set.
    pub arch: Arch,
    /// The whole call.
    pub seconds: f64,
    /// The lower end of a 90 % interval on `seconds`.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The basis of the interval, and the record of such predictions, in a few words.
    pub basis: String,
    /// The resource that limits the roofline.
    pub bound: Bound,
    /// The roofline, and the parts added to it.
    pub breakdown: Breakdown,
    /// Tiles, waves, steps.
    pub counts: Counts,
    /// Multiprocessors.
    pub processors: usize,
    /// Blocks that one multiprocessor holds at a time.
    pub blocks: usize,
    /// Buffers of one block.
    pub buffer_bytes: usize,
}

/// The columns of the table besides the bars.
const FIGURES: [(&str, Column); 3] = columns!(Whole "part"; Figures "time", "share");

/// The columns of [`FIGURES`] with their gaps, without the names of parts.
const FIGURE_COLUMNS: usize = 21;

/// Longer bars are not clearer.
const MAX_BAR: usize = 60;

/// One explanation in full, or several side by side.
pub fn explained(explanations: &[Explanation], width: usize) -> String {
    let width = usable(width);
    match explanations {
        [one] => whole(one, width),
        several => cases::cases(several, width),
    }
}

/// The same problems under two schedules, part by part: `pairs` of before and after.
pub fn compared(pairs: &[(Explanation, Explanation)], width: usize) -> String {
    difference::compared(pairs, usable(width))
}

fn whole(explanation: &Explanation, width: usize) -> String {
    let mut text = header::header(explanation, width);
    text.push('\n');
    text += &waterfall(explanation, width);
    text.push('\n');
    for sentence in reading::reading(explanation) {
        text += &paragraph("  ", &sentence, 2, width);
    }
    text
}

/// The parts in a column; each bar begins where the previous one ended.
fn waterfall(explanation: &Explanation, width: usize) -> String {
    let shown = lines(&explanation.breakdown);
    let names = widest(shown.lines.iter().map(|line| line.name).chain(["prediction"]));
    let columns = width.saturating_sub(2 + names + FIGURE_COLUMNS).min(MAX_BAR);
    let total = explanation.breakdown.total();
    let scale = format!("0{:>rest$}", duration(total), rest = columns.saturating_sub(1));
    let mut head = FIGURES.to_vec();
    head.push((&scale, Column::Whole));
    let mut rows: Vec<Vec<String>> = shown.lines.iter().map(|line| row(line, total, columns)).collect();
    rows.push(vec![
        bold("prediction"),
        bold(duration(total)),
        bold("100.0 %"),
        paint(floating(0.0, 1.0, columns), Style::new().dimmed()),
    ]);
    let mut text = table(&head, rows, 2, width);
    if !shown.folded.is_empty() {
        let names = shown.folded.join(", ");
        text += &paragraph("  ", &dim(format!("none, or under 0.1 %: {names}")), 4, width);
    }
    text
}

fn row(line: &Line, total: f64, columns: usize) -> Vec<String> {
    let place = |seconds: f64| if total > 0.0 { seconds / total } else { 0.0 };
    vec![
        line.name.to_owned(),
        duration(line.seconds),
        share(place(line.seconds)),
        paint(
            floating(place(line.start), place(line.start + line.seconds), columns),
            line.style(),
        ),
    ]
}

/// A share to a tenth of a percent.
fn share(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}
