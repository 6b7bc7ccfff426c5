//! What the primitives of the CPU executor cost, in seconds: as calibrated, or as its peak has them.

use gauntlet_device::{Calibration, Device};
use gauntlet_problem::{AttentionFormat, OutputFormat};
use gauntlet_schedule::{Epilogue, Order};

use super::curve::Curve;
use crate::estimate::MissingFigure;

/// A figure that every calibration of this revision holds.
const WHOLE: &str = "whole calibration; run `gauntlet calibrate` again";

/// Runs in a row when the costs of runs were measured.
const RUNS: f64 = 4.0;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// The sides of a register block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Its rows.
    Rows,
    /// Its columns.
    Columns,
}

/// Where a panel was last used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum From {
    /// By the same thread, so many bytes ago.
    Ago(f64),
    /// By another thread.
    Thread,
}

/// Costs in seconds.
#[derive(Debug, Clone)]
pub(super) struct Rates {
    pub(super) threads: usize,
    /// Of the register block.
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Multiply-adds a step of depth of one register block.
    pub(super) step: f64,
    /// A register block, besides its steps.
    pub(super) call: f64,
    /// More for each step if the row panel comes from so many bytes ago.
    pub(super) row_panel: Curve,
    /// The same of the column panel.
    pub(super) column_panel: Curve,
    /// Dequantising a value, and a run of up to 256 of a row, into a panel as wide as rows or columns.
    pub(super) pack_value: [f64; 2],
    pub(super) pack_run: [f64; 2],
    /// More a value by depth of the run, for codes from so many bytes ago: not asked for, and asked for beforehand.
    pub(super) pack_far: Vec<(f64, Curve)>,
    pub(super) pack_ahead: Vec<(f64, Curve)>,
    /// A row of the output.
    pub(super) output_row: f64,
    /// A run of it.
    pub(super) output_run: f64,
    pub(super) output_run_swapped: f64,
    /// A value of a split sum put away, and taken up again.
    pub(super) split_store: f64,
    pub(super) split_add: f64,
    /// Threads woken: until the others of a call run, and until one goes on who fell asleep waiting for them.
    pub(super) wake: f64,
    pub(super) join: f64,
    /// A panel handed over, and a wait for one.
    pub(super) hand_over: f64,
    pub(super) ring_wake: f64,
    /// More a step of depth to multiply a panel that another thread wrote, and to write one that another has read.
    pub(super) ring_read: f64,
    pub(super) ring_write: f64,
    /// A byte of a buffer of a size, made and freed in the call.
    pub(super) buffer: Curve,
    /// A tile planned in the call.
    pub(super) plan_tile: f64,
    /// A group passed on the way to a tile's.
    pub(super) group: f64,
    /// Attention: a value packed across and along, by side; a score; an output value.
    pub(super) across: [f64; 2],
    pub(super) along: [f64; 2],
    pub(super) softmax: [f64; 2],
    pub(super) softmax_call: [f64; 2],
    pub(super) turn: f64,
    pub(super) rescale: [f64; 2],
    pub(super) merge: [f64; 2],
    /// Bytes a second from memory, all threads; infinite where it is not known.
    pub(super) memory: f64,
    /// Whether products of padding count.
    pub(super) padded: bool,
}

/// What the rates are looked up for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) output: OutputFormat,
    pub(super) epilogue: Epilogue,
    pub(super) dual: bool,
    pub(super) order: Order,
    pub(super) attention: AttentionFormat,
}

impl Rates {
    /// The calibrated rates of a device; without a calibration products at its peak, and nothing else.
    pub(super) fn of(device: &Device, wanted: Wanted) -> Result<Self, MissingFigure> {
        let peak = Self::at_peak(device)?;
        match device.calibration.as_deref() {
            None => Ok(peak),
            Some(calibration) => peak.calibrated(calibration, wanted).ok_or_else(|| MissingFigure {
                device: device.name.clone(),
                figure: WHOLE,
            }),
        }
    }

