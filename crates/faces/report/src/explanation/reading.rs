//! The conclusions of a breakdown, in sentences.

use gauntlet_device::Arch;
use gauntlet_problems::Setup;
use gauntlet_simulate::{Breakdown, Part, levers};

use super::{Explanation, GreatestGain, share};
use crate::duration::unbroken;
use crate::speedup::times;

/// The roofline counts as reached if it is within this share of the prediction.
const REACHED: f64 = 0.05;

/// The maximum number of parts that are named.
const MAX_NAMED: usize = 3;

/// Enough parts are named if together they explain this share of the gap.
const ENOUGH: f64 = 0.9;

/// A part this small is not named beside greater ones.
const MIN_NAMED: f64 = 0.03;

/// The largest parts with the parameters that affect them, and the most that a faster kernel could gain, if that is
/// known.
pub fn reading(explanation: &Explanation) -> Vec<String> {
    let breakdown = &explanation.breakdown;
    let total = breakdown.total();
    let gap = total - breakdown.roofline;
    if gap <= REACHED * total {
        let near = format!("The prediction is within {} of the roofline", share(gap / total));
        return match &explanation.greatest_gain {
            GreatestGain::AtMost(_) => vec![format!(
                "{near}: no schedule can bring more than {}.",
                times(total / breakdown.roofline)
            )],
            GreatestGain::Unknown(why) => vec![format!("{near}."), why.clone()],
        };
    }
    let most = match &explanation.greatest_gain {
        GreatestGain::AtMost(most) => most_of(breakdown, explanation.arch, *most),
        GreatestGain::Unknown(why) => why.clone(),
    };
    let mut sentences = vec![largest(explanation, gap), most];
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
    let levers = levers(part, &problem, explanation.arch);
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

/// The most that the parameters that change only the kernel could gain together.
pub fn greatest_gain(breakdown: &Breakdown, arch: Arch) -> f64 {
    let left: f64 = outside(breakdown, arch).map(|part| breakdown.part(part)).sum();
    breakdown.total() / (breakdown.roofline + left)
}

/// The same as a sentence.
fn most_of(breakdown: &Breakdown, arch: Arch, most: f64) -> String {
    let names: Vec<_> = std::iter::once("the roofline")
        .chain(outside(breakdown, arch).map(Part::name))
        .collect();
    format!(
        "No change of tile, stages, epilogue, roles and order, all together, can bring more than {}: {} would remain.",
        times(most),
        listed(&names, "and")
    )
}

/// The parts of a prediction that no kernel can change.
fn outside(breakdown: &Breakdown, arch: Arch) -> impl Iterator<Item = Part> {
    Part::ALL
        .into_iter()
        .filter(move |part| is_outside(*part, arch) && breakdown.part(*part) > 0.0)
}

/// Whether a part happens before a kernel runs, so that no kernel can change it. On a CPU, threads are woken once a
/// wave, so the start depends on the order of tiles.
fn is_outside(part: Part, arch: Arch) -> bool {
    match part {
        Part::Host => true,
        Part::Launch => arch != Arch::Cpu,
        _ => false,
    }
}
