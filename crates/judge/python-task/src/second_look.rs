//! A second look at a result that is outside the limits of its outputs: with inputs in f64, and at outputs that are small by
//! chance.

use gauntlet_task::{ErrorMeasures, InputTensors, Limits, Output, PartMeasures, nrmse_between};
use gauntlet_tensors::{DataType, Tensor, TensorSpec};
use serde_json::{Value, json};

use crate::TaskError;
use crate::memory::{MemoryFile, without_room};
use crate::noticed::percent;
use crate::protocol::InDouble;
use crate::rules::by_tolerance;
use crate::sizes::PythonSizes;

/// Elements of inputs and outputs up to which a reference is computed with inputs in f64 too.
const SMALL: usize = 1 << 22;

/// Elements below which the root mean square of an output is chance.
const FEW: usize = 16;

/// Draws that tell how large an output of few elements usually is.
const DRAWS: u64 = 3;

/// The part of an output's size that is left in f64 where its values in a coarser type are nothing but errors of rounding.
const NOISE: f64 = 1e-3;

/// The NRMSE from the result with inputs in f64 up to which a result may be right. Whether a reference is exact says nothing of one
/// that is farther off.
const NEAR: f64 = 1e-2;

impl PythonSizes {
    /// The fault with what is known of its cause; none if all that is wrong is that an output is small by chance, or nothing but
    /// errors of rounding, though its elements are within the tolerance.
    pub(crate) fn looked_at_again(
        &self,
        inputs: &InputTensors,
        output: &Output,
        errors: &ErrorMeasures,
        fault: String,
    ) -> Result<Option<String>, TaskError> {
        let expected = self.computed(inputs)?;
        let of_part = |(index, part): (usize, &PartMeasures)| Some((index, part.limits?));
        let limited: Vec<(usize, Limits)> = errors.parts.iter().enumerate().filter_map(of_part).collect();
        let is_wrong = |(index, limits): &&(usize, Limits)| !errors.parts[*index].keeps(limits);
        let wrong: Vec<_> = limited.iter().filter(is_wrong).copied().collect();
        let exact = if wrong.is_empty() {
            None
        } else {
            self.in_double(inputs)
        };
        let mut excused = !wrong.is_empty() && errors.unwritten == 0;
        for (index, limits) in &wrong {
            let (part, own) = (&errors.parts[*index], &expected.0[*index]);
            let is_noise = exact.as_ref().is_some_and(|exact| {
                let size = root_mean_square(own);
                size > 0.0 && root_mean_square(&exact.0[*index]) <= NOISE * size
            });
            excused = excused
                && part.keeps(&by_tolerance(*limits))
                && (is_noise || self.is_small_by_chance(*index, own, part, limits)?);
        }
        if excused {
            return Ok(None);
        }
        let mut told = fault;
        if let (Some(exact), Some((index, _))) = (&exact, wrong.first()) {
            let hint = nearer([output, &expected, exact].map(|result| &result.0[*index]));
            told.extend(hint);
        }
        for (index, spec) in self.tensors()?.outputs.iter().enumerate() {
            let share = self.noticed().share_of_nan(index);
            if share > 0.0 {
                told += &format!(
                    "; the reference is NaN in {} of the elements of `{}`",
                    percent(share),
                    spec.name
                );
            }
        }
        Ok(Some(told))
    }

    /// Whether an output of few elements would keep its limits if it were as large as it is for other inputs.
    fn is_small_by_chance(
        &self,
        index: usize,
        own: &Tensor,
        part: &PartMeasures,
        limits: &Limits,
    ) -> Result<bool, TaskError> {
        if own.len() >= FEW {
            return Ok(false);
        }
        let mut usual: f64 = 0.0;
        for seed in 0..DRAWS {
            let other = self.computed(&self.generated(seed)?)?;
            usual = usual.max(root_mean_square(&other.0[index]));
        }
        let times = usual / root_mean_square(own);
        Ok(times > 1.0
            && part.keeps(&Limits {
                nrmse: times * limits.nrmse,
                bias: times * limits.bias,
                ..*limits
            }))
    }

    /// The reference's result for these inputs in f64; none if the case is large, or the reference does not take such inputs.
    fn in_double(&self, inputs: &InputTensors) -> Option<Output> {
        let tensors = self.tensors().ok()?;
        let specs = tensors.inputs.iter().chain(&tensors.outputs);
        if specs.map(TensorSpec::elements).sum::<usize>() > SMALL {
            return None;
        }
        let wide = |spec: &TensorSpec| TensorSpec {
            data_type: match spec.data_type.has_nan() {
                true => DataType::F64,
                false => spec.data_type,
            },
            ..spec.clone()
        };
        let outputs: Vec<_> = tensors.outputs.iter().map(wide).collect();
        let computed = self.task().exact().of(self.digest(inputs), || {
            let (given, made) = (MemoryFile::of(&inputs.0)?, MemoryFile::new()?);
            let files = [("inputs", &given), ("path", &made)];
            let answer: InDouble = self.ask(&self.request("in_double", Value::Null), &files)?;
            if !answer.done {
                return Err(TaskError::new("the reference takes no inputs in f64", ""));
            }
            Output::load(made.path(), &outputs).map_err(|error| without_room(&error))
        });
        // A look that fails says nothing of the result.
        computed.ok()
    }

    pub(crate) fn request(&self, call: &str, more: Value) -> Value {
        let mut request = json!({ "call": call, "parameters": self.parameters() });
        if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
            request.extend(more);
        }
        request
    }
}

/// Whether the result or the reference is nearer to the reference's result for inputs in f64, in words.
fn nearer([found, expected, exact]: [&Tensor; 3]) -> Option<String> {
    let from_exact =
        |tensor: &Tensor| nrmse_between(std::slice::from_ref(tensor), std::slice::from_ref(exact));
    let [kernel, reference] = [found, expected].map(from_exact);
    if kernel.is_nan() || kernel > NEAR {
        return None;
    }
    let which = if kernel < reference {
        "the kernel's result is nearer to it: let the reference compute in f64"
    } else {
        "the reference's is nearer to it"
    };
    Some(format!(
        "; with its inputs in f64 the reference gives a result from which the kernel's is off by NRMSE {kernel:.1e} and the \
         reference's own by {reference:.1e}: {which}"
    ))
}

/// Of the finite elements.
fn root_mean_square(tensor: &Tensor) -> f64 {
    let mut values = vec![0.0; tensor.len()];
    tensor.get_all(0, &mut values);
    values.retain(|value| value.is_finite());
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares / values.len().max(1) as f64).sqrt()
}
