//! The quality of all forecasts.

use gauntlet_tournament::forecast::{Forecaster, Forecasters, OddsScores, SpeedupScores};

use crate::figure::{plain, signed};
use crate::table::{columns, table};
use crate::text::{bold, dim, paragraph, usable};

/// The meaning of the columns of the odds.
const ODDS_LEGEND: [&str; 7] = [
    "settled: forecasts with a settled verdict, of all; the same one counts once, however often it was put to the test",
    "Brier: squared distance of the odds, given an answer, from what happened; 0 best, 2 worst",
    "skill: the part of the constant forecast's Brier score that is saved; 1 best, 0 no better, under 0 worse",
    "shrunk: the same with a short record moved toward the field; the order of the rows",
    "log: −ln of the odds for what happened; 0.01 best, 6.80 worst",
    "calibration: how far the odds are from how often things then happened; 0 best",
    "resolution: how far different odds came out differently; more is better; with few settled, chance makes much of both",
];

/// The meaning of the columns of the speed-ups.
const SPEEDUP_LEGEND: [&str; 6] = [
    "found: forecasts with a speed-up that has an interval, measured or declared",
    "CRPS: distance of the claimed quantiles from the log speed-up found; 0 best",
    "skill: the part of it that is saved against always claiming 1.00×",
    "in 80 %: how many were found within q10…q90, which should be 80 %; touched: the interval found reaches into it",
    "bias: mean of ln(claimed ÷ found); +0.10 is about 10 % promised too much",
    "believed: the part of the next claim's logarithm that the panel takes",
];

/// The tables of a ledger's forecasters, each with a legend of one line per column.
pub fn forecasters(report: &Forecasters, width: usize) -> String {
    let width = usable(width);
    let mut text = String::new();
    let answered = report.field.odds.is_some();
    if answered {
        text += &format!("{}\n{}", bold("Odds of verdicts"), odds_table(report, width));
        text += &legend(&ODDS_LEGEND, width);
        text += &legend(&[&constant(report)], width);
    } else {
        text += "No forecast has been answered yet: no verdict with odds is settled.\n";
    }
    if report.field.speedup.is_some() {
        text += &format!("\n{}\n{}", bold("Speed-ups"), speedup_table(report, width));
        text += &legend(&SPEEDUP_LEGEND, width);
    }
    if report.without_forecast > 0 {
        let left_out = format!(
            "{} verdicts were recorded by a version that kept no forecasts; they are not scored",
            report.without_forecast
        );
        text += &format!("\n{}", legend(&[&left_out], width));
    }
    if report.unreadable > 0 {
        let left_out = format!(
            "{} verdicts are in a form that this version does not read; they are not scored, and the version that wrote \
             them can score them",
            report.unreadable
        );
        text += &format!("\n{}", legend(&[&left_out], width));
    }
    text
}

fn odds_table(report: &Forecasters, width: usize) -> String {
    let header = columns!(
        Words "author"; Figures "settled", "Brier", "skill", "shrunk", "log", "calibration", "resolution"
    );
    let row = |one: &Forecaster| {
        let figure = |of: &dyn Fn(&OddsScores) -> String| one.odds.as_ref().map_or("—".to_owned(), of);
        let is_field = one.author.is_none();
        vec![
            name(one),
            format!("{}/{}", one.odds.map_or(0, |odds| odds.settled), one.forecasts),
            figure(&|odds| format!("{:.2}", odds.brier)),
            figure(&|odds| signed(odds.skill, 2)),
            figure(&|odds| {
                if is_field {
                    "—".to_owned()
                } else {
                    signed(odds.shrunk_skill, 2)
                }
            }),
            figure(&|odds| format!("{:.2}", odds.logarithmic)),
            figure(&|odds| format!("{:.2}", odds.parts.calibration)),
            figure(&|odds| plain(odds.parts.resolution, 2)),
        ]
    };
    table(&header, rows(report, row), 2, width)
}

fn speedup_table(report: &Forecasters, width: usize) -> String {
    let header = columns!(
        Words "author"; Figures "found", "CRPS", "skill", "in 80 %", "touched", "bias", "believed"
    );
    let row = |one: &Forecaster| {
        let figure = |of: &dyn Fn(&SpeedupScores) -> String| one.speedup.as_ref().map_or("—".to_owned(), of);
        let share = |share: f64| format!("{:.0} %", share * 100.0);
        vec![
            name(one),
            one.speedup.map_or(0, |speedup| speedup.measured).to_string(),
            figure(&|speedup| format!("{:.3}", speedup.crps)),
            figure(&|speedup| speedup.skill.map_or("—".to_owned(), |skill| signed(skill, 2))),
            figure(&|speedup| share(speedup.coverage)),
            figure(&|speedup| share(speedup.overlap)),
            figure(&|speedup| signed(speedup.bias, 2)),
            one.record
                .map_or("—".to_owned(), |record| share(record.credibility)),
        ]
    };
    table(&header, rows(report, row), 2, width)
}

/// The authors and, below them, the field.
fn rows(report: &Forecasters, row: impl Fn(&Forecaster) -> Vec<String>) -> Vec<Vec<String>> {
    report.authors.iter().chain([&report.field]).map(row).collect()
}

fn name(one: &Forecaster) -> String {
    one.author.clone().unwrap_or_else(|| bold("the field"))
}

/// The constant forecast in a sentence; verdicts more likely than the least likely ones are named.
fn constant(report: &Forecasters) -> String {
    let least = report
        .constant
        .iter()
        .map(|(_, chance)| *chance)
        .fold(f64::INFINITY, f64::min);
    let named: Vec<_> = report
        .constant
        .iter()
        .filter(|(_, chance)| *chance > least)
        .map(|(verdict, chance)| format!("{verdict} {:.0} %", chance * 100.0))
        .collect();
    format!(
        "the constant forecast: {}, each other verdict {:.0} %; how often each fell in the field, counted once more",
        named.join(", "),
        least * 100.0
    )
}

fn legend(lines: &[&str], width: usize) -> String {
    lines
        .iter()
        .map(|line| paragraph("  ", &dim(line), 4, width))
        .collect()
}
