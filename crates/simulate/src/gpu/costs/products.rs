//! The cost of multiplying a step.

use gauntlet_device::Arch;
use gauntlet_operations::resources::{
    by_mma_sync, is_narrow, is_unified, multiplied_bytes, multiplied_value_bytes, weights,
};
use gauntlet_operations::{Attention, Operation};
use gauntlet_operations::{Exponential, Layout, Order, Scores, Values};

use super::Setting;
use super::operands::fragment_copies;
use crate::gpu::assumed;
use crate::gpu::work::Kind;

/// Bytes of an NVFP4 value without its scale.
const NVFP4: f64 = 0.5;
/// Bytes of an fp16 value.
const HALF: f64 = 2.0;
/// Bytes of an fp32 value.
const SUM: f64 = 4.0;
/// Bytes that all banks of shared memory hold side by side.
const BANKS: usize = 128;
/// Bytes of a row that one read of a matrix fragment takes; it reads eight rows at the same time (PTX ISA, ldmatrix).
const PIECE: usize = 16;

/// One product of a step on one multiprocessor.
struct Shape {
    rows: f64,
    columns: f64,
    depth: f64,
    /// Bytes per value in the multiplied format.
    bytes: f64,
    /// How often it is computed.
    times: f64,
    /// Whether its rows are read from shared memory.
    rows_shared: bool,
    /// Bytes that `mma.sync` reads from shared memory, multiplied by their bank conflicts.
    fragments: f64,
}

/// Cycles of the matrix unit for the products of a GEMM, of scores, and of values. A tile's padding is multiplied too.
pub(super) fn of_a_step(kind: &Kind, setting: &Setting) -> [f64; 3] {
    shapes(kind, setting).map(|shape| shape.map_or(0.0, |shape| shape.cycles(setting)))
}

/// Bytes of operands that products of a step read from shared memory.
pub(super) fn shared_bytes(kind: &Kind, setting: &Setting) -> f64 {
    let read = shapes(kind, setting).map(|shape| {
        shape.map_or(0.0, |shape| {
            shape.instructions(setting) * shape.instruction_bytes(setting)
        })
    });
    read.iter().sum::<f64>() + scores_moved(setting)
}

/// Cycles of a step's values by fused multiply-adds, if they are multiplied in this way.
pub(super) fn scalar(setting: &Setting) -> f64 {
    match (setting.problem.operation(), setting.schedule.values) {
        (Operation::Attention(_), Values::Scalar) => {
            let tile = setting.schedule.tile;
            (tile.m * tile.n * tile.k) as f64 * assumed::SCALAR_INSTRUCTIONS / assumed::LANES
        }
        _ => 0.0,
    }
}

/// Cycles for the exponentials of a step's scores and the related work, including transfers through shared memory.
pub(super) fn softmax(setting: &Setting) -> f64 {
    if setting.ideal.conversion || !matches!(setting.problem.operation(), Operation::Attention(_)) {
        return 0.0;
    }
    let tile = setting.schedule.tile;
    let scores = (tile.m * tile.n) as f64 / setting.bundle.pair as f64;
    scores * (exponential(setting) + assumed::SOFTMAX_INSTRUCTIONS / assumed::LANES)
        + scores_moved(setting) / setting.machine.shared_rate
}

/// Cycles of one exponential.
fn exponential(setting: &Setting) -> f64 {
    let machine = setting.machine;
    let hardware = 1.0 / machine.exponential_rate;
    match setting.schedule.exponential {
        Exponential::Hardware => hardware,
        Exponential::Polynomial => {
            let share = assumed::POLYNOMIAL_SHARE;
            (1.0 - share) * hardware + share * assumed::POLYNOMIAL_INSTRUCTIONS / assumed::LANES
        }
        Exponential::Table => assumed::TABLE_INSTRUCTIONS / assumed::LANES + 1.0 / assumed::EXCHANGED,
    }
}

/// Bytes of a step's scores into and out of shared memory, and of its weights into it.
fn scores_moved(setting: &Setting) -> f64 {
    let tile = setting.schedule.tile;
    match (setting.problem.operation(), setting.schedule.scores) {
        (Operation::GroupedGemm(_), _) | (_, Scores::Registers) => 0.0,
        (Operation::Attention(_), Scores::InPlace | Scores::Separate) => {
            let weight = match setting.schedule.values {
                Values::Matrix => HALF,
                Values::Scalar => SUM,
            };
            (tile.m * tile.n) as f64 * (SUM + SUM + weight)
        }
    }
}

