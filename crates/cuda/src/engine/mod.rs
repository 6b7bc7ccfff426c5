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

use std::rc::Rc;

use gauntlet_problem::{Inputs, Problem};
use gauntlet_schedule::Schedule;

use crate::compiler::Compiler;
use crate::driver::{Context, Device, Gate, Stream};
use crate::error::{BuildError, EngineError, RunError};
use crate::nvml::Monitor;
use crate::plan::{self, Plan, Variant};

pub use kernel::{Kernel, Resources};
pub(crate) use loaded::Loaded;
pub use operands::Operands;
pub(crate) use setup::{encode_all, weight_address};
pub use timing::CallTimes;

/// A GPU with a compiler. Engines, and all that comes from them, stay in the thread that made them.
pub struct Engine {
    shared: Rc<Shared>,
    compiler: Compiler,
}

/// What kernels need of their engine.
struct Shared {
    context: Context,
    stream: Stream,
    /// None where streams cannot wait on memory: times of the device then contain a little of the host's.
    gate: Option<Gate>,
    monitor: Option<Monitor>,
}

impl Engine {
    /// Takes the GPU of this number, from 0.
    ///
    /// # Errors
    /// If there is no driver, no such GPU, no compiler, or the GPU is no Hopper.
    pub fn new(ordinal: usize) -> Result<Self, EngineError> {
        let (context, compiler) = open(ordinal)?;
        let stream = Stream::new(&context)?;
        let gate = Gate::new(&context).ok().filter(|gate| works(gate, &stream));
        Ok(Self {
            shared: Rc::new(Shared {
                gate,
                monitor: Monitor::new(context.device()).ok(),
                stream,
                context,
            }),
            compiler,
        })
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.shared.context.device()
    }

    /// The compiler.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Watches clocks; none if there is no NVML.
    pub fn monitor(&self) -> Option<&Monitor> {
        self.shared.monitor.as_ref()
    }

    /// Plans `problem` under `schedule`, compiles its kernels or takes them from the cache, and loads them.
    ///
    /// # Errors
    /// If no kernel can do what a word says, it does not compile, a block would not fit a multiprocessor, or there is
    /// no memory for the result.
    pub fn build(&self, problem: &Problem, schedule: &Schedule) -> Result<Kernel, BuildError> {
        let plan = plan::plan(problem, schedule, self.device().processors)?;
        self.build_as(Variant::clone, problem, schedule, plan)
    }

    /// As variants that take the plan's launches.
    fn build_as(
        &self,
        variant: impl Fn(&Variant) -> Variant,
        problem: &Problem,
        schedule: &Schedule,
        plan: Box<dyn Plan>,
    ) -> Result<Kernel, BuildError> {
        let load = |of: &Variant| Loaded::new(&self.shared.context, &self.compiler, &variant(of));
        let kernels = plan.variants().into_iter().map(load).collect::<Result<_, _>>()?;
        Kernel::new(Rc::clone(&self.shared), problem, schedule, plan, kernels)
    }

    /// Copies operands to the device, `copies` times in all: copy i holds set i modulo their number.
    ///
    /// # Errors
    /// If they are not of the problem, or do not fit.
    pub fn load(
        &self,
        problem: &Problem,
        sets: &[Inputs],
        copies: usize,
    ) -> Result<Vec<Rc<Operands>>, RunError> {
        operands::load(&self.shared.context, problem, sets, copies)
    }
}

/// The context of the GPU of this number, and a compiler for it.
pub(crate) fn open(ordinal: usize) -> Result<(Context, Compiler), EngineError> {
    let device = Device::new(ordinal)?;
    if !device.is_hopper() {
        return Err(EngineError::Architecture {
            ordinal,
            name: device.name,
            capability: device.compute_capability,
        });
    }
    let compiler = Compiler::new()?;
    Ok((Context::new(&device)?, compiler))
}

/// Whether the driver lets a stream wait.
fn works(gate: &Gate, stream: &Stream) -> bool {
    gate.close(stream).map(drop).is_ok() && stream.synchronise().is_ok()
}
