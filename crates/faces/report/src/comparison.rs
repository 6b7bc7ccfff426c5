//! A single comparison, for users who only want to know which of two is faster.

use gauntlet_judge::{Comparison, ComparisonReport, Finding, KernelReport, Verdict};
use gauntlet_stats::{Criteria, Interval, median, percent, percent_interval};

use crate::activity::activity_lines;
use crate::cases::case_table;
use crate::duration::duration;
use crate::finding::finding;
use crate::outline::{criteria as criteria_line, processes, side_name};
use crate::plain::plainly;
use crate::table::{columns, table};
use crate::text::{bold, paint, paragraph, usable};
use crate::tone::Tone;

/// Columns of the names `baseline` and `candidate` and the blanks after them.
const SIDE_COLUMNS: usize = 11;

/// How much of the evidence is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The outcome; the findings of the gates have been shown as they came.
    Outcome,
    /// All findings too.
    Findings,
    /// And the times of each pair of processes.
    Samples,
}

/// A comparison with its kernels, cases, looks and verdict, or the reason why it was not made.
pub fn compared(report: &ComparisonReport, detail: Detail, width: usize) -> String {
    let width = usable(width);
    let mut text = String::new();
    if detail != Detail::Outcome {
        text += &paragraph(&format!("{} ", bold("task")), &report.task, 2, width);
    }
    if report.comparison.is_none() {
        text += &examined(report, detail, width);
        let side = side_name(report.side);
        let reason = format!("{}: {}", report.verdict, report.reason);
        return text + &paragraph("", &format!("{side}: {reason}"), 2, width);
    }
    for (side, kernel) in [("baseline", &report.baseline), ("candidate", &report.candidate)] {
        text += &described(side, kernel, width);
    }
    for note in &report.notes {
        text += &paragraph("note: ", note, 6, width);
    }
    text.push('\n');
    text += &examined(report, detail, width);
    if let Some(found) = &report.comparison {
        let void = (report.verdict == Verdict::Blocked).then_some(report.reason.as_str());
        if detail == Detail::Samples {
            text += &pairs(found, width);
        }
        text += &comparison(found, void, &report.criteria, width);
        for charge in found.charged() {
            let note = format!("{charge}; speed-ups include it, the times of calls do not");
            text += &paragraph("note: ", &note, 6, width);
        }
        if let Some(doubt) = found.doubt() {
            text += &paragraph("note: ", &doubt.to_string(), 6, width);
        }
    }
    if let Some(found) = report.believed() {
        text += &paragraph("", &plainly(found, &report.criteria, report.names()), 2, width);
    }
    text
}

fn examined(report: &ComparisonReport, detail: Detail, width: usize) -> String {
    if detail == Detail::Outcome || report.findings.is_empty() {
        return String::new();
    }
    format!("{}\n{}\n", bold("Gates"), gates(&report.findings, width))
}

fn described(side: &str, kernel: &KernelReport, width: usize) -> String {
    let mut lines = kernel.described.lines();
    let first = format!("{side:<SIDE_COLUMNS$}");
    let mut text = paragraph(&first, lines.next().unwrap_or_default(), SIDE_COLUMNS, width);
    let indent = " ".repeat(SIDE_COLUMNS);
    for line in lines {
        text += &paragraph(&indent, line, SIDE_COLUMNS + 2, width);
    }
    text
}

/// The findings of the gates, one after the other.
pub fn gates(findings: &[Finding], width: usize) -> String {
    findings.iter().map(|one| finding(one, width)).collect()
}

/// The median times of each pair of processes, case by case.
pub fn pairs(comparison: &Comparison, width: usize) -> String {
    let header = columns!(Figures "process", "calls", "baseline", "candidate", "speed-up");
    let mut text = String::new();
    for case in comparison.cases.iter().filter(|case| !case.blocks.is_empty()) {
        let mut rows = Vec::new();
        for process in processes(&case.blocks) {
            let [baseline, candidate] = [median(&process.baseline), median(&process.candidate)];
            rows.push(vec![
                process.number.to_string(),
                (process.baseline.len() + process.candidate.len()).to_string(),
                duration(baseline),
                duration(candidate),
                percent(baseline / candidate - 1.0),
            ]);
        }
        let title = bold(format!("Process by process: {}", case.case));
        text += &format!("{title}\n{}\n", table(&header, rows, 2, width));
    }
    text
}

/// The cases with their times and intervals, the looks taken, and the decision; for `void` times, why there is none.
pub fn comparison(comparison: &Comparison, void: Option<&str>, criteria: &Criteria, width: usize) -> String {
    let width = usable(width);
    let verdict = void.map_or(comparison.assessment.decision.into(), |_| Verdict::Blocked);
    let mut text = case_table(comparison, verdict, criteria, width);
    if comparison.looks.len() > 1 {
        text += &format!("\n{}\n{}", bold("Looks"), looks(comparison, width));
    }
    if let Some(declared) = &comparison.declared {
        text += &paragraph("  ", declared, 2, width);
    }
    text += &activity_lines(comparison, width);
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
    let rest = match comparison.trust.sentence() {
        Some(trust) => format!("{rest}; {trust}"),
        None => rest,
    };
    text + "\n" + &paragraph(&mark, &rest, 2, width)
}

fn looks(comparison: &Comparison, width: usize) -> String {
    let header = columns!(Figures "pairs of processes"; Whole "speed-up"; Words "decision");
    let row = |look: &gauntlet_judge::Look| {
        let verdict = Verdict::from(look.decision);
        vec![
            match look.closing {
                true => format!("{}, time up", look.processes),
                false => look.processes.to_string(),
            },
            figures(look.interval.as_ref()),
            paint(verdict, Tone::from(verdict).style()),
        ]
    };
    table(&header, comparison.looks.iter().map(row).collect(), 2, width)
}

fn figures(interval: Option<&Interval>) -> String {
    interval.map_or("no interval".to_owned(), percent_interval)
}
