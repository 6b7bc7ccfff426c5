//! How often differences are found within a time, as a table by effect and rule.

use gauntlet_report::{Column, criteria as criteria_line, paragraph, table, usable};
use gauntlet_stats::{percent, speedup_fraction};

use super::with_interval;
use crate::characteristics::share::Share;
use crate::characteristics::tally::Tally;
use crate::power::{Power, PowerCell};

/// What the lab and other rules say of known differences, each with the same time on the same machine.
pub fn power(found: &Power, width: usize) -> String {
    let width = usable(width);
    let header = [
        ("truth", Column::Words),
        ("rule", Column::Words),
        ("found", Column::Words),
        ("false", Column::Words),
        ("open", Column::Words),
        ("time", Column::Figures),
    ];
    let rows = found.cells.iter().flat_map(rows).collect();
    let text = paragraph("", &introduction(found), 0, width);
    let apart: String = found
        .cells
        .iter()
        .map(|cell| paragraph("", &apart(cell), 0, width))
        .collect();
    text + "\n" + &table(&header, rows, 0, width) + "\n" + &apart
}

/// How often the lab showed a difference at all, whether or not it is as large as the target.
fn apart(cell: &PowerCell) -> String {
    let where_to = match cell.truth {
        truth if truth > 0.0 => "above",
        truth if truth < 0.0 => "below",
        _ => "wrongly on one side of",
    };
    let Share { count, of, .. } = cell.apart;
    format!(
        "{}: Gauntlet's interval is {where_to} 0 in {count} of {of} comparisons.",
        cell.effect
    )
}

fn introduction(found: &Power) -> String {
    format!(
        "Verdicts on known differences within {:.0} s a comparison, {} of each, and the decisions of other rules in the \
         same time. Criteria: {}. Shares in % with 95 % intervals. Found: what is said is true; false: an adoption below \
         the target, or a regression above −ε; open: no decision. Time: the median of the lab's.",
        found.plan.budget,
        found.plan.runs,
        criteria_line(&found.criteria),
    )
}

fn rows(cell: &PowerCell) -> Vec<Vec<String>> {
    let row = |(index, tally): (usize, &Tally)| {
        let first = index == 0;
        let wrong = [tally.false_adoption, tally.false_regression];
        let wrong = wrong.into_iter().flatten().map(|share| share.count).sum();
        let share_of = |share: Option<Share>| share.map_or("—".to_owned(), |share| with_interval(&share));
        vec![
            if first { truth(cell) } else { String::new() },
            tally.rule.name().to_owned(),
            share_of(tally.found),
            with_interval(&Share::new(wrong, tally.comparisons)),
            with_interval(&tally.inconclusive),
            if first {
                format!("{:.0} s", cell.seconds)
            } else {
                String::new()
            },
        ]
    };
    cell.rules.iter().enumerate().map(row).collect()
}

fn truth(cell: &PowerCell) -> String {
    let truth = percent(speedup_fraction(cell.truth));
    format!("{} ({truth})", cell.effect)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use gauntlet_report::widest;
    use gauntlet_stats::{Criteria, Decision};

    use super::*;
    use crate::characteristics::effect::Effect;
    use crate::power::{Plan, PowerRun};

    #[test]
    fn every_rule_has_a_row_and_it_fits_into_eighty_columns() {
        let effect = Effect::of(0.03);
        let run = |own| PowerRun {
            effect,
            truth: 1.031f64.ln(),
            interval: None,
            suspicion: None,
            reason: String::new(),
            pairs: 6,
            seconds: 41.0,
            calls: 900,
            whole_runs: 14,
            decisions: [
                own,
                Decision::Adopt,
                Decision::Adopt,
                Decision::Inconclusive,
                Decision::Regression,
            ],
        };
        let plan = Plan {
            effects: vec![effect],
            runs: 2,
            budget: 60.0,
        };
        let runs = vec![run(Decision::Adopt), run(Decision::Inconclusive)];
        let text = strip_str(&power(&Power::of(plan, Criteria::default(), runs), 80)).to_string();
        assert!(widest(text.lines()) <= 80, "{text}");
        insta::assert_snapshot!(text);
    }
}
