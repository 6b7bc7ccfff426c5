//! A speed-up in a row of a list: its interval on a small axis that all rows share.

use maud::{Markup, html};

use super::chart::at;
use crate::tone::Tone;

/// Width and height, in units of the picture.
const SIZE: [f64; 2] = [120.0, 16.0];

/// The least and the greatest log speed-up that is drawn: half as fast and twice as fast. What lies beyond ends at the edge.
const EDGE: f64 = std::f64::consts::LN_2;

/// A speed-up as factors: its lower bound, the best guess and its upper bound.
pub fn glance([lower, estimate, upper]: [f64; 3], tone: Tone) -> Markup {
    let [width, height] = SIZE;
    let x = |factor: f64| {
        let place = factor.max(f64::MIN_POSITIVE).ln().clamp(-EDGE, EDGE);
        at((place / EDGE + 1.0) / 2.0 * (width - 10.0) + 5.0)
    };
    let middle = at(height / 2.0);
    html! {
        svg.glance viewBox={ "0 0 " (at(width)) " " (at(height)) } aria-hidden="true" {
            line.zero x1=(x(1.0)) x2=(x(1.0)) y1="0" y2=(at(height)) {}
            g class={ "interval " (tone.name()) } {
                line x1=(x(lower)) x2=(x(upper)) y1=(middle) y2=(middle) {}
                circle cx=(x(estimate)) cy=(middle) r="4" {}
            }
        }
    }
}
