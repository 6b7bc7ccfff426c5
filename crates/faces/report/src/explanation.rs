//! Where the time of a predicted call goes: the gap from the roofline to the prediction, part by part.

mod cases;
mod difference;
mod header;
mod lines;
mod reading;

use gauntlet_device::{Arch, Basis};
use gauntlet_problems::{Operation, Schedule};
use gauntlet_simulate::{Bound, Breakdown, Counts};
use owo_colors::Style;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bar::floating;
use crate::duration::duration;
use crate::speedup::times;
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
    /// The basis of the interval, in a few words.
    pub basis: String,
    /// The most that other schedules could gain.
    pub greatest_gain: GreatestGain,
    /// The resource that limits the roofline.
    pub bound: Bound,
    /// The roofline, and the parts added to it.
    pub breakdown: Breakdown,
    /// Tiles, waves, steps.
    pub counts: Counts,
    /// Multiprocessors, or threads of a CPU.
    pub processors: usize,
    /// Blocks that one multiprocessor holds at a time; 1 on a CPU.
    pub blocks: usize,
    /// Buffers of one block, or of one thread of a CPU.
    pub buffer_bytes: usize,
}

/// The most that any schedule could gain by changing only the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GreatestGain {
    /// The prediction divided by the part that no kernel can change: 1.5 is one and a half times as fast.
    AtMost(f64),
    /// There is no such bound; the sentences give the reason and the remedy.
    Unknown(String),
}

impl GreatestGain {
    /// The bound that follows from a prediction. Only a model that was calibrated on the device gives one: with rates
    /// from a description alone, predictions are off by a multiple in either direction, and so is every bound derived
    /// from them.
    pub fn of(breakdown: &Breakdown, arch: Arch, basis: Basis) -> Self {
        match (basis, arch) {
            (Basis::Calibrated | Basis::Validated, _) => Self::AtMost(reading::greatest_gain(breakdown, arch)),
            (Basis::Published, Arch::Cpu) => Self::Unknown(
                "What other schedules can bring at most is not known: this machine is not calibrated, so that the model \
                 knows its peak rates alone. `gauntlet calibrate` measures what is missing; `gauntlet compare` measures what \
                 a schedule brings."
                    .to_owned(),
            ),
            (Basis::Published, _) => Self::Unknown(
                "What other schedules can bring at most is not known: the model has the rates in the device's description, \
                 and no calibration (`gauntlet calibrate` calibrates the CPU alone). `gauntlet compare --executor cuda` \
                 measures what a schedule brings on a GPU that is here."
                    .to_owned(),
            ),
        }
    }
}

/// The columns of the table besides the bars. The last one is a bound on the gain from a change of the part, and is
/// left out if no bound is known.
const FIGURES: [(&str, Column); 4] = columns!(Whole "part"; Figures "time", "share", "without it");

/// The columns of [`FIGURES`] with their gaps, without the names of parts.
const FIGURE_COLUMNS: usize = 33;

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
        String::new(),
        paint(floating(0.0, 1.0, columns), Style::new().dimmed()),
    ]);
    if matches!(explanation.greatest_gain, GreatestGain::Unknown(_)) {
        let bound = FIGURES.len() - 1;
        head.remove(bound);
        for row in &mut rows {
            row.remove(bound);
        }
    }
    let mut text = table(&head, rows, 2, width);
    if !shown.folded.is_empty() {
        let names = shown.folded.join(", ");
        text += &paragraph("  ", &dim(format!("none, or under 0.1 %: {names}")), 4, width);
    }
    text
}

fn row(line: &Line, total: f64, columns: usize) -> Vec<String> {
    let place = |seconds: f64| if total > 0.0 { seconds / total } else { 0.0 };
    let rest = total - line.seconds;
    let without = if line.part.is_some() && rest > 0.0 {
        times(total / rest)
    } else {
        String::new()
    };
    vec![
        line.name.to_owned(),
        duration(line.seconds),
        share(place(line.seconds)),
        without,
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
