//! The loops that were measured on an H200 (`scripts/gpu-parameters`), simulated with the figures derived from them.
//! All run at the clock during the measurement, 1980 MHz, so that cycles can be compared.

use gauntlet_problems::{Order, Packing};
use gauntlet_tile_program::Condition;

use super::*;

/// The description, at the clock during the measurement.
fn h200() -> Device {
    let mut device = Device::builtin("h200").unwrap();
    device.clock = Some(gauntlet_device::Figure::new(
        1980e6,
        "the clock of the measurement",
    ));
    device
}

/// Blocks start immediately, because the loops measure their own time.
fn machine() -> Machine {
    Machine {
        block_start: 0.0,
        ..Machine::of(&h200(), &gemm(128, 128, 128)).unwrap()
    }
}

/// At a lower clock, fewer bytes per second pass through the second-level cache and into shared memory, and as many
/// come from memory.
#[test]
fn copies_follow_the_clock_and_memory_does_not() {
    let at_boost = Machine::of(&h200(), &gemm(128, 128, 128)).unwrap();
    let under_load = Machine::of(&Device::builtin("h200").unwrap(), &gemm(128, 128, 128)).unwrap();
    assert!(under_load.clock < 0.9 * at_boost.clock);
    let a_clock = |machine: &Machine| {
        [
            machine.copy_rate,
            machine.arrival_rate,
            machine.cache_rate,
            machine.shared_rate,
        ]
    };
    assert_eq!(a_clock(&under_load), a_clock(&at_boost));
    let a_second = |machine: &Machine| machine.memory_rate * machine.clock;
    assert!((a_second(&under_load) / a_second(&at_boost) - 1.0).abs() < 1e-12);
}

fn costs_of_nothing() -> (Kind, Costs) {
    let (_, kind, costs) = single("h200", &specialised([64, 64, 16], 1));
    (kind, costs)
}

/// Inputs: one and sixteen in flight. Checks: two and four.
#[test]
fn products_overlap_as_measured() {
    let machine = machine();
    let (kind, costs) = costs_of_nothing();
    let steps = 1024;
    for (in_flight, measured) in [(1, 76.36), (2, 54.18), (4, 43.18), (16, 35.01)] {
        // All copies in flight form one step and are waited for together.
        let costs = Costs {
            steps: steps / in_flight,
            products: [32.3 * in_flight as f64, 0.0, 0.0],
            ..costs
        };
        let program = TileProgram {
            buffers: vec![operands(1)],
            roles: vec![role(
                "multiplier",
                vec![MULTIPLY, Action::AwaitProducts { outstanding: 0 }],
            )],
        };
        let ours = one_tile(&program, &machine, kind.clone(), costs, false).end / steps as f64;
        assert!(
            (ours / measured - 1.0).abs() < 0.02,
            "{in_flight}: {ours} {measured}"
        );
    }
}

/// B/clk of a block that only copies: the thread that waits for a slot arms and starts the next copy.
fn stream(kilobytes: f64, slots: usize) -> f64 {
    let machine = machine();
    let (kind, costs) = costs_of_nothing();
    let bytes = kilobytes * 1024.0;
    let steps = 2000;
    let copy = Transfer {
        issue: machine.bulk_issue[0],
        occupation: bytes / machine.copy_rate,
        arrival: bytes / machine.arrival_rate,
        latency: machine.copy_latency[1],
        ..Transfer::default()
    };
    let costs = Costs {
        steps,
        operands: [copy; 2],
        ..costs
    };
    let load = |ahead| Action::Load {
        buffer: 0,
        ahead,
        copy: CopyMethod::Bulk,
    };
    let body = vec![
        Statement::Do(Action::Await { buffer: 0 }),
        Statement::If(Condition::HasStepAhead(slots), vec![Statement::Do(load(slots))]),
    ];
    let first = Statement::Repeat(Extent::FirstSteps(slots), vec![Statement::Do(load(0))]);
    let program = TileProgram {
        buffers: vec![operands(slots)],
        roles: vec![Role {
            name: "everyone",
            warps: 1,
            body: vec![Statement::Repeat(
                Extent::Tiles,
                vec![first, Statement::Repeat(Extent::Steps, body)],
            )],
        }],
    };
    steps as f64 * bytes / one_tile(&program, &machine, kind, costs, false).end
}

/// Inputs: 4 KiB and 16 KiB with four slots. Checks: the others, from the second-level cache.
#[test]
fn streams_of_copies_come_near_the_measured_ones() {
    for (kilobytes, slots, measured) in [
        (4.0, 1, 11.15),
        (4.0, 2, 22.05),
        (4.0, 4, 34.28),
        (8.0, 1, 20.40),
        (8.0, 2, 40.28),
        (8.0, 4, 68.42),
        (16.0, 1, 34.48),
        (16.0, 2, 64.36),
        (16.0, 4, 104.9),
        (16.0, 8, 104.5),
    ] {
        let ours = stream(kilobytes, slots);
        assert!(
            (ours / measured - 1.0).abs() < 0.1,
            "{kilobytes} KiB, {slots} slots: {ours} {measured}"
        );
    }
}

