//! Several kernels beside one baseline.

use std::collections::BTreeSet;

use gauntlet_judge::ComparisonReport;
use gauntlet_stats::{median, percent_interval};

use crate::duration::duration;
use crate::outline::{cases, criteria};
use crate::table::{columns, table};
use crate::text::{bold, paint, paragraph, usable};
use crate::tone::Tone;

/// The kernels of comparisons with the same baseline: times and speed-ups of each case, and the verdicts.
pub fn several(reports: &[ComparisonReport], width: usize) -> String {
    let width = usable(width);
    let Some(first) = reports.first() else {
        return String::new();
    };
    let made = reports.iter().find_map(|report| report.comparison.as_ref());
    let names: Vec<&str> = made.into_iter().flat_map(cases).map(|line| line.name).collect();
    let mut text = String::new();
    for name in &names {
        let title = if names.len() > 1 { *name } else { "" };
        text += &of_case(reports, name, title, width);
    }
    if names.len() != 1 {
        text += &verdicts(reports, width);
    }
    for note in notes(reports) {
        text += &paragraph("note: ", note, 6, width);
    }
    let count = reports.len();
    let all = 100.0 * (1.0 - count as f64 * (1.0 - first.criteria.confidence));
    let together = format!(
        "{} each, {all:.4} % for all {count} together",
        criteria(&first.criteria)
    );
    text + &paragraph("  ", &together, 2, width)
}

/// What is said of any of them, once.
fn notes(reports: &[ComparisonReport]) -> BTreeSet<&String> {
    reports.iter().flat_map(|report| &report.notes).collect()
}

/// The times of one case; with the verdicts if there is no other case.
fn of_case(reports: &[ComparisonReport], case: &str, title: &str, width: usize) -> String {
    let is_only = title.is_empty();
    let lines: Vec<_> = reports
        .iter()
        .map(|report| {
            let mut lines = report.comparison.iter().flat_map(cases);
            (report, lines.find(|line| line.name == case))
        })
        .collect();
    let baselines: Vec<f64> = lines
        .iter()
        .flat_map(|(_, line)| line)
        .map(|line| line.baseline)
        .collect();
    let mut rows = vec![vec![
        reports
            .first()
            .map_or(String::new(), |report| report.baseline.name.clone()),
        duration(median(&baselines)),
        "baseline".to_owned(),
        String::new(),
    ]];
    for (report, line) in &lines {
        let interval = line.as_ref().and_then(|line| line.interval);
        rows.push(vec![
            report.candidate.name.clone(),
            line.as_ref()
                .map_or(String::new(), |line| duration(line.candidate)),
            interval.map_or(String::new(), percent_interval),
            if is_only { verdict(report) } else { String::new() },
        ]);
    }
    let header = columns!(Words "kernel"; Figures "time"; Whole "speed-up"; Words "verdict");
    let shown = if is_only { 4 } else { 3 };
    rows.iter_mut().for_each(|row| row.truncate(shown));
    let heading = if is_only {
        String::new()
    } else {
        format!("{}\n", bold(title))
    };
    format!("{heading}{}\n", table(&header[..shown], rows, 2, width))
}

/// The verdicts over all cases.
fn verdicts(reports: &[ComparisonReport], width: usize) -> String {
    let row = |report: &ComparisonReport| {
        let suite = report
            .comparison
            .as_ref()
            .and_then(|found| found.assessment.suite.as_ref());
        vec![
            report.candidate.name.clone(),
            suite.map_or(String::new(), percent_interval),
            verdict(report),
        ]
    };
    let header = columns!(Words "kernel"; Whole "all cases"; Words "verdict");
    format!(
        "{}\n",
        table(&header, reports.iter().map(row).collect(), 2, width)
    )
}

fn verdict(report: &ComparisonReport) -> String {
    let tone = Tone::from(report.verdict);
    let said = paint(format!("{} {}", tone.mark(), report.verdict), tone.style());
    match &report.comparison {
        Some(_) => said,
        None => format!("{said}: {}", report.reason),
    }
}
