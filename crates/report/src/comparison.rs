//! A single comparison, for users who only want to know which of two is faster.

use gauntlet_judge::{Comparison, Verdict};
use gauntlet_stats::{Criteria, Interval};

use crate::cases::case_table;
use crate::outline::criteria as criteria_line;
use crate::speedup::percent_interval;
use crate::table::{columns, table};
use crate::text::{bold, paint, paragraph, usable};
use crate::tone::Tone;

/// The cases with their times and intervals, the looks taken, and the decision; for `void` times, why there is none.
pub fn comparison(comparison: &Comparison, void: Option<&str>, criteria: &Criteria, width: usize) -> String {
    let width = usable(width);
    let mut text = case_table(comparison, criteria, width);
    if comparison.looks.len() > 1 {
        text += &format!("\n{}\n{}", bold("Looks"), looks(comparison, width));
    }
    if let Some(declared) = &comparison.declared {
        text += &paragraph("  ", declared, 2, width);
    }
    let verdict = match void {
        Some(_) => Verdict::Blocked,
        None => Verdict::from(comparison.assessment.decision),
    };
    let tone = Tone::from(verdict);
    let interval = comparison.assessment.suite.as_ref();
    let mark = format!("{} ", paint(tone.mark(), tone.style()));
    let decision = paint(verdict, tone.style().bold());
    let rest = match void {
        Some(reason) => format!("{decision}: {reason}"),
        None => format!("{decision}: {} ({})", figures(interval), criteria_line(criteria)),
    };
    text + "\n" + &paragraph(&mark, &rest, 2, width)
}

fn looks(comparison: &Comparison, width: usize) -> String {
    let header = columns!(Figures "pairs of processes"; Whole "speed-up"; Words "decision");
    let row = |look: &gauntlet_judge::Look| {
        let verdict = Verdict::from(look.decision);
        vec![
            look.processes.to_string(),
            figures(look.interval.as_ref()),
            paint(verdict, Tone::from(verdict).style()),
        ]
    };
    table(&header, comparison.looks.iter().map(row).collect(), 2, width)
}

fn figures(interval: Option<&Interval>) -> String {
    interval.map_or("no interval".to_owned(), percent_interval)
}
