//! Claims and findings: a scatter plot with numbered points, and a table that explains the numbers.
//!
//! A point is always drawn exactly at its values, even if points overlap. Only the labels move.

use gauntlet_tournament::TournamentReport;
use maud::{Markup, html};

use super::badge;
use super::chart::{Scale, at};
use super::labels;
use crate::axis::Axis;
use crate::outline::{TestedClaim, tested_claims, untested_claims};
use crate::speedup::{claim as claim_text, times};
use crate::tone::Tone;

/// Side of the square plot, in the units of its view box.
const SIDE: f64 = 360.0;

/// Room for the labels of the axes, at the left and at the bottom.
const MARGIN: f64 = 48.0;

/// Room at the top and at the right for half a tick label.
const EDGE: f64 = 14.0;

/// The number of ticks wanted on each axis.
const TICKS: usize = 5;

/// Radius of a point.
const RADIUS: f64 = 4.5;

/// How far below its centre the baseline of a label's text lies.
const TEXT_DROP: f64 = 4.0;

/// The plot and its table. If nothing was measured, only a sentence that counts the untested claims.
pub fn claims(report: &TournamentReport) -> Markup {
    let tested = tested_claims(report);
    let untested = untested_claims(report);
    html! {
        @if !tested.is_empty() {
            h3 { "Claims against findings" }
            div.beside {
                (plot(&tested))
                (table(&tested))
            }
        }
        @if untested > 0 { p.quiet { "Claims without a measured or recorded speed-up: " (untested) "." } }
    }
}

fn table(tested: &[TestedClaim]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { th { "#" } th { "pitch" } th { "claimed" } th { "found" } th { "verdict" } } }
                tbody {
                    @for (index, claim) in tested.iter().enumerate() {
                        tr {
                            td.number { (index + 1) }
                            td { (claim.pitch) }
                            td { (claim_text(claim.claim.claimed)) }
                            td { (times(claim.found)) @if claim.claim.refuted == Some(true) { " " span.refuted { "refuted" } } }
                            td { (badge(claim.verdict)) }
                        }
                    }
                }
            }
        }
    }
}

/// The two axes of the plot. They show the same range, so that claim and finding agree on the diagonal.
struct Frame {
    across: Scale,
    up: Scale,
}

impl Frame {
    fn of(tested: &[TestedClaim]) -> Self {
        let values = tested.iter().flat_map(|claim| {
            let claimed = claim.claim.claimed;
            [claimed.q10, claimed.q50, claimed.q90, claim.found]
        });
        let axis = Axis::covering(values.map(f64::ln));
        Self {
            across: Scale {
                axis,
                from: MARGIN,
                to: SIDE - EDGE,
            },
            up: Scale {
                axis,
                from: SIDE - MARGIN,
                to: EDGE,
            },
        }
    }

    /// The position of a claim and its finding.
    fn point(&self, claim: &TestedClaim) -> (f64, f64) {
        (
            self.across.x(claim.claim.claimed.q50.ln()),
            self.up.x(claim.found.ln()),
        )
    }
}

