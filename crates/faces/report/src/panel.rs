//! The panel's ranking.

use gauntlet_judge::Evidence;
use gauntlet_tournament::RoundReport;
use gauntlet_tournament::panel::Standing;

use crate::bar::bar;
use crate::prospects::per_hour;
use crate::speedup::claim;
use crate::table::{Column, columns, table};
use crate::text::{dim, paint, paragraph};
use crate::tone::Tone;

/// Scores range from 0 to this.
const BEST_SCORE: f64 = 10.0;

/// Columns of the bar beside a mean score, if there is room for it.
const BAR_COLUMNS: usize = 10;

/// There is room from this width on.
const ROOM_FOR_BARS: usize = 96;

/// The ranking as a table, with inconsistencies below it. Nothing without pitches.
pub fn ranking(report: &RoundReport, width: usize) -> String {
    let standings = &report.ranking.standings;
    let Some(first) = standings.first() else {
        return String::new();
    };
    let judges: Vec<_> = first
        .judgements
        .iter()
        .map(|judgement| judgement.judge.as_str())
        .collect();
    let mut header = columns!(Figures "#"; Words "pitch", "author").to_vec();
    if judges.len() > 1 {
        header.push(("judges", Column::Whole));
    }
    header.extend(columns!(Whole "mean"; Figures "%/h"; Whole "claim"));
    let rows = standings
        .iter()
        .map(|standing| row(report, standing, width))
        .collect();
    let mut text = table(&header, rows, 2, width);
    if judges.len() > 1 {
        text += &paragraph(
            "  ",
            &dim(format!("judges, in order: {}", judges.join(", "))),
            4,
            width,
        );
    }
    let meaning = "%/h: expected of an hour of the stated work, in hundredths of log speed-up";
    text += &paragraph("  ", &dim(meaning), 4, width);
    if let Some(basis) = basis(report) {
        text += &paragraph("  ", &dim(format!("the model's predictions: {basis}")), 4, width);
    }
    for flag in &report.ranking.flags {
        text += &paragraph(
            &format!("  {} ", paint('⚠', Tone::Open.style())),
            &flag.to_string(),
            4,
            width,
        );
    }
    text
}

/// The basis of the model's error bars and the accuracy of its earlier predictions, if the model was asked.
fn basis(report: &RoundReport) -> Option<String> {
    let mut findings = report.judged.iter().flat_map(|judged| &judged.findings);
    findings.find_map(|finding| match &finding.evidence {
        Evidence::Prediction(prediction) => {
            Some(format!("bar from published models; {}", prediction.record()))
        }
        _ => None,
    })
}

fn row(report: &RoundReport, standing: &Standing, width: usize) -> Vec<String> {
    let judged = report.judged.iter().find(|judged| judged.name == standing.pitch);
    let claimed = judged.and_then(|judged| judged.claim);
    let mut row = vec![
        standing.rank.to_string(),
        standing.pitch.clone(),
        judged.map_or(String::new(), |judged| judged.author.clone()),
    ];
    if standing.judgements.len() > 1 {
        row.push(totals(standing));
    }
    row.push(mean(standing, width));
    row.push(
        standing
            .roi
            .as_ref()
            .map_or("—".to_owned(), |roi| per_hour(roi.mean)),
    );
    row.push(claimed.map_or("—".to_owned(), |outcome| claim(outcome.claimed)));
    row
}

fn mean(standing: &Standing, width: usize) -> String {
    let figure = format!("{:>4.1}", standing.mean);
    if width < ROOM_FOR_BARS {
        return figure;
    }
    format!(
        "{figure} {}",
        paint(
            bar(standing.mean / BEST_SCORE, BAR_COLUMNS),
            Tone::Neutral.style()
        )
    )
}

/// Each judge's total, in the order of the judges.
fn totals(standing: &Standing) -> String {
    let totals: Vec<_> = standing
        .judgements
        .iter()
        .map(|judgement| format!("{:.1}", judgement.total))
        .collect();
    totals.join(" ")
}
