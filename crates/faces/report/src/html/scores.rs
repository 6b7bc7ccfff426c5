//! The panel's scores: the mean as a bar, each judge as a dot.

use gauntlet_tournament::panel::Ranking;
use maud::{Markup, html};

use super::chart::{LEFT, ROW, WIDTH, at, label, svg};

/// The position of a score of 10.
const RIGHT: f64 = 700.0;

/// Space under the rows for the axis.
const FOOT: f64 = 20.0;

/// The pitches in order of rank.
pub fn scores(ranking: &Ranking) -> Markup {
    let x = |score: f64| LEFT + score / 10.0 * (RIGHT - LEFT);
    let bottom = ranking.standings.len() as f64 * ROW;
    let chart = svg(
        bottom + FOOT,
        "scores of the panel",
        html! {
            @for score in [0.0, 2.0, 4.0, 6.0, 8.0, 10.0] {
                line.tick x1=(at(x(score))) x2=(at(x(score))) y1="0" y2=(at(bottom)) {}
                text.figure x=(at(x(score))) y=(at(bottom + 15.0)) text-anchor="middle" { (score) }
            }
            @for (index, standing) in ranking.standings.iter().enumerate() {
                @let middle = (index as f64 + 0.5) * ROW;
                (label(&format!("{}. {}", standing.rank, standing.pitch), middle))
                rect.mean x=(at(LEFT)) y=(at(middle - 7.0)) width=(at(x(standing.mean) - LEFT)) height="14" {}
                @for judgement in &standing.judgements {
                    circle.judge cx=(at(x(judgement.total))) cy=(at(middle)) r="4" {
                        title { (judgement.judge) ": " (format!("{:.2}", judgement.total)) }
                    }
                }
                text.figure x=(at(WIDTH)) y=(at(middle + 4.0)) text-anchor="end" { (format!("{:.2}", standing.mean)) }
            }
        },
    );
    html! {
        figure tabindex="0" {
            (chart)
            figcaption { "The panel's mean (bar) and each judge's total (dots), of 10." }
        }
    }
}
