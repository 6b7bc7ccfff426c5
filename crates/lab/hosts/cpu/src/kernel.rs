//! The two traits through which the host knows a kernel.

use std::path::Path;

use gauntlet_kernels_cpu::{Engine, RunTimes};
use gauntlet_parameters::Parameters;
use gauntlet_task::{Sizes, Task};

/// Why a kernel could not do what the host asked for. The coordinator shows its message to the user.
pub type CpuError = Box<dyn std::error::Error + Send + Sync>;

/// Builds the kernels of one family.
pub trait CpuFamily: 'static {
    /// The kernels that it builds.
    type Kernel: CpuKernel;

    /// The tasks that it builds kernels for.
    fn tasks(&self) -> &'static [&'static dyn Task];

    /// Prepares a kernel for sizes of one of its tasks.
    ///
    /// # Errors
    ///
    /// If the family cannot compute the sizes with the parameters; the host answers that the candidate is refused.
    fn build(
        &self,
        engine: &Engine,
        sizes: &Sizes,
        parameters: &Parameters,
    ) -> Result<Self::Kernel, CpuError>;
}

/// A kernel built for one case. The host owns its operands, its output, the clock, and the loop of calls.
pub trait CpuKernel: 'static {
    /// One copy of the operands in memory. All kernels of a family read the same operands for the same sizes, so that
    /// operands can stay loaded from one build to the next.
    type Operands: Clone;
    /// The memory that a call writes its result to.
    type Output;

    /// The kernel's resources, by the names that budgets and abort rules use, such as `workspace-bytes`.
    fn resources(&self) -> Vec<(&'static str, f64)>;

    /// Reads one copy of the operands from a safetensors file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or does not hold operands of the case; the host answers a bad request.
    fn load(&self, file: &Path) -> Result<Self::Operands, CpuError>;

    /// Bytes of memory that one copy of the operands takes up.
    fn operand_bytes(&self, operands: &Self::Operands) -> usize;

    /// Bytes of the result.
    fn output_bytes(&self) -> usize;

    /// Allocates an output, poisoned with 0xFF in every byte.
    fn allocate_output(&self) -> Self::Output;

    /// Fills the output with a byte, so that elements that a kernel leaves unwritten are detected.
    fn poison(&self, output: &mut Self::Output, byte: u8);

    /// Computes the output from one copy of the operands. The host times this call; `traced` asks for
    /// [`RunTimes::phases`], which may slow the call a little.
    ///
    /// # Errors
    ///
    /// If the call fails; the host answers that the worker is broken.
    fn run(
        &mut self,
        engine: &Engine,
        operands: &Self::Operands,
        output: &mut Self::Output,
        traced: bool,
    ) -> Result<RunTimes, CpuError>;

    /// Writes the output to a safetensors file.
    ///
    /// # Errors
    ///
    /// If the file cannot be written; the host answers that the worker is broken.
    fn save(&self, output: &Self::Output, file: &Path) -> Result<(), CpuError>;
}
