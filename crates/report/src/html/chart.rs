//! What all charts share: their measures, and places on an axis as SVG coordinates.

use maud::{Markup, html};

use crate::axis::Axis;

/// Width of a chart in its own units; the page scales it.
pub const WIDTH: f64 = 760.0;

/// Height of a row.
pub const ROW: f64 = 26.0;

/// Letters of a label that fit beside a chart; about 6.5 units each.
const LABEL_LETTERS: usize = 26;

/// Where the labels end and the picture begins.
pub const LEFT: f64 = 180.0;

/// A stretch of the chart's width that shows an axis.
#[derive(Clone, Copy)]
pub struct Scale {
    pub axis: Axis,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    /// Where a log speed-up lies.
    pub fn x(&self, value: f64) -> f64 {
        self.from + self.axis.place(value) * (self.to - self.from)
    }
}

/// A coordinate with no more digits than can be seen.
pub fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A row's label at the left, cut where it would run into the picture; the whole of it appears on hovering.
pub fn label(text: &str, middle: f64) -> Markup {
    let shown = crate::text::fitted(text, LABEL_LETTERS);
    html! {
        text.label x="0" y=(at(middle + 4.0)) { (shown.trim_end()) title { (text) } }
    }
}

/// The frame of a chart, with what it shows in words for those who cannot see it.
pub fn svg(height: f64, title: &str, body: Markup) -> Markup {
    html! {
        svg viewBox={ "0 0 " (at(WIDTH)) " " (at(height)) } role="img" aria-label=(title) {
            (body)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!(at(12.0), "12");
        assert_eq!(at(12.345), "12.3");
        assert_eq!(at(-0.5), "-0.5");
    }
}
