//! The families that a host can build kernels of.

use gauntlet_kernels_cpu::Engine;
use gauntlet_parameters::{Parameters, Table};
use gauntlet_task::{Sizes, Task};
use gauntlet_worker::protocol::{CaseRequest, Failure, Resources};

use crate::built_in::BuiltIn;
use crate::kernel::CpuFamily;
use crate::session::{self, Session, bad_request, refused};

/// The families of a worker. The first family that knows a task builds its kernels.
#[derive(Default)]
pub struct CpuFamilies(Vec<Box<dyn BuildSession>>);

impl CpuFamilies {
    /// No family.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// The families of `gauntlet-kernels-cpu`.
    pub fn built_in() -> Self {
        Self::new().with(BuiltIn)
    }

    /// Adds a family; families added earlier take precedence.
    #[must_use]
    pub fn with(mut self, family: impl CpuFamily) -> Self {
        self.0.push(Box::new(family));
        self
    }

    fn tasks(&self) -> impl Iterator<Item = &'static &'static dyn Task> {
        self.0.iter().flat_map(|family| family.tasks())
    }

    /// Builds a kernel and puts it into `current`, with the operands of the previous session if the sizes are the same.
    pub(crate) fn build(
        &self,
        engine: &Engine,
        case: &CaseRequest,
        parameters: &Parameters,
        current: &mut Option<Box<dyn Session>>,
    ) -> Result<Resources, Failure> {
        for family in &self.0 {
            if let Some(task) = family.tasks().iter().find(|task| task.name() == case.task) {
                let sizes = task.open(&case.sizes).map_err(bad_request)?;
                // A candidate may name parameters of several tasks; what none of them knows was meant for no kernel here.
                let known = |table: Table, task: &&dyn Task| table.with(task.parameters());
                let table = self.tasks().fold(task.parameters().clone(), known);
                table
                    .check(parameters)
                    .map_err(|error| refused(error.to_string()))?;
                return family.build(engine, &sizes, parameters, current);
            }
        }
        let known: Vec<_> = self.tasks().map(|task| format!("`{}`", task.name())).collect();
        Err(refused(format!(
            "there is no CPU kernel of the task `{}`; there are kernels of {}",
            case.task,
            known.join(", ")
        )))
    }
}

/// A [`CpuFamily`] with its kernel type erased.
trait BuildSession {
    fn tasks(&self) -> &'static [&'static dyn Task];
    fn build(
        &self,
        engine: &Engine,
        sizes: &Sizes,
        parameters: &Parameters,
        current: &mut Option<Box<dyn Session>>,
    ) -> Result<Resources, Failure>;
}

impl<F: CpuFamily> BuildSession for F {
    fn tasks(&self) -> &'static [&'static dyn Task] {
        CpuFamily::tasks(self)
    }

    fn build(
        &self,
        engine: &Engine,
        sizes: &Sizes,
        parameters: &Parameters,
        current: &mut Option<Box<dyn Session>>,
    ) -> Result<Resources, Failure> {
        let kernel =
            CpuFamily::build(self, engine, sizes, parameters).map_err(|error| refused(error.to_string()))?;
        session::start(kernel, sizes, current)
    }
}