/// Input: 162 cycles there and back.
#[test]
fn a_slot_goes_back_and_forth_as_measured() {
    let machine = machine();
    let (kind, costs) = costs_of_nothing();
    let steps = 500;
    let acquire = Action::Acquire { buffer: 0, ahead: 0 };
    let publish = Action::Publish {
        buffer: 0,
        when: Signal::Now,
    };
    let program = TileProgram {
        buffers: vec![operands(1)],
        roles: vec![
            role("giver", vec![acquire, publish]),
            role("taker", vec![Action::Await { buffer: 0 }, release(Signal::Now)]),
        ],
    };
    let ours = one_tile(&program, &machine, kind, Costs { steps, ..costs }, false).end / steps as f64;
    assert!((ours / 162.1 - 1.0).abs() < 0.02, "{ours}");
}

/// Inputs: the first and the slope through the three.
#[test]
fn blocks_meet_as_measured() {
    let machine = machine();
    let (kind, costs) = costs_of_nothing();
    let steps = 200;
    for (warps, measured) in [(4, 31.05), (8, 39.1), (12, 47.63)] {
        let program = TileProgram {
            buffers: vec![operands(1)],
            roles: vec![Role {
                warps,
                ..role("everyone", vec![Action::Synchronise])
            }],
        };
        let costs = Costs { steps, ..costs };
        let ours = one_tile(&program, &machine, kind.clone(), costs, false).end / steps as f64;
        assert!((ours / measured - 1.0).abs() < 0.02, "{warps}: {ours} {measured}");
    }
}

/// B/clk out of each of `blocks` multiprocessors that write tiles of 128 × 128 values one after another.
fn stored(how: fn(&Costs) -> Transfer, blocks: usize) -> f64 {
    let problem = gemm(128 * blocks, 128, 16);
    let schedule = specialised([128, 128, 16], 1);
    let machine = machine();
    let (kind, costs) = tiles(&problem, &schedule, &machine, blocks).remove(0);
    let steps = 64;
    let costs = Costs {
        steps,
        store: how(&costs),
        lookup: 0.0,
        descriptors: 0.0,
        ..costs
    };
    let program = TileProgram {
        buffers: vec![],
        roles: vec![role("storer", vec![Action::Store { from: None, to: None }])],
    };
    let code = Code::of(&program);
    let deal = Deal::of(&[kind], gauntlet_problems::Order::Static, blocks, 1);
    let scene = Scene {
        code: &code,
        costs: &[costs],
        machine: &machine,
        ideal: Ideal::default(),
        width: 1,
        pair: false,
        recording: false,
    };
    let outcome = run(scene, &deal);
    assert!(outcome.complete);
    (steps * 128 * 128 * 2) as f64 / outcome.end
}

/// Inputs: both rates in half sectors, and the rate of rows of one block. Check: rows out of all are as fast as out of one
/// (16.98 B/clk), although memory serves them.
#[test]
fn results_leave_as_fast_as_measured() {
    for (how, blocks, measured) in [
        ((|costs| costs.store) as fn(&Costs) -> Transfer, 1, 8.112),
        (|costs| costs.store, 132, 4.406),
        (|costs| costs.bulk_store, 1, 17.21),
        (|costs| costs.bulk_store, 132, 16.98),
    ] {
        let ours = stored(how, blocks);
        assert!(
            (ours / measured - 1.0).abs() < 0.07,
            "{blocks}: {ours} {measured}"
        );
    }
}

/// A step of swapped weights takes three copies (values, scales, tokens), and its weights are converted.
#[test]
fn measured_figures_stand_in_for_guesses_where_there_are_any() {
    let schedule = Schedule {
        swap_ab: true,
        ..specialised([128, 64, 128], 4)
    };
    let values = 128.0 * 128.0;
    for (name, issue, rate) in [("h200", 120.0 + 2.0 * 32.0, 24.0), ("h100", 3.0 * 32.0, 64.0)] {
        let (machine, _, costs) = single(name, &schedule);
        assert_eq!(costs.operands[0].issue, issue, "{name}");
        assert_eq!(costs.convert[0], values / rate, "{name}");
        let (.., repacked) = single(
            name,
            &Schedule {
                packing: Packing::Fragments,
                ..schedule.clone()
            },
        );
        assert!(repacked.convert[0] < costs.convert[0], "{name}");
        // Tokens as rows: both operands go through shared memory, at a separately measured rate where there is one.
        let (.., rows) = single(name, &specialised([128, 64, 128], 4));
        let expected = match name {
            "h200" => [values / 17.0, values / 2.0 / 17.0],
            _ => [values / rate, values / 2.0 / rate + values / machine.shared_rate],
        };
        assert_eq!(rows.convert, expected, "{name}");
        assert_eq!(machine.half_sectors_together.is_finite(), name == "h200");
    }
}

/// Sorted tiles of weights are as wide as their tokens, in eights; the others compute every column.
#[test]
fn sorted_tiles_are_as_wide_as_their_tokens() {
    let problem = gemm(20, 1024, 1024);
    let products = |order: Order| {
        let schedule = Schedule {
            swap_ab: true,
            order,
            ..specialised([128, 128, 128], 4)
        };
        tiles(&problem, &schedule, &machine(), 1)[0].1.products[0]
    };
    assert!(products(Order::Sorted) < 0.3 * products(Order::Static));
}
