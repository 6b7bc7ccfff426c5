//! A tournament: its rounds and its results.

use gauntlet_tournament::TournamentReport;

use crate::bar::bar;
use crate::claims::claims;
use crate::comparison::Detail;
use crate::lineage::lineage;
use crate::outline::{adoptions, verdict_counts};
use crate::prospects::{prospects, returns};
use crate::round::round;
use crate::text::{bold, dim, paint, paragraph, usable};
use crate::tone::Tone;

/// Columns of the longest bar of the verdict counts.
const BAR_COLUMNS: usize = 24;

/// All results of a tournament.
pub fn tournament(report: &TournamentReport, detail: Detail, width: usize) -> String {
    let width = usable(width);
    let rule = dim("━".repeat(width)) + "\n";
    let mut text = header(report, width);
    for one in &report.rounds {
        text += &format!("\n{rule}{}", round(one, detail, width));
    }
    text + &format!("\n{rule}{}", summary(report, width))
}

fn header(report: &TournamentReport, width: usize) -> String {
    let mut text = paragraph(
        &format!("{} ", bold(format!("{}:", report.name))),
        &report.title,
        2,
        width,
    );
    let run = format!("run {} · gauntlet {}", report.run, report.version);
    text += &paragraph("  ", &dim(run), 2, width);
    let facts: Vec<_> = report
        .environment
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if !facts.is_empty() {
        text += &paragraph("  ", &dim(facts.join(" · ")), 2, width);
    }
    text
}

fn summary(report: &TournamentReport, width: usize) -> String {
    let counts = verdict_counts(report);
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let mut text = bold("In all") + "\n";
    for (verdict, count) in counts {
        let style = Tone::from(verdict).style();
        let bar = bar(count as f64 / most as f64, most.min(BAR_COLUMNS));
        text += &format!("  {verdict:<16}  {} {count}\n", paint(bar, style));
    }
    text.push('\n');
    let adoptions = adoptions(report);
    if adoptions.is_empty() {
        text += "  nothing was adopted\n";
    }
    for (round, name) in adoptions {
        text += &paragraph(
            "  ",
            &format!("round {} adopted {}", round.name, paint(name, Tone::Good.style())),
            4,
            width,
        );
    }
    let lineage = lineage(report, width);
    if !lineage.is_empty() {
        text += &format!("\n{}\n{lineage}", bold("Adopted one upon another"));
    }
    let claims = claims(report, width);
    if !claims.is_empty() {
        text += &format!("\n{}\n{claims}", bold("Claims against findings"));
    }
    let hours = [
        ("What the hours brought", returns(&report.returns, width)),
        ("What to try next", prospects(&report.prospects, width)),
    ];
    for (title, body) in hours.iter().filter(|(_, body)| !body.is_empty()) {
        text += &format!("\n{}\n{body}", bold(title));
    }
    text
}
