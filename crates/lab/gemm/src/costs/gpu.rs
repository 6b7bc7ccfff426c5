//! One step of a grouped GEMM on a GPU.

use gauntlet_device::Arch;
use gauntlet_problems::resources::{converts_beforehand, is_narrow, is_unified, weights};
use gauntlet_problems::{Order, Packing, Schedule};
use gauntlet_simulate::gpu::{Conversion, Kind, Read, Setting, Shape, Step, assumed};

use super::{Gemm, PACKED};

/// Bytes of an NVFP4 value without its scale.
const NVFP4: f64 = 0.5;
/// Bytes of an fp16 value.
const HALF: f64 = 2.0;

pub(super) fn step(gemm: &Gemm, kind: &Kind, setting: &Setting) -> Step {
    let blackwell = setting.machine.arch == Arch::Sm100a;
    let product = Shape {
        rows: setting.schedule.tile.m as f64 / setting.bundle.pair as f64,
        columns: columns(kind, setting),
        depth: setting.schedule.tile.k as f64,
        bytes: if blackwell { NVFP4 } else { HALF },
        times: weights(&gemm.gemm) as f64,
        rows_shared: blackwell,
        fragments: 0.0,
    };
    let rate = setting.machine.conversion_rate;
    let [kept, stored] = gemm.converted(kind, setting);
    Step {
        operands: gemm.reads(kind, setting),
        queries: None,
        conversion: Conversion {
            kept,
            stored,
            packed: PACKED,
            multiplied: HALF,
            rate: match setting.schedule.packing {
                Packing::Canonical => rate,
                Packing::Fragments | Packing::Steps => rate * assumed::REPACKED,
            },
            // `wgmma` on tokens as rows: a block converts weights, like its tokens, from there.
            through_shared: setting.machine.arch == Arch::Sm90a && !setting.schedule.swap_ab,
        },
        products: [Some(product), None, None],
        scalar: 0.0,
        softmax: 0.0,
        scores_moved: 0.0,
    }
}

/// Columns that a tile computes: all, except that sorted tiles on sm_90a, and all of the unified kernel, are as wide
/// as their tokens, rounded up to eights.
fn columns(kind: &Kind, setting: &Setting) -> f64 {
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

impl Gemm {
    /// Matrices on the row and on the column side of a tile.
    fn sets(&self, schedule: &Schedule) -> (f64, f64) {
        let weights = weights(&self.gemm) as f64;
        if schedule.swap_ab {
            (weights, 1.0)
        } else {
            (1.0, weights)
        }
    }

    /// Values that a step converts in registers, and into shared memory. `wgmma` takes rows from registers and columns from
    /// shared memory. `mma.sync` takes both from registers. The unified kernel converts weights alone: tokens were converted
    /// beforehand, and a warp has its rows to itself. 16-bit tokens are multiplied as they are.
    fn converted(&self, kind: &Kind, setting: &Setting) -> [f64; 2] {
        let (m, n) = (setting.schedule.tile.m as f64, setting.schedule.tile.n as f64);
        let (row_sets, column_sets) = self.sets(setting.schedule);
        match setting.machine.arch {
            Arch::Sm100a | Arch::Cpu => [0.0; 2],
            arch if is_unified(setting.schedule, arch) => [row_sets * m * kind.depth, 0.0],
            Arch::Sm90a => [row_sets * m * kind.depth, column_sets * n * kind.depth],
            Arch::Sm80 | Arch::Sm89 => {
                let is_half = self.gemm.tokens.is_half() && setting.schedule.swap_ab;
                let columns = if is_half { 0.0 } else { column_sets * n };
                let values = (row_sets * m + columns) * kind.depth;
                [values * assumed::FRAGMENT_COPIES, 0.0]
            }
        }
    }

    fn reads(&self, kind: &Kind, setting: &Setting) -> [Read; 2] {
        let (row_sets, column_sets) = self.sets(setting.schedule);
        let pair = setting.bundle.pair as f64;
        let fp16 = converts_beforehand(
            setting.schedule,
            setting.problem.operation(),
            setting.machine.arch,
        );
        let (row_value, column_value) = if setting.schedule.swap_ab {
            (PACKED, self.token_bytes())
        } else {
            (self.token_bytes(), PACKED)
        };
        let row_bytes = row_sets * kind.rows * kind.depth / pair * row_value;
        let columns = column_sets * kind.columns * kind.depth / pair;
        let column_bytes = columns * if fp16 { HALF } else { column_value };
        [
            Read {
                bytes: row_bytes,
                shared_by: setting.bundle.columns as f64,
                from_memory: kind.rows_from_memory,
                boxes: row_sets * setting.boxes(row_bytes / row_sets) + row_sets,
            },
            Read {
                bytes: column_bytes,
                shared_by: setting.bundle.rows as f64,
                // Converted just before, so they are in the cache.
                from_memory: if fp16 { 0.0 } else { kind.columns_from_memory },
                boxes: column_sets * setting.boxes(column_bytes / column_sets)
                    + if fp16 { 0.0 } else { column_sets },
            },
        ]
    }
}
