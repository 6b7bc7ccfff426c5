//! Two schedules, part by part.

use gauntlet_simulate::{Breakdown, Part};
use owo_colors::Style;

use super::lines::lines;
use super::{Explanation, header};
use crate::bar::{bar, floating};
use crate::duration::duration;
use crate::speedup::times;
use crate::table::{Column, columns, table};
use crate::text::{bold, dim, paint, paragraph, widest};
use crate::tone::Tone;

/// The columns of the table's figures with their gaps, without the names of parts.
const FIGURE_COLUMNS: usize = 36;

/// Longer bars are not clearer.
const MAX_SIDE: usize = 25;

/// The maximum number of changed parts that are named for each of several problems.
const MAX_NAMED: usize = 2;

/// A part is not named if it changed by less than this share of the time before.
const MIN_NAMED: f64 = 0.005;

/// The same problems before and after: one with all its parts, or several with the parts that changed most.
pub fn compared(pairs: &[(Explanation, Explanation)], width: usize) -> String {
    let Some((before, after)) = pairs.first() else {
        return String::new();
    };
    let mut text = String::new();
    if pairs.len() == 1 {
        text += &header::title(before, width);
    }
    text += &header::fact("before", &before.schedule.to_string(), width);
    text += &header::fact("after", &after.schedule.to_string(), width);
    text += &header::device(before, width);
    text.push('\n');
    text += &match pairs {
        [(before, after)] => parts(before, after, width),
        several => cases(several, width),
    };
    text
}

fn parts(before: &Explanation, after: &Explanation, width: usize) -> String {
    let changes = changes(&before.breakdown, &after.breakdown);
    let names = widest(changes.iter().map(|change| change.name).chain(["prediction"]));
    let side = (width.saturating_sub(2 + names + FIGURE_COLUMNS + 1) / 2).clamp(1, MAX_SIDE);
    let greatest = changes.iter().map(|change| change.difference().abs());
    let scale = greatest.fold(0.0, f64::max);
    let picture = format!("{:>side$} slower", "faster ");
    let head = [
        ("part", Column::Whole),
        ("before", Column::Figures),
        ("after", Column::Figures),
        ("difference", Column::Figures),
        (picture.as_str(), Column::Whole),
    ];
    let mut rows: Vec<Vec<String>> = changes.iter().map(|change| change.row(scale, side)).collect();
    rows.push(vec![
        bold("prediction"),
        bold(duration(before.seconds)),
        bold(duration(after.seconds)),
        bold(signed(after.seconds - before.seconds)),
        bold(times(before.seconds / after.seconds)) + " as fast",
    ]);
    let intervals = format!(
        "90 % intervals: before {}, after {}",
        header::interval(before),
        header::interval(after)
    );
    table(&head, rows, 2, width) + "\n" + &paragraph("  ", &dim(intervals), 2, width)
}

fn cases(pairs: &[(Explanation, Explanation)], width: usize) -> String {
    let head = columns!(Words "case"; Figures "before", "after", "as fast"; Words "what changes most");
    let row = |(before, after): &(Explanation, Explanation)| {
        vec![
            before.case.clone(),
            duration(before.seconds),
            duration(after.seconds),
            times(before.seconds / after.seconds),
            most_changed(before, after),
        ]
    };
    let logarithms = pairs
        .iter()
        .map(|(before, after)| (before.seconds / after.seconds).ln());
    let mean = logarithms.sum::<f64>() / pairs.len() as f64;
    let blank = String::new;
    let mut rows: Vec<_> = pairs.iter().map(row).collect();
    rows.push(vec![
        bold("geometric mean"),
        blank(),
        blank(),
        bold(times(mean.exp())),
        blank(),
    ]);
    table(&head, rows, 2, width)
}

/// The parts that differ most, each with its difference.
fn most_changed(before: &Explanation, after: &Explanation) -> String {
    let mut changes = changes(&before.breakdown, &after.breakdown);
    changes.retain(|change| change.difference().abs() >= MIN_NAMED * before.seconds);
    changes.sort_by(|one, other| other.difference().abs().total_cmp(&one.difference().abs()));
    let named: Vec<_> = changes
        .iter()
        .take(MAX_NAMED)
        .map(|change| format!("{} {}", change.name, signed(change.difference())))
        .collect();
    named.join(", ")
}

/// The roofline or a part before and after, in seconds.
struct Change {
    name: &'static str,
    before: f64,
    after: f64,
}

impl Change {
    fn difference(&self) -> f64 {
        self.after - self.before
    }

    fn row(&self, scale: f64, side: usize) -> Vec<String> {
        vec![
            self.name.to_owned(),
            duration(self.before),
            duration(self.after),
            signed(self.difference()),
            both_sides(self.difference(), scale, side),
        ]
    }
}

/// The roofline, and each part that is visible before or after.
fn changes(before: &Breakdown, after: &Breakdown) -> Vec<Change> {
    let seen = [before, after].map(|breakdown| {
        let lines = lines(breakdown).lines;
        lines.iter().filter_map(|line| line.part).collect::<Vec<_>>()
    });
    let mut changes = vec![Change {
        name: "roofline",
        before: before.roofline,
        after: after.roofline,
    }];
    let shown = |part: &Part| seen.iter().any(|parts| parts.contains(part));
    changes.extend(Part::ALL.into_iter().filter(shown).map(|part| Change {
        name: part.name(),
        before: before.part(part),
        after: after.part(part),
    }));
    changes
}

/// A bar to the left for parts that became faster, to the right for parts that became slower.
fn both_sides(difference: f64, scale: f64, side: usize) -> String {
    let length = if scale > 0.0 {
        difference.abs() / scale
    } else {
        0.0
    };
    let origin = paint('│', Style::new().dimmed());
    if difference < 0.0 {
        let faster = floating(1.0 - length, 1.0, side);
        format!(
            "{}{origin}",
            paint(format!("{faster:<side$}"), Tone::Good.style())
        )
    } else {
        let slower = paint(bar(length, side), Tone::Bad.style());
        format!("{}{origin}{slower}", " ".repeat(side))
    }
}

/// A difference of times with its sign.
fn signed(seconds: f64) -> String {
    let size = duration(seconds.abs());
    match () {
        // A difference that rounds to zero has no sign.
        () if seconds.abs() < 0.5e-9 => size,
        () if seconds < 0.0 => format!("−{size}"),
        () => format!("+{size}"),
    }
}
