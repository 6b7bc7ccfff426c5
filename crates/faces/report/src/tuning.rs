//! The results of tuning: the schedule of each problem, and how far the model's first choice was from it.

use gauntlet_stats::{percent, percent_interval};
use gauntlet_tuning::replay::Mark;
use gauntlet_tuning::{Screening, TunedCase};

use crate::outline::PREDICTED;
use crate::table::{columns, table};
use crate::text::{bold, dim, paint, paragraph, usable};
use crate::tone::Tone;

/// One case, printed when it is decided.
pub fn tuned_case(tuned: &TunedCase, width: usize) -> String {
    let width = usable(width);
    let tone = if tuned.winner.is_some() {
        Tone::Good
    } else {
        Tone::Neutral
    };
    let mark = format!("{} ", paint(tone.mark(), tone.style()));
    let speedup = tuned.winner.as_ref().map_or_else(
        || "the baseline stays".to_owned(),
        |winner| percent_interval(&winner.speedup),
    );
    let mut text = paragraph(
        &mark,
        &format!("{}: {speedup}{}", bold(&tuned.case), predicted(tuned)),
        2,
        width,
    );
    text += &paragraph("  ", &described(tuned), 4, width);
    text + &paragraph("  ", &dim(search(tuned)), 2, width)
}

/// The cases together, with the regret of the model's first choice.
pub fn tuning(cases: &[TunedCase], width: usize) -> String {
    let width = usable(width);
    let header = columns!(Words "case", "schedule"; Whole "over the baseline"; Figures "place", "regret");
    let mut text = table(&header, cases.iter().map(row).collect(), 0, width);
    let first = cases.first().map_or("the model's first choice", first_choice);
    let order = match cases.first() {
        Some(tuned) if tuned.search.screening.is_some() => "in the screening",
        _ => "in the model's order of all schedules",
    };
    let legend = format!("place: {order}; regret: how much longer {first} takes");
    text += &paragraph("", &dim(legend), 0, width);
    let regrets: Vec<f64> = cases.iter().filter_map(TunedCase::regret).collect();
    if !regrets.is_empty() {
        let mean = regrets.iter().sum::<f64>() / regrets.len() as f64;
        let said = format!(
            "In the mean over {} of {} cases, {first} is {} slower than the best found.",
            regrets.len(),
            cases.len(),
            percent(mean).trim_start_matches('+')
        );
        text += &paragraph("", &said, 0, width);
    }
    for kept in cases.iter().filter(|tuned| tuned.winner.is_none()) {
        text += &paragraph(&format!("{}: ", bold(&kept.case)), &kept.reason, 2, width);
    }
    for tuned in cases {
        for (place, fault) in faults(tuned) {
            let first = format!("{}, place {place}: ", bold(&tuned.case));
            text += &paragraph(&first, &paint(fault, Tone::Bad.style()), 2, width);
        }
    }
    if cases.iter().any(|tuned| !tuned.measured) {
        let said = "Predicted: nothing was run. The bounds are the model's own error.";
        text += &paragraph("", &paint(said, Tone::Open.style()), 0, width);
    }
    text
}

/// What searches over recorded times found, beside points chosen at random.
pub fn replay(found: &[Mark], width: usize) -> String {
    let ratio =
        |found: Option<f64>| found.map_or_else(|| "nothing".to_owned(), |ratio| format!("{ratio:.3}"));
    let rows = found.iter().map(|mark| {
        vec![
            mark.evaluations.to_string(),
            ratio(mark.found),
            ratio(mark.random),
        ]
    });
    let header = columns!(Figures "evaluations", "best ÷ optimum", "at random");
    table(&header, rows.collect(), 0, usable(width))
}

fn row(tuned: &TunedCase) -> Vec<String> {
    let winner = tuned.winner.as_ref();
    vec![
        tuned.case.clone(),
        described(tuned),
        winner.map_or_else(
            || "baseline stays".to_owned(),
            |winner| format!("{}{}", percent_interval(&winner.speedup), predicted(tuned)),
        ),
        winner.map_or_else(|| "—".to_owned(), |winner| winner.rank.to_string()),
        tuned.regret().map_or_else(|| "—".to_owned(), percent),
    ]
}

fn faults(tuned: &TunedCase) -> impl Iterator<Item = (usize, &str)> {
    let contenders = tuned.contenders.iter();
    let of_heats = contenders.filter_map(|one| Some((one.ranked.rank, one.fault.as_deref()?)));
    let finalists = tuned.finalists.iter();
    of_heats.chain(finalists.filter_map(|one| Some((one.rank, one.fault.as_deref()?))))
}

/// The parameters in one line; a kernel's own are not those of its task.
fn described(tuned: &TunedCase) -> String {
    if tuned.search.screening.is_some() {
        return tuned.schedule().to_string();
    }
    tuned.problem.task().parameters().describe(tuned.schedule())
}

fn predicted(tuned: &TunedCase) -> String {
    if tuned.measured {
        String::new()
    } else {
        format!(" ({PREDICTED})")
    }
}

/// The extent of the search, in a line.
fn search(tuned: &TunedCase) -> String {
    let search = &tuned.search;
    let mut said = match &search.screening {
        Some(screening) => screened(search.points, screening),
        None => ranked(tuned),
    };
    if tuned.measured {
        said += &format!(
            ", {} measured in {:.0} s",
            tuned.contenders.len(),
            tuned.measured_seconds
        );
    }
    if let Some(regret) = tuned.regret() {
        said += &format!("; {} takes {} of time", first_choice(tuned), percent(regret));
    }
    said
}

/// How the model ranked a space.
fn ranked(tuned: &TunedCase) -> String {
    let search = &tuned.search;
    let mut said = format!("{} schedules, ", search.points);
    if search.simulated < search.points {
        said += &format!("{} of them simulated in the time there was, ", search.simulated);
    }
    said += &format!("{} accepted, ", search.accepted);
    let is_modelled = tuned.first.as_ref().is_none_or(|first| first.predicted.is_some());
    if is_modelled {
        said += &format!("{} told apart by the model", search.told_apart);
    } else {
        said += "ranked by how few parameters they change, since no model covers them";
    }
    said
}

/// How a kernel's own parameters were searched.
fn screened(points: usize, screening: &Screening) -> String {
    let mut said = format!(
        "{} of {points} points looked at by the search of seed {}",
        screening.looked_at, screening.seed
    );
    if let Some(first) = screening.failed.first() {
        said += &format!(
            ", of which {} failed, the first of them {}: {}",
            screening.failed.len(),
            first.schedule,
            first.fault
        );
    }
    said
}

/// What chose a case's first schedule.
fn first_choice(tuned: &TunedCase) -> &'static str {
    match tuned.search.screening {
        Some(_) => "the screening's first choice",
        None => "the model's first choice",
    }
}
