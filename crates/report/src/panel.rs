//! The panel's ranking.

use gauntlet_lab::RoundReport;
use gauntlet_lab::panel::Standing;

use crate::bar::bar;
use crate::speedup::claim;
use crate::table::{Column, table};
use crate::text::{dim, paint, paragraph};
use crate::tone::Tone;

/// Scores reach from 0 to this.
const BEST_SCORE: f64 = 10.0;

/// Columns of the bar beside a mean score, where there is room for it.
const BAR_COLUMNS: usize = 10;

/// From this width on there is room.
const ROOM_FOR_BARS: usize = 96;

/// The ranking as a table, with what does not hold together under it.
pub fn ranking(report: &RoundReport, width: usize) -> String {
    let header = [
        ("#", Column::Figures),
        ("pitch", Column::Words),
        ("contestant", Column::Words),
        ("judges", Column::Whole),
        ("mean", Column::Whole),
        ("claim", Column::Whole),
    ];
    let rows = report
        .ranking
        .standings
        .iter()
        .map(|standing| row(report, standing, width))
        .collect();
    let mut text = table(&header, rows, 2, width);
    if let Some(first) = report.ranking.standings.first()
        && first.judgements.len() > 1
    {
        let names: Vec<_> = first
            .judgements
            .iter()
            .map(|judgement| judgement.judge.as_str())
            .collect();
        text += &dim(paragraph("  judges, in order: ", &names.join(", "), 4, width).trim_end());
        text.push('\n');
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

fn row(report: &RoundReport, standing: &Standing, width: usize) -> Vec<String> {
    let judged = report.judged.iter().find(|judged| judged.name == standing.pitch);
    let claimed = judged.and_then(|judged| judged.claim);
    let mut mean = format!("{:>4.1}", standing.mean);
    if width >= ROOM_FOR_BARS {
        mean += &format!(
            " {}",
            paint(
                bar(standing.mean / BEST_SCORE, BAR_COLUMNS),
                Tone::Neutral.style()
            )
        );
    }
    vec![
        standing.rank.to_string(),
        standing.pitch.clone(),
        judged.map_or(String::new(), |judged| judged.contestant.clone()),
        totals(standing),
        mean,
        claimed.map_or("—".to_owned(), |outcome| claim(outcome.claimed)),
    ]
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
