//! What multiplying a step costs.

use gauntlet_device::Arch;
use gauntlet_problem::Problem;
use gauntlet_schedule::resources::weights;

use super::Setting;
use crate::gpu::assumed;

/// Bytes of an NVFP4 value without its scale.
const NVFP4: f64 = 0.5;
/// Bytes of an fp16 value.
const HALF: f64 = 2.0;

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
    shapes(setting).map(|shape| shape.map_or(0.0, |shape| shape.cycles(setting)))
}

/// Bytes of operands that products of a step read from shared memory.
pub(super) fn shared_bytes(setting: &Setting) -> f64 {
    let read = shapes(setting).map(|shape| {
        shape.map_or(0.0, |shape| {
            shape.instructions(setting) * shape.instruction_bytes(setting)
        })
    });
    read.iter().sum()
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

/// The products of a GEMM, of scores, and of values.
fn shapes(setting: &Setting) -> [Option<Shape>; 3] {
    let tile = setting.schedule.tile;
    let blackwell = setting.machine.arch == Arch::Sm100a;
    let (columns, k) = (tile.n as f64, tile.k as f64);
    let shape = |columns, depth, bytes, times, rows_shared| {
        Some(Shape {
            rows: tile.m as f64 / setting.bundle.pair as f64,
            columns,
            depth,
            bytes,
            times,
            rows_shared,
        })
    };
    match setting.problem {
        Problem::GroupedGemm(gemm) => {
            let bytes = if blackwell { NVFP4 } else { HALF };
            [
                shape(columns, k, bytes, weights(gemm) as f64, blackwell),
                None,
                None,
            ]
        }
        Problem::Attention(attention) => {
            let bytes = attention.format.bytes() as f64;
            let scores = shape(columns, k, bytes, 1.0, true);
            [None, scores, shape(k, columns, bytes, 1.0, blackwell)]
        }
    }
}

impl Shape {
    /// The slower of the unit's rate and of reading operands from shared memory, which each instruction does anew.
    fn cycles(&self, setting: &Setting) -> f64 {
        let machine = setting.machine;
        let rate = 2.0 * self.instruction_rows(setting) * self.columns * self.depth / machine.product_rate;
        let reading = if setting.ideal.copy {
            0.0
        } else {
            self.instruction_bytes(setting) / machine.shared_rate
        };
        self.instructions(setting) * rate.max(reading)
    }

    /// Rows of one instruction of a block. Those of `mma.sync` are small enough to fit any tile.
    fn instruction_rows(&self, setting: &Setting) -> f64 {
        match setting.machine.arch {
            Arch::Sm100a => 128.0,
            Arch::Sm90a => 64.0,
            Arch::Sm80 | Arch::Sm89 | Arch::Cpu => self.rows,
        }
    }

    /// Instructions over the whole depth.
    fn instructions(&self, setting: &Setting) -> f64 {
        (self.rows / self.instruction_rows(setting)).ceil() * self.times
    }

    /// Bytes one of them reads from shared memory; of a pair, each block reads its half of the columns. `mma.sync` takes
    /// fragments from registers, and loading those is part of converting them.
    fn instruction_bytes(&self, setting: &Setting) -> f64 {
        let columns = self.columns / setting.bundle.pair as f64;
        let rows = match setting.machine.arch {
            Arch::Sm80 | Arch::Sm89 | Arch::Cpu => return 0.0,
            Arch::Sm90a | Arch::Sm100a if self.rows_shared => self.instruction_rows(setting),
            Arch::Sm90a | Arch::Sm100a => 0.0,
        };
        (rows + columns) * self.depth * self.bytes
    }
}
