//! A diagnosis from times alone.

mod words;

use gauntlet_diagnose::Diagnosis;
use gauntlet_diagnose::{
    AverageShare, Credible, Experiment, Explanation, Gain, Lever, Variant, VariantChange,
};
use gauntlet_simulate::HostTerm;

use crate::bar::bar;
use crate::duration::duration;
use crate::speedup::times;
use crate::table::{Column, columns, table};
use crate::text::{bold, dim, paint, paragraph, usable};
use crate::tone::Tone;
use words::{cost, families, interval, name, percent, share, until};

/// The maximum number of explanations in a table; JSON has all.
const MAX_ROWS: usize = 16;

/// The maximum number of measured times shown with their parts; JSON has all.
const MAX_TIMES: usize = 12;

/// Columns of a probability's bar.
const BAR: usize = 10;

/// Diagnoses of all variants, and what changed between them.
pub fn diagnoses(variants: &[Variant], changes: &[VariantChange], width: usize) -> String {
    let width = usable(width);
    let mut text = String::new();
    for variant in variants {
        if let Some(name) = &variant.name {
            text += &format!("{}\n\n", bold(format!("Variant {name}")));
        }
        text += &diagnosis(&variant.diagnosis, width);
        text.push('\n');
    }
    for one in changes {
        text += &change(one, width);
        text.push('\n');
    }
    text
}

