//! How often verdicts err, as tables: the lab's own by machine and truth, those of other rules, and the goals.

mod goals;
mod power;

use gauntlet_report::{Column, bold, criteria as criteria_line, dim, paragraph, table, usable};
use gauntlet_stats::{Interval, percent, speedup_fraction};

use self::goals::goals;
pub use self::power::power;
use crate::characteristics::Characteristics;
use crate::characteristics::cell::Cell;
use crate::characteristics::effect::Effect;
use crate::characteristics::estimator::{Estimator, EstimatorCell};
use crate::characteristics::live::LiveComparison;
use crate::characteristics::noise::Noise;
use crate::characteristics::rule::Rule;
use crate::characteristics::share::Share;
use crate::characteristics::tally::Tally;

/// The lab's false verdicts and power on each machine, the results of other rules on the same calls, and the state of
/// the goals.
pub fn characteristics(found: &Characteristics, width: usize) -> String {
    let width = usable(width);
    let cells: Vec<&Cell> = found.synthetic.iter().chain(&found.live).collect();
    let mut text = paragraph("", &introduction(found), 0, width);
    for machine in machines(&cells) {
        let own: Vec<&Cell> = of_machine(&cells, machine);
        text += "\n";
        text += &heading(machine, found, width);
        text += &own_table(&own, width);
    }
    if let Some(rows) = injected_rows(&found.live_comparisons) {
        text += &format!(
            "\n{}\n",
            bold("Injected here, as measured on the spot, and found")
        );
        text += &table(&INJECTED, rows, 2, width);
    }
    for (title, effect, figure) in COMPARED {
        text += &format!("\n{}\n", bold(title));
        text += &rivals_table(&cells, effect, figure, width);
    }
    if !found.estimators.is_empty() {
        text += &format!(
            "\n{}\n",
            bold("What stands for a slot: 3 % faster, found, % (pairs it took)")
        );
        text += &estimators_table(&found.estimators, width);
    }
    text + "\n" + &goals(&found.goals, width)
}

/// The figure of a tally by which rules are compared.
type Figure = fn(&Tally) -> Option<Share>;

/// The comparisons of rules: a title, the truth, and the figure that is counted.
const COMPARED: [(&str, Effect, Figure); 6] = [
    ("The same, adopted, % by rule", Effect::NONE, |tally| {
        tally.false_adoption
    }),
    (
        "The same, called a regression, % by rule",
        Effect::NONE,
        |tally| tally.false_regression,
    ),
    ("1 % faster, found, % by rule", Effect::of(0.01), |tally| {
        tally.found
    }),
    ("3 % faster, found, % by rule", Effect::of(0.03), |tally| {
        tally.found
    }),
    ("5 % faster, found, % by rule", Effect::FASTER, |tally| {
        tally.found
    }),
    ("5 % slower, found, % by rule", Effect::SLOWER, |tally| {
        tally.found
    }),
];

/// The rules in printed tables; the file has all.
const PRINTED: [Rule; 7] = [
    Rule::Gauntlet,
    Rule::Planned,
    Rule::Welch,
    Rule::WelchBySize,
    Rule::Minimum,
    Rule::MeanOfRuns,
    Rule::Criterion,
];

fn introduction(found: &Characteristics) -> String {
    let measurement = &found.measurement;
    let looks: Vec<String> = measurement.looks.iter().map(ToString::to_string).collect();
    let then = if measurement.open_ended {
        format!(
            ", then each time at half as many more, for up to {:.0} s",
            measurement.budget.as_secs_f64()
        )
    } else {
        String::new()
    };
    format!(
        "Verdicts on known truths. Criteria: {}; looks after {} pairs of processes{then}, {} blocks each. Shares in % \
         with 95 % intervals; found: the verdict says what is true; open: no verdict; pairs: processes it took on \
         average; time: what that took on average, simulated on synthetic machines.",
        criteria_line(&found.criteria),
        looks.join(", "),
        measurement.blocks,
    )
}

/// Names of machines, without duplicates, in order.
fn machines<'c>(cells: &[&'c Cell]) -> Vec<&'c str> {
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        if names.last() != Some(&cell.machine.as_str()) {
            names.push(&cell.machine);
        }
    }
    names
}

fn of_machine<'c>(cells: &[&'c Cell], machine: &str) -> Vec<&'c Cell> {
    cells
        .iter()
        .filter(|cell| cell.machine == machine)
        .copied()
        .collect()
}

fn heading(machine: &str, found: &Characteristics, width: usize) -> String {
    let kind = Noise::ALL.into_iter().find(|noise| noise.name() == machine);
    let description = match (kind, found.live_spread) {
        (Some(noise), _) => noise.description().to_owned(),
        (None, Some(spread)) => format!(
            "real workers; pairs of processes stray by {} around their mean",
            percent(speedup_fraction(spread)).trim_start_matches('+')
        ),
        (None, None) => "real workers".to_owned(),
    };
    paragraph(&format!("{}  ", bold(machine)), &dim(description), 2, width)
}

