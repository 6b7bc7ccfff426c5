//! A verdict, printed as it comes.

use gauntlet_tournament::Judged;

use crate::foreign::shown;
use crate::outline::{peer, stop};
use crate::speedup::times;
use crate::text::{bold, dim, paint, paragraph, usable};
use crate::tone::Tone;

/// A line with the verdict, and the reason under it.
pub fn judged(judged: &Judged, width: usize) -> String {
    let judged = &*shown(judged);
    let tone = Tone::from(judged.verdict);
    let mark = format!("{} ", paint(tone.mark(), tone.style()));
    let mut head = format!(
        "{}: {}",
        bold(&judged.name),
        paint(judged.verdict, tone.style().bold())
    );
    if let Some(stop) = stop(judged) {
        head += &dim(format!(" · gate {}", stop.gate));
    }
    let width = usable(width);
    paragraph(&mark, &head, 2, width) + &details(judged, 2, width)
}

/// The reason, a refuted claim and claims against other programs: a paragraph each, indented.
pub fn details(judged: &Judged, indent: usize, width: usize) -> String {
    let margin = " ".repeat(indent);
    let mut text = paragraph(&margin, &judged.reason, indent, width);
    if let Some(claim) = judged.claim
        && let (Some(true), Some(found)) = (claim.refuted, claim.found)
    {
        let refuted = format!(
            "claimed {}, found {}: refuted",
            times(claim.claimed.q50),
            times(found)
        );
        text += &paragraph(&margin, &paint(refuted, Tone::Bad.style()), indent, width);
    }
    for outcome in &judged.peers {
        let style = if outcome.contradicted {
            Tone::Bad.style()
        } else {
            owo_colors::Style::new()
        };
        text += &paragraph(&margin, &paint(peer(outcome), style), indent, width);
    }
    text
}
