//! The CPU kernel: threads take runs of rows from a shared iterator, and each row is read twice, the second time from cache.

use std::sync::{Mutex, PoisonError};

use gauntlet_host_cpu::{CpuError, CpuFamily, OnTensors, TensorKernel};
use gauntlet_kernels_cpu::{Engine, SimdPath};
use gauntlet_parameters::{Parameters, Value};
use gauntlet_task::{Sizes, Task};
use gauntlet_tensors::{DataType, Tensor};
use half::bf16;

use crate::sizes::rows_per_task;
use crate::task::PARTIAL_SUMS;
use crate::{EPSILON, RMS_NORM, RmsNorm};

/// The kernels of the task on the CPU.
pub struct RmsNormKernels;

/// One kernel.
pub struct RmsNormKernel {
    sizes: RmsNorm,
    rows_per_task: usize,
    normalise: NormaliseRow,
}

/// Normalises one row in place; there is one weight per value.
type NormaliseRow = fn(&mut [f32], &[f32]);

impl CpuFamily for RmsNormKernels {
    type Kernel = OnTensors<RmsNormKernel>;

    fn tasks(&self) -> &'static [&'static dyn Task] {
        &[RMS_NORM]
    }

    fn build(
        &self,
        engine: &Engine,
        sizes: &Sizes,
        parameters: &Parameters,
    ) -> Result<Self::Kernel, CpuError> {
        let table = RMS_NORM.parameters();
        let given = table.restrict(parameters);
        table.check(&given)?;
        let sums = table.complete(&given).get(PARTIAL_SUMS).and_then(Value::number);
        let kernel = RmsNormKernel {
            sizes: *sizes.downcast().ok_or("sizes of another task")?,
            rows_per_task: rows_per_task(&given),
            normalise: match sums {
                Some(1) => by_path::<1>(engine.simd()),
                Some(8) => by_path::<8>(engine.simd()),
                _ => by_path::<32>(engine.simd()),
            },
        };
        Ok(OnTensors::new(sizes, kernel))
    }
}

