//! Several problems side by side: what share of each goes where.

use gauntlet_model::Part;

use super::lines::lines;
use super::{Explanation, header, share};
use crate::duration::duration;
use crate::table::{Column, table};
use crate::text::{bold, dim, paragraph, widest};

/// Columns of the longest part's name, and of the margin.
const NAME_COLUMNS: usize = 22;

/// The problems as columns, the roofline and the parts as rows; in as many tables as the width asks for.
pub fn cases(explanations: &[Explanation], width: usize) -> String {
    let Some(first) = explanations.first() else {
        return String::new();
    };
    let mut text = header::setting(first, width);
    let widths = explanations
        .iter()
        .map(|one| widest([one.case.as_str()]).max(8) + 2);
    let each = widths.max().unwrap_or(1);
    let fitting = (width.saturating_sub(NAME_COLUMNS) / each).max(1);
    for chunk in explanations.chunks(fitting) {
        text.push('\n');
        text += &shares(chunk, width);
    }
    text += &paragraph(
        "  ",
        &dim("shares of each prediction; parts under 0.1 % of every one are left out"),
        2,
        width,
    );
    text
}

fn shares(explanations: &[Explanation], width: usize) -> String {
    let mut head = vec![("part", Column::Whole)];
    head.extend(
        explanations
            .iter()
            .map(|one| (one.case.as_str(), Column::Figures)),
    );
    let row = |name: &str, cell: &dyn Fn(&Explanation) -> String| {
        let mut row = vec![name.to_owned()];
        row.extend(explanations.iter().map(cell));
        row
    };
    let mut rows = vec![row("roofline", &|one| {
        share(one.breakdown.roofline / one.breakdown.total())
    })];
    let shown: Vec<Vec<Option<Part>>> = explanations
        .iter()
        .map(|one| lines(&one.breakdown).lines.iter().map(|line| line.part).collect())
        .collect();
    for part in Part::ALL {
        if shown.iter().any(|parts| parts.contains(&Some(part))) {
            rows.push(row(part.name(), &|one| {
                share(one.breakdown.part(part) / one.breakdown.total())
            }));
        }
    }
    rows.push(row(&bold("prediction"), &|one| bold(duration(one.seconds))));
    table(&head, rows, 2, width)
}
