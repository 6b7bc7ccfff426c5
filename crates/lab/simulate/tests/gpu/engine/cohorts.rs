//! Multiprocessors simulated as one, compared with separate simulations of each.

use gauntlet_problems::{Order, Schedule};

use super::*;
use gauntlet_simulate::gpu::Share;

/// Every cluster simulated separately.
fn apart(deal: &Deal) -> Deal {
    let shares = deal
        .shares
        .iter()
        .flat_map(|share| {
            (0..share.alike).map(|index| Share {
                cluster: share.cluster + index,
                alike: 1,
                blocks: share.blocks.clone(),
            })
        })
        .collect();
    Deal {
        shares,
        ..deal.clone()
    }
}

fn end(order: Order, rows: &[usize], together: bool) -> f64 {
    let problem = groups(rows.iter().map(|&m| [m, 1024, 1024]));
    let schedule = Schedule {
        order,
        ..specialised([128, 128, 256], 3)
    };
    let device = Device::builtin("b200").unwrap();
    let mut machine = Machine::of(&device, &problem).unwrap();
    // Without contention for memory, multiprocessors do not affect each other, and the two results must be
    // bit-identical.
    machine.memory_rate = f64::INFINITY;
    machine.cache_rate = f64::INFINITY;
    let (kinds, costs): (Vec<_>, Vec<_>) = tiles(&problem, &schedule, &machine, 20).into_iter().unzip();
    let code = Code::of(&problem.model().program(&schedule, device.arch));
    let deal = Deal::of(&kinds, order, 20, if order == Order::PerTile { 2 } else { 1 });
    let scene = Scene {
        code: &code,
        costs: &costs,
        machine: &machine,
        ideal: Ideal::default(),
        width: 1,
        pair: false,
        recording: false,
    };
    let outcome = run(scene, &if together { deal } else { apart(&deal) });
    assert!(outcome.complete);
    assert!(outcome.clusters() <= 20);
    outcome.end
}

#[test]
fn alike_multiprocessors_are_simulated_as_one_without_a_difference() {
    for order in [Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic] {
        for rows in [&[300][..], &[40, 500, 130], &[1, 2, 3, 4, 5, 6, 7, 8, 900]] {
            let (one, each) = (end(order, rows, true), end(order, rows, false));
            assert!((one / each - 1.0).abs() < 1e-12, "{order} {rows:?}: {one} {each}");
        }
    }
}