fn own_table(cells: &[&Cell], width: usize) -> String {
    let header = [
        ("truth", Column::Whole),
        ("times", Column::Figures),
        ("false adoption", Column::Words),
        ("false regression", Column::Words),
        ("found", Column::Words),
        ("open", Column::Words),
        ("pairs", Column::Figures),
        ("time", Column::Figures),
    ];
    let rows = cells.iter().filter_map(|cell| own_row(cell)).collect();
    table(&header, rows, 2, width)
}

fn own_row(cell: &Cell) -> Option<Vec<String>> {
    let tally = cell.tally(Rule::Gauntlet)?;
    let cell_of = |share: &Option<Share>| share.as_ref().map_or("—".to_owned(), with_interval);
    Some(vec![
        cell.effect.to_string(),
        tally.comparisons.to_string(),
        cell_of(&tally.false_adoption),
        cell_of(&tally.false_regression),
        cell_of(&tally.found),
        with_interval(&tally.inconclusive),
        format!("{:.1}", cell.pairs),
        format!("{:.0} s", cell.seconds),
    ])
}

/// The head of the table of injected effects.
const INJECTED: [(&str, Column); 5] = [
    ("asked for", Column::Whole),
    ("times", Column::Figures),
    ("injected", Column::Words),
    ("found", Column::Words),
    ("intervals that hold it", Column::Words),
];

/// For each effect, the speed-up that was really injected and the one that was found, as means over the comparisons;
/// none if nothing was injected.
fn injected_rows(comparisons: &[LiveComparison]) -> Option<Vec<Vec<String>>> {
    let row = |effect: Effect| {
        let known: Vec<(f64, &Interval)> = comparisons
            .iter()
            .filter(|one| one.effect == effect)
            .filter_map(|one| Some((one.true_log_speedup()?, one.interval.as_ref()?)))
            .collect();
        let mean = |of: fn(&(f64, &Interval)) -> f64| {
            let sum: f64 = known.iter().map(of).sum();
            percent(speedup_fraction(sum / known.len() as f64))
        };
        let holding = known
            .iter()
            .filter(|(truth, interval)| interval.lower <= *truth && *truth <= interval.upper);
        (!known.is_empty()).then(|| {
            vec![
                effect.to_string(),
                known.len().to_string(),
                mean(|(truth, _)| *truth),
                mean(|(_, interval)| interval.estimate),
                format!("{} of {}", holding.count(), known.len()),
            ]
        })
    };
    let rows: Vec<Vec<String>> = Effect::INJECTED.into_iter().filter_map(row).collect();
    (!rows.is_empty()).then_some(rows)
}

fn rivals_table(cells: &[&Cell], effect: Effect, figure: Figure, width: usize) -> String {
    let header: Vec<(&str, Column)> = std::iter::once(("machine", Column::Words))
        .chain(PRINTED.iter().map(|rule| (rule.name(), Column::Words)))
        .collect();
    let row = |cell: &&Cell| {
        let said = PRINTED.iter().map(|rule| {
            let share = cell.tally(*rule).and_then(figure);
            share.map_or("—".to_owned(), |share| hundredths(share.observed))
        });
        std::iter::once(cell.machine.clone()).chain(said).collect()
    };
    let rows = cells
        .iter()
        .filter(|cell| cell.effect == effect)
        .map(row)
        .collect();
    table(&header, rows, 2, width)
}

fn estimators_table(cells: &[EstimatorCell], width: usize) -> String {
    let header: Vec<(&str, Column)> = std::iter::once(("machine", Column::Words))
        .chain(Estimator::ALL.map(|estimator| (estimator.name(), Column::Words)))
        .collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for cell in cells {
        if rows.last().is_none_or(|row| row[0] != cell.machine) {
            rows.push(vec![cell.machine.clone()]);
        }
        let found = cell
            .faster
            .found
            .map_or("—".to_owned(), |share| hundredths(share.observed));
        if let Some(row) = rows.last_mut() {
            row.push(format!("{found} ({:.0})", cell.pairs));
        }
    }
    table(&header, rows, 2, width)
}

/// In percent: `0.15 [0.03…0.44]`.
fn with_interval(share: &Share) -> String {
    format!(
        "{} [{}…{}]",
        hundredths(share.observed),
        hundredths(share.lower),
        hundredths(share.upper)
    )
}

