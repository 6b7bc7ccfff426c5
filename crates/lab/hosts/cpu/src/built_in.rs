//! Adapts the families of `gauntlet-kernels-cpu`.

use std::path::Path;

use gauntlet_kernels_cpu::{Engine, Kernel, RunTimes};
use gauntlet_parameters::Parameters;
use gauntlet_problems::{Inputs, Operation, Output, Schedule};
use gauntlet_task::{Sizes, Task};

use crate::kernel::{CpuError, CpuFamily, CpuKernel};

/// The kernel families that [`Engine::build`] supports.
pub(crate) struct BuiltIn;

/// A kernel of the engine, with the operation that its operands and output belong to.
pub(crate) struct BuiltInKernel {
    operation: Operation,
    kernel: Kernel,
}

impl CpuFamily for BuiltIn {
    type Kernel = BuiltInKernel;

    fn tasks(&self) -> &'static [&'static dyn Task] {
        &[gauntlet_gemm::GEMM, gauntlet_attention::ATTENTION]
    }

    fn build(
        &self,
        engine: &Engine,
        sizes: &Sizes,
        parameters: &Parameters,
    ) -> Result<BuiltInKernel, CpuError> {
        let operation = gauntlet_tiled_family::operation(sizes).ok_or("sizes of another task")?;
        let schedule = Schedule::among(parameters)?;
        Ok(BuiltInKernel {
            kernel: engine.build(operation, &schedule)?,
            operation: operation.clone(),
        })
    }
}

impl CpuKernel for BuiltInKernel {
    type Operands = Inputs;
    type Output = Output;

    fn resources(&self) -> Vec<(&'static str, f64)> {
        let resources = self.kernel.resources();
        [
            ("threads", resources.threads),
            ("producers", resources.producers),
            ("panel-bytes", resources.panel_bytes_per_thread),
            ("workspace-bytes", resources.workspace_bytes),
            ("tiles", resources.tiles),
            ("register-rows", resources.register_rows),
            ("register-columns", resources.register_columns),
            ("accumulator-registers", resources.accumulator_registers),
        ]
        .map(|(name, value)| (name, value as f64))
        .into()
    }

    fn load(&self, file: &Path) -> Result<Inputs, CpuError> {
        Ok(Inputs::load(file, &self.operation)?)
    }

    fn operand_bytes(&self, operands: &Inputs) -> usize {
        operands.memory_bytes()
    }

    fn output_bytes(&self) -> usize {
        self.operation.output_bytes()
    }

    fn allocate_output(&self) -> Output {
        Output::poisoned(&self.operation)
    }

    fn poison(&self, output: &mut Output, byte: u8) {
        output.bytes.fill(byte);
    }

    fn run(
        &mut self,
        _engine: &Engine,
        operands: &Inputs,
        output: &mut Output,
        traced: bool,
    ) -> Result<RunTimes, CpuError> {
        let times = if traced {
            self.kernel.run_traced(operands, output)
        } else {
            self.kernel.run(operands, output)
        };
        Ok(times?)
    }

    fn save(&self, output: &Output, file: &Path) -> Result<(), CpuError> {
        Ok(output.save(file)?)
    }
}