/// The same loop compiled for each instruction set. The engine has checked that the processor supports it.
fn by_path<const SUMS: usize>(path: SimdPath) -> NormaliseRow {
    match path {
        #[cfg(target_arch = "x86_64")]
        SimdPath::Amx | SimdPath::Avx512 => {
            // SAFETY: an engine on these paths exists only on processors with AVX-512 F and VL.
            |row, weight| unsafe { normalise_avx512::<SUMS>(row, weight) }
        }
        #[cfg(target_arch = "x86_64")]
        SimdPath::Avx2 => {
            // SAFETY: an engine on this path exists only on processors with AVX2 and FMA.
            |row, weight| unsafe { normalise_avx2::<SUMS>(row, weight) }
        }
        _ => normalise::<SUMS>,
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn normalise_avx512<const SUMS: usize>(row: &mut [f32], weight: &[f32]) {
    normalise::<SUMS>(row, weight);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn normalise_avx2<const SUMS: usize>(row: &mut [f32], weight: &[f32]) {
    normalise::<SUMS>(row, weight);
}

/// Squares are accumulated in f64: sums of squares of values near 10¹⁸ overflow f32, and sums of many small squares
/// lose bits.
#[inline(always)]
fn normalise<const SUMS: usize>(row: &mut [f32], weight: &[f32]) {
    let mut sums = [0.0_f64; SUMS];
    let (chunks, tail) = row.as_chunks::<SUMS>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(*value) * f64::from(*value);
        }
    }
    for (sum, value) in sums.iter_mut().zip(tail) {
        *sum += f64::from(*value) * f64::from(*value);
    }
    let squares: f64 = sums.iter().sum();
    let scale = (squares / row.len() as f64 + EPSILON).sqrt().recip() as f32;
    for (value, weight) in row.iter_mut().zip(weight) {
        *value = *value * scale * *weight;
    }
}

fn read(format: DataType, bytes: &[u8], values: &mut [f32]) {
    if format == DataType::F32 {
        for (value, element) in values.iter_mut().zip(bytes.as_chunks().0) {
            *value = f32::from_le_bytes(*element);
        }
    } else {
        for (value, element) in values.iter_mut().zip(bytes.as_chunks().0) {
            *value = bf16::from_le_bytes(*element).to_f32();
        }
    }
}

fn write(format: DataType, values: &[f32], bytes: &mut [u8]) {
    if format == DataType::F32 {
        for (element, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *element = value.to_le_bytes();
        }
    } else {
        for (element, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *element = bf16::from_f32(*value).to_le_bytes();
        }
    }
}

impl TensorKernel for RmsNormKernel {
    fn resources(&self) -> Vec<(&'static str, f64)> {
        vec![("workspace-bytes", (2 * 4 * self.sizes.columns) as f64)]
    }

    fn compute(
        &mut self,
        engine: &Engine,
        inputs: &[Tensor],
        outputs: &mut [Tensor],
    ) -> Result<(), CpuError> {
        let RmsNorm { columns, format, .. } = self.sizes;
        let ([x, weights], [y]) = (inputs, outputs) else {
            return Err("the tensors are not `x`, `weight` and `y`".into());
        };
        let mut weight = vec![0.0; columns];
        read(format, &weights.bytes, &mut weight);
        let row_bytes = columns * format.bytes();
        let task_bytes = row_bytes.saturating_mul(self.rows_per_task);
        let tasks = x.bytes.chunks(task_bytes).zip(y.bytes.chunks_mut(task_bytes));
        let tasks = Mutex::new(tasks);
        let take = || tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
        engine.for_each_thread(&|_thread| {
            let mut row = vec![0.0; columns];
            while let Some((x, y)) = take() {
                for (x, y) in x.chunks_exact(row_bytes).zip(y.chunks_exact_mut(row_bytes)) {
                    read(format, x, &mut row);
                    (self.normalise)(&mut row, &weight);
                    write(format, &row, y);
                }
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_host_cpu::CpuKernel;
    use gauntlet_kernels_cpu::EngineOptions;
    use gauntlet_task::{Coverage, ErrorMeasures, InputKind, InputTensors, Output, Rightness, Rules};
    use proptest::prelude::*;

    use super::*;
    use crate::task::ROWS_PER_TASK;

    fn sizes(rows: usize, columns: usize, format: DataType) -> Sizes {
        let sizes = RmsNorm {
            rows,
            columns,
            format,
        };
        sizes.checked().unwrap()
    }

    /// The rules' verdict on an output for operands of this seed.
    fn fault(sizes: &Sizes, kind: InputKind, seed: u64, output: &Output) -> Option<String> {
        let inputs = sizes.generate(kind, seed).unwrap();
        let expected = sizes.expected(&*inputs, Coverage::Full).unwrap();
        let rules = Rules::default().suited_to(&sizes.outputs());
        let errors = ErrorMeasures::between(output, &expected, rules.tolerance);
        rules.fault(&errors, Rightness::default())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn every_path_is_right_on_every_kind_of_input(
            rows in 1..40_usize,
            columns in 1..300_usize,
            take in 1..9_usize,
            sums in proptest::sample::select(vec![1_usize, 8, 32]),
            format in proptest::sample::select(vec![DataType::F32, DataType::Bf16]),
            seed in any::<u64>(),
        ) {
            let parameters = Parameters::new().with(ROWS_PER_TASK, take).with(PARTIAL_SUMS, sums);
            let sizes = sizes(rows, columns, format);
            for path in SimdPath::available() {
                let (simd, threads) = (Some(path), Some(2));
                let engine = Engine::new(EngineOptions { simd, threads, ..EngineOptions::default() }).unwrap();
                let mut kernel = RmsNormKernels.build(&engine, &sizes, &parameters).unwrap();
                for kind in InputKind::ALL {
                    let inputs = sizes.generate(kind, seed).unwrap();
                    let inputs: &InputTensors = inputs.downcast().unwrap();
                    let mut output = kernel.allocate_output();
                    kernel.run(&engine, inputs, &mut output, false).unwrap();
                    prop_assert_eq!(fault(&sizes, kind, seed, &output), None, "{} {}", path, kind);
                }
            }
        }
    }

    #[test]
    fn a_row_left_out_and_a_wrong_epsilon_are_seen() {
        let sizes = sizes(3, 64, DataType::F32);
        let inputs = sizes.generate(InputKind::Competition, 1).unwrap();
        let expected = sizes.expected(&*inputs, Coverage::Full).unwrap();
        let judged = |change: &dyn Fn(usize, f64) -> Option<f64>| {
            let mut output = Output::poisoned(&sizes.outputs());
            for (part, index, value) in expected.values() {
                if let Some(value) = change(index, value) {
                    output.0[part].set(index, value);
                }
            }
            fault(&sizes, InputKind::Competition, 1, &output)
        };
        assert_eq!(judged(&|_, value| Some(value)), None);
        let left_out = judged(&|index, value| (index >= 64).then_some(value));
        assert!(left_out.unwrap().contains("never written"));
        let wrong = judged(&|_, value| Some(value * 1.001));
        assert!(wrong.unwrap().contains("NRMSE"));
    }
}