/// A share in percent, with a second digit where shares are small.
fn hundredths(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0".to_owned(),
        all if all >= 100.0 => "100".to_owned(),
        small if small < 1.0 => format!("{small:.2}"),
        _ => format!("{percent:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use gauntlet_judge::Measurement;
    use gauntlet_report::widest;
    use gauntlet_stats::{Criteria, Decision, Origin};

    use super::*;
    use crate::characteristics::injected::Injected;
    use crate::characteristics::{Extent, goals};

    fn cell(machine: &str, effect: Effect, decision: Decision, comparisons: usize) -> Cell {
        let rules = std::iter::once(Rule::Gauntlet).chain(Rule::RIVALS);
        let said = vec![decision; comparisons];
        Cell {
            machine: machine.to_owned(),
            effect,
            pairs: 8.25,
            seconds: 6.0,
            rules: rules
                .map(|rule| Tally::new(rule, &said, effect, &Criteria::default()))
                .collect(),
        }
    }

    fn found() -> Characteristics {
        let synthetic = vec![
            cell("white", Effect::NONE, Decision::ValidNegative, 2000),
            cell("white", Effect::SLOWER, Decision::Regression, 500),
            cell("noisy neighbour", Effect::NONE, Decision::Inconclusive, 2000),
            cell("noisy neighbour", Effect::SLOWER, Decision::Inconclusive, 500),
        ];
        let tally =
            |decision, effect| Tally::new(Rule::Gauntlet, &[decision; 200], effect, &Criteria::default());
        let live = vec![cell("this machine", Effect::NONE, Decision::ValidNegative, 3)];
        Characteristics {
            extent: Extent {
                synthetic: 2000,
                live: 3,
                seed: 1,
            },
            criteria: Criteria::default(),
            measurement: Measurement::default(),
            parameters: Default::default(),
            goals: [goals::of_synthetic(&synthetic), goals::of_live(&live)].concat(),
            synthetic,
            estimators: Estimator::ALL
                .map(|estimator| EstimatorCell {
                    machine: "white".to_owned(),
                    estimator,
                    same: tally(Decision::ValidNegative, Effect::NONE),
                    faster: tally(Decision::Adopt, Effect::of(0.03)),
                    pairs: 21.0,
                })
                .into(),
            live,
            live_comparisons: Vec::new(),
            live_spread: Some(0.0123),
        }
    }

    #[test]
    fn every_machine_has_its_rows_and_every_rule_its_column() {
        let text = strip_str(&characteristics(&found(), 100)).to_string();
        let row = |start: &str| {
            let rows = text.lines().filter(|line| line.trim_start().starts_with(start));
            rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            row("the same"),
            [
                "the same 2000 0 [0…0.18] 0 [0…0.18] 100 [99.8…100] 0 [0…0.18] 8.2 6 s",
                "the same 2000 0 [0…0.18] 0 [0…0.18] 0 [0…0.18] 100 [99.8…100] 8.2 6 s",
                "the same 3 0 [0…70.8] 0 [0…70.8] 100 [29.2…100] 0 [0…70.8] 8.2 6 s",
            ]
        );
        assert_eq!(
            row("5 % slower")[0],
            "5 % slower 500 0 [0…0.74] — 100 [99.3…100] 0 [0…0.74] 8.2 6 s"
        );
        assert!(
            text.contains("pairs of processes stray by 1.2 % around"),
            "{text}"
        );
        let estimators = "white 100 (21) 100 (21) 100 (21) 100 (21) 100 (21)".to_owned();
        assert!(row("white").contains(&estimators), "{text}");
        for rule in PRINTED {
            let word = rule.name().split(' ').next().unwrap();
            assert!(text.contains(word), "{word}");
        }
    }

    #[test]
    fn injected_effects_are_shown_beside_what_was_found() {
        let comparison = |injected: f64, estimate: f64| LiveComparison {
            effect: Effect::FASTER,
            injected: Some(Injected {
                log_slowdown: injected.ln(),
                standard_error: 0.0,
                calls: 384,
            }),
            decision: Decision::Adopt,
            suspicion: None,
            pairs: 4,
            interval: Some(Interval {
                estimate: estimate.ln(),
                lower: (estimate - 0.01).ln(),
                upper: (estimate + 0.01).ln(),
                origin: Origin::Measured {
                    confidence: 0.95,
                    processes: 4,
                },
            }),
            process_effects: Vec::new(),
            seed: 1,
        };
        let rows = injected_rows(&[comparison(1.052, 1.055), comparison(1.052, 1.07)]).unwrap();
        assert_eq!(rows, [["5 % faster", "2", "+5.2 %", "+6.2 %", "1 of 2"]]);
        assert_eq!(injected_rows(&[]), None);
    }

    #[test]
    fn missed_goals_are_named_and_the_others_counted() {
        let text = strip_str(&characteristics(&found(), 100)).to_string();
        let last: Vec<&str> = text.trim_end().lines().rev().take(2).collect();
        assert_eq!(
            last[0],
            "✗ 5 of 8 goals held, 1 missed, 2 open for want of comparisons."
        );
        assert!(
            last[1].contains(
                "noisy neighbour: 5 % slower is found in 0 [0…0.74] % of 500 (at least 95.0 % wanted)"
            ),
            "{text}"
        );
    }

    #[test]
    fn it_fits() {
        for width in [70, 100, 140] {
            let text = strip_str(&characteristics(&found(), width)).to_string();
            assert!(widest(text.lines()) <= width, "{width}: {text}");
        }
    }

    #[test]
    fn small_shares_keep_their_digits() {
        for (share, text) in [
            (0.0, "0"),
            (0.0015, "0.15"),
            (0.0123, "1.2"),
            (0.9996, "100.0"),
            (1.0, "100"),
        ] {
            assert_eq!(hundredths(share), text);
        }
        assert_eq!(with_interval(&Share::new(0, 2000)), "0 [0…0.18]");
    }
}
