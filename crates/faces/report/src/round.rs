//! A round: its panel, its baseline, its verdicts.

use gauntlet_tournament::{Judged, RoundReport};

use crate::baseline::baseline;
use crate::cases::case_table;
use crate::comparison::{Detail, gates, pairs};
use crate::outline::{criteria, setting};
use crate::panel::ranking;
use crate::story::story;
use crate::text::{bold, dim, paint, paragraph, usable};
use crate::tone::Tone;
use crate::verdicts::{intervals, reasons, verdict_table};

/// All results of a round.
pub fn round(report: &RoundReport, detail: Detail, width: usize) -> String {
    let width = usable(width);
    let mut text = header(report, width);
    section(&mut text, "What was said", story(report, width));
    section(&mut text, "Panel", ranking(report, width));
    section(&mut text, "Baseline", baseline(&report.baseline, width));
    section(&mut text, "Verdicts", verdict_table(report, width));
    section(&mut text, "Speed-ups over the suite", intervals(report, width));
    section(&mut text, "Reasons", reasons(report, width));
    for judged in &report.judged {
        section(
            &mut text,
            &format!("Case by case: {}", judged.name),
            case_by_case(report, judged, width),
        );
    }
    for judged in &report.judged {
        let found = (detail != Detail::Outcome).then(|| gates(&judged.findings, width));
        section(
            &mut text,
            &format!("Gates: {}", judged.name),
            found.unwrap_or_default(),
        );
        let times = judged.comparison().filter(|_| detail == Detail::Samples);
        text += &times.map_or_else(String::new, |comparison| {
            format!("\n{}", pairs(comparison, width))
        });
    }
    section(&mut text, "", outcome(report, width));
    text
}

fn header(report: &RoundReport, width: usize) -> String {
    let first = format!("{} ", bold(format!("Round {}:", report.name)));
    let mut text = paragraph(&first, &report.title, 2, width);
    text += &paragraph("  ", &setting(report), 2, width);
    text += &paragraph("  ", &criteria(&report.file.criteria), 2, width);
    let digest: String = report.digest.chars().take(12).collect();
    text += &format!("  {}\n", dim(format!("fixed beforehand as {digest}")));
    text
}

fn case_by_case(report: &RoundReport, judged: &Judged, width: usize) -> String {
    judged.comparison().map_or(String::new(), |comparison| {
        case_table(comparison, judged.verdict, &report.file.criteria, width)
    })
}

fn outcome(report: &RoundReport, width: usize) -> String {
    let mut text = match &report.adopted {
        Some(name) => paragraph(
            "",
            &paint(format!("→ adopted: {name}"), Tone::Good.style().bold()),
            2,
            width,
        ),
        None => "→ nothing adopted; the baseline stays\n".to_owned(),
    };
    for notice in &report.notices {
        text += &paragraph(&format!("{} ", paint('!', Tone::Open.style())), notice, 2, width);
    }
    text
}

/// Adds a section with its title, unless it is empty.
fn section(text: &mut String, title: &str, body: String) {
    if body.is_empty() {
        return;
    }
    text.push('\n');
    if !title.is_empty() {
        *text += &bold(title);
        text.push('\n');
    }
    *text += &body;
}
