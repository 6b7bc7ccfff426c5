//! The baseline: whether candidates can be compared with it, and where its time goes.

use gauntlet_tournament::BaselineReport;

use crate::bar::{legend, stacked};
use crate::outline::phases;
use crate::text::{bold, dim, paint, paragraph};
use crate::tone::Tone;

/// How the baseline computes, whether it qualified, and its phases as a bar.
pub fn baseline(report: &BaselineReport, width: usize) -> String {
    let mut text = paragraph(&format!("  {}  ", bold("baseline")), &report.described, 12, width);
    let state = match &report.fault {
        None => format!("{} qualified", paint('✓', Tone::Good.style())),
        Some(fault) => format!("{} {fault}", paint('✗', Tone::Bad.style())),
    };
    text += &paragraph(&" ".repeat(12), &state, 14, width);
    let phases = phases(&report.findings);
    if phases.is_empty() {
        text += &paragraph(&" ".repeat(12), &dim("no profile"), 12, width);
    } else {
        let margin = " ".repeat(12);
        text += &format!("{margin}{}\n", stacked(&phases, width.saturating_sub(14)));
        text += &paragraph(&margin, &legend(&phases), 12, width);
    }
    text
}
