//! Checks one problem under every schedule that has a kernel for it.

use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;

use gauntlet_families::operations;
use gauntlet_kernels_cuda::plan::{Target, Variant};
use gauntlet_kernels_cuda::{BuildError, Engine, Kernel, Operands, RunError};
use gauntlet_problems::{Inputs, Operation, Schedule};
use gauntlet_task::{ErrorMeasures, Expected, InputKind, Sizes};
use serde::Serialize;

use super::kernels::{self, Step};
use super::problems::{Named, with_output};
use super::tally::Tally;

/// The environment in which problems are checked.
pub struct Bench<'b> {
    pub engine: &'b Engine,
    pub steps: &'b [Step],
    /// The error of each variant, if any.
    pub kernels: HashMap<Variant, Option<String>>,
}

/// A problem with operands of every kind and the expected results.
pub struct Prepared {
    pub named: Named,
    pub seed: u64,
    sets: Vec<(InputKind, Inputs, Expected)>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    pub case: String,
    pub schedule: String,
    pub kernel: String,
    pub inputs: String,
    pub seed: u64,
    pub problem: Operation,
    pub words: Schedule,
    pub fault: String,
}

impl Prepared {
    /// Draws the operands and computes the expected results with the oracle, before any rounding.
    pub fn new(named: Named, seed: u64) -> Result<Self, String> {
        let problem = &named.problem;
        let coverage = operations::sizes(problem)?.coverage(seed);
        let prepare = |kind| {
            let inputs = operations::generate(problem, kind, seed);
            let expected = operations::expected(problem, &inputs, coverage)?;
            Ok((kind, inputs, expected))
        };
        let sets = InputKind::ALL
            .into_iter()
            .map(prepare)
            .collect::<Result<_, String>>()?;
        Ok(Self { named, seed, sets })
    }

    /// Tries all schedules in all formats. A kernel that does not compile, or does not fit, counts as wrong.
    ///
    /// # Errors
    /// If the device becomes unusable; the error names the case and the schedule.
    pub fn try_all(&self, bench: &Bench<'_>, tally: &mut Tally) -> Result<(), Box<dyn Error>> {
        let engine = bench.engine;
        let operands = self.load(engine)?;
        for &output in &self.named.outputs {
            let problem = with_output(&self.named.problem, output);
            for (step, variants) in
                kernels::accepting(bench.steps, &problem, Target::of_gpu(engine.device())?)
            {
                let about = |error: String| format!("{}, {}, {output}: {error}", self.named.name, step.name);
                let broken = variants
                    .iter()
                    .find_map(|variant| Some((variant, bench.kernels.get(variant)?.as_ref()?)));
                if let Some((variant, broken)) = broken {
                    tally.without_kernel(step, variant, broken);
                    continue;
                }
                let mut kernel = match engine.build(&problem, &step.schedule) {
                    Ok(kernel) => kernel,
                    Err(BuildError::Driver(error)) => return Err(about(error.to_string()).into()),
                    Err(error) => {
                        tally.without_kernel(step, &variants[0], &error.to_string());
                        continue;
                    }
                };
                tally.tried(step);
                let sizes = operations::sizes(&problem)?;
                for (set, operands) in self.sets.iter().zip(&operands) {
                    kernel
                        .attach(operands)
                        .and_then(|()| self.try_one(&kernel, &sizes, step, set, tally))
                        .map_err(|error| about(format!("{}: {error}", set.0)))?;
                }
            }
        }
        Ok(())
    }

    fn load(&self, engine: &Engine) -> Result<Vec<Vec<Rc<Operands>>>, RunError> {
        let problem = &self.named.problem;
        let load = |(_, inputs, _): &(_, Inputs, _)| engine.load(problem, std::slice::from_ref(inputs), 1);
        self.sets.iter().map(load).collect()
    }

    /// Computes twice into a poisoned result; compares the first result with the oracle and the second with the first.
    fn try_one(
        &self,
        kernel: &Kernel,
        sizes: &Sizes,
        step: &Step,
        (kind, _, expected): &(InputKind, Inputs, Expected),
        tally: &mut Tally,
    ) -> Result<(), RunError> {
        let rules = operations::rules(kernel.problem(), &step.schedule);
        kernel.run(0)?;
        let output = kernel.output(0)?;
        kernel.run(0)?;
        let again = kernel.output(0)?;
        let computed = operations::output(kernel.problem(), &output);
        let errors = ErrorMeasures::between(&computed, expected, rules.tolerance);
        let different =
            (output.bytes != again.bytes).then(|| "a second call has other bits than the first".to_owned());
        let fault = rules.fault(&errors, sizes.rightness(Some(*kind))).or(different);
        tally.compared(step, &errors);
        if let Some(fault) = fault {
            tally.failed(
                step,
                Failure {
                    case: self.named.name.clone(),
                    schedule: step.name.clone(),
                    kernel: kernel.name().to_owned(),
                    inputs: kind.to_string(),
                    seed: self.seed,
                    problem: kernel.problem().clone(),
                    words: step.schedule.clone(),
                    fault,
                },
            );
        }
        Ok(())
    }
}
