//! One problem tried under every schedule that has a kernel for it.

use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;

use gauntlet_cuda::plan::Variant;
use gauntlet_cuda::{BuildError, Engine, Kernel, Operands, RunError};
use gauntlet_lab::Correctness;
use gauntlet_lab::gates::fault;
use gauntlet_problem::{
    AttentionFormat, Case, Coverage, ErrorMeasures, Expected, InputKind, Inputs, InputsError, Oracle,
    OutputFormat, Problem, Tolerance,
};
use gauntlet_schedule::resources::HopperAttention;
use gauntlet_schedule::{Arithmetic, Schedule};
use serde::Serialize;

use super::kernels::{self, Step};
use super::problems::{Named, with_output};
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
            let expected = Oracle::compute(problem, &inputs, Coverage::choose(problem))?;
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

/// The lab's rules, which are made for f16; bf16 has three bits fewer, and e4m3, to which fp8 arithmetic rounds weights,
/// seven; where it only multiplies queries by keys, sums of some 14 bits stand for scores. Attention's weights are rounded too, and an element's error goes by the size of V, which is not that of the
/// element: the root mean square of all errors is held to the same rule, single elements to a wider one.
fn rules(problem: &Problem, schedule: &Schedule) -> Correctness {
    let rules = Correctness::default();
    let attention = match problem {
        Problem::GroupedGemm(_) => None,
        Problem::Attention(attention) => Some(attention.format),
    };
    let coarser = match (schedule.arithmetic, attention, problem.output_format()) {
        (Arithmetic::Fp8, Some(AttentionFormat::E4m3), _) => match HopperAttention::of(schedule) {
            HopperAttention::Specialised => 32.0,
            HopperAttention::Unified | HopperAttention::Resident => 128.0,
        },
        (_, Some(AttentionFormat::Bf16), _) | (_, _, OutputFormat::Bf16) => 8.0,
        _ => 1.0,
    };
    let single = if attention.is_some() {
        8.0 * coarser
    } else {
        coarser
    };
    Correctness {
        tolerance: Tolerance {
            relative: single * rules.tolerance.relative,
            absolute: if attention.is_some() {
                single * rules.tolerance.absolute
            } else {
                rules.tolerance.absolute
            },
        },
        nrmse: coarser * rules.nrmse,
        // Weights that are all alike, as in a long tail, are rounded all the same way: by up to half a step of their format.
        bias: match coarser {
            128.0 => 1.0 / 32.0,
            8.0 | 32.0 if attention.is_some() => 1.0 / 512.0,
            _ => rules.bias,
        },
        ..rules
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problem::{Form, GemmShape, GroupedGemm, Output};

    use super::*;

    /// What the rules say of the oracle's result, rounded to the format and with one element changed by a factor.
    fn said(format: OutputFormat, factor: f64) -> Option<String> {
        let case = Case {
            name: "test".to_owned(),
            problem: Problem::GroupedGemm(GroupedGemm {
                groups: vec![GemmShape { m: 33, n: 65, k: 64 }],
                form: Form::Plain,
                output: format,
            }),
            inputs: InputKind::Wide,
            data: None,
            speed_of_light: None,
        };
        let inputs = Inputs::generate(&case.problem, InputKind::Wide, 1);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let mut output = Output::poisoned(&case.problem);
        let largest = expected
            .values()
            .max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))
            .unwrap();
        for (index, value) in expected.values() {
            let factor = if index == largest.0 { factor } else { 1.0 };
            output.set(index, value * factor);
        }
        let rules = rules(&case.problem, &Schedule::baseline());
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        fault(&case, InputKind::Wide, &errors, &rules)
    }

    #[test]
    fn a_last_bit_is_forgiven_in_every_format_and_four_are_not() {
        for (format, bit) in [
            (OutputFormat::F16, 2f64.powi(-10)),
            (OutputFormat::Bf16, 2f64.powi(-7)),
            (OutputFormat::F32, 2f64.powi(-23)),
        ] {
            assert_eq!(said(format, 1.0), None);
            assert_eq!(said(format, 1.0 + 0.6 * bit), None, "{format}");
        }
        assert!(said(OutputFormat::F16, 1.0 + 4.0 / 1024.0).is_some());
        assert!(said(OutputFormat::Bf16, 1.0 + 4.0 / 128.0).is_some());
        assert!(said(OutputFormat::F32, 1.0 + 4.0 / 1024.0).is_some());
    }
}
