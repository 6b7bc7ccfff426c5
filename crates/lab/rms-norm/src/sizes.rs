//! Sizes, operands and the reference.

use std::fmt;

use gauntlet_device::{Arch, Device};
use gauntlet_parameters::{Parameters, Space, Value};
use gauntlet_task::{
    Coverage, DEEP, Expected, FULL_AT_A_GLANCE, Grid, InputKind, InputTensors, Inputs, SMALLEST, Schedules,
    Sizes, Task, TaskSizes, Violation, normal, outliers, stream,
};
use gauntlet_tensors::{DataType, Tensor, TensorSpec};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RMS_NORM;
use crate::task::{PARTIAL_SUMS, ROWS_PER_TASK};

/// Added to the mean of squares, as in Llama's layers, so that a row of zeros has a finite scale.
pub const EPSILON: f64 = 1e-5;

/// Sizes of RMSNorm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RmsNorm {
    /// Rows, which are normalised independently.
    pub rows: usize,
    /// Values of a row.
    pub columns: usize,
    /// The element type of all tensors, f32 or bf16.
    #[serde(default = "f32")]
    pub format: DataType,
}

fn f32() -> DataType {
    DataType::F32
}

impl RmsNorm {
    /// The sizes as sizes of a task.
    ///
    /// # Errors
    /// When there are no values, too many to count, or values of another type.
    pub fn checked(self) -> Result<Sizes, String> {
        if !matches!(self.format, DataType::F32 | DataType::Bf16) {
            return Err(format!("format = {}: use f32 or bf16", self.format));
        }
        match self.rows.checked_mul(self.columns) {
            Some(0) => Err("rows and columns are at least 1".to_owned()),
            Some(values) if values < 1 << 40 => Ok(Sizes::new(self)),
            _ => Err("rows times columns is 2⁴⁰ or more; use smaller sizes".to_owned()),
        }
    }

    pub(crate) fn matrix(&self, name: &str) -> TensorSpec {
        TensorSpec::new(name, self.format, [self.rows, self.columns])
    }
}

impl fmt::Display for RmsNorm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns, format) = (self.rows, self.columns, self.format);
        write!(formatter, "{rows} rows × {columns} columns, {format}")
    }
}

/// Values of one row: see [`InputKind`].
fn row(kind: InputKind, row: usize, columns: usize, seed: u64) -> Vec<f32> {
    let mut generator = stream(seed, row + 1);
    match kind {
        InputKind::Competition => normal(columns, &mut generator),
        InputKind::Wide => {
            // Rows of very different magnitudes.
            let magnitude = ((row % 17) as f32 - 8.0).exp2();
            let values = normal(columns, &mut generator).into_iter();
            values.map(|value| value * magnitude).collect()
        }
        InputKind::Outliers => outliers(columns, 1.0, &mut generator),
        InputKind::Adversarial => {
            // Zeros of both signs, squares near the largest f32, and squares that are negligible compared with ε.
            let constant = [Some(0.0), Some(-0.0), Some(1e18), Some(1e-20), None][row % 5];
            let peak = |column| if column == columns / 2 { 1e4 } else { 1e-3 };
            let value = |column| constant.unwrap_or_else(|| peak(column));
            (0..columns).map(value).collect()
        }
    }
}

