//! The battery on one case.

use gauntlet_task::{Case, Output, Rules, TaskSizes};
use gauntlet_tensors::{Tensor, TensorSpec};

use crate::NullKernel;
use crate::dependence::{Dependence, Dependences};
use crate::made::{differs, values};
use crate::operands::{Draw, result_for};
use crate::values::values_of_inputs;
use crate::views::{is_repeated, view_of};

/// The first seed of the audit's draws.
pub(crate) const SEEDS: u64 = 0x000a_0d17;

/// Draws on which a null kernel must be right to pass.
const DRAWS: usize = 3;

/// The same for results of few values or of integers, which are alike by chance now and then.
const MANY_DRAWS: usize = 8;

/// Elements below which a result is one of few values.
const FEW: usize = 16;

/// How much of the battery is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All of it.
    Whole,
    /// What needs no other results of the reference: for large cases.
    Results,
}

/// What came of one null kernel on a case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trial {
    pub(crate) kernel: NullKernel,
    /// The one output that it makes, or the input that it alters, in words; none for whole results.
    pub(crate) subject: Option<String>,
    /// Whether it passes.
    pub(crate) passes: bool,
    /// Whether that makes the task blind.
    pub(crate) is_blind: bool,
    /// What is said of a pass.
    pub(crate) sentence: String,
}

/// What the battery found on a case.
#[derive(Debug, Default)]
pub(crate) struct CaseTrials {
    pub(crate) trials: Vec<Trial>,
    /// What is to be noted besides.
    pub(crate) notes: Vec<String>,
}

/// Tries the battery on a case.
pub(crate) fn tried(case: &Case, depth: Depth) -> Result<CaseTrials, String> {
    let sizes: &dyn TaskSizes = &*case.sizes;
    let outputs = sizes.outputs();
    let is_coarse = |spec: &TensorSpec| spec.elements() < FEW || !spec.data_type.has_nan();
    let count = match outputs.iter().all(is_coarse) {
        true => MANY_DRAWS,
        false => DRAWS,
    };
    let draw = |number| Draw::of(sizes, case.inputs, SEEDS + number as u64);
    let draws = (0..count).map(draw).collect::<Result<Vec<_>, _>>()?;
    let battery = Battery { sizes, draws };
    let mut found = CaseTrials::default();
    if let Some(fault) = battery.fault_of_reference() {
        found.notes.push(format!(
            "the task's own rules refuse its reference's result: {fault}"
        ));
        return Ok(found);
    }
    let wholes = NullKernel::OF_RESULTS
        .into_iter()
        .filter_map(|kernel| battery.whole(kernel));
    found.trials.extend(wholes);
    if outputs.len() > 1 {
        for (index, spec) in outputs.iter().enumerate() {
            let single = |kernel| battery.single(kernel, index, spec);
            found
                .trials
                .extend(NullKernel::OF_RESULTS.into_iter().filter_map(single));
        }
    }
    found.trials.extend(battery.views(&outputs));
    found.notes.extend(battery.wide_tolerance(&outputs));
    found.notes.extend(values_of_inputs(&battery.draws));
    found.notes.extend(battery.repeated(&outputs));
    let is_same = found
        .trials
        .iter()
        .any(|trial| trial.kernel == NullKernel::EarlierResult && trial.subject.is_none() && trial.passes);
    if depth == Depth::Whole {
        found.trials.extend(battery.peaked(&outputs));
        found.notes.extend(battery.faster_call());
        for input in Dependences::on(sizes, &battery.draws[..DRAWS], true).iter() {
            found.trials.extend(trials_of(input));
            if input.is_read == Some(false) && !is_same {
                found.notes.push(format!(
                    "nothing depends on `{}` but rounding: the reference gives the same result for other values; well if that is meant",
                    input.input
                ));
            }
        }
    }
    Ok(found)
}

/// The null kernels that leave an input out, or change it.
fn trials_of(input: &Dependence) -> Vec<Trial> {
    let subject = format!("`{}`", input.input);
    let trial = |kernel: NullKernel, passes, sentence| Trial {
        kernel,
        subject: Some(subject.clone()),
        passes,
        is_blind: passes && kernel == NullKernel::IgnoredInput && !input.is_setting,
        sentence,
    };
    let mut trials = Vec::new();
    if input.is_read == Some(true) {
        let sentence = input.sentence().unwrap_or_default();
        trials.push(trial(
            NullKernel::IgnoredInput,
            input.ignorable.is_some(),
            sentence,
        ));
    }
    let altered = [
        (NullKernel::ReversedInput, input.reversed),
        (NullKernel::DoubledInput, input.doubled),
    ];
    for (kernel, passes) in altered {
        let Some(passes) = passes.filter(|_| input.is_read == Some(true) && input.ignorable.is_none()) else {
            continue;
        };
        trials.push(trial(kernel, passes, kernel.sentence(&subject)));
    }
    trials
}

