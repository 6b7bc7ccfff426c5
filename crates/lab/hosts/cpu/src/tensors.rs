//! Kernels on plain tensors.

use std::path::Path;
use std::time::Instant;

use gauntlet_kernels_cpu::{Engine, RunTimes};
use gauntlet_task::{InputTensors, Output, Sizes};
use gauntlet_tensors::Tensor;

use crate::kernel::{CpuError, CpuKernel};

/// A kernel whose operands and results are exactly the tensors that its task declares, in that order. [`OnTensors`]
/// turns it into a [`CpuKernel`].
pub trait TensorKernel: 'static {
    /// The kernel's resources: see [`CpuKernel::resources`].
    fn resources(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Computes the outputs.
    ///
    /// # Errors
    ///
    /// If the call fails; the host answers that the worker is broken.
    fn compute(&mut self, engine: &Engine, inputs: &[Tensor], outputs: &mut [Tensor])
    -> Result<(), CpuError>;
}

/// A [`TensorKernel`] with the sizes that determine which tensors it reads and writes.
pub struct OnTensors<K> {
    sizes: Sizes,
    kernel: K,
}

impl<K: TensorKernel> OnTensors<K> {
    /// The kernel for these sizes.
    pub fn new(sizes: &Sizes, kernel: K) -> Self {
        Self {
            sizes: sizes.clone(),
            kernel,
        }
    }
}

impl<K: TensorKernel> CpuKernel for OnTensors<K> {
    type Operands = InputTensors;
    type Output = Output;

    fn resources(&self) -> Vec<(&'static str, f64)> {
        self.kernel.resources()
    }

    fn load(&self, file: &Path) -> Result<InputTensors, CpuError> {
        Ok(InputTensors::load(file, &self.sizes.inputs())?)
    }

    fn operand_bytes(&self, operands: &InputTensors) -> usize {
        operands.0.iter().map(|tensor| tensor.bytes.len()).sum()
    }

    fn output_bytes(&self) -> usize {
        self.sizes.outputs().iter().map(|spec| spec.bytes()).sum()
    }

    fn allocate_output(&self) -> Output {
        Output::poisoned(&self.sizes.outputs())
    }

    fn poison(&self, output: &mut Output, byte: u8) {
        for tensor in &mut output.0 {
            tensor.bytes.fill(byte);
        }
    }

    fn run(
        &mut self,
        engine: &Engine,
        operands: &InputTensors,
        output: &mut Output,
        _traced: bool,
    ) -> Result<RunTimes, CpuError> {
        let start = Instant::now();
        self.kernel.compute(engine, &operands.0, &mut output.0)?;
        Ok(RunTimes {
            kernel: start.elapsed(),
            phases: None,
        })
    }

    fn save(&self, output: &Output, file: &Path) -> Result<(), CpuError> {
        Ok(output.save(file)?)
    }
}
