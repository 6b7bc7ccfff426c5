//! The tiles of a problem in classes of equal tiles, and how long they keep processors busy.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gauntlet_problems::Order;

/// Consecutive tiles with equal costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The number of tiles.
    pub count: usize,
    /// Steps along the summed dimension, per tile.
    pub steps: usize,
    /// Floating-point operations of the products with padding, per tile.
    pub flops: f64,
}

/// Tiles per processor of one class that are assigned one by one. Of longer classes, each processor first gets an equal
/// share of the excess; this bounds the work and has no visible effect.
const ROUNDS: usize = 64;

/// The cost of the busiest of `processors` when tiles are assigned in the schedule's order: each to the least loaded
/// processor (`per-tile`, `dynamic`), or in turn (`static`; `sorted`, the most expensive first).
pub fn busiest(classes: &[Class], processors: usize, order: Order, cost: impl Fn(&Class) -> f64) -> f64 {
    let processors = processors.max(1);
    let mut classes: Vec<_> = classes.iter().map(|class| (cost(class), class.count)).collect();
    if order == Order::Sorted {
        classes.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    }
    match order {
        Order::PerTile | Order::Sorted | Order::Dynamic => least_loaded(&classes, processors),
        Order::Static => in_turn(&classes, processors),
    }
}

fn least_loaded(classes: &[(f64, usize)], processors: usize) -> f64 {
    // The bit patterns of non-negative floats sort like their values.
    let mut loads: BinaryHeap<Reverse<u64>> = vec![Reverse(0); processors].into();
    let mut everyone = 0.0;
    let mut most = 0.0_f64;
    for &(cost, count) in classes {
        let shared = count.saturating_sub(ROUNDS * processors) / processors;
        everyone += shared as f64 * cost;
        for _ in 0..count - shared * processors {
            if let Some(mut least) = loads.peek_mut() {
                let load = f64::from_bits(least.0) + cost;
                most = most.max(load);
                least.0 = load.to_bits();
            }
        }
    }
    everyone + most
}

fn in_turn(classes: &[(f64, usize)], processors: usize) -> f64 {
    let mut loads = vec![0.0_f64; processors];
    let mut next = 0;
    for &(cost, count) in classes {
        let everyone = (count / processors) as f64 * cost;
        loads.iter_mut().for_each(|load| *load += everyone);
        let rest = count % processors;
        (0..rest).for_each(|index| loads[(next + index) % processors] += cost);
        next = (next + rest) % processors;
    }
    loads.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(count: usize, flops: f64) -> Class {
        Class {
            count,
            steps: 1,
            flops,
        }
    }

    #[test]
    fn equal_tiles_go_in_waves() {
        for order in [Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic] {
            assert_eq!(busiest(&[class(8, 3.0)], 4, order, |class| class.flops), 6.0);
            assert_eq!(busiest(&[class(9, 3.0)], 4, order, |class| class.flops), 9.0);
        }
    }

    #[test]
    fn orders_differ_where_tiles_do() {
        // 5, 1, 1, 1, 1 on two: in turn 5+1+1 | 1+1; least loaded 5 | 1+1+1+1.
        let long_first = [class(1, 5.0), class(4, 1.0)];
        assert_eq!(busiest(&long_first, 2, Order::Static, |class| class.flops), 7.0);
        assert_eq!(busiest(&long_first, 2, Order::Dynamic, |class| class.flops), 5.0);
        // 1, 1, 1, 1, 5: the long one last; sorted takes it first.
        let long_last = [class(4, 1.0), class(1, 5.0)];
        assert_eq!(busiest(&long_last, 2, Order::Dynamic, |class| class.flops), 7.0);
        assert_eq!(busiest(&long_last, 2, Order::Sorted, |class| class.flops), 5.0);
    }

    #[test]
    fn a_long_class_costs_its_share() {
        // 1,000,001 tiles on 4: 250,001 for one of them.
        assert_eq!(
            busiest(&[class(1_000_001, 2.0)], 4, Order::Dynamic, |class| class.flops),
            500_002.0
        );
        assert_eq!(
            busiest(&[class(1_000_001, 2.0)], 4, Order::Static, |class| class.flops),
            500_002.0
        );
    }

    proptest::proptest! {
        #[test]
        fn the_busiest_lies_between_the_mean_and_the_mean_and_one_more(
            sizes in proptest::collection::vec((1..40_usize, 1..20_u32), 1..8),
            processors in 1..9_usize,
        ) {
            let classes: Vec<_> = sizes.iter().map(|&(count, cost)| class(count, f64::from(cost))).collect();
            let total: f64 = classes.iter().map(|class| class.count as f64 * class.flops).sum();
            let dearest = classes.iter().map(|class| class.flops).fold(0.0, f64::max);
            let mean = total / processors as f64;
            for order in [Order::PerTile, Order::Dynamic] {
                let busiest = busiest(&classes, processors, order, |class| class.flops);
                proptest::prop_assert!(mean - 1e-9 <= busiest && busiest <= mean + dearest + 1e-9);
            }
            // With falling costs, shares assigned in turn also differ by at most the most expensive tile.
            let sorted = busiest(&classes, processors, Order::Sorted, |class| class.flops);
            proptest::prop_assert!(mean - 1e-9 <= sorted && sorted <= mean + dearest + 1e-9);
            let fixed = busiest(&classes, processors, Order::Static, |class| class.flops);
            proptest::prop_assert!(mean - 1e-9 <= fixed && fixed <= total + 1e-9);
        }
    }
}
