//! The costs of the CPU executor's primitives in seconds, from a calibration or from the peak rate.

use gauntlet_device::{Calibration, Device};
use gauntlet_problems::{AttentionFormat, OutputFormat};
use gauntlet_problems::{Epilogue, Order};

use super::curve::Curve;
use crate::estimate::MissingFigure;

/// A figure that every calibration of this revision holds.
const WHOLE: &str = "whole calibration; run `gauntlet calibrate` again";

/// Runs in a row when the costs of runs were measured.
const RUNS: f64 = 4.0;

/// An upper bound on the speed of NVFP4 relative to f32 multiply-adds. For 16 values, one multiply-add each takes eight
/// clocks on two units; the dot of their block with its scales takes twelve instructions on four units, or six on two.
const DOTS_OVER_FLOATS: f64 = 8.0 / 3.0;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// The sides of a register block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Its rows.
    Rows,
    /// Its columns.
    Columns,
}

/// Where a panel was used last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum From {
    /// By the same thread, this many bytes ago.
    Ago(f64),
    /// By another thread.
    Thread,
}

/// Costs in seconds.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// Threads.
    pub threads: usize,
    /// The register block.
    pub block: RegisterBlock,
    /// Multiply-adds per step of depth of one register block.
    pub step: f64,
    /// The cost of a register block besides its steps.
    pub call: f64,
    /// The extra cost per step, by how many bytes ago the row panel was used.
    pub row_panel: Curve,
    /// The same for the column panel.
    pub column_panel: Curve,
    /// GEMM: packing a chunk, and a run of chunks of a row, as rows or columns.
    pub pack_chunk: [f64; 2],
    /// The same for a run of chunks.
    pub pack_run: [f64; 2],
    /// GEMM: the cost per value that is multiplied straight from its code, fixed and per column.
    pub codes_value: f64,
    /// The same per column.
    pub codes_column: f64,
    /// The extra cost per value, by depth of the run, for codes used some bytes ago: without and with prefetching.
    pub pack_far: Vec<(f64, Curve)>,
    /// The same with prefetching.
    pub pack_ahead: Vec<(f64, Curve)>,
    /// The cost per row of the output.
    pub output_row: f64,
    /// The cost per run of a row; for attention, a run is as long as the register block has columns, or as one
    /// transposition yields.
    pub output_run: f64,
    /// The same where a run is as long as one transposition yields.
    pub output_run_swapped: f64,
    /// The cost per value of a split sum to store it, and to load and add it.
    pub split_store: f64,
    /// The same to load and add it.
    pub split_add: f64,
    /// Waking threads: until the others of a call run, and until a thread that fell asleep while waiting continues.
    pub wake: f64,
    /// Until a thread that fell asleep while waiting continues.
    pub join: f64,
    /// Handing over a panel, and waiting for one.
    pub hand_over: f64,
    /// Waiting for a panel.
    pub ring_wake: f64,
    /// The extra cost per byte to multiply a panel that another thread wrote, and to write one that another has read.
    pub ring_read: f64,
    /// The same to write a panel that another thread has read.
    pub ring_write: f64,
    /// The cost per byte of a buffer by size, allocated and freed in the call.
    pub buffer: Curve,
    /// The cost per tile of planning in the call.
    pub plan_tile: f64,
    /// The cost per group that the lookup skips.
    pub group: f64,
    /// Attention: the cost per value packed across and along, by side; per score; per output value.
    pub across: [f64; 2],
    /// The same along.
    pub along: [f64; 2],
    /// The cost per score, by side.
    pub softmax: [f64; 2],
    /// The cost of a softmax besides its scores, by side.
    pub softmax_call: [f64; 2],
    /// The cost per score that is transposed.
    pub turn: f64,
    /// The cost per output value to rescale it, plain and swapped.
    pub rescale: [f64; 2],
    /// The cost per output value to merge it, plain and swapped.
    pub merge: [f64; 2],
    /// Bytes per second from memory for all threads; infinite if unknown.
    pub memory: f64,
    /// Whether products of padding cost time.
    pub padded: bool,
}

/// The register block.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RegisterBlock {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Depths are padded to multiples of this.
    pub chunk: usize,
    /// Bytes per value of a row, and of a column, in a panel.
    pub bytes: [f64; 2],
    /// The most columns with which rows are multiplied straight from their codes.
    pub unpacked: usize,
}

impl RegisterBlock {
    /// Attention's register block of f32, by SIMD path.
    fn floats(simd: &str) -> Self {
        let (rows, columns) = match simd {
            "amx" | "avx512" => (8, 32),
            "avx2" => (6, 16),
            _ => (4, 8),
        };
        Self {
            rows,
            columns,
            chunk: 1,
            bytes: [size_of::<f32>() as f64; 2],
            unpacked: 0,
        }
    }

