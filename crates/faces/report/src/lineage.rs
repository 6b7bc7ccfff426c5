//! How kernels came to be what they are: the changes that were adopted one upon another, with the gain of each.

use gauntlet_stats::{Criteria, Interval, percent_interval};
use gauntlet_tournament::{RoundReport, TournamentReport};

use crate::axis::Axis;
use crate::foreign::visible;
use crate::picture::Picture;
use crate::text::{dim, fitted, paragraph, widest};
use crate::tone::Tone;

/// Columns of the longest name shown.
const NAME_COLUMNS: usize = 24;

/// The adopted changes of one kernel.
pub struct Lineage<'r> {
    /// What was changed: the task, and the kernel that it began with.
    pub kernel: String,
    /// The changes in order, each with its name and its gain over what was before it.
    pub steps: Vec<(String, Interval)>,
    /// The criteria of the last round.
    pub criteria: &'r Criteria,
}

impl Lineage<'_> {
    /// The steps, and their product where there are several. Its bounds are the products of their bounds, which is wider than
    /// an interval of the product would be.
    pub fn rows(&self) -> Vec<(String, Interval)> {
        let mut rows = self.steps.clone();
        if let [(_, first), others @ ..] = &self.steps[..]
            && !others.is_empty()
        {
            let mut product = first.clone();
            for (_, step) in others {
                product.estimate += step.estimate;
                product.lower += step.lower;
                product.upper += step.upper;
            }
            rows.push(("together".to_owned(), product));
        }
        rows
    }
}

/// The lineage of each kernel of which a change was adopted by measurement. A kernel goes on through rounds until one begins
/// anew.
pub fn lineages(report: &TournamentReport) -> Vec<Lineage<'_>> {
    let mut lineages: Vec<Lineage> = Vec::new();
    let mut before: Option<&RoundReport> = None;
    for round in &report.rounds {
        let goes_on = before.is_some_and(|before| continues(before, round));
        if !goes_on {
            lineages.push(Lineage {
                kernel: format!("{}: {}", round.file.suite, round.baseline.described),
                steps: Vec::new(),
                criteria: &round.file.criteria,
            });
        }
        before = Some(round);
        if let Some(lineage) = lineages.last_mut() {
            lineage.steps.extend(steps(round));
            lineage.criteria = &round.file.criteria;
        }
    }
    lineages.retain(|lineage| !lineage.steps.is_empty());
    lineages
}

/// The changes of a round that its adopted candidate consists of, the first at the bottom.
fn steps(round: &RoundReport) -> Vec<(String, Interval)> {
    let mut steps = Vec::new();
    let mut next = round.adopted.as_deref();
    while let Some(one) = next.and_then(|name| round.judged.iter().find(|one| one.name == name)) {
        if let Some(gain) = one.found() {
            steps.push((
                format!("{} {} ({})", round.name, one.name, one.author),
                gain.clone(),
            ));
        }
        next = Some(one.baseline.as_str()).filter(|below| *below != one.name);
    }
    steps.reverse();
    steps
}

/// Whether a round began with the result of the one before.
fn continues(before: &RoundReport, round: &RoundReport) -> bool {
    match (&before.file.source, &round.file.source) {
        (Some(one), Some(other)) => one.folder == other.folder,
        (None, None) => round.file.baseline.is_none(),
        _ => false,
    }
}

/// Every lineage with its gains on an axis.
pub fn lineage(report: &TournamentReport, width: usize) -> String {
    let mut text = String::new();
    for lineage in lineages(report) {
        text += &paragraph("  ", &dim(visible(&lineage.kernel)), 2, width);
        let rows = lineage.rows();
        let axis = Axis::of_intervals(rows.iter().map(|(_, interval)| interval), lineage.criteria);
        let names = widest(rows.iter().map(|(name, _)| name.as_str())).min(NAME_COLUMNS);
        let figures: Vec<String> = rows
            .iter()
            .map(|(_, interval)| percent_interval(interval))
            .collect();
        let room = widest(figures.iter().map(String::as_str));
        let columns = width.saturating_sub(2 + names + 2 + 2 + room).max(10);
        for ((name, interval), figures) in rows.iter().zip(&figures) {
            let picture = Picture::with_guides(&axis, lineage.criteria, columns);
            let picture = picture.interval(&axis, interval, Tone::Good.style());
            text += &format!("  {}  {}  {figures}\n", fitted(name, names), picture.text());
        }
    }
    text
}
