//! The conclusions of a breakdown, in sentences.

use gauntlet_problems::Setup;
use gauntlet_simulate::{Part, levers};

use super::{Explanation, share};
use crate::duration::unbroken;

/// The roofline counts as reached if it is within this share of the prediction.
const REACHED: f64 = 0.05;

/// The maximum number of parts that are named.
const MAX_NAMED: usize = 3;

/// Enough parts are named if together they explain this share of the gap.
const ENOUGH: f64 = 0.9;

/// A part this small is not named beside greater ones.
const MIN_NAMED: f64 = 0.03;

/// The largest parts with the parameters that affect them.
pub fn reading(explanation: &Explanation) -> Vec<String> {
    let breakdown = &explanation.breakdown;
    let total = breakdown.total();
    let gap = total - breakdown.roofline;
    if gap <= REACHED * total {
        return vec![format!(
            "The prediction is within {} of the roofline.",
            share(gap / total)
        )];
    }
    let mut sentences = vec![largest(explanation, gap)];
    if breakdown.part(Part::Host) == 0.0 && explanation.schedule.setup == Setup::PerCall {
        sentences.push(
            "No work of the host is counted: give what a call costs there with --host, as `explain --times` finds it."
                .to_owned(),
        );
    }
    sentences
}

/// The greatest parts of the gap.
fn largest(explanation: &Explanation, gap: f64) -> String {
    let breakdown = &explanation.breakdown;
    let mut parts = Part::ALL.map(|part| (part, breakdown.part(part) / gap));
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut named = Vec::new();
    let mut explained = 0.0;
    for (part, of_gap) in parts.into_iter().take(MAX_NAMED) {
        if explained >= ENOUGH || of_gap < MIN_NAMED {
            break;
        }
        explained += of_gap;
        named.push(format!(
            "{} {}{}",
            share(of_gap),
            part.name(),
            words(part, explanation)
        ));
    }
    format!(
        "Of the {} above the roofline: {}.",
        unbroken(gap),
        named.join(", ")
    )
}

/// The parameters that affect a part, in parentheses; nothing if there are none.
fn words(part: Part, explanation: &Explanation) -> String {
    let problem = gauntlet_families::operations::problem(&explanation.operation);
    let levers = levers(part, &problem);
    if levers.is_empty() {
        String::new()
    } else {
        format!(" (change {})", listed(&levers, "or"))
    }
}

/// `a`, `a or b`, `a, b or c`.
fn listed(words: &[&str], conjunction: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} {conjunction} {last}", rest.join(", ")),
    }
}