    /// A GEMM's register block, by its instructions. On the tile unit a panel holds bf16 values; otherwise each block
    /// of 16 values takes its integers, an f32 scale and, in columns, an i32.
    fn dots(dots: &str) -> Self {
        let (rows, columns, blocks, integer) = match dots {
            "amx" => {
                return Self {
                    rows: 32,
                    columns: 32,
                    chunk: 32,
                    bytes: [2.0; 2],
                    // Up to this many columns use the vector units' dots.
                    unpacked: 6,
                };
            }
            "avx512vnni" | "avx512vnni-sums" => (2, 6, 16, 1.0),
            "avxvnni" | "avx2" => (1, 6, 8, 1.0),
            "neon" => (2, 6, 4, 1.0),
            _ => (1, 4, 4, 2.0),
        };
        Self {
            rows,
            columns,
            chunk: 16 * blocks,
            bytes: [integer + 4.0 / 16.0, integer + 8.0 / 16.0],
            unpacked: columns,
        }
    }
}

/// The setting for which the rates are looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) output: OutputFormat,
    pub(super) epilogue: Epilogue,
    pub(super) order: Order,
    pub(super) primitives: Primitives,
}

/// The executor's primitives that compute an operation.
#[derive(Debug, Clone, Copy)]
pub enum Primitives {
    /// Dots of NVFP4 codes, whose results end in runs of this kind.
    Dots {
        /// The kind.
        runs: &'static str,
    },
    /// Products in f32 of operands in a format.
    Floats(AttentionFormat),
}

impl Rates {
    /// The calibrated rates of a device; without a calibration, only products cost time, at the peak rate.
    pub(super) fn of(device: &Device, wanted: Wanted) -> Result<Self, MissingFigure> {
        let peak = Self::at_peak(device, wanted.primitives)?;
        match device.calibration.as_deref() {
            None => Ok(peak),
            Some(calibration) => peak.calibrated(calibration, wanted).ok_or_else(|| MissingFigure {
                device: device.name.clone(),
                figure: WHOLE,
            }),
        }
    }

    fn at_peak(device: &Device, primitives: Primitives) -> Result<Self, MissingFigure> {
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
        let (block, faster) = match primitives {
            Primitives::Floats(_) => {
                let best = [("avx512f", "avx512"), ("avx2", "avx2")]
                    .into_iter()
                    .find(|(name, _)| has(name));
                (
                    RegisterBlock::floats(best.map_or("portable", |(_, path)| path)),
                    1.0,
                )
            }
            Primitives::Dots { .. } => {
                let best = ["avx512vnni", "avxvnni", "avx2"]
                    .into_iter()
                    .find(|name| has(name));
                (RegisterBlock::dots(best.unwrap_or("portable")), DOTS_OVER_FLOATS)
            }
        };
        let product = 2.0 * threads / (faster * peak.get());
        Ok(Self {
            threads: threads as usize,
            block,
            step: (block.rows * block.columns) as f64 * product,
            codes_column: product,
            memory: device
                .memory
                .bandwidth
                .as_ref()
                .map_or(f64::INFINITY, |figure| figure.get()),
            padded: true,
            ..Self::default()
        })
    }

