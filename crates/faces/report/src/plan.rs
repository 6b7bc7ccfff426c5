//! The order in which the model would make the changes that were pitched.

use gauntlet_stats::{Interval, percent_interval};
use gauntlet_tournament::{CaseTime, Plan};

use crate::duration::duration;
use crate::speedup::times;
use crate::table::{Column, table};
use crate::text::{bold, dim, paragraph};

/// The meaning of the figures; printed once below them.
pub(crate) const NOTE: &str = "Predicted: each step is the change with the largest likeliest gain after those above \
                               it, until nothing gains more than what is practically nothing. × is the speed-up over \
                               the baseline with all steps so far; a gain whose range holds 0 may be none.";

/// The steps, each change alone, and the changes left out.
pub fn plan(plan: &Plan, width: usize) -> String {
    let mut text = steps(plan, width);
    if plan.steps.is_empty() {
        text += "  nothing that is pitched is expected to gain anything\n";
    }
    text += &paragraph("  ", &dim(NOTE), 2, width);
    if !plan.alone.is_empty() {
        text += &format!("\n{}\n{}", bold("Each change alone"), alone(plan, width));
    }
    for left in &plan.left {
        let first = format!("  not in it: {}: ", bold(&left.pitch));
        text += &paragraph(&first, &left.reason, 4, width);
    }
    text
}

fn steps(plan: &Plan, width: usize) -> String {
    let mut rows = vec![row("baseline", "—".to_owned(), "—".to_owned(), &plan.baseline)];
    for (number, step) in plan.steps.iter().enumerate() {
        let name = format!("{}. {}", number + 1, step.pitch);
        let so_far = times(step.gain_so_far.estimate.exp());
        rows.push(row(&name, gain(&step.gain), so_far, &step.cases));
    }
    laid_out("do", "×", &plan.baseline, rows, width)
}

fn alone(plan: &Plan, width: usize) -> String {
    let rows = plan.alone.iter().map(|one| {
        let ratio = times(one.gain.estimate.exp());
        row(&one.pitch, gain(&one.gain), ratio, &one.cases)
    });
    laid_out("change", "×", &plan.baseline, rows.collect(), width)
}

/// The gain with its range; a single figure would look like a result.
pub(crate) fn gain(interval: &Interval) -> String {
    percent_interval(interval)
}

fn row(name: &str, gain: String, so_far: String, cases: &[CaseTime]) -> Vec<String> {
    let mut row = vec![name.to_owned(), gain, so_far];
    row.extend(cases.iter().map(|case| duration(case.seconds)));
    row
}

fn laid_out(first: &str, ratio: &str, cases: &[CaseTime], rows: Vec<Vec<String>>, width: usize) -> String {
    let mut header = vec![
        (first, Column::Words),
        ("gain", Column::Words),
        (ratio, Column::Figures),
    ];
    header.extend(cases.iter().map(|case| (case.case.as_str(), Column::Figures)));
    table(&header, rows, 2, width)
}