fn diagnosis(diagnosis: &Diagnosis, width: usize) -> String {
    let sections = [
        summary(diagnosis, width),
        explanations(diagnosis, width),
        parts(diagnosis, width),
        average(diagnosis, width),
        gains(diagnosis, width),
        next(diagnosis, width),
    ];
    sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The conclusion, in a few sentences.
fn summary(diagnosis: &Diagnosis, width: usize) -> String {
    let Some((first, rivals)) = diagnosis.explanations.split_first() else {
        return String::new();
    };
    let mut text = paragraph(
        "",
        &format!(
            "{} on {}, counted with {}",
            counted(diagnosis.measurements.len(), "time"),
            diagnosis.device,
            diagnosis.schedule
        ),
        2,
        width,
    );
    let tone = if rivals.is_empty() { Tone::Good } else { Tone::Open };
    let likeliest = format!("likeliest: {}, {}", bold(name(first)), percent(first.probability));
    text += &paragraph(
        &format!("{} ", paint(tone.mark(), tone.style())),
        &likeliest,
        2,
        width,
    );
    let rivals = if rivals.is_empty() {
        "all others are excluded".to_owned()
    } else {
        format!("not excluded: {}", families(rivals).join("; "))
    };
    text += &paragraph("  ", &rivals, 2, width);
    let host = format!(
        "averaged, {} of the mean time is paid once a call or once a group, outside the main loop",
        share(&diagnosis.average.host)
    );
    text += &paragraph("  ", &host, 2, width);
    if diagnosis.unexplained {
        let tone = Tone::Bad;
        let warning = format!(
            "nothing fits: the best explanation is off by {}, so that the truth is likely none of these; a time may be \
             wrong, or go by something that is not counted here",
            percent(first.misfit)
        );
        text += &paragraph(
            &format!("{} ", paint(tone.mark(), tone.style())),
            &warning,
            2,
            width,
        );
    }
    for one in &diagnosis.indistinct {
        let note = format!(
            "{} are in proportion to {} in all of these, and left out",
            one.driver, one.like
        );
        text += &paragraph("  ", &dim(note), 2, width);
    }
    text
}

/// Every remaining explanation with its probability and its costs.
fn explanations(diagnosis: &Diagnosis, width: usize) -> String {
    let header = columns!(Figures ""; Whole ""; Words "explanation and its costs"; Figures "off by");
    let row = |one: &Explanation| {
        vec![
            percent(one.probability),
            bar(one.probability, BAR),
            one.costs.iter().map(cost).collect::<Vec<_>>().join(" + "),
            percent(one.misfit),
        ]
    };
    let title = format!(
        "Not excluded: {} of {}",
        diagnosis.explanations.len(),
        diagnosis.considered
    );
    let shown = diagnosis.explanations.iter().take(MAX_ROWS).map(row).collect();
    let mut text = format!("{}\n{}", bold(title), table(&header, shown, 2, width));
    text += &rest(diagnosis.explanations.len(), MAX_ROWS);
    text
}

/// The parts of each time, by the likeliest explanation.
fn parts(diagnosis: &Diagnosis, width: usize) -> String {
    let Some(first) = diagnosis.explanations.first() else {
        return String::new();
    };
    let names: Vec<String> = first.drivers().map(|driver| driver.to_string()).collect();
    let mut header = columns!(Words "problem"; Figures "measured", "fitted").to_vec();
    header.extend(names.iter().map(|name| (name.as_str(), Column::Whole)));
    let rows = diagnosis
        .measurements
        .iter()
        .zip(&first.fits)
        .take(MAX_TIMES)
        .map(|(measurement, fit)| {
            let mut row = vec![
                measurement.problem.to_string(),
                duration(measurement.seconds),
                duration(fit.seconds),
            ];
            row.extend(fit.parts.iter().map(|part| share(&part.share)));
            row
        });
    let title = format!("What each time is made of, by {}", name(first));
    let mut text = format!("{}\n{}", bold(title), table(&header, rows.collect(), 2, width));
    text += &rest(diagnosis.measurements.len(), MAX_TIMES);
    let host = diagnosis.host_term();
    if host != HostTerm::default() {
        let microseconds = |seconds: f64| format!("{:.1}us", seconds * 1e6);
        // On its own line, because words with hyphens would be broken.
        let term = format!(
            "--host constant={},per-group={}",
            microseconds(host.constant),
            microseconds(host.per_group)
        );
        let legend = "what of it lies outside the kernel, for `gauntlet explain --problem`:";
        text += &paragraph("  ", &dim(legend), 4, width);
        text += &format!("    {}\n", dim(term));
    }
    text
}

/// Statements that hold under every explanation.
fn average(diagnosis: &Diagnosis, width: usize) -> String {
    let header = columns!(Words "driver"; Figures "plays a part"; Whole "", "of the mean time");
    let row = |one: &AverageShare| {
        vec![
            one.driver.to_string(),
            percent(one.probability),
            bar(one.share.mean, BAR),
            share(&one.share),
        ]
    };
    let rows = diagnosis.average.shares.iter().map(row).collect();
    format!(
        "{}\n{}",
        bold("Averaged over all of them"),
        table(&header, rows, 2, width)
    )
}

/// The most that each kind of change could gain, under each explanation.
fn gains(diagnosis: &Diagnosis, width: usize) -> String {
    let levers: Vec<String> = Lever::ALL.iter().map(ToString::to_string).collect();
    let mut header = vec![("explanation", Column::Words)];
    header.extend(levers.iter().map(|lever| (lever.as_str(), Column::Figures)));
    let row = |name: String, gains: &[Gain]| {
        let mut row = vec![name];
        row.extend(gains.iter().map(|gain| until(&gain.speedup)));
        row
    };
    let mut rows: Vec<_> = diagnosis
        .explanations
        .iter()
        .take(MAX_ROWS)
        .map(|one| row(name(one), &one.gains))
        .collect();
    rows.push(row(bold("averaged"), &diagnosis.average.gains));
    let title = bold("The most that a change could still bring");
    let mut text = format!("{title}\n{}", table(&header, rows, 2, width));
    let legend = "mean and, behind the dots, what it exceeds with a chance of one in twenty; as if all that the change \
                  can reach were gone, down to the roofline";
    text += &paragraph("  ", &dim(legend), 4, width);
    text
}

/// The next measurement to make, with the expectation of each explanation.
fn next(diagnosis: &Diagnosis, width: usize) -> String {
    let Some((best, others)) = diagnosis.experiments.split_first() else {
        return String::new();
    };
    let mut text = format!("{}\n", bold("What to measure next"));
    text += &paragraph("  ", &experiment(best, diagnosis), 4, width);
    let header = columns!(Words "if this is right"; Figures "then expect"; Whole "nine times in ten");
    let row = |(one, prediction): (&Explanation, &Credible)| {
        vec![
            name(one),
            duration(prediction.mean),
            interval(prediction, duration),
        ]
    };
    let shown = diagnosis
        .explanations
        .iter()
        .zip(&best.predictions)
        .take(MAX_ROWS)
        .map(row);
    text += &table(&header, shown.collect(), 2, width);
    if !others.is_empty() {
        let header = columns!(Words "or", ""; Figures "bits", "minutes");
        text += &table(&header, others.iter().map(alternative).collect(), 2, width);
    }
    let legend =
        "a bit halves what is open; minutes are assumed, 5 for another size and 15 for another clock";
    text += &paragraph("  ", &dim(legend), 4, width);
    text
}

/// The best experiment in a sentence.
fn experiment(experiment: &Experiment, diagnosis: &Diagnosis) -> String {
    format!(
        "{}, from time {} of {}: {}; expected to tell {:.2} bits, in some {:.0} minutes",
        bold(experiment.change),
        experiment.measurement + 1,
        diagnosis.measurements.len(),
        experiment.problem,
        experiment.information,
        experiment.minutes
    )
}

/// Another experiment in a row.
fn alternative(experiment: &Experiment) -> Vec<String> {
    vec![
        experiment.change.to_string(),
        experiment.problem.to_string(),
        format!("{:.2}", experiment.information),
        format!("{:.0}", experiment.minutes),
    ]
}

/// The differences between two variants.
fn change(change: &VariantChange, width: usize) -> String {
    let title = format!(
        "From {} to {}: {} over {}",
        change.from,
        change.to,
        times(change.speedup),
        counted(change.problems, "problem")
    );
    let header = [
        ("of the mean time", Column::Words),
        (change.from.as_str(), Column::Whole),
        (change.to.as_str(), Column::Whole),
    ];
    let seconds =
        |credible: &Credible| format!("{} {}", duration(credible.mean), interval(credible, duration));
    let rows = change
        .drivers
        .iter()
        .map(|one| vec![one.driver.to_string(), seconds(&one.before), seconds(&one.after)]);
    format!("{}\n{}", bold(title), table(&header, rows.collect(), 2, width))
}

/// The number of rows that a table leaves out.
fn rest(all: usize, shown: usize) -> String {
    if all > shown {
        dim(format!("  and {} more\n", all - shown))
    } else {
        String::new()
    }
}

fn counted(count: usize, what: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {what}{end}")
}
