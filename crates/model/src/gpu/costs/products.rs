//! What multiplying a step costs.

use gauntlet_device::Arch;
use gauntlet_problem::Problem;
use gauntlet_schedule::resources::weights;

use super::Setting;
use crate::gpu::assumed;

/// One product of a step on one multiprocessor.
struct Shape {
    rows: f64,
    columns: f64,
    depth: f64,
    /// Bytes of a value as it is multiplied.
    bytes: f64,
    /// How often.
    times: f64,
    /// Whether its rows are read from shared memory.
    rows_shared: bool,
}

/// Cycles of the matrix unit for the products of a GEMM, of scores, and of values. A tile's padding is multiplied like
/// the rest.
pub(super) fn of_a_step(setting: &Setting) -> [f64; 3] {
    let tile = setting.schedule.tile;
    let arch = setting.machine.arch;
    let rows = tile.m as f64 / setting.bundle.pair as f64;
    let (columns, k) = (tile.n as f64, tile.k as f64);
    let shape = |columns, depth, bytes, times, rows_shared| Shape {
        rows,
        columns,
        depth,
        bytes,
        times,
        rows_shared,
    };
    match setting.problem {
        Problem::GroupedGemm(gemm) => {
            let bytes = if arch == Arch::Sm100a { 0.5 } else { 2.0 };
            let gemm = shape(columns, k, bytes, weights(gemm) as f64, arch == Arch::Sm100a);
            [cycles(&gemm, setting), 0.0, 0.0]
        }
        Problem::Attention(attention) => {
            let bytes = attention.format.bytes() as f64;
            let scores = shape(columns, k, bytes, 1.0, true);
            let values = shape(k, columns, bytes, 1.0, arch == Arch::Sm100a);
            [0.0, cycles(&scores, setting), cycles(&values, setting)]
        }
    }
}

/// Cycles for the exponentials of a step's scores and what goes with them.
pub(super) fn softmax(setting: &Setting) -> f64 {
    if setting.ideal.conversion || !matches!(setting.problem, Problem::Attention(_)) {
        return 0.0;
    }
    let tile = setting.schedule.tile;
    let scores = (tile.m * tile.n) as f64 / setting.bundle.pair as f64;
    scores / setting.machine.exponential_rate + scores * assumed::SOFTMAX_INSTRUCTIONS / assumed::LANES
}

/// The slower of the unit's rate and of reading operands from shared memory, which each instruction does anew.
fn cycles(shape: &Shape, setting: &Setting) -> f64 {
    let machine = setting.machine;
    let instruction_rows = match machine.arch {
        Arch::Sm100a => 128.0,
        Arch::Sm90a => 64.0,
        // `mma.sync` takes fragments from registers; loading those is part of converting them.
        Arch::Sm80 | Arch::Sm89 | Arch::Cpu => {
            return 2.0 * shape.rows * shape.columns * shape.depth * shape.times / machine.product_rate;
        }
    };
    let instructions = (shape.rows / instruction_rows).ceil() * shape.times;
    let rate = 2.0 * instruction_rows * shape.columns * shape.depth / machine.product_rate;
    let rows = if shape.rows_shared { instruction_rows } else { 0.0 };
    // Of a pair, each reads its half of the columns.
    let columns = shape.columns / setting.bundle.pair as f64;
    let reading = (rows + columns) * shape.depth * shape.bytes / machine.shared_rate;
    instructions
        * if setting.ideal.copy {
            rate
        } else {
            rate.max(reading)
        }
}
