//! Claims against findings: a scatter plot with numbers, and a table of what they stand for.

use gauntlet_lab::TournamentReport;
use maud::{Markup, html};

use super::badge;
use super::chart::{Scale, at};
use crate::axis::Axis;
use crate::outline::{TestedClaim, tested_claims, untested_claims};
use crate::speedup::{claim as claim_text, times};
use crate::tone::Tone;

/// Side of the plot.
const SIDE: f64 = 360.0;

/// Room for the labels of the axes.
const MARGIN: f64 = 48.0;

/// Room for half a label at the far end of the axis.
const EDGE: f64 = 14.0;

/// Ticks wanted on each axis.
const TICKS: usize = 5;

/// Where two points are nearer than this, the second moves aside.
const CROWDED: f64 = 14.0;

/// The plot and its table; a sentence alone if nothing was measured.
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
        div.scroll {
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

fn plot(tested: &[TestedClaim]) -> Markup {
    let claimed = tested.iter().map(|claim| claim.claim.claimed);
    let values = claimed
        .flat_map(|claimed| [claimed.q10, claimed.q90])
        .chain(tested.iter().map(|claim| claim.found));
    // One axis for both, so that the diagonal is where claim and finding agree.
    let axis = Axis::covering(values.map(f64::ln));
    let across = Scale {
        axis,
        from: MARGIN,
        to: SIDE - EDGE,
    };
    let up = Scale {
        axis,
        from: SIDE - MARGIN,
        to: EDGE,
    };
    let bottom = SIDE - MARGIN;
    let points = apart(
        tested
            .iter()
            .map(|claim| (across.x(claim.claim.claimed.q50.ln()), up.x(claim.found.ln()))),
    );
    html! {
        figure.plot {
            svg viewBox={ "0 0 " (SIDE) " " (SIDE) } role="img" aria-label="claimed against found speed-ups" {
                @for tick in axis.ticks(TICKS) {
                    line.tick x1=(at(across.x(tick))) x2=(at(across.x(tick))) y1=(at(EDGE)) y2=(at(bottom)) {}
                    line.tick x1=(at(MARGIN)) x2=(at(SIDE - EDGE)) y1=(at(up.x(tick))) y2=(at(up.x(tick))) {}
                    text.figure x=(at(across.x(tick))) y=(at(bottom + 15.0)) text-anchor="middle" { (multiple(tick)) }
                    text.figure x=(at(MARGIN - 5.0)) y=(at(up.x(tick) + 4.0)) text-anchor="end" { (multiple(tick)) }
                }
                line.zero x1=(at(MARGIN)) x2=(at(SIDE - EDGE)) y1=(at(up.x(0.0))) y2=(at(up.x(0.0))) {}
                line.agree x1=(at(MARGIN)) x2=(at(SIDE - EDGE)) y1=(at(bottom)) y2=(at(EDGE)) {}
                text.figure x=(at((MARGIN + SIDE) / 2.0)) y=(at(SIDE - 12.0)) text-anchor="middle" { "claimed" }
                text.figure transform={ "translate(10 " (at(bottom / 2.0)) ") rotate(-90)" } text-anchor="middle" { "found" }
                @for (index, (claim, (x, y))) in tested.iter().zip(points).enumerate() {
                    g class={ "point " (Tone::from(claim.verdict).name()) } {
                        title { (claim.pitch) }
                        line x1=(at(across.x(claim.claim.claimed.q10.ln()))) x2=(at(across.x(claim.claim.claimed.q90.ln()))) y1=(at(y)) y2=(at(y)) {}
                        circle cx=(at(x)) cy=(at(y)) r="8" {}
                        text x=(at(x)) y=(at(y + 3.5)) text-anchor="middle" { (index + 1) }
                    }
                }
            }
            figcaption { "On the dashed line a claim came true; under it, less was found than claimed. Whiskers: the claim's own range." }
        }
    }
}

/// Moves each point up until it covers none before it.
fn apart(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut placed: Vec<(f64, f64)> = Vec::new();
    for (x, mut y) in points {
        while placed
            .iter()
            .any(|other| (other.0 - x).hypot(other.1 - y) < CROWDED)
        {
            y -= 2.0;
        }
        placed.push((x, y));
    }
    placed
}

fn multiple(tick: f64) -> String {
    format!("{}×", (tick.exp() * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn points_on_the_same_spot_are_moved_apart() {
        let points = apart([(10.0, 10.0), (10.0, 10.0), (50.0, 10.0)].into_iter());
        assert_eq!((points[0], points[2]), ((10.0, 10.0), (50.0, 10.0)));
        assert!((points[1].1 - points[0].1).abs() >= super::CROWDED);
    }
}