    fn at_peak(device: &Device) -> Result<Self, MissingFigure> {
        let missing = |figure| MissingFigure {
            device: device.name.clone(),
            figure,
        };
        let cpu = device.cpu.as_ref();
        let peak = cpu
            .and_then(|cpu| cpu.fp32_peak.as_ref())
            .ok_or_else(|| missing("fp32-peak, which follows from its clock"))?;
        let threads = device.processors.get().max(1.0);
        let features = cpu.map_or(&[][..], |cpu| &cpu.simd.value);
        let has = |name: &str| features.iter().any(|feature| feature == name);
        let (rows, columns) = register_block(if has("avx512f") {
            "avx512"
        } else if has("avx2") {
            "avx2"
        } else {
            "portable"
        });
        Ok(Self {
            threads: threads as usize,
            rows,
            columns,
            step: 2.0 * (rows * columns) as f64 * threads / peak.get(),
            call: 0.0,
            row_panel: Curve::default(),
            column_panel: Curve::default(),
            pack_value: [0.0; 2],
            pack_run: [0.0; 2],
            pack_far: Vec::new(),
            pack_ahead: Vec::new(),
            output_row: 0.0,
            output_run: 0.0,
            output_run_swapped: 0.0,
            split_store: 0.0,
            split_add: 0.0,
            wake: 0.0,
            join: 0.0,
            hand_over: 0.0,
            ring_wake: 0.0,
            ring_read: 0.0,
            ring_write: 0.0,
            buffer: Curve::default(),
            plan_tile: 0.0,
            group: 0.0,
            across: [0.0; 2],
            along: [0.0; 2],
            softmax: [0.0; 2],
            softmax_call: [0.0; 2],
            turn: 0.0,
            rescale: [0.0; 2],
            merge: [0.0; 2],
            memory: device
                .memory
                .bandwidth
                .as_ref()
                .map_or(f64::INFINITY, |figure| figure.get()),
            padded: true,
        })
    }

    fn calibrated(self, calibration: &Calibration, wanted: Wanted) -> Option<Self> {
        let nanoseconds = |name: &str| calibration.value(name).map(|value| value * 1e-9);
        let sides = |prefix: &str, names: [&str; 2]| {
            Some([
                nanoseconds(&format!("{prefix}.{}", names[0]))?,
                nanoseconds(&format!("{prefix}.{}", names[1]))?,
            ])
        };
        let pair = |prefix: &str, suffix: &str| {
            Some([
                nanoseconds(&format!("{prefix}.rows.{suffix}"))?,
                nanoseconds(&format!("{prefix}.columns.{suffix}"))?,
            ])
        };
        let output_row = nanoseconds("epilogue.row")?;
        let output_run = |side: &str| {
            let format = match wanted.output {
                OutputFormat::F16 => "f16",
                OutputFormat::Bf16 => "bf16",
                OutputFormat::F32 => "f32",
            };
            let manner = match wanted.epilogue {
                Epilogue::Direct => "direct",
                Epilogue::Staged => "staged",
            };
            let finish = if wanted.dual { "swiglu" } else { "scale" };
            let run = nanoseconds(&format!("epilogue.{format}.{manner}.{side}.{finish}"))?;
            Some((run - output_row / RUNS).max(0.0))
        };
        let format = match wanted.attention {
            AttentionFormat::E4m3 => "e4m3",
            AttentionFormat::Int8 => "int8",
            AttentionFormat::F16 => "f16",
            AttentionFormat::Bf16 => "bf16",
        };
        let order = if wanted.order == Order::Sorted {
            "sorted"
        } else {
            "static"
        };
        let (rows, columns) = register_block(calibration.machine.details.get("simd")?);
        Some(Self {
            rows,
            columns,
            step: nanoseconds("multiply.step")?,
            call: nanoseconds("multiply.call")?,
            row_panel: by_size(calibration, "multiply.rows.", "KiB", KIB)?,
            column_panel: by_size(calibration, "multiply.columns.", "KiB", KIB)?,
            pack_value: pair("pack", "value")?,
            pack_run: pair("pack", "run")?,
            pack_far: by_depth(calibration, "pack.far.")?,
            pack_ahead: by_depth(calibration, "pack.ahead.")?,
            output_row,
            output_run: output_run("plain")?,
            output_run_swapped: output_run("swapped")?,
            split_store: nanoseconds("split.store")?,
            split_add: nanoseconds("split.add")?,
            wake: nanoseconds("launch.wake")?,
            join: nanoseconds("launch.join")?,
            hand_over: nanoseconds("ring.step")?,
            ring_wake: nanoseconds("ring.wake")?,
            ring_read: nanoseconds("ring.read")?,
            ring_write: nanoseconds("ring.write")?,
            buffer: by_size(calibration, "setup.buffer.", "KiB", KIB)?,
            plan_tile: nanoseconds(&format!("setup.tile.{order}"))?,
            group: nanoseconds("lookup.group")?,
            across: sides(&format!("attention.across.{format}"), ["rows", "columns"])?,
            along: sides(&format!("attention.along.{format}"), ["rows", "columns"])?,
            softmax: sides("attention.softmax", ["rows", "columns"])?,
            softmax_call: sides("attention.softmax-call", ["rows", "columns"])?,
            turn: nanoseconds("attention.turn")?,
            rescale: sides("attention.rescale", ["plain", "swapped"])?,
            merge: sides("attention.merge", ["plain", "swapped"])?,
            memory: calibration.value("memory.read")? * 1e9,
            ..self
        })
    }

    /// Rows or columns of the register block.
    pub(super) fn width(&self, side: Side) -> usize {
        match side {
            Side::Rows => self.rows,
            Side::Columns => self.columns,
        }
    }

