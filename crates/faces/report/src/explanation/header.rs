//! The prediction, its subject, and its basis.

use gauntlet_simulate::Bound;

use super::{Explanation, share};
use crate::duration::unbroken;
use crate::speedup::times;
use crate::text::{bold, paragraph};

/// Columns before the facts.
const MARGIN: usize = 14;

/// The problem, and the facts that the table does not show.
pub fn header(explanation: &Explanation, width: usize) -> String {
    let mut text = title(explanation, width);
    text += &setting(explanation, width);
    text += &fact("prediction", &prediction(explanation), width);
    text += &fact("roofline", &roofline(explanation), width);
    text += &fact("work", &work(explanation), width);
    text
}

/// The name and the problem.
pub fn title(explanation: &Explanation, width: usize) -> String {
    let name = format!("{}: ", bold(&explanation.case));
    paragraph(&name, &explanation.operation.to_string(), 2, width)
}

/// The common setting of several explanations: the schedule, the device, and the reliability of the figures.
pub fn setting(explanation: &Explanation, width: usize) -> String {
    fact("schedule", &explanation.schedule.to_string(), width) + &device(explanation, width)
}

/// The device, and the basis of the figures.
pub fn device(explanation: &Explanation, width: usize) -> String {
    fact(
        "device",
        &format!("{}; {}", explanation.device, explanation.basis),
        width,
    )
}

/// A fact with its name before it.
pub fn fact(name: &str, fact: &str, width: usize) -> String {
    let first = format!("  {name:<columns$}", columns = MARGIN - 2);
    paragraph(&first, fact, MARGIN, width)
}

/// The time with its interval: `373 µs [190 µs … 730 µs]`.
pub fn interval(explanation: &Explanation) -> String {
    format!(
        "{} [{} … {}]",
        unbroken(explanation.seconds),
        unbroken(explanation.low),
        unbroken(explanation.high)
    )
}

fn prediction(explanation: &Explanation) -> String {
    format!("{}, 90 % interval", interval(explanation))
}

fn roofline(explanation: &Explanation) -> String {
    let bound = match explanation.bound {
        Bound::Memory => "moving operands and results",
        Bound::Compute => "multiplying",
    };
    let roofline = explanation.breakdown.roofline;
    format!(
        "{}, bound by {bound}; the prediction is {} that",
        unbroken(roofline),
        times(explanation.seconds / roofline)
    )
}

fn work(explanation: &Explanation) -> String {
    let counts = &explanation.counts;
    let processors = count(explanation.processors, "multiprocessor");
    let places = match explanation.blocks {
        1 => processors,
        blocks => format!("{processors} with {} each", count(blocks, "block")),
    };
    format!(
        "{} of at most {}, {} on {places}; {} of the rows computed are useful; {:.1} KiB of shared memory a block",
        count(counts.tiles, "tile"),
        count(counts.steps, "step"),
        count(counts.waves, "wave"),
        share(counts.useful_rows),
        explanation.buffer_bytes as f64 / 1024.0
    )
}

/// `1 tile`, `352 tiles`.
fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