fn plot(tested: &[TestedClaim]) -> Markup {
    let frame = Frame::of(tested);
    let Frame { across, up } = &frame;
    let bottom = SIDE - MARGIN;
    let points: Vec<_> = tested.iter().map(|claim| frame.point(claim)).collect();
    let labels = labels::beside(&points, (MARGIN, SIDE - EDGE), (EDGE, bottom));
    html! {
        figure.plot {
            svg viewBox={ "0 0 " (SIDE) " " (SIDE) } role="img" aria-label="claimed against found speed-ups" {
                @for tick in across.axis.ticks(TICKS) {
                    line.tick x1=(at(across.x(tick))) x2=(at(across.x(tick))) y1=(at(EDGE)) y2=(at(bottom)) {}
                    line.tick x1=(at(MARGIN)) x2=(at(SIDE - EDGE)) y1=(at(up.x(tick))) y2=(at(up.x(tick))) {}
                    text.figure x=(at(across.x(tick))) y=(at(bottom + 15.0)) text-anchor="middle" { (multiple(tick)) }
                    text.figure x=(at(MARGIN - 5.0)) y=(at(up.x(tick) + 4.0)) text-anchor="end" { (multiple(tick)) }
                }
                line.zero x1=(at(MARGIN)) x2=(at(SIDE - EDGE)) y1=(at(up.x(0.0))) y2=(at(up.x(0.0))) {}
                line.agree x1=(at(MARGIN)) x2=(at(SIDE - EDGE)) y1=(at(bottom)) y2=(at(EDGE)) {}
                text.figure x=(at((MARGIN + SIDE) / 2.0)) y=(at(SIDE - 12.0)) text-anchor="middle" { "claimed" }
                text.figure transform={ "translate(10 " (at(bottom / 2.0)) ") rotate(-90)" } text-anchor="middle" { "found" }
                @for (claim, (x, y)) in tested.iter().zip(&points) {
                    g class={ "point " (Tone::from(claim.verdict).name()) } {
                        title { (claim.pitch) ": claimed " (claim_text(claim.claim.claimed)) ", found " (times(claim.found)) }
                        line x1=(at(across.x(claim.claim.claimed.q10.ln()))) x2=(at(across.x(claim.claim.claimed.q90.ln()))) y1=(at(*y)) y2=(at(*y)) {}
                        circle cx=(at(*x)) cy=(at(*y)) r=(RADIUS) {}
                    }
                }
                // The labels come last, so that no point covers one.
                @for (index, ((x, y), (label_x, label_y))) in points.iter().zip(&labels).enumerate() {
                    g.point-label {
                        @let (end_x, end_y) = labels::leader((*x, *y), (*label_x, *label_y));
                        line x1=(at(*x)) x2=(at(end_x)) y1=(at(*y)) y2=(at(end_y)) {}
                        text x=(at(*label_x)) y=(at(label_y + TEXT_DROP)) text-anchor="middle" { (index + 1) }
                    }
                }
            }
            figcaption {
                "A point on the dashed line found what it claimed; a point below the line found less. Whiskers show the claimed range. "
                "Points lie exactly at their values; only the numbers are moved apart."
            }
        }
    }
}

fn multiple(tick: f64) -> String {
    format!("{}×", (tick.exp() * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use gauntlet_judge::Verdict;
    use gauntlet_tournament::{ClaimOutcome, Quantiles};

    use super::*;

    fn claim(claimed: f64, found: f64) -> TestedClaim<'static> {
        TestedClaim {
            pitch: "any",
            claim: ClaimOutcome {
                claimed: Quantiles {
                    q10: claimed * 0.9,
                    q50: claimed,
                    q90: claimed * 1.1,
                },
                found: Some(found),
                refuted: None,
            },
            found,
            verdict: Verdict::Inconclusive,
        }
    }

    /// The values of `attribute` in the elements that begin with `element`, in the order drawn.
    fn drawn(page: &str, element: &str, attribute: &str) -> Vec<String> {
        let elements = page.split(element).skip(1);
        elements
            .map(|rest| {
                let (_, value) = rest.split_once(&format!("{attribute}=\"")).unwrap();
                value.split('"').next().unwrap().to_owned()
            })
            .collect()
    }

    #[test]
    fn every_point_is_drawn_at_the_scale_of_its_value() {
        // Two pairs that overlap, three points on one spot, and one far away.
        let found = [
            (1.05, 1.16),
            (1.05, 1.01),
            (1.06, 1.02),
            (1.3, 1.3),
            (1.3, 1.3),
            (1.3, 1.3),
            (1.06, 1.159),
            (2.1, 0.97),
        ];
        let tested: Vec<_> = found
            .iter()
            .map(|(claimed, found)| claim(*claimed, *found))
            .collect();
        let page = plot(&tested).into_string();
        let frame = Frame::of(&tested);
        let across: Vec<_> = found
            .iter()
            .map(|(claimed, _)| at(frame.across.x(claimed.ln())))
            .collect();
        let up: Vec<_> = found
            .iter()
            .map(|(_, found)| at(frame.up.x(found.ln())))
            .collect();
        assert_eq!(drawn(&page, "<circle", "cx"), across);
        assert_eq!(drawn(&page, "<circle", "cy"), up);
        // A lower finding is never drawn higher up; y grows downwards.
        let height = |index: usize| up[index].parse::<f64>().unwrap();
        assert!(height(1) > height(0) && height(7) > height(1));
    }

    #[test]
    fn every_point_has_its_number() {
        let tested = [claim(1.1, 1.0), claim(1.1, 1.0)];
        let page = plot(&tested).into_string();
        let labels: Vec<_> = page.split("point-label").skip(1).collect();
        assert_eq!(labels.len(), 2);
        assert!(
            labels[0].contains(">1</text>") && labels[1].contains(">2</text>"),
            "{page}"
        );
    }
}