    fn calibrated(self, calibration: &Calibration, wanted: Wanted) -> Option<Self> {
        let nanoseconds = |name: &str| calibration.value(name).map(|value| value * 1e-9);
        let both = |names: [String; 2]| Some([nanoseconds(&names[0])?, nanoseconds(&names[1])?]);
        let sides = |prefix: &str| both(["rows", "columns"].map(|side| format!("{prefix}.{side}")));
        let ways = |prefix: &str| both(["plain", "swapped"].map(|way| format!("{prefix}.{way}")));
        let pack = |of: &str| both(["rows", "columns"].map(|side| format!("pack.{side}.{of}")));
        let output_row = nanoseconds("epilogue.row")?;
        let output_run = |kind: &str| {
            let run = nanoseconds(&format!("epilogue.{}.{}.{kind}", wanted.output, wanted.epilogue))?;
            Some((run - output_row / RUNS).max(0.0))
        };
        let details = &calibration.machine.details;
        let (block, product, runs) = match wanted.primitives {
            Primitives::Dots { runs } => (RegisterBlock::dots(details.get("dots")?), "dots", [runs; 2]),
            Primitives::Floats(_) => {
                let runs = ["plain", "swapped"];
                (RegisterBlock::floats(details.get("simd")?), "multiply", runs)
            }
        };
        let format = match wanted.primitives {
            Primitives::Floats(format) => format,
            Primitives::Dots { .. } => AttentionFormat::E4m3,
        };
        // Hand-overs are measured with panels as wide as attention's columns.
        let floats = RegisterBlock::floats(details.get("simd")?);
        let handed = floats.columns as f64 * floats.bytes[1];
        let order = if wanted.order == Order::Sorted {
            "sorted"
        } else {
            "static"
        };
        Some(Self {
            block,
            step: nanoseconds(&format!("{product}.step"))?,
            call: nanoseconds(&format!("{product}.call"))?,
            row_panel: by_size(calibration, &format!("{product}.rows."), "KiB", KIB)?,
            column_panel: by_size(calibration, &format!("{product}.columns."), "KiB", KIB)?,
            pack_chunk: pack("chunk")?,
            pack_run: pack("run")?,
            codes_value: nanoseconds("codes.value")?,
            codes_column: nanoseconds("codes.column")?,
            pack_far: by_depth(calibration, "pack.far.")?,
            pack_ahead: by_depth(calibration, "pack.ahead.")?,
            output_row,
            output_run: output_run(runs[0])?,
            output_run_swapped: output_run(runs[1])?,
            split_store: nanoseconds("split.store")?,
            split_add: nanoseconds("split.add")?,
            wake: nanoseconds("launch.wake")?,
            join: nanoseconds("launch.join")?,
            hand_over: nanoseconds("ring.step")?,
            ring_wake: nanoseconds("ring.wake")?,
            ring_read: nanoseconds("ring.read")? / handed,
            ring_write: nanoseconds("ring.write")? / handed,
            buffer: by_size(calibration, "setup.buffer.", "KiB", KIB)?,
            plan_tile: nanoseconds(&format!("setup.tile.{order}"))?,
            group: nanoseconds("lookup.group")?,
            across: sides(&format!("attention.across.{format}"))?,
            along: sides(&format!("attention.along.{format}"))?,
            softmax: sides("attention.softmax")?,
            softmax_call: sides("attention.softmax-call")?,
            turn: nanoseconds("attention.turn")?,
            rescale: ways("attention.rescale")?,
            merge: ways("attention.merge")?,
            memory: calibration.value("memory.read")? * 1e9,
            ..self
        })
    }

    /// Rows or columns of the register block.
    pub fn width(&self, side: Side) -> usize {
        match side {
            Side::Rows => self.block.rows,
            Side::Columns => self.block.columns,
        }
    }

    /// The time to multiply `row_panels` by `column_panels` over a depth. The panels of each side are first read from
    /// their given places; the row panels are read again for each column panel.
    pub fn blocks(&self, row_panels: f64, column_panels: f64, depth: f64, from: [From; 2]) -> f64 {
        let [row, column] = self.panel_bytes().map(|bytes| bytes * depth);
        let row_again = self.row_panel.at(row_panels * row + column);
        let column_again = self.column_panel.at(column + 2.0 * row);
        let first = |from, curve: &Curve, bytes: f64| match from {
            From::Ago(ago) => curve.at(ago),
            From::Thread => self.ring_read * bytes,
        };
        let [row_bytes, column_bytes] = self.panel_bytes();
        let rows = first(from[0], &self.row_panel, row_bytes).max(row_again)
            + (column_panels - 1.0).max(0.0) * row_again;
        let columns = first(from[1], &self.column_panel, column_bytes).max(column_again)
            + (row_panels - 1.0).max(0.0) * column_again;
        let steps = row_panels * column_panels * self.step + row_panels * rows + column_panels * columns;
        row_panels * column_panels * self.call + depth * steps
    }

    /// Bytes per step of depth of a panel of rows, and of columns.
    fn panel_bytes(&self) -> [f64; 2] {
        let RegisterBlock {
            rows, columns, bytes, ..
        } = self.block;
        [rows as f64 * bytes[0], columns as f64 * bytes[1]]
    }

    /// The time to write panels of `bytes` bytes.
    pub fn store(&self, bytes: f64, to: From) -> f64 {
        match to {
            From::Ago(ago) => self.fetch(bytes, ago),
            From::Thread => bytes * self.ring_write,
        }
    }

    /// The time to fetch bytes that were used `ago` bytes ago back into the first-level cache.
    pub fn fetch(&self, bytes: f64, ago: f64) -> f64 {
        bytes / self.panel_bytes()[1] * self.column_panel.at(ago)
    }

    /// The extra cost per value to dequantise runs of a depth whose codes were used `ago` bytes ago.
    pub fn pack_from(&self, depth: f64, ago: f64, asked: bool) -> f64 {
        let costs = if asked { &self.pack_ahead } else { &self.pack_far };
        let points = costs.iter().map(|(at, curve)| (*at, curve.at(ago))).collect();
        Curve::new(points).at(depth)
    }
}

/// All parameters whose names consist of a prefix, a size and a unit.
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

/// All parameters whose names consist of a prefix, a depth and a size, by depth.
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

/// Removals of costs, for the breakdown.
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
        (self.pack_chunk, self.pack_run) = ([0.0; 2], [0.0; 2]);
        self.codes_value = 0.0;
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