impl TaskSizes for RmsNorm {
    fn task(&self) -> &'static dyn Task {
        RMS_NORM
    }

    fn record(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn inputs(&self) -> Vec<TensorSpec> {
        let weight = TensorSpec::new("weight", self.format, [self.columns]);
        vec![self.matrix("x"), weight]
    }

    fn constant_inputs(&self) -> Vec<String> {
        vec!["weight".to_owned()]
    }

    fn outputs(&self) -> Vec<TensorSpec> {
        vec![self.matrix("y")]
    }

    fn generate(&self, kind: InputKind, seed: u64) -> Result<Box<dyn Inputs>, String> {
        let of_row = |at| row(kind, at, self.columns, seed);
        let x = (0..self.rows).into_par_iter().flat_map_iter(of_row);
        let x: Vec<f32> = x.collect();
        let weight = normal(self.columns, &mut stream(seed, 0));
        let tensors = self.inputs().into_iter().zip([x, weight]);
        let tensors = tensors.map(|(spec, values)| Tensor::of(spec, values.into_iter().map(f64::from)));
        Ok(Box::new(InputTensors(tensors.collect())))
    }

    /// Values are drawn in f32, and expected ones are in f64.
    fn host_bytes(&self, _kind: InputKind) -> u64 {
        self.bytes().saturating_mul(4)
    }

    fn expected(&self, inputs: &dyn Inputs, coverage: Coverage) -> Result<Expected, String> {
        let operands: Option<&InputTensors> = inputs.downcast();
        let Some([x, weight]) = operands.map(|tensors| tensors.0.as_slice()) else {
            return Err("the operands are those of another task".to_owned());
        };
        let rows = coverage.rows(0, self.rows);
        let of_row = |&row: &usize| {
            let values = (0..self.columns).map(move |column| x.get(row * self.columns + column));
            let squares: f64 = values.clone().map(|value| value * value).sum();
            let scale = (squares / self.columns as f64 + EPSILON).sqrt().recip();
            let columns = values.enumerate();
            columns.map(move |(column, value)| value * scale * weight.get(column))
        };
        let grid = Grid {
            values: rows.par_iter().flat_map_iter(of_row).collect(),
            columns: (0..self.columns).collect(),
            rows,
        };
        Ok(Expected::new(coverage, &self.outputs(), vec![vec![grid]]))
    }

    fn spot(&self, seed: u64) -> Coverage {
        if self.flops() < Some(FULL_AT_A_GLANCE / 100) {
            return Coverage::Full;
        }
        Coverage::Sampled {
            rows: 16,
            columns: 0,
            seed,
        }
    }

    /// A multiplication and an addition for the sum of squares, and two multiplications for the result.
    fn flops(&self) -> Option<u64> {
        Some(4 * (self.rows * self.columns) as u64)
    }

    fn schedules(&self) -> Option<&dyn Schedules> {
        Some(self)
    }
}

impl Schedules for RmsNorm {
    fn violations(&self, parameters: &Parameters, device: &Device) -> Vec<Violation> {
        if device.arch == Arch::Cpu {
            return Vec::new();
        }
        vec![Violation {
            parameter: ROWS_PER_TASK.to_owned(),
            value: rows_per_task(parameters).to_string(),
            rule: "the built-in kernel runs on a CPU only".to_owned(),
            source: "crates/lab/rms-norm: there is no kernel for GPUs".to_owned(),
            remedies: Vec::new(),
        }]
    }

    fn edge_sizes(&self, parameters: &Parameters, device: &Device) -> Vec<(&'static str, Sizes)> {
        // One row more than all threads take at the same time, and a tail for every vector width.
        let rows = rows_per_task(parameters) * device.processors.get() as usize + 1;
        let edges = [(DEEP, rows.min(4096), 67), (SMALLEST, 1, 1)];
        let sizes = |rows, columns| {
            Sizes::new(Self {
                rows,
                columns,
                ..*self
            })
        };
        edges
            .map(|(name, rows, columns)| (name, sizes(rows, columns)))
            .into()
    }

    fn tuning_space(&self, _device: &Device) -> Space {
        let space = Space::new().with(ROWS_PER_TASK, [1_usize, 4, 16, 64, 256]);
        space.with(PARTIAL_SUMS, [1_usize, 8, 32])
    }

    fn covering_space(&self) -> Space {
        let space = Space::new().with(ROWS_PER_TASK, [1_usize, 3, 64]);
        space.with(PARTIAL_SUMS, [1_usize, 8, 32])
    }

    fn distance(&self, other: &Sizes) -> Option<f64> {
        let other: &Self = other.downcast()?;
        let ratio = |one: usize, other: usize| (one as f64 / other as f64).ln().abs();
        let largest = ratio(self.rows, other.rows).max(ratio(self.columns, other.columns));
        (self.format == other.format).then_some(largest)
    }
}

/// The number of rows that a thread takes at a time.
pub(crate) fn rows_per_task(parameters: &Parameters) -> usize {
    let complete = RMS_NORM.parameters().complete(parameters);
    complete.get(ROWS_PER_TASK).and_then(Value::number).unwrap_or(1) as usize
}
