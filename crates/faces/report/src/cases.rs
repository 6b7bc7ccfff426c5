//! Times and speed-ups of each problem, with a picture.

use gauntlet_judge::{Comparison, Verdict};
use gauntlet_stats::{Criteria, Interval, percent_interval};
use textwrap::core::display_width;

use crate::axis::Axis;
use crate::duration::duration;
use crate::outline::{CaseLine, Floor, cases, ground};
use crate::picture::{Picture, scale};
use crate::table::{Column, columns, table};
use crate::text::{bold, dim, paint, paragraph, widest};
use crate::tone::Tone;

/// A narrower picture shows nothing useful.
const NARROWEST_PICTURE: usize = 12;

/// A wider picture shows nothing more.
const WIDEST_PICTURE: usize = 48;

/// Columns of the gaps between and left of the table's columns.
const GAPS: usize = 8;

/// Room for a time.
const TIME_COLUMNS: usize = 9;

/// The problems of a comparison and the whole suite: times, speed-up, and a picture if there is room. The verdict says whether the times decide
/// anything.
pub fn case_table(comparison: &Comparison, verdict: Verdict, criteria: &Criteria, width: usize) -> String {
    let tone = |interval: &Interval| Tone::of_interval(interval, comparison, verdict, criteria);
    let lines = cases(comparison);
    let suite = comparison.assessment.suite.as_ref();
    let texts: Vec<String> = lines.iter().map(speedup).collect();
    let names = widest(lines.iter().map(|line| line.name)).max("suite".len());
    let figures = widest(texts.iter().map(String::as_str))
        .max(suite.map_or(0, |suite| display_width(&percent_interval(suite))));
    let columns = width
        .saturating_sub(names + figures + 2 * TIME_COLUMNS + GAPS + 2)
        .min(WIDEST_PICTURE);
    let intervals = lines.iter().filter_map(|line| line.interval).chain(suite);
    let canvas = (columns >= NARROWEST_PICTURE && suite.is_some()).then(|| Canvas {
        axis: Axis::of_intervals(intervals, criteria),
        criteria,
        columns,
    });

    let mut header = columns!(Words "case"; Figures "baseline", "candidate"; Whole "speed-up").to_vec();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (line, text) in lines.iter().zip(texts) {
        rows.push(vec![
            line.name.to_owned(),
            duration(line.baseline),
            duration(line.candidate),
            text,
        ]);
    }
    if let Some(suite) = suite {
        rows.push(vec![
            bold("suite"),
            String::new(),
            String::new(),
            bold(percent_interval(suite)),
        ]);
    }
    if let Some(canvas) = canvas {
        header.push(("", Column::Whole));
        let intervals = lines.iter().map(|line| line.interval).chain([suite]);
        for (row, interval) in rows.iter_mut().zip(intervals) {
            row.push(canvas.draw(interval, interval.map(tone)));
        }
        rows.push(vec![
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            canvas.scale(),
        ]);
    }
    table(&header, rows, 2, width) + &paragraph("  ", &dim(legend(&lines) + &ground(comparison)), 2, width)
}

struct Canvas<'c> {
    axis: Axis,
    criteria: &'c Criteria,
    columns: usize,
}

impl Canvas<'_> {
    fn draw(&self, interval: Option<&Interval>, tone: Option<Tone>) -> String {
        let guides = Picture::with_guides(&self.axis, self.criteria, self.columns);
        match interval.zip(tone) {
            Some((interval, tone)) => guides.interval(&self.axis, interval, tone.style()).text(),
            None => guides.text(),
        }
    }

    fn scale(&self) -> String {
        scale(&self.axis, self.criteria, self.columns)
    }
}

fn speedup(line: &CaseLine) -> String {
    match line.floor {
        Some(floor) => format!("{} {}", line.speedup, paint(mark(floor), Tone::Bad.style())),
        None => line.speedup.clone(),
    }
}

/// A sign for how a problem compares with the floor, explained under the table.
fn mark(floor: Floor) -> char {
    match floor {
        Floor::Under => '▼',
        Floor::PerhapsUnder => '▽',
    }
}

/// The signs that a table uses.
fn legend(lines: &[CaseLine]) -> String {
    let used = |floor: &Floor| lines.iter().any(|line| line.floor == Some(*floor));
    let entry = |floor| format!("{} {floor}; ", mark(floor));
    [Floor::Under, Floor::PerhapsUnder]
        .into_iter()
        .filter(used)
        .map(entry)
        .collect()
}
