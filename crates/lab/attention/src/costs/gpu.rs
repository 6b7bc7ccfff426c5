//! One step of attention on a GPU.

use gauntlet_problems::resources::{
    by_mma_sync, multiplied_bytes, multiplied_value_bytes, operands_made_ready,
};
use gauntlet_problems::{Attention, Exponential, Layout, Scores, Values};
use gauntlet_simulate::gpu::{Conversion, Kind, Read, Setting, Shape, Step, assumed};

/// Bytes of an fp16 value.
const HALF: f64 = 2.0;
/// Bytes of an fp32 value.
const SUM: f64 = 4.0;
/// Rows of an `mma.sync`, all of one warp.
const WARP_ROWS: f64 = 16.0;
/// Bytes that all banks of shared memory hold side by side.
const BANKS: usize = 128;
/// Bytes of a row that one read of a matrix fragment takes; it reads eight rows at the same time (PTX ISA, ldmatrix).
const PIECE: usize = 16;

pub(super) fn step(attention: &Attention, kind: &Kind, setting: &Setting) -> Step {
    let schedule = setting.schedule;
    let (rows, keys, head) = (
        schedule.tile.m as f64,
        schedule.tile.n as f64,
        schedule.tile.k as f64,
    );
    let rows = rows / setting.bundle.pair as f64;
    let value_bytes = multiplied_value_bytes(schedule, attention, setting.machine.arch) as f64;
    let [of_scores, of_values] = fragments(attention, setting);
    let scores = Shape {
        rows,
        columns: keys,
        depth: head,
        bytes: multiplied_bytes(schedule, attention) as f64,
        times: 1.0,
        rows_shared: true,
        fragments: of_scores,
    };
    let values = Shape {
        rows,
        columns: head,
        depth: keys,
        bytes: value_bytes,
        times: 1.0,
        rows_shared: false,
        fragments: of_values,
    };
    let by_matrix_unit = schedule.values == Values::Matrix;
    let size = schedule.tile.m * schedule.tile.n;
    let exponential = exponential(setting) + assumed::SOFTMAX_INSTRUCTIONS / assumed::LANES;
    let [kept, stored] = converted(attention, kind, setting);
    let (operands, queries) = reads(attention, kind, setting);
    Step {
        operands,
        queries: Some(queries),
        conversion: Conversion {
            kept,
            stored,
            // Those of V, which is converted if any operand is.
            packed: attention.format.bytes() as f64,
            multiplied: value_bytes,
            rate: assumed::CONVERTED_E4M3,
            through_shared: false,
        },
        products: [None, Some(scores), by_matrix_unit.then_some(values)],
        scalar: if by_matrix_unit {
            0.0
        } else {
            (size * schedule.tile.k) as f64 * assumed::SCALAR_INSTRUCTIONS / assumed::LANES
        },
        softmax: size as f64 / setting.bundle.pair as f64 * exponential,
        scores_moved: scores_moved(setting),
    }
}

/// Keys with values, and the queries of a tile.
fn reads(attention: &Attention, kind: &Kind, setting: &Setting) -> ([Read; 2], Read) {
    let element = attention.format.bytes() as f64;
    let bytes = 2.0 * kind.depth * attention.head_size as f64 * element;
    let keys_and_values = Read {
        bytes,
        shared_by: setting.bundle.rows as f64,
        from_memory: kind.columns_from_memory,
        boxes: 2.0 * setting.boxes(bytes / 2.0),
    };
    let bytes = kind.rows * attention.head_size as f64 * element / setting.bundle.pair as f64;
    let queries = Read {
        bytes,
        shared_by: 1.0,
        from_memory: 1.0,
        boxes: setting.boxes(bytes),
    };
    ([keys_and_values, Read::default()], queries)
}

/// Values that a step converts in registers, and into shared memory: `wgmma` takes keys and values from there after the
/// block has converted them, `mma.sync` takes both from registers.
fn converted(attention: &Attention, kind: &Kind, setting: &Setting) -> [f64; 2] {
    let schedule = setting.schedule;
    if !by_mma_sync(schedule, setting.machine.arch) {
        let operands = operands_made_ready(schedule, attention) as f64;
        return [0.0, operands * kind.depth * attention.head_size as f64];
    }
    let values = if attention.format.bytes() < multiplied_bytes(schedule, attention) {
        2.0 * kind.depth * attention.head_size as f64
    } else {
        0.0
    };
    [values * fragment_copies(setting), 0.0]
}

/// Bytes of a step's scores into and out of shared memory, and of its weights into it.
fn scores_moved(setting: &Setting) -> f64 {
    let tile = setting.schedule.tile;
    let weight = match setting.schedule.values {
        Values::Matrix => HALF,
        Values::Scalar => SUM,
    };
    match setting.schedule.scores {
        Scores::Registers => 0.0,
        Scores::InPlace | Scores::Separate => (tile.m * tile.n) as f64 * (SUM + SUM + weight),
    }
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

/// How often the warps of `mma.sync` convert a step's keys and values and read them from shared memory: each warp owns its
/// rows and reads all keys and values.
fn fragment_copies(setting: &Setting) -> f64 {
    (setting.schedule.tile.m as f64 / WARP_ROWS).max(1.0)
}