/// The factor by which bank conflicts slow reads of fragments, for rows of `row_bytes` bytes. Without swizzling, the
/// pieces of eight rows are in the same banks if the row length is a multiple of the length of all banks.
fn turns(row_bytes: usize, setting: &Setting) -> f64 {
    match setting.schedule.layout {
        Layout::Swizzled => 1.0,
        Layout::Plain => {
            let aligned = 1 << row_bytes.max(1).trailing_zeros();
            (aligned.min(BANKS) / PIECE).max(1) as f64
        }
    }
}

/// The products of a GEMM, of scores, and of values.
fn shapes(kind: &Kind, setting: &Setting) -> [Option<Shape>; 3] {
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
            fragments: 0.0,
        })
    };
    match setting.problem.operation() {
        Operation::GroupedGemm(gemm) => {
            let bytes = if blackwell { NVFP4 } else { HALF };
            [
                shape(
                    gemm_columns(kind, setting),
                    k,
                    bytes,
                    weights(gemm) as f64,
                    blackwell,
                ),
                None,
                None,
            ]
        }
        Operation::Attention(attention) => {
            let bytes = multiplied_bytes(setting.schedule, attention) as f64;
            let scores = shape(columns, k, bytes, 1.0, true);
            let value_bytes =
                multiplied_value_bytes(setting.schedule, attention, setting.machine.arch) as f64;
            let values = shape(k, columns, value_bytes, 1.0, blackwell);
            let [of_scores, of_values] = fragments(attention, setting);
            let with = |shape: Shape, fragments| Shape { fragments, ..shape };
            [
                None,
                scores.map(|shape| with(shape, of_scores)),
                values
                    .filter(|_| setting.schedule.values == Values::Matrix)
                    .map(|shape| with(shape, of_values)),
            ]
        }
    }
}

/// Columns that a GEMM's tile computes: all, except that sorted tiles on sm_90a, and all of the unified kernel, are as wide
/// as their tokens, rounded up to eights.
fn gemm_columns(kind: &Kind, setting: &Setting) -> f64 {
    let Setting {
        schedule, machine, ..
    } = setting;
    let fits_tokens = machine.arch == Arch::Sm90a
        && schedule.swap_ab
        && schedule.order == Order::Sorted
        && !is_narrow(schedule);
    match fits_tokens || is_unified(schedule, machine.arch) {
        true => (kind.columns / 8.0).ceil() * 8.0,
        false => schedule.tile.n as f64,
    }
}

/// Bytes that the warps of `mma.sync` read from shared memory for a step's scores and for its values: keys, and values
/// together with the weights if those are there. Queries stay in registers.
fn fragments(attention: &Attention, setting: &Setting) -> [f64; 2] {
    if !by_mma_sync(setting.schedule, setting.machine.arch) {
        return [0.0; 2];
    }
    let tile = setting.schedule.tile;
    let row = tile.k * attention.format.bytes();
    let operand = (tile.n * row) as f64 * fragment_copies(setting) * turns(row, setting);
    let weights = match setting.schedule.scores {
        Scores::Registers => 0.0,
        Scores::InPlace | Scores::Separate => {
            let row = tile.n * multiplied_bytes(setting.schedule, attention);
            (tile.m * row) as f64 * turns(row, setting)
        }
    };
    [operand, operand + weights]
}

impl Shape {
    /// The slower of the unit's rate and of reading operands from shared memory, which each instruction repeats.
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
            Arch::Sm90a if self.fragments == 0.0 => 64.0,
            Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Cpu => self.rows,
        }
    }

    /// Instructions over the whole depth.
    fn instructions(&self, setting: &Setting) -> f64 {
        (self.rows / self.instruction_rows(setting)).ceil() * self.times
    }

    /// Bytes that one instruction reads from shared memory; in a pair, each block reads its half of the columns.
    /// `mma.sync` takes fragments from registers; for a GEMM, loading those is part of converting them.
    fn instruction_bytes(&self, setting: &Setting) -> f64 {
        if self.fragments > 0.0 {
            return self.fragments;
        }
        let columns = self.columns / setting.bundle.pair as f64;
        let rows = match setting.machine.arch {
            Arch::Sm80 | Arch::Sm89 | Arch::Cpu => return 0.0,
            Arch::Sm90a | Arch::Sm100a if self.rows_shared => self.instruction_rows(setting),
            Arch::Sm90a | Arch::Sm100a => 0.0,
        };
        (rows + columns) * self.depth * self.bytes
    }
}
