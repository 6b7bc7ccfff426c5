//! Common parts of all charts: their sizes, and the conversion of values to SVG coordinates.

use maud::{Markup, html};

use crate::axis::Axis;

/// Width of a chart in its own units; the page scales it.
pub const WIDTH: f64 = 760.0;

/// Height of a row.
pub const ROW: f64 = 26.0;

/// The number of letters that fit beside a chart as a row's label; a letter is about 6.5 units wide.
const LABEL_LETTERS: usize = 26;

/// The end of the labels and the start of the picture.
pub const LEFT: f64 = 180.0;

/// A range of the chart's width that shows an axis.
#[derive(Clone, Copy)]
pub struct Scale {
    pub axis: Axis,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    /// The coordinate of a log speed-up.
    pub fn x(&self, value: f64) -> f64 {
        self.from + self.axis.place(value) * (self.to - self.from)
    }
}

/// A coordinate as text, to a tenth of a unit: finer differences are not visible.
pub fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A row's label at the left. A long label is cut where it would run into the picture, and shown whole on hovering.
pub fn label(text: &str, middle: f64) -> Markup {
    let shown = crate::text::fitted(text, LABEL_LETTERS);
    html! {
        text.label x="0" y=(at(middle + 4.0)) { (shown.trim_end()) title { (text) } }
    }
}

/// A chart's outer element. `title` describes the chart in words for readers who cannot see it.
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
