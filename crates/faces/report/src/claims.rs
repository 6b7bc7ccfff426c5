//! Claims and findings, over a whole tournament.

use gauntlet_tournament::TournamentReport;
use owo_colors::Style;

use crate::axis::Axis;
use crate::outline::{TestedClaim, tested_claims, untested_claims};
use crate::picture::{Picture, scale_of_multiples};
use crate::speedup::times;
use crate::text::{dim, fitted, paint, widest};
use crate::tone::Tone;

/// Longer names are cut.
const NAME_COLUMNS: usize = 24;

/// Each claim that was measured: the claim (○) and the finding (●) on one axis.
pub fn claims(report: &TournamentReport, width: usize) -> String {
    let tested = tested_claims(report);
    let untested = untested_claims(report);
    let mut text = String::new();
    if !tested.is_empty() {
        let ends = |claim: &TestedClaim| [claim.claim.claimed.q50.ln(), claim.found.ln()];
        let axis = Axis::covering(tested.iter().flat_map(ends));
        let names = widest(tested.iter().map(|claim| claim.pitch)).min(NAME_COLUMNS);
        let texts: Vec<String> = tested.iter().map(figures).collect();
        let columns = width
            .saturating_sub(2 + names + 2 + 2 + widest(texts.iter().map(String::as_str)))
            .max(10);
        for (claim, figures) in tested.iter().zip(&texts) {
            let picture = Picture::with_origin(&axis, columns)
                .mark(&axis, claim.claim.claimed.q50.ln(), '○', Style::new().dimmed())
                .mark(&axis, claim.found.ln(), '●', Tone::from(claim.verdict).style());
            let refuted = if claim.claim.refuted == Some(true) {
                Tone::Bad.style()
            } else {
                Style::new()
            };
            text += &format!(
                "  {}  {}  {}\n",
                fitted(claim.pitch, names),
                picture.text(),
                paint(figures, refuted)
            );
        }
        text += &format!(
            "  {}  {}\n",
            " ".repeat(names),
            scale_of_multiples(&axis, columns)
        );
        text += &dim("  ○ claimed  ● found\n");
    }
    if untested > 0 {
        text += &dim(format!(
            "  claims without a measured or recorded speed-up: {untested}\n"
        ));
    }
    text
}

fn figures(claim: &TestedClaim) -> String {
    let end = if claim.claim.refuted == Some(true) {
        " refuted"
    } else {
        ""
    };
    format!(
        "claimed {} found {}{end}",
        times(claim.claim.claimed.q50),
        times(claim.found)
    )
}
