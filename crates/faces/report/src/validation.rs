//! The accuracy of the model: its errors on a grid of shapes and schedules, as tables.

use gauntlet_stats::Fit;
use gauntlet_tuning::validation::{GOALS, ShapeAccuracy, Validation};

use crate::table::{columns, table};
use crate::text::{dim, paint, paragraph, usable};
use crate::tone::Tone;

/// The meaning of the columns.
const LEGEND: [&str; 3] = [
    "error: mean of |predicted / measured − 1|; in a shape: standard deviation of ln(measured / predicted) between its \
     schedules",
    "rank: Spearman's correlation of predicted with measured times in a shape; first and eight: how much longer than the \
     best schedule the one that is predicted to be best takes, and the best of the eight that are",
    "bias: median of predicted over measured",
];

/// The errors with and without the measured figures of the GPU's units, by shape, and the state of the goals.
pub fn validation(found: &Validation, width: usize) -> String {
    let width = usable(width);
    let known = match found.held_out {
        None => "none of them known when the model was made",
        Some(_) => "some of the shapes known when the model was made",
    };
    let introduction = format!(
        "{} schedules × shapes, each measured in {} processes, {known}",
        found.points.len(),
        found.processes
    );
    let mut text = paragraph("", &introduction, 0, width) + "\n";
    let header = columns!(Whole "model"; Figures "error", "in a shape", "rank", "first", "eight", "bias");
    let mut rows = vec![
        row("the model", &found.model, None),
        row("without measured units", &found.without_units, None),
    ];
    rows.extend(
        found
            .held_out
            .iter()
            .map(|fit| row("of shapes never seen", fit, None)),
    );
    rows.extend(found.shapes.iter().map(of_shape));
    text += &table(&header, rows, 2, width);
    for line in LEGEND {
        text += &paragraph("  ", &dim(line), 4, width);
    }
    text += "\n";
    for goal in &GOALS {
        let tone = if goal.is_reached(&found.model) {
            Tone::Good
        } else {
            Tone::Bad
        };
        let mark = paint(tone.mark(), tone.style());
        text += &paragraph(&format!("  {mark} "), goal.name, 4, width);
    }
    text
}

fn of_shape(shape: &ShapeAccuracy) -> Vec<String> {
    row(&format!("  {}", shape.shape), &shape.accuracy, Some(shape.bias))
}

fn row(name: &str, accuracy: &Fit, bias: Option<f64>) -> Vec<String> {
    vec![
        name.to_owned(),
        percent(accuracy.mean_error),
        percent(accuracy.log_deviation_in_shape),
        format!("{:.2}", accuracy.rank_correlation),
        percent(accuracy.regret_of_first),
        percent(accuracy.regret_of_eight),
        bias.map_or(String::new(), |bias| format!("{bias:.2}")),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
