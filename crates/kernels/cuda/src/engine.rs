//! The engine: a GPU with a compiler, and the kernels built for it.

#[cfg(test)]
mod interpreted;
mod kernel;
mod layout;
mod loaded;
mod operands;
mod setup;
mod timing;
mod tracing;

use std::cell::OnceCell;
use std::rc::Rc;

use gauntlet_problems::{Inputs, Operation, Schedule};

use crate::error::{BuildError, RunError};
use crate::plan::{self, Target, Variant};
use gauntlet_cuda::CompileError;
use gauntlet_cuda::compiler::Compiler;
use gauntlet_cuda::driver::{Context, Device, DriverError, Hold, Stream};
use gauntlet_cuda::nvml::Monitor;

pub use kernel::{Kernel, Resources};
pub(crate) use loaded::Loaded;
pub use operands::Operands;
pub(crate) use setup::{encode_all, weight_address};
pub use timing::CallTimes;

/// A GPU with the compiler for its kernels. Engines and all objects made from them stay in the thread that made them.
///
/// An engine can be made on any GPU, with or without a compiler, so that a program can describe the GPU; the
/// requirements of a kernel are checked when it is [built](Engine::build).
pub struct Engine {
    shared: Rc<Shared>,
    compiler: OnceCell<Compiler>,
}

/// The state that an engine shares with its kernels.
struct Shared {
    context: Context,
    stream: Stream,
    /// None where streams cannot wait on memory: device times then include a little host time.
    hold: Option<Hold>,
    monitor: Option<Monitor>,
}

impl Engine {
    /// Opens the GPU with this number, from 0.
    ///
    /// # Errors
    /// If there is no driver, or no GPU of this number.
    pub fn new(ordinal: usize) -> Result<Self, DriverError> {
        let context = Context::new(&Device::new(ordinal)?)?;
        let stream = Stream::new(&context)?;
        let hold = Hold::new(&context).ok().filter(|hold| works(hold, &stream));
        Ok(Self {
            shared: Rc::new(Shared {
                hold,
                monitor: Monitor::new(context.device()).ok(),
                stream,
                context,
            }),
            compiler: OnceCell::new(),
        })
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.shared.context.device()
    }

    /// The compiler; it is searched for on first use.
    ///
    /// # Errors
    /// If there is no compiler, or it cannot be loaded.
    pub fn compiler(&self) -> Result<&Compiler, CompileError> {
        if let Some(compiler) = self.compiler.get() {
            return Ok(compiler);
        }
        let compiler = Compiler::new()?;
        Ok(self.compiler.get_or_init(|| compiler))
    }

    /// The clock monitor; `None` if there is no NVML.
    pub fn monitor(&self) -> Option<&Monitor> {
        self.shared.monitor.as_ref()
    }

    /// Plans `problem` under `schedule`, compiles its kernels or takes them from the cache, and loads them.
    ///
    /// # Errors
    /// If the GPU cannot run the kernels, there is no compiler, no kernel supports a parameter's value, the kernel does
    /// not compile, a block would not fit a multiprocessor, or there is no memory for the result.
    pub fn build(&self, problem: &Operation, schedule: &Schedule) -> Result<Kernel, BuildError> {
        self.build_as(Variant::clone, problem, schedule)
    }

    /// Builds a form of each of the plan's variants that takes the plan's launches.
    fn build_as(
        &self,
        variant: impl Fn(&Variant) -> Variant,
        problem: &Operation,
        schedule: &Schedule,
    ) -> Result<Kernel, BuildError> {
        let plan = plan::plan(problem, schedule, Target::of_gpu(self.device())?)?;
        let compiler = self.compiler()?;
        let variants: Vec<_> = plan.variants().into_iter().map(variant).collect();
        let kernels = Loaded::all(
            &self.shared.context,
            compiler,
            &variants.iter().collect::<Vec<_>>(),
        )?;
        Kernel::new(Rc::clone(&self.shared), problem, schedule, plan, kernels)
    }

    /// Copies operands to the device, `copies` times in all: copy i holds set i modulo their number.
    ///
    /// # Errors
    /// If they are not for this problem, or do not fit.
    pub fn load(
        &self,
        problem: &Operation,
        sets: &[Inputs],
        copies: usize,
    ) -> Result<Vec<Rc<Operands>>, RunError> {
        operands::load(&self.shared.context, problem, sets, copies)
    }
}

/// Whether the driver lets a stream wait.
fn works(hold: &Hold, stream: &Stream) -> bool {
    hold.begin(stream).map(drop).is_ok() && stream.synchronise().is_ok()
}
