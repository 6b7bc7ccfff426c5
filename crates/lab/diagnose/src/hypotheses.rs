//! The explanations that are considered, and their prior probabilities.

use super::driver::{Amounts, Driver, Kind};

/// The maximum number of drivers of one explanation.
const MOST: usize = 3;

/// Two counts that are proportional within this tolerance are treated as one driver.
const DISTINCT: f64 = 0.01;

/// A set of drivers with its prior probability.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hypothesis {
    pub(super) drivers: Vec<Driver>,
    pub(super) prior: f64,
}

/// Every set of drivers of different kinds that `problems` different problems can distinguish from noise: fewer drivers
/// than problems, at most three.
///
/// Each number of drivers is equally likely, then each choice of kinds, then each way of counting them: a kind with
/// three ways of counting is not likelier because of that (a dilution prior, George 2010, "Dilution priors:
/// compensating for model space redundancy").
pub(super) fn hypotheses(drivers: &[Driver], problems: usize) -> Vec<Hypothesis> {
    let kinds: Vec<Vec<Driver>> = Kind::ALL
        .iter()
        .map(|kind| {
            drivers
                .iter()
                .copied()
                .filter(|driver| driver.kind() == *kind)
                .collect()
        })
        .filter(|ways: &Vec<Driver>| !ways.is_empty())
        .collect();
    let most = problems.saturating_sub(1).clamp(1, MOST).min(kinds.len());
    (1..=most).flat_map(|size| of_size(&kinds, size, most)).collect()
}

fn of_size(kinds: &[Vec<Driver>], size: usize, sizes: usize) -> Vec<Hypothesis> {
    let choices: Vec<Vec<&Vec<Driver>>> = (0_u32..1 << kinds.len())
        .filter(|choice| choice.count_ones() as usize == size)
        .map(|choice| {
            let chosen = |index: &usize| choice & 1 << index != 0;
            (0..kinds.len())
                .filter(chosen)
                .map(|index| &kinds[index])
                .collect()
        })
        .collect();
    let share = 1.0 / (sizes * choices.len()) as f64;
    choices.iter().flat_map(|choice| ways(choice, share)).collect()
}

/// One driver of each kind, in every combination.
fn ways(kinds: &[&Vec<Driver>], share: f64) -> Vec<Hypothesis> {
    let mut sets: Vec<Vec<Driver>> = vec![Vec::new()];
    for kind in kinds {
        sets = sets
            .iter()
            .flat_map(|set| kind.iter().map(|driver| [set.as_slice(), &[*driver]].concat()))
            .collect();
    }
    let prior = share / sets.len() as f64;
    sets.into_iter()
        .map(|drivers| Hypothesis { drivers, prior })
        .collect()
}

/// The drivers with non-zero counts, without those proportional to an earlier driver of their kind, and without groups
/// where each problem has one, as plain products have: their only group is the call. And the drivers left out, each with
/// the driver that it cannot be distinguished from.
pub(super) fn distinct(amounts: &[Amounts]) -> (Vec<Driver>, Vec<(Driver, Driver)>) {
    let mut kept: Vec<Driver> = Vec::new();
    let mut indistinct = Vec::new();
    for driver in Driver::ALL {
        if amounts.iter().any(|amounts| amounts.count(driver) <= 0.0) {
            continue;
        }
        let is_the_call =
            driver == Driver::Groups && amounts.iter().all(|amounts| amounts.count(driver) == 1.0);
        let same = |earlier: &&Driver| {
            let are_alike = earlier.kind() == driver.kind() || is_the_call && **earlier == Driver::Constant;
            are_alike && in_proportion(**earlier, driver, amounts)
        };
        match kept.iter().find(same) {
            Some(earlier) => indistinct.push((driver, *earlier)),
            None => kept.push(driver),
        }
    }
    (kept, indistinct)
}

fn in_proportion(one: Driver, other: Driver, amounts: &[Amounts]) -> bool {
    let ratios = amounts
        .iter()
        .map(|amounts| (amounts.count(one) / amounts.count(other)).ln());
    let low = ratios.clone().fold(f64::INFINITY, f64::min);
    let high = ratios.fold(f64::NEG_INFINITY, f64::max);
    high - low < DISTINCT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prior_adds_up_to_one_and_counts_kinds_and_not_ways() {
        for problems in 1..6 {
            let sum: f64 = hypotheses(&Driver::ALL, problems)
                .iter()
                .map(|one| one.prior)
                .sum();
            assert!((sum - 1.0).abs() < 1e-12);
        }
        let all = hypotheses(&Driver::ALL, 4);
        let of = |wanted: &[Driver]| all.iter().find(|one| one.drivers == wanted).unwrap().prior;
        let tile = of(&[Driver::Tiles]) + of(&[Driver::Waves]);
        assert!((tile - of(&[Driver::Bytes])).abs() < 1e-12);
        assert!((of(&[Driver::Bytes]) - 1.0 / 15.0).abs() < 1e-12);
        assert!(
            !all.iter()
                .any(|one| one.drivers.contains(&Driver::Tiles) && one.drivers.contains(&Driver::Waves))
        );
    }

    #[test]
    fn few_problems_allow_few_drivers() {
        let most = |problems| {
            hypotheses(&Driver::ALL, problems)
                .iter()
                .map(|one| one.drivers.len())
                .max()
        };
        assert_eq!([1, 2, 3, 4, 50].map(most), [1, 1, 2, 3, 3].map(Some));
    }
}
