//! Intervals on a common axis.

use gauntlet_stats::{Criteria, Interval, Origin, percent_interval};
use maud::{Markup, html};

use super::chart::{LEFT, ROW, Scale, WIDTH, at, label, svg};
use crate::axis::Axis;
use crate::speedup::bound;
use crate::tone::Tone;

/// The end of the picture and the start of the figures.
const RIGHT: f64 = 560.0;

/// Space under the rows for the axis.
const FOOT: f64 = 40.0;

/// The number of ticks wanted.
const TICKS: usize = 7;

/// A named interval.
pub struct Row<'r> {
    pub name: &'r str,
    pub interval: &'r Interval,
    pub tone: Tone,
}

/// The intervals, the criteria that judge them, and an axis.
pub fn intervals(rows: &[Row], criteria: &Criteria) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    let axis = Axis::of_intervals(rows.iter().map(|row| row.interval), criteria);
    let scale = Scale {
        axis,
        from: LEFT,
        to: RIGHT,
    };
    let bottom = rows.len() as f64 * ROW;
    let declared = rows.iter().any(|row| row.interval.origin == Origin::Declared);
    let calls = rows
        .iter()
        .any(|row| matches!(row.interval.origin, Origin::Calls { .. }));
    let predicted = rows.iter().any(|row| row.interval.origin.is_predicted());
    let chart = svg(
        bottom + FOOT,
        "speed-up intervals on a common axis",
        html! {
            (guides(&scale, criteria, bottom))
            @for (index, row) in rows.iter().enumerate() { (draw(&scale, row, (index as f64 + 0.5) * ROW)) }
        },
    );
    html! {
        figure tabindex="0" {
            (chart)
            figcaption {
                "Speed-up with its interval; green from the target " (bound(criteria.target)) " on, grey within "
                (bound(criteria.practically_zero).replace('+', "±")) ", which counts as nothing."
                @if declared { " Dashed: bounds declared for recorded times, no statistics." }
                @if calls { " Dashed: calls of one process a side; nothing is known about other processes." }
                @if predicted { " Dashed: predicted, by the model's own error; nothing was measured." }
            }
        }
    }
}

fn guides(scale: &Scale, criteria: &Criteria, bottom: f64) -> Markup {
    let (least, greatest) = criteria.log_practically_zero();
    let target = scale.x(criteria.log_target());
    html! {
        rect.nothing x=(at(scale.x(least))) y="0" width=(at(scale.x(greatest) - scale.x(least))) height=(at(bottom)) {}
        rect.wanted x=(at(target)) y="0" width=(at(RIGHT - target)) height=(at(bottom)) {}
        @for tick in scale.axis.ticks(TICKS) {
            line.tick x1=(at(scale.x(tick))) x2=(at(scale.x(tick))) y1="0" y2=(at(bottom)) {}
            text.figure x=(at(scale.x(tick))) y=(at(bottom + 16.0)) text-anchor="middle" { (tick_label(tick)) }
        }
        line.zero x1=(at(scale.x(0.0))) x2=(at(scale.x(0.0))) y1="0" y2=(at(bottom)) {}
        text.figure x=(at(LEFT)) y=(at(bottom + 32.0)) { "◂ slower" }
        text.figure x=(at(RIGHT)) y=(at(bottom + 32.0)) text-anchor="end" { "faster ▸" }
    }
}

fn tick_label(tick: f64) -> String {
    if tick == 0.0 {
        "0".to_owned()
    } else {
        bound((gauntlet_stats::speedup_fraction(tick) * 1e4).round() / 1e4)
    }
}

fn draw(scale: &Scale, row: &Row, middle: f64) -> Markup {
    let interval = row.interval;
    let class = match interval.origin {
        Origin::Measured { .. } => format!("interval {}", row.tone.name()),
        Origin::Declared | Origin::Calls { .. } | Origin::Predicted { .. } => {
            format!("interval declared {}", row.tone.name())
        }
    };
    let (from, to) = (scale.x(interval.lower), scale.x(interval.upper));
    let end = |x: f64| html! { line x1=(at(x)) x2=(at(x)) y1=(at(middle - 5.0)) y2=(at(middle + 5.0)) {} };
    html! {
        (label(row.name, middle))
        g class=(class) {
            line.span x1=(at(from)) x2=(at(to)) y1=(at(middle)) y2=(at(middle)) {}
            @if scale.axis.holds(interval.lower) { (end(from)) }
            @if scale.axis.holds(interval.upper) { (end(to)) }
            circle cx=(at(scale.x(interval.estimate))) cy=(at(middle)) r="4.5" {}
        }
        text.figure x=(at(WIDTH)) y=(at(middle + 4.0)) text-anchor="end" { (percent_interval(interval)) }
    }
}
