//! Loops of copies and products, compared with published loops.

use super::*;

fn tile_loop(stages: usize) -> TileProgram {
    let body = vec![
        Action::Await { buffer: 0 },
        MULTIPLY,
        release(Signal::ProductsDone),
    ];
    TileProgram {
        buffers: vec![operands(stages)],
        roles: vec![producer(), role("multiplier", body)],
    }
}

/// Seconds per step of a loop in one block.
fn step(name: &str, stages: usize, change: impl Fn(Costs, &Machine) -> Costs) -> f64 {
    let (machine, kind, costs) = single(name, &specialised([128, 128, 128], stages));
    let time = |steps| {
        let costs = change(Costs { steps, ..costs }, &machine);
        one_tile(&tile_loop(stages), &machine, kind.clone(), costs, false).last_product / machine.clock
    };
    (time(600) - time(100)) / 500.0
}

/// A stage of one box of 32 KB, and products of `cycles` cycles; this block uses the memory alone.
fn box_and_products(cycles: f64) -> impl Fn(Costs, &Machine) -> Costs {
    let bytes = 32.0 * 1024.0;
    move |costs, machine| Costs {
        operands: [Transfer {
            occupation: bytes / machine.copy_rate,
            arrival: bytes / machine.arrival_rate,
            cached: 0.0,
            memory: 0.0,
            ..costs.operands[0]
        }; 2],
        products: [cycles, 0.0, 0.0],
        ..costs
    }
}

/// A check: an own-clock microbenchmark on a B200 becomes 2.75× faster from 2 to 7 stages. Its tile is not known; seven
/// stages just fit if one is 128×128×64 in fp16, which is four instructions of 64 cycles.
#[test]
fn more_stages_help_a_specialised_loop() {
    let times: Vec<f64> = (1..=7)
        .map(|stages| step("b200", stages, box_and_products(256.0)))
        .collect();
    assert!(
        times.windows(2).all(|pair| pair[1] <= pair[0] * 1.001),
        "{times:?}"
    );
    let gain = times[1] / times[6];
    assert!((2.0..=3.0).contains(&gain), "{gain}: {times:?}");
}

/// A check: on a H100, loop time over the slower of its two sides is 2.21, 1.57, 1.32 and 1.27 with 2, 3, 4 and 6 stages,
/// cold. The loop is not described; here a stage is one box of 32 KB, and copying it is the slower side.
#[test]
fn a_hopper_loop_comes_near_its_slower_side_as_published() {
    // Four instructions m64n192k16: the tile whose two operands are 32 KB for 64 values of K.
    let slower = 32.0 * 1024.0 / 132e9;
    for (stages, published) in [(2, 2.21), (3, 1.57), (4, 1.32), (6, 1.27)] {
        let ours = step("h100", stages, box_and_products(4.0 * 97.1)) / slower;
        assert!(
            (ours / published - 1.0).abs() < 0.15,
            "{stages}: {ours} {published}"
        );
    }
}
