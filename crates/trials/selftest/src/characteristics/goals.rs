//! The lab's promises about its verdicts, checked against the counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::effect::Effect;
use super::rule::Rule;
use super::share::Share;
use super::tally::Tally;

/// The largest share of false adoptions, and of false regressions, when there is no difference.
const MAX_FALSE: f64 = 0.01;

/// The least share of comparisons in which a difference of 5 % is found within the default plan.
const MIN_FOUND: f64 = 0.95;

/// From this number of comparisons on, the observed share decides; the goals do not apply to fewer.
const ENOUGH_SYNTHETIC: Enough = Enough {
    same: 2000,
    different: 500,
};
const ENOUGH_LIVE: Enough = Enough {
    same: 100,
    different: 25,
};

struct Enough {
    same: usize,
    different: usize,
}

/// A goal and its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Goal {
    /// A kind of noise, or this machine.
    pub machine: String,
    /// The event that is counted.
    pub what: String,
    /// The bound on its share.
    pub bound: Bound,
    /// The observed share.
    pub share: Share,
    /// The status.
    pub standing: Standing,
}

/// A bound on a share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// The status of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Reached, with enough comparisons.
    Held,
    /// Not reached with enough comparisons, or certainly unreachable (95 %) with fewer.
    Missed,
    /// Too few comparisons to decide.
    Open,
}

impl Goal {
    fn new(cell: &Cell, what: &str, bound: Bound, share: Share, enough: usize) -> Self {
        let (reached, excluded) = match bound {
            Bound::AtMost(most) => (share.observed <= most, share.lower > most),
            Bound::AtLeast(least) => (share.observed >= least, share.upper < least),
        };
        let standing = match (reached, share.of >= enough) {
            (true, true) => Standing::Held,
            (false, true) => Standing::Missed,
            (_, false) if excluded => Standing::Missed,
            (_, false) => Standing::Open,
        };
        Self {
            machine: cell.machine.clone(),
            what: what.to_owned(),
            bound,
            share,
            standing,
        }
    }
}

/// The goals on synthetic machines: false adoptions, false regressions, and the power for a 5 % gain and a 5 %
/// slow-down.
pub fn of_synthetic(cells: &[Cell]) -> Vec<Goal> {
    of_cells(cells, MAX_FALSE, &ENOUGH_SYNTHETIC)
}

/// The goals on this machine; here, no false adoption is acceptable.
pub fn of_live(cells: &[Cell]) -> Vec<Goal> {
    of_cells(cells, 0.0, &ENOUGH_LIVE)
}

fn of_cells(cells: &[Cell], most_adopted: f64, enough: &Enough) -> Vec<Goal> {
    let mut goals = Vec::new();
    for cell in cells {
        let Some(own) = cell.tally(Rule::Gauntlet) else {
            continue;
        };
        let mut add = |what: &str, bound, share: Option<Share>, enough| {
            goals.extend(share.map(|share| Goal::new(cell, what, bound, share, enough)));
        };
        let Tally {
            false_adoption,
            false_regression,
            found,
            ..
        } = own;
        match cell.effect {
            Effect::NONE => {
                add(
                    "the same is adopted",
                    Bound::AtMost(most_adopted),
                    *false_adoption,
                    enough.same,
                );
                let what = "the same is called a regression";
                add(what, Bound::AtMost(MAX_FALSE), *false_regression, enough.same);
            }
            effect @ (Effect::SLOWER | Effect::FASTER) => {
                let what = format!("{effect} is found");
                add(&what, Bound::AtLeast(MIN_FOUND), *found, enough.different);
            }
            _ => {}
        }
    }
    goals
}

#[cfg(test)]
mod tests {
    use gauntlet_stats::{Criteria, Decision};

    use super::*;

    fn cell(effect: Effect, right: usize, wrong: usize, decisions: [Decision; 2]) -> Cell {
        let said = [vec![decisions[0]; right], vec![decisions[1]; wrong]].concat();
        Cell {
            machine: "any".to_owned(),
            effect,
            pairs: 4.0,
            seconds: 3.0,
            rules: vec![Tally::new(Rule::Gauntlet, &said, effect, &Criteria::default())],
        }
    }

    fn same(right: usize, adopted: usize) -> Cell {
        cell(
            Effect::NONE,
            right,
            adopted,
            [Decision::ValidNegative, Decision::Adopt],
        )
    }

    fn slower(found: usize, open: usize) -> Cell {
        cell(
            Effect::SLOWER,
            found,
            open,
            [Decision::Regression, Decision::Inconclusive],
        )
    }

    fn standings(goals: &[Goal]) -> Vec<Standing> {
        goals.iter().map(|goal| goal.standing).collect()
    }

    #[test]
    fn over_enough_comparisons_the_observed_share_decides() {
        use Standing::{Held, Missed};
        assert_eq!(standings(&of_synthetic(&[same(1980, 20)])), [Held, Held]);
        assert_eq!(standings(&of_synthetic(&[same(1979, 21)])), [Missed, Held]);
        assert_eq!(standings(&of_synthetic(&[slower(475, 25)])), [Held]);
        assert_eq!(standings(&of_synthetic(&[slower(474, 26)])), [Missed]);
    }

    #[test]
    fn fewer_comparisons_only_show_what_is_surely_missed() {
        use Standing::{Missed, Open};
        assert_eq!(standings(&of_synthetic(&[same(100, 0)])), [Open, Open]);
        assert_eq!(standings(&of_synthetic(&[same(90, 10)])), [Missed, Open]);
        assert_eq!(standings(&of_synthetic(&[slower(9, 1)])), [Open]);
        assert_eq!(standings(&of_synthetic(&[slower(5, 5)])), [Missed]);
    }

    #[test]
    fn not_one_real_worker_may_be_adopted_against_itself() {
        use Standing::{Held, Missed};
        assert_eq!(standings(&of_live(&[same(100, 0)])), [Held, Held]);
        assert_eq!(standings(&of_live(&[same(99, 1)])), [Missed, Held]);
        assert_eq!(standings(&of_live(&[same(7, 1)])), [Missed, Standing::Open]);
    }

    #[test]
    fn effects_without_a_goal_have_none() {
        assert!(of_synthetic(&[cell(Effect::INJECTED[1], 9, 0, [Decision::Adopt; 2])]).is_empty());
    }
}
