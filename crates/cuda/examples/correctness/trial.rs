//! One problem tried under every schedule that has a kernel for it.

use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;

use gauntlet_cuda::plan::Variant;
use gauntlet_cuda::{BuildError, Engine, Kernel, Operands, RunError};
use gauntlet_lab::gates::fault;
use gauntlet_problem::{
    Case, Coverage, ErrorMeasures, Expected, InputKind, Inputs, InputsError, Oracle, Problem,
};
use gauntlet_schedule::Schedule;
use serde::Serialize;

use super::kernels::{self, Step};
use super::problems::{Named, with_output};
use super::rules::rules;
use super::tally::Tally;

/// What problems are tried with.
pub struct Bench<'b> {
    pub engine: &'b Engine,
    pub steps: &'b [Step],
    /// What is wrong with each variant, if anything.
    pub kernels: HashMap<Variant, Option<String>>,
}

/// A problem with operands of every kind and what they come to.
pub struct Prepared {
    pub named: Named,
    pub seed: u64,
    sets: Vec<(InputKind, Inputs, Expected)>,
}

/// What was wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    pub case: String,
    pub schedule: String,
    pub kernel: String,
    pub inputs: String,
    pub seed: u64,
    pub problem: Problem,
    pub words: Schedule,
    pub fault: String,
}

impl Prepared {
    /// Draws the operands and has the oracle say what they come to, before any rounding.
    pub fn new(named: Named, seed: u64) -> Result<Self, InputsError> {
        let problem = &named.problem;
        let prepare = |kind| {
            let inputs = Inputs::generate(problem, kind, seed);
            let expected = Oracle::compute(problem, &inputs, Coverage::choose(problem, seed))?;
            Ok((kind, inputs, expected))
        };
        let sets = InputKind::ALL
            .into_iter()
            .map(prepare)
            .collect::<Result<_, _>>()?;
        Ok(Self { named, seed, sets })
    }

    /// Tries all schedules in all formats. One whose kernel does not compile, or does not fit, is wrong.
    ///
    /// # Errors
    /// When the device can do no more, naming the case and the schedule.
    pub fn try_all(&self, bench: &Bench<'_>, tally: &mut Tally) -> Result<(), Box<dyn Error>> {
        let engine = bench.engine;
        let operands = self.load(engine)?;
        for &output in &self.named.outputs {
            let problem = with_output(&self.named.problem, output);
            for (step, variants) in kernels::accepting(bench.steps, &problem, engine.device().processors) {
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
                for (set, operands) in self.sets.iter().zip(&operands) {
                    kernel
                        .attach(operands)
                        .and_then(|()| self.try_one(&kernel, step, set, tally))
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

    /// Computes twice over a poisoned result, compares the first with the oracle and the second with the first.
    fn try_one(
        &self,
        kernel: &Kernel,
        step: &Step,
        (kind, _, expected): &(InputKind, Inputs, Expected),
        tally: &mut Tally,
    ) -> Result<(), RunError> {
        let rules = rules(kernel.problem(), &step.schedule);
        kernel.run(0)?;
        let output = kernel.output()?;
        kernel.run(0)?;
        let again = kernel.output()?;
        let errors = ErrorMeasures::between(&output, expected, rules.tolerance);
        let case = Case {
            name: self.named.name.clone(),
            problem: kernel.problem().clone(),
            inputs: *kind,
            data: None,
            speed_of_light: None,
        };
        let different =
            (output.bytes != again.bytes).then(|| "a second call has other bits than the first".to_owned());
        let fault = fault(&case, *kind, &errors, &rules).or(different);
        tally.compared(step, &errors);
        if let Some(fault) = fault {
            tally.failed(
                step,
                Failure {
                    case: case.name,
                    schedule: step.name.clone(),
                    kernel: kernel.name().to_owned(),
                    inputs: kind.to_string(),
                    seed: self.seed,
                    problem: case.problem,
                    words: step.schedule.clone(),
                    fault,
                },
            );
        }
        Ok(())
    }
}