    /// Multiplying so many row panels by so many column panels over a depth. The panels of either side are first met as
    /// they come from there; the row panels pass by again for each column panel.
    pub(super) fn blocks(&self, row_panels: f64, column_panels: f64, depth: f64, from: [From; 2]) -> f64 {
        let float = size_of::<f32>() as f64;
        let (row, column) = (
            self.rows as f64 * depth * float,
            self.columns as f64 * depth * float,
        );
        let row_again = self.row_panel.at(row_panels * row + column);
        let column_again = self.column_panel.at(column + 2.0 * row);
        let first = |from, curve: &Curve, width: usize| match from {
            From::Ago(bytes) => curve.at(bytes),
            From::Thread => self.ring_read * width as f64 / self.columns as f64,
        };
        let rows = first(from[0], &self.row_panel, self.rows).max(row_again)
            + (column_panels - 1.0).max(0.0) * row_again;
        let columns = first(from[1], &self.column_panel, self.columns).max(column_again)
            + (row_panels - 1.0).max(0.0) * column_again;
        let steps = row_panels * column_panels * self.step + row_panels * rows + column_panels * columns;
        row_panels * column_panels * self.call + depth * steps
    }

    /// Writing panels of so many bytes.
    pub(super) fn store(&self, bytes: f64, to: From) -> f64 {
        match to {
            From::Ago(ago) => self.fetch(bytes, ago),
            From::Thread => bytes / (self.columns * size_of::<f32>()) as f64 * self.ring_write,
        }
    }

    /// Bringing so many bytes back into the first-level cache from where they went so many bytes ago.
    pub(super) fn fetch(&self, bytes: f64, ago: f64) -> f64 {
        bytes / (self.columns * size_of::<f32>()) as f64 * self.column_panel.at(ago)
    }

    /// More a value to dequantise runs of a depth whose codes come from so many bytes ago.
    pub(super) fn pack_from(&self, depth: f64, ago: f64, asked: bool) -> f64 {
        let costs = if asked { &self.pack_ahead } else { &self.pack_far };
        let points = costs.iter().map(|(at, curve)| (*at, curve.at(ago))).collect();
        Curve::new(points).at(depth)
    }
}

/// Rows and columns of the register block of a SIMD path.
fn register_block(simd: &str) -> (usize, usize) {
    match simd {
        "amx" | "avx512" => (8, 32),
        "avx2" => (6, 16),
        _ => (4, 8),
    }
}

/// All parameters whose names are a prefix, a size and a unit.
fn by_size(calibration: &Calibration, prefix: &str, unit: &str, factor: f64) -> Option<Curve> {
    let points: Vec<_> = calibration
        .parameters
        .iter()
        .filter_map(|(name, parameter)| {
            let size: f64 = name.strip_prefix(prefix)?.strip_suffix(unit)?.parse().ok()?;
            Some((size * factor, parameter.value * 1e-9))
        })
        .collect();
    (!points.is_empty()).then(|| Curve::new(points))
}

/// All parameters whose names are a prefix, a depth and a size, by depth.
fn by_depth(calibration: &Calibration, prefix: &str) -> Option<Vec<(f64, Curve)>> {
    let mut depths: Vec<usize> = calibration
        .parameters
        .keys()
        .filter_map(|name| name.strip_prefix(prefix)?.split('.').next()?.parse().ok())
        .collect();
    depths.sort_unstable();
    depths.dedup();
    let curve = |depth: &usize| {
        let curve = by_size(calibration, &format!("{prefix}{depth}."), "MiB", MIB)?;
        Some((*depth as f64, curve))
    };
    depths.iter().map(curve).collect()
}

/// What a call would be spared.
impl Rates {
    pub(super) fn without_launches(&mut self) {
        (self.wake, self.join) = (0.0, 0.0);
    }

    pub(super) fn without_hand_over(&mut self) {
        (self.hand_over, self.ring_wake, self.group) = (0.0, 0.0, 0.0);
    }

    pub(super) fn without_epilogue(&mut self) {
        (self.output_row, self.output_run, self.output_run_swapped) = (0.0, 0.0, 0.0);
        (self.split_store, self.split_add, self.merge) = (0.0, 0.0, [0.0; 2]);
    }

    pub(super) fn without_conversion(&mut self) {
        (self.pack_value, self.pack_run) = ([0.0; 2], [0.0; 2]);
        (self.across, self.along) = ([0.0; 2], [0.0; 2]);
        (self.turn, self.rescale) = (0.0, [0.0; 2]);
        (self.softmax, self.softmax_call) = ([0.0; 2], [0.0; 2]);
    }

    pub(super) fn without_distance(&mut self) {
        (self.row_panel, self.column_panel) = (Curve::default(), Curve::default());
        (self.ring_read, self.ring_write) = (0.0, 0.0);
        (self.pack_far, self.pack_ahead) = (Vec::new(), Vec::new());
        self.memory = f64::INFINITY;
    }

    pub(super) fn without_padding(&mut self) {
        self.padded = false;
    }
}
