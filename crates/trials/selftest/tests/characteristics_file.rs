//! The format of the file that `selftest --json` writes for other programs.

use std::collections::BTreeMap;

use gauntlet_judge::{Measurement, Suspicion};
use gauntlet_selftest::characteristics::cell::Cell;
use gauntlet_selftest::characteristics::effect::Effect;
use gauntlet_selftest::characteristics::estimator::{Estimator, EstimatorCell};
use gauntlet_selftest::characteristics::injected::Injected;
use gauntlet_selftest::characteristics::live::{LiveComparison, spread};
use gauntlet_selftest::characteristics::rule::Rule;
use gauntlet_selftest::characteristics::tally::Tally;
use gauntlet_selftest::characteristics::{Characteristics, Extent, goals};
use gauntlet_stats::{Criteria, Decision, Interval, Origin};

#[test]
fn its_shape_is_as_documented() {
    let criteria = Criteria::default();
    let tally = |rule, effect, decision, count| Tally::new(rule, &vec![decision; count], effect, &criteria);
    let synthetic = vec![Cell {
        machine: "white".to_owned(),
        effect: Effect::SLOWER,
        pairs: 4.5,
        seconds: 2.5,
        rules: vec![
            tally(Rule::Gauntlet, Effect::SLOWER, Decision::Regression, 500),
            tally(
                Rule::MannWhitneyBySize,
                Effect::SLOWER,
                Decision::Inconclusive,
                500,
            ),
        ],
    }];
    let live = vec![Cell {
        machine: "this machine".to_owned(),
        effect: Effect::NONE,
        pairs: 9.0,
        seconds: 6.0,
        rules: vec![tally(Rule::Gauntlet, Effect::NONE, Decision::ValidNegative, 1)],
    }];
    let live_comparisons = vec![LiveComparison {
        effect: Effect::NONE,
        injected: Some(Injected {
            log_slowdown: 0.0625,
            standard_error: 0.001953125,
            calls: 384,
        }),
        decision: Decision::Inconclusive,
        suspicion: Some(Suspicion::Untimed {
            after: false,
            calls: 1.5,
        }),
        pairs: 2,
        interval: Some(Interval {
            estimate: 0.0,
            lower: -0.25,
            upper: 0.25,
            origin: Origin::Measured {
                confidence: 0.95,
                processes: 2,
            },
        }),
        process_effects: vec![-0.125, 0.125],
        seed: 7,
    }];
    let found = Characteristics {
        extent: Extent {
            synthetic: 2000,
            live: 1,
            seed: 1,
        },
        goals: [goals::of_synthetic(&synthetic), goals::of_live(&live)].concat(),
        criteria: criteria.clone(),
        measurement: Measurement::default(),
        parameters: BTreeMap::from([("jitter".to_owned(), vec![0.02])]),
        synthetic,
        estimators: vec![EstimatorCell {
            machine: "white".to_owned(),
            estimator: Estimator::LowerQuartile,
            same: tally(Rule::Gauntlet, Effect::NONE, Decision::ValidNegative, 500),
            faster: tally(Rule::Gauntlet, Effect::of(0.03), Decision::Adopt, 500),
            pairs: 8.0,
        }],
        live,
        live_spread: spread(&live_comparisons),
        live_comparisons,
    };
    insta::assert_json_snapshot!(found);
}
