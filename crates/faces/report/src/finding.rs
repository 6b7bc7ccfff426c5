//! The finding of a gate, printed as it happens.

use gauntlet_judge::{Finding, Outcome};
use owo_colors::Style;

use crate::duration::duration;
use crate::foreign::shown;
use crate::text::{dim, fitted, paint, paragraph, usable};
use crate::tone::Tone;

/// Columns for the longest name of a gate, `race-free`.
const NAME_COLUMNS: usize = 10;

/// Gates faster than this are shown without their time.
const WORTH_TELLING: f64 = 0.1;

/// One line, wrapped if necessary: a mark, the gate, the reason and its time.
pub fn finding(finding: &Finding, width: usize) -> String {
    let finding = &*shown(finding);
    let (mark, style) = match finding.outcome {
        Outcome::Pass => ('✓', Style::new().green()),
        Outcome::Skip => ('–', Style::new().dimmed()),
        Outcome::Stop(verdict) => ('✗', Tone::from(verdict).style()),
    };
    let first = format!(
        "  {} {} ",
        paint(mark, style),
        fitted(&finding.gate, NAME_COLUMNS)
    );
    let mut reason = finding.reason.clone();
    if finding.seconds >= WORTH_TELLING {
        reason += &dim(format!(" ({})", duration(finding.seconds)));
    }
    let hang = 4 + NAME_COLUMNS + 1;
    paragraph(&first, &reason, hang, usable(width))
}
