//! The times of a kernel over commits. Points are joined only where their commits were compared: a line between times of two days would
//! look like a finding.

use maud::{Markup, html};

use super::chart::{WIDTH, at, svg};
use crate::duration::duration;
use crate::tone::Tone;

/// The picture without its labels, from its left and top.
const PLOT: [f64; 4] = [70.0, 14.0, WIDTH - 80.0, 190.0];

/// Space under the picture for the commits' names.
const FOOT: f64 = 26.0;

/// The least that the picture spans, in log time: smaller differences are not magnified.
const LEAST_SPAN: f64 = 0.05;

/// A time of a kernel at a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitTime {
    /// The commit, in short.
    pub commit: String,
    /// The time in seconds.
    pub seconds: f64,
    /// What a comparison with the point before says; none without one.
    pub joint: Option<Tone>,
    /// Whether the times seem to change here.
    pub perhaps_changed: bool,
    /// What it says on hovering.
    pub told: String,
}

/// Points in the order of commits, with the comparisons that join them and the places where times seem to change.
pub fn commit_times(points: &[CommitTime]) -> Markup {
    let logs = || {
        points
            .iter()
            .map(|point| point.seconds.max(f64::MIN_POSITIVE).ln())
    };
    let [low, high] = [
        logs().fold(f64::INFINITY, f64::min),
        logs().fold(f64::NEG_INFINITY, f64::max),
    ];
    if !(low.is_finite() && high.is_finite()) {
        return html! {};
    }
    let missing = (LEAST_SPAN - (high - low)).max(0.0) / 2.0;
    let [low, high] = [low - missing, high + missing];
    let [left, top, width, height] = PLOT;
    let x = |place: usize| left + width * (place as f64 + 0.5) / points.len() as f64;
    let y = |seconds: f64| top + height * (high - seconds.max(f64::MIN_POSITIVE).ln()) / (high - low);
    let ticks = [low, f64::midpoint(low, high), high].map(f64::exp);
    let named = [0, points.len() / 2, points.len() - 1];
    let body = html! {
        @for tick in ticks {
            line.tick x1=(at(left)) x2=(at(left + width)) y1=(at(y(tick))) y2=(at(y(tick))) {}
            text.figure x=(at(left - 8.0)) y=(at(y(tick) + 4.0)) text-anchor="end" { (duration(tick)) }
        }
        @for (place, pair) in points.windows(2).enumerate() {
            @if pair[1].perhaps_changed {
                @let between = at(f64::midpoint(x(place), x(place + 1)));
                line.agree x1=(between) x2=(between) y1=(at(top)) y2=(at(top + height)) {}
            }
            @if let Some(tone) = pair[1].joint {
                g class={ "interval " (tone.name()) } {
                    line x1=(at(x(place))) y1=(at(y(pair[0].seconds))) x2=(at(x(place + 1))) y2=(at(y(pair[1].seconds))) {}
                }
            }
        }
        @for (place, point) in points.iter().enumerate() {
            g class={ "interval " (point.joint.map_or("", Tone::name)) } {
                circle cx=(at(x(place))) cy=(at(y(point.seconds))) r="4.5" { title { (point.told) } }
            }
        }
        @for (index, place) in named.iter().enumerate() {
            @if !named[..index].contains(place) {
                text.figure x=(at(x(*place))) y=(at(top + height + 20.0)) text-anchor="middle" { (points[*place].commit) }
            }
        }
    };
    html! {
        figure tabindex="0" {
            (svg(top + height + FOOT, "times by commit", body))
            figcaption {
                "The median time of each commit. A line joins two commits that were compared, in the colour of what was found; others are not joined, \
                 as times of two days do not compare."
                @if points.iter().any(|point| point.perhaps_changed) { " Dashed: the times seem to change here, which a machine may do too." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(seconds: f64, joint: Option<Tone>) -> CommitTime {
        CommitTime {
            commit: "0123456789".to_owned(),
            seconds,
            joint,
            perhaps_changed: false,
            told: "told".to_owned(),
        }
    }

    #[test]
    fn only_a_comparison_joins_two_points() {
        let points = [
            point(1e-3, None),
            point(1.1e-3, None),
            point(1.2e-3, Some(Tone::Bad)),
        ];
        let shown = commit_times(&points).into_string();
        assert_eq!(shown.matches("<circle").count(), 3, "{shown}");
        assert_eq!(
            shown.matches("<g class=\"interval bad\"><line").count(),
            1,
            "{shown}"
        );
        assert_eq!(
            shown.matches("<g class=\"interval \"><line").count(),
            0,
            "{shown}"
        );
        assert!(commit_times(&[]).into_string().is_empty());
    }

    #[test]
    fn equal_times_lie_in_the_middle() {
        let shown = commit_times(&[point(1e-3, None)]).into_string();
        assert!(shown.contains("cy=\"109\""), "{shown}");
    }
}
