//! Several problems side by side, with the shares of their time.

use gauntlet_simulate::Part;

use super::lines::lines;
use super::{Explanation, header, share};
use crate::duration::duration;
use crate::table::{Column, table};
use crate::text::{bold, dim, paragraph, widest};

/// Columns of the longest part's name, and of the margin.
const NAME_COLUMNS: usize = 22;

/// Columns of the widest share.
const SHARE_COLUMNS: usize = 8;

/// The problems as columns, the roofline and the parts as rows; in as many tables as the width requires.
pub fn cases(explanations: &[Explanation], width: usize) -> String {
    let Some(first) = explanations.first() else {
        return String::new();
    };
    let suite = common_suite(explanations);
    let names: Vec<&str> = explanations.iter().map(|one| &one.case[suite.len()..]).collect();
    let title = format!("{}: ", bold(suite.trim_end_matches('/')));
    let count = format!("{} cases", explanations.len());
    let mut text = paragraph(&title, &count, 2, width) + &header::setting(first, width);
    let each = widest(names.iter().copied()).max(SHARE_COLUMNS) + 2;
    let fitting = (width.saturating_sub(NAME_COLUMNS) / each).max(1);
    for (chunk, names) in explanations.chunks(fitting).zip(names.chunks(fitting)) {
        text.push('\n');
        text += &shares(chunk, names, width);
    }
    let note = "shares of each prediction; parts under 0.1 % of every one are left out";
    text + &paragraph("  ", &dim(note), 2, width)
}

/// The suite that all cases name before a slash, with the slash; nothing if they differ.
pub fn common_suite(explanations: &[Explanation]) -> &str {
    let first = explanations.first().map_or("", |one| one.case.as_str());
    let suite = first.rfind('/').map_or("", |slash| &first[..=slash]);
    if explanations.iter().all(|one| one.case.starts_with(suite)) {
        suite
    } else {
        ""
    }
}

fn shares(explanations: &[Explanation], names: &[&str], width: usize) -> String {
    let mut head = vec![("part", Column::Whole)];
    head.extend(names.iter().map(|name| (*name, Column::Figures)));
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
