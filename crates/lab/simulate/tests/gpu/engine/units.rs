//! One unit at a time, compared with published figures.

use super::*;

/// Cycles to the result of one product of 128 rows in NVFP4, from the simulation of a program that issues it and waits.
fn latency(columns: usize, pair: bool) -> f64 {
    let schedule = Schedule {
        cluster: Cluster {
            m: if pair { 2 } else { 1 },
            n: 1,
        },
        ..specialised([if pair { 256 } else { 128 }, columns, 64], 1)
    };
    let (machine, kind, costs) = single("b200", &schedule);
    let costs = Costs { steps: 1, ..costs };
    let body = vec![MULTIPLY, Action::AwaitProducts { outstanding: 0 }];
    let program = TileProgram {
        buffers: vec![operands(1)],
        roles: vec![role("multiplier", body)],
    };
    one_tile(&program, &machine, kind, costs, pair).end
}

/// Inputs: 200 and 234 cycles at N = 128, N/2 cycles in the unit. Checks: the figures at N = 256, which come out only if
/// the unit is occupied as published, and those of mxf4 (201, 265).
#[test]
fn products_of_tcgen05_take_the_published_cycles() {
    for (columns, pair, published) in [
        (128, false, 200.0),
        (256, false, 264.0),
        (128, true, 234.0),
        (256, true, 298.0),
        (128, false, 201.0),
        (256, false, 265.0),
    ] {
        let ours = latency(columns, pair);
        assert!(
            (ours / published - 1.0).abs() < 0.02,
            "{columns} {pair}: {ours} {published}"
        );
    }
}

/// Cycles a product in a long row of them.
fn interval(name: &str, schedule: &Schedule) -> f64 {
    let (machine, kind, costs) = single(name, schedule);
    let program = TileProgram {
        buffers: vec![operands(1)],
        roles: vec![role("multiplier", vec![MULTIPLY])],
    };
    let products = |steps| {
        let costs = Costs { steps, ..costs };
        one_tile(&program, &machine, kind.clone(), costs, false).last_product
    };
    (products(1064) - products(64)) / 1000.0
}

/// Only 128 B/clk and the unit's rate are inputs.
#[test]
fn narrow_products_of_tcgen05_wait_for_shared_memory() {
    // A batch of four instructions a step, and 12 cycles for the batch: 48 cycles an instruction at N = 64, not 32.
    for (columns, published) in [(64, 48.0), (128, 64.0), (256, 128.0)] {
        let ours = (interval("b200", &specialised([128, columns, 256], 1)) - 12.0) / 4.0;
        assert!((ours / published - 1.0).abs() < 0.01, "{columns}: {ours}");
    }
}

/// A check throughout: the published table of `wgmma` m64nNk16, both operands from shared memory. The kernels here take
/// rows from registers, so this is attention's product of the scores.
#[test]
fn products_of_wgmma_follow_the_published_table() {
    let table = [
        (8, 18.9),
        (16, 20.7),
        (32, 24.7),
        (64, 32.8),
        (96, 48.7),
        (128, 65.0),
        (192, 97.1),
        (256, 129.3),
    ];
    for (columns, published) in table {
        let problem = attention(columns);
        let schedule = specialised([64, columns, 16], 1);
        let device = Device::builtin("h100").unwrap();
        let machine = Machine::of(&device, &problem).unwrap();
        let ours = tiles(&problem, &schedule, &machine, 1)[0].1.products[1];
        assert!(
            (ours / published - 1.0).abs() < 0.05,
            "{columns}: {ours} {published}"
        );
    }
}

fn attention(keys: usize) -> Problem {
    use gauntlet_problems::{Attention, AttentionFormat};
    operations::problem(&Operation::Attention(Attention::new(
        AttentionFormat::F16,
        [[64, keys]],
        [1, 1],
        16,
    )))
}

/// Input: 79 cycles alone. Checks: 42 with two and 33 with four in flight.
#[test]
fn products_of_wgmma_overlap_as_published() {
    let (machine, kind, costs) = single("h100", &specialised([64, 64, 16], 1));
    let steps = 1000;
    for (in_flight, published) in [(1, 79.0), (2, 42.0), (4, 33.0)] {
        let costs = Costs {
            steps,
            products: [32.8, 0.0, 0.0],
            ..costs
        };
        let wait = Action::AwaitProducts {
            outstanding: in_flight - 1,
        };
        let program = TileProgram {
            buffers: vec![operands(1)],
            // Issued, and waited for as soon as the limit of products in progress is reached.
            roles: vec![role("multiplier", vec![MULTIPLY, wait])],
        };
        let ours = one_tile(&program, &machine, kind.clone(), costs, false).end / steps as f64;
        assert!(
            (ours / published - 1.0).abs() < 0.1,
            "{in_flight}: {ours} {published}"
        );
    }
}

/// Bytes per second into one block that only copies.
fn copied(name: &str, stages: usize) -> f64 {
    let (machine, kind, costs) = single(name, &specialised([128, 128, 256], stages));
    let steps = 400;
    let program = TileProgram {
        buffers: vec![operands(stages)],
        roles: vec![
            producer(),
            role(
                "consumer",
                vec![Action::Await { buffer: 0 }, release(Signal::Now)],
            ),
        ],
    };
    let costs = Costs { steps, ..costs };
    let end = one_tile(&program, &machine, kind, costs, false).end;
    let bytes = 2.0 * 128.0 * 256.0 * 0.5625;
    steps as f64 * bytes / (end / machine.clock)
}

/// Input: the rate of copies one after another. Check: that six stages of 36,864 B, all that fit, are enough to reach
/// it from memory, and one is not: latency and slots decide that.
#[test]
fn one_block_is_filled_at_the_published_ceiling() {
    let ceiling = copied("b200", 6);
    assert!(
        (ceiling / 159e9 - 1.0).abs() < 0.1 && ceiling <= 159e9,
        "{ceiling}"
    );
    // 36,864 B each 0.7 µs and a little more.
    let alone = copied("b200", 1);
    assert!(
        alone < 36_864.0 / 0.7e-6 && alone > 0.5 * 36_864.0 / 0.7e-6,
        "{alone}"
    );
}

/// Checks: the published ends of single copies on a H100, 595 ns + 5.2 ns/KB, at 4 and 32 KB.
#[test]
fn a_single_copy_takes_its_latency_and_its_bytes() {
    let (machine, kind, costs) = single("h100", &specialised([128, 128, 256], 1));
    for kilobytes in [4.0, 32.0] {
        let bytes = kilobytes * 1024.0;
        let copy = Transfer {
            issue: 0.0,
            occupation: bytes / machine.copy_rate,
            arrival: bytes / machine.arrival_rate,
            latency: machine.copy_latency[0],
            ..costs.operands[0]
        };
        let costs = Costs {
            steps: 1,
            operands: [copy; 2],
            ..costs
        };
        let program = TileProgram {
            buffers: vec![operands(1)],
            roles: vec![producer(), role("consumer", vec![Action::Await { buffer: 0 }])],
        };
        let ours = one_tile(&program, &machine, kind.clone(), costs, false).end / machine.clock * 1e9;
        let published = 595.0 + 5.2 * kilobytes;
        assert!(
            (ours / published - 1.0).abs() < 0.05,
            "{kilobytes} KB: {ours} {published}"
        );
    }
}
