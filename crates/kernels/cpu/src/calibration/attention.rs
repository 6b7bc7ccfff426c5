//! The parts of attention besides products: packing its operands, the softmax, and rescaling outputs.

use gauntlet_problems::{Attention, AttentionFormat, HeadTensor, Scaling};
use gauntlet_problems::{Schedule, Tile};

use super::bench::Bench;
use super::{CalibrationError, CalibrationFigure, cost};
use crate::attention::HeadRows;
use crate::attention::{AttentionPlan, turn_block};
use crate::family::Setting;
use crate::memory::AlignedBuffer;
use crate::simd::{LANES, SoftmaxLanes};

/// Values of a head.
const HEAD: usize = 64;

/// Keys of a step: a multiple of every register block's rows and columns.
const KEYS: usize = 192;

const FORMATS: [(&str, AttentionFormat); 4] = [
    ("e4m3", AttentionFormat::E4m3),
    ("int8", AttentionFormat::Int8),
    ("f16", AttentionFormat::F16),
    ("bf16", AttentionFormat::Bf16),
];

pub(super) fn measure(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let (rows, columns) = (bench.instructions.rows(), bench.instructions.columns());
    let mut figures = Vec::new();
    for (name, format) in FORMATS {
        for (side, width) in [("rows", rows), ("columns", columns)] {
            let across = pack(bench, format, width, true)?;
            let along = pack(bench, format, width, false)?;
            figures.push(cost(format!("attention.across.{name}.{side}"), "value", across));
            figures.push(cost(format!("attention.along.{name}.{side}"), "value", along));
        }
    }
    for (side, width) in [("rows", rows), ("columns", columns)] {
        let panel = |keys| Ok::<_, CalibrationError>(softmax(bench, width, keys)? * (keys * width) as f64);
        let (short, long) = (panel(KEYS / 4)?, panel(KEYS)?);
        let score = (long - short) / (width * (KEYS - KEYS / 4)) as f64;
        let call = short - (width * KEYS / 4) as f64 * score;
        figures.push(cost(format!("attention.softmax.{side}"), "score", score));
        figures.push(cost(format!("attention.softmax-call.{side}"), "panel", call));
    }
    for (side, swapped) in [("plain", false), ("swapped", true)] {
        let plan = plan(bench, swapped)?;
        let rescale = |outputs: &mut [f32], _: &[f32]| plan.scale_lanes(outputs, &[0.5; LANES]);
        let merge = |outputs: &mut [f32], part: &[f32]| {
            plan.add_slice(outputs, &[0.5; LANES], part, &[0.5; LANES], false);
        };
        figures.push(cost(
            format!("attention.rescale.{side}"),
            "value",
            blocks(bench, rescale)?,
        ));
        figures.push(cost(
            format!("attention.merge.{side}"),
            "value",
            blocks(bench, merge)?,
        ));
    }
    figures.push(cost("attention.turn", "score", turn(bench)?));
    Ok(figures)
}

/// Seconds per value to pack rows across, or along, panels.
fn pack(bench: &Bench, format: AttentionFormat, width: usize, across: bool) -> Result<f64, CalibrationError> {
    let make = || {
        let tensor = HeadTensor {
            format,
            bytes: vec![0x38; KEYS * HEAD * format.bytes()],
            scales: vec![1.0],
        };
        let panels = AlignedBuffer::zeroed(KEYS.next_multiple_of(width) * HEAD.next_multiple_of(width))?;
        Ok((tensor, panels, AlignedBuffer::zeroed(LANES * HEAD)?))
    };
    bench.each(make, |(tensor, panels, scratch)| {
        let rows = HeadRows::new(bench.instructions, tensor, 0, HEAD, 0..1, Scaling::PerHead);
        let (panels, scratch) = (panels.values_mut(), scratch.values_mut());
        if across {
            rows.pack_across(0..KEYS, width, scratch, panels, width * HEAD);
        } else {
            rows.pack_along(0..KEYS, width, scratch, panels, width * KEYS);
        }
        (KEYS * HEAD) as f64
    })
}

/// Seconds per score.
fn softmax(bench: &Bench, width: usize, keys: usize) -> Result<f64, CalibrationError> {
    let make = || Ok((AlignedBuffer::zeroed(keys * width)?, SoftmaxLanes::EMPTY));
    bench.each(make, |(panel, lanes)| {
        for _ in 0..8 {
            bench
                .instructions
                .softmax(panel.values_mut(), width, 0.125, lanes);
        }
        (8 * keys * width) as f64
    })
}

/// Seconds per value of `work` on blocks of outputs and blocks of a split part.
fn blocks(bench: &Bench, work: impl Fn(&mut [f32], &[f32]) + Sync) -> Result<f64, CalibrationError> {
    let block = bench.instructions.rows() * bench.instructions.columns();
    let values = 32 * block;
    let make = || Ok((AlignedBuffer::zeroed(values)?, AlignedBuffer::zeroed(values)?));
    bench.each(make, |(outputs, parts)| {
        let outputs = outputs.values_mut().chunks_exact_mut(block);
        for (outputs, part) in outputs.zip(parts.values().chunks_exact(block)) {
            work(outputs, part);
        }
        values as f64
    })
}

/// Seconds per score to transpose blocks to k-major order.
fn turn(bench: &Bench) -> Result<f64, CalibrationError> {
    let (width, columns) = (bench.instructions.rows(), bench.instructions.columns());
    let values = 8 * width * columns;
    let make = || Ok((AlignedBuffer::zeroed(values)?, AlignedBuffer::zeroed(values)?));
    bench.each(make, |(blocks, turned)| {
        let blocks = blocks.values().chunks_exact(width * columns);
        let turned = turned.values_mut().chunks_mut(width * columns);
        blocks
            .zip(turned)
            .for_each(|(block, turned)| turn_block(block, turned, width, columns));
        values as f64
    })
}

fn plan(bench: &Bench, swapped: bool) -> Result<AttentionPlan, CalibrationError> {
    let problem = Attention::new(AttentionFormat::F16, [[KEYS, KEYS]], [1, 1], HEAD);
    let schedule = Schedule {
        tile: Tile {
            m: KEYS,
            n: KEYS,
            k: HEAD,
        },
        swap_ab: swapped,
        ..Schedule::baseline()
    };
    let setting = Setting {
        instructions: bench.instructions,
        schedule: &schedule,
    };
    Ok(AttentionPlan::new(&problem, &setting)?)
}