impl Dependence {
    /// That nothing depends on it, with the remedy; none if something does.
    pub fn sentence(&self) -> Option<String> {
        let substitute = self.ignorable?;
        let whole = format!("`{}`: a kernel that takes it as {substitute}", self.input);
        Some(NullKernel::IgnoredInput.sentence(&whole))
    }
}

struct Battery<'b> {
    sizes: &'b dyn TaskSizes,
    draws: Vec<Draw>,
}

impl Battery<'_> {
    /// Why the reference's own result is wrong; none if it is right.
    fn fault_of_reference(&self) -> Option<String> {
        let mut faults = self.draws.iter().map(|draw| draw.fault(self.sizes, &draw.result));
        faults.find_map(|fault| fault)
    }

    /// A null kernel that makes all outputs; none if it has nothing to say.
    fn whole(&self, kernel: NullKernel) -> Option<Trial> {
        let made = self.passes(|draw, earlier| kernel.made(&draw.result, &earlier.result));
        let passes = match kernel {
            // A result that is the same for all draws.
            NullKernel::EarlierResult => made.or(Some(true)),
            _ => made,
        }?;
        Some(Trial {
            kernel,
            subject: None,
            passes,
            is_blind: passes && kernel.kind() == crate::Kind::Blindness,
            // Of inputs that do not vary the task itself says so.
            sentence: match kernel == NullKernel::EarlierResult && !self.inputs_vary() {
                true => String::new(),
                false => kernel.sentence("the result"),
            },
        })
    }

    /// Whether other seeds draw other inputs.
    fn inputs_vary(&self) -> bool {
        self.draws.windows(2).any(|two| two[0].tensors != two[1].tensors)
    }

    /// One that makes a single output of several. An output may well be zero, or alike for all inputs, such as a flag for errors: so this
    /// alone does not make a task blind.
    fn single(&self, kernel: NullKernel, index: usize, spec: &TensorSpec) -> Option<Trial> {
        let passes = self.passes(|draw, earlier| {
            let made = kernel.made(&draw.result, &earlier.result)?;
            let mut output = draw.result.clone();
            output.0[index] = made.0[index].clone();
            Some(output)
        })?;
        let subject = format!("`{}`", spec.name);
        Some(Trial {
            kernel,
            passes,
            is_blind: false,
            sentence: kernel.sentence(&subject),
            subject: Some(subject),
        })
    }

    /// Whether a result that differs from the right one is right on every draw; none if it never differs, or cannot be made.
    fn passes(&self, make: impl Fn(&Draw, &Draw) -> Option<Output>) -> Option<bool> {
        let mut says_anything = false;
        for (number, draw) in self.draws.iter().enumerate() {
            let earlier = &self.draws[(number + 1) % self.draws.len()];
            let Some(made) = make(draw, earlier) else { continue };
            let mut outputs = made.0.iter().zip(&draw.result.0);
            if !outputs.any(|(made, own)| differs(made, own)) {
                continue;
            }
            says_anything = true;
            if draw.fault(self.sizes, &made).is_some() {
                return Some(false);
            }
        }
        says_anything.then_some(true)
    }

    /// Outputs that are a view of an input, on every draw.
    fn views(&self, outputs: &[TensorSpec]) -> Vec<Trial> {
        let view = |output: usize, input: usize| {
            let mut views = self
                .draws
                .iter()
                .map(|draw| view_of(&draw.result.0[output], &draw.tensors[input]));
            let first = views.next()??;
            views.all(|view| view.as_ref() == Some(&first)).then_some(first)
        };
        let inputs = &self.draws[0].tensors;
        let all = (0..outputs.len()).flat_map(|output| (0..inputs.len()).map(move |input| (output, input)));
        let found: Vec<_> = all
            .filter_map(|(output, input)| Some((output, input, view(output, input)?)))
            .collect();
        let viewed = |output: usize| found.iter().any(|(known, ..)| *known == output);
        let is_all = (0..outputs.len()).all(viewed);
        let trial = |(output, input, which): &(usize, usize, String)| {
            let (output, input) = (&outputs[*output].name, &inputs[*input].spec.name);
            Trial {
                kernel: NullKernel::View,
                subject: Some(format!("`{output}`")),
                passes: true,
                is_blind: is_all,
                sentence: NullKernel::View.sentence(&format!("`{output}` is `{input}` {which}")),
            }
        };
        found.iter().map(trial).collect()
    }

    /// Outputs that are the same along an axis: who computes one place of it has them all, and may return a view with a stride of 0.
    fn repeated(&self, outputs: &[TensorSpec]) -> Vec<String> {
        let several = |(_, spec): &(usize, &TensorSpec)| spec.rows() > 1 && spec.columns() > 1;
        let named = outputs.iter().enumerate().filter(several);
        let told = named.filter_map(|(index, spec)| {
            let repeats = |axis: &usize| {
                let mut results = self.draws.iter().map(|draw| &draw.result.0[index]);
                spec.shape[*axis] > 1 && results.all(|own| is_repeated(own, *axis))
            };
            let axes = spec.shape.len();
            let found: Vec<_> = (0..axes).filter(repeats).collect();
            let rows = (0..axes - 1).filter(|axis| spec.shape[*axis] > 1);
            let where_it_is = match found.as_slice() {
                [] => return None,
                _ if rows.eq(found.iter().copied().filter(|axis| axis + 1 < axes)) => {
                    format!("all rows of `{}` are the same", spec.name)
                }
                [axis, ..] => format!("`{}` is the same along its axis {axis}", spec.name),
            };
            Some(format!(
                "{where_it_is}: a kernel that computes one and copies it passes; draw inputs for which they differ"
            ))
        });
        told.collect()
    }

    /// That the result has one element in each row which is not zero, though it has several for inputs that are not as large: a
    /// softmax of large inputs, for which an argmax is right.
    fn peaked(&self, outputs: &[TensorSpec]) -> Option<Trial> {
        let [spec] = outputs else { return None };
        let is_one_in_a_row = |output: &Output| {
            let largest = NullKernel::LargestOfRow.made(output, output);
            spec.rows() > 1 && largest.is_some_and(|largest| !differs(&largest.0[0], &output.0[0]))
        };
        if !spec.data_type.has_nan() || !self.draws.iter().all(|draw| is_one_in_a_row(&draw.result)) {
            return None;
        }
        let is_spread = |draw: &Draw, input: usize| {
            let mut tensors = draw.tensors.clone();
            let size = root_mean_square(&tensors[input]);
            let shrunk: Vec<_> = values(&tensors[input]).iter().map(|value| value / size).collect();
            tensors[input] = Tensor::of(tensors[input].spec.clone(), shrunk);
            let result = result_for(self.sizes, &*draw.inputs, tensors);
            size > 1.0 && result.is_ok_and(|result| !is_one_in_a_row(&result))
        };
        let inputs = &self.draws[0].tensors;
        let mut floats = (0..inputs.len()).filter(|input| inputs[*input].spec.data_type.has_nan());
        floats
            .any(|input| self.draws.iter().all(|draw| is_spread(draw, input)))
            .then(|| Trial {
                kernel: NullKernel::LargestOfRow,
                subject: None,
                passes: true,
                is_blind: true,
                sentence: NullKernel::LargestOfRow.sentence("the result"),
            })
    }

    /// A call of a library that gives the same as the reference, on two draws, and is far faster.
    fn faster_call(&self) -> Option<String> {
        let asked = |draw: &Draw| self.sizes.faster_call(&*draw.inputs);
        let (first, second) = (asked(self.draws.first()?)?, asked(self.draws.get(1)?)?);
        (first.call == second.call).then(|| {
            format!(
                "the reference takes {:.0} times as long as {}, which gives the same: a baseline as slow as the reference proves little; \
                 compare with this call too",
                first.times.min(second.times),
                first.call
            )
        })
    }

    /// Outputs beside whose values the absolute tolerance is large.
    fn wide_tolerance(&self, outputs: &[TensorSpec]) -> Vec<String> {
        let wide = |(index, spec): (usize, &TensorSpec)| {
            let tolerance = self.draws[0].absolute_tolerance(self.sizes, index)?;
            let size = root_mean_square(&self.draws[0].result.0[index]);
            (size > 0.0 && tolerance >= WIDE * size && tolerance < f64::MAX).then(|| {
                format!(
                    "the absolute tolerance of `{}`, {tolerance:.1e}, is {:.1} times the root mean square of its values, {size:.1e}: \
                     state a smaller `atol`, or let the values be larger",
                    spec.name,
                    tolerance / size
                )
            })
        };
        outputs.iter().enumerate().filter_map(wide).collect()
    }
}

/// The share of an output's root mean square from which an absolute tolerance is told.
const WIDE: f64 = 0.1;

fn root_mean_square(tensor: &Tensor) -> f64 {
    let mut values = values(tensor);
    values.retain(|value| value.is_finite());
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

impl Draw {
    /// The absolute tolerance of an output: its own, or that of the rules.
    fn absolute_tolerance(&self, sizes: &dyn TaskSizes, index: usize) -> Option<f64> {
        let of_rules = || sizes.rules(&Rules::default()).tolerance;
        let own = self.limits(index).map(|limits| limits.tolerance);
        let tolerance = own.unwrap_or_else(of_rules).absolute;
        sizes.outputs()[index].data_type.has_nan().then_some(tolerance)
    }
}
