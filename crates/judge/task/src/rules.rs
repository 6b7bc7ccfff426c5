//! The rules for correct results.

use gauntlet_tensors::{DataType, TensorSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::counted;
use crate::{ErrorMeasures, InputKind, PartMeasures, Tolerance};

/// The rules for a correct result, compared with the reference.
///
/// The limits apply to results in f16 and finer types; [`suited_to`](Self::suited_to) gives the limits of coarser ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Rules {
    /// The kinds of input tried on each case.
    pub inputs: Vec<InputKind>,
    /// Each element within `absolute + relative · |expected|`.
    pub tolerance: Tolerance,
    /// The largest root-mean-square error, divided by the root mean square of the result.
    pub nrmse: f64,
    /// The largest mean signed error, divided by the same; a maximum error alone hides a bias.
    pub bias: f64,
    /// The share of elements that may be outside the tolerance: none unless a task says otherwise.
    #[serde(skip_serializing_if = "is_zero")]
    pub allowed_share: f64,
}

/// How far one output may be off, judged by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// As [`Rules::tolerance`].
    pub tolerance: Tolerance,
    /// As [`Rules::nrmse`].
    pub nrmse: f64,
    /// As [`Rules::bias`].
    pub bias: f64,
    /// As [`Rules::allowed_share`].
    pub allowed_share: f64,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            inputs: InputKind::ALL.to_vec(),
            // The tolerance of the competition from which the GEMM suites come.
            tolerance: Tolerance {
                relative: 1e-3,
                absolute: 1e-3,
            },
            // Rounding to f16 alone gives 2.1e-4 and no bias; twice that is generous for f32 sums.
            nrmse: 5e-4,
            bias: 1e-4,
            allowed_share: 0.0,
        }
    }
}

/// A task's knowledge of correct results, in addition to the general rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rightness {
    /// Whether every order of summation gives the same bits, so that a correct result equals the rounded reference.
    pub is_exact: bool,
    /// The allowed bias of a single output tensor, as a multiple of the allowed bias of all.
    pub bias_of_part: f64,
    /// The number of neighbouring elements that share their errors and so count as one in the test whether a bias is
    /// chance.
    pub dependent: usize,
}

impl Default for Rightness {
    fn default() -> Self {
        Self {
            is_exact: false,
            bias_of_part: 1.0,
            dependent: 1,
        }
    }
}

/// The number of standard deviations within which a bias counts as chance.
///
/// Rounding to nearest errs up or down with equal probability, so over n elements the mean strays by NRMSE/√n. Five
/// times that happens once in a hundred thousand comparisons (Hoeffding's bound, 2·exp(−t²/2)), and exceeds the rules'
/// limit when there are few elements. Where few elements differ from the rounded reference, or many have the same exact
/// value, the mean strays further, by [`ErrorMeasures::bias_by_chance`]; the larger of the two counts.
const CHANCE_DEVIATIONS: f64 = 5.0;

/// The allowed NRMSE of a single output tensor of a built-in task, as a multiple of the allowed NRMSE of all: a few elements may
/// all be rounded the worst way.
const NRMSE_OF_PART: f64 = 4.0;

/// The limit under which a bias is ignored.
struct BiasLimit {
    /// The rules' limit.
    allowed: f64,
    /// The number of biases examined. Each may stray by chance, so the bound is widened until the probability for all
    /// together equals that for one alone.
    tried: usize,
}

impl BiasLimit {
    /// Describes a bias up or down, or away from zero, that is over the limit; `deviation` is the bias by chance, as one
    /// standard deviation.
    fn exceeded(&self, [signed, outward]: [f64; 2], deviation: f64) -> Option<String> {
        let deviations = (CHANCE_DEVIATIONS.powi(2) + 2.0 * (self.tried.max(1) as f64).ln()).sqrt();
        let limit = self.allowed.max(deviations * deviation);
        if signed.abs() > limit {
            return Some(format!("bias {signed:+.2e} is over ±{limit:.2e}"));
        }
        let direction = if outward < 0.0 { "toward" } else { "away from" };
        (outward.abs() > limit).then(|| {
            format!(
                "bias {direction} zero, {:.2e}, is over {limit:.2e}",
                outward.abs()
            )
        })
    }
}

/// The largest relative error of rounding to nearest: 2⁻¹ divided by 2 to the number of fraction bits. None for types
/// that are not floating-point.
fn unit_roundoff(data_type: DataType) -> Option<f64> {
    let exponent = match data_type {
        DataType::F64 => -53,
        DataType::F32 => -24,
        DataType::F16 => -11,
        DataType::Bf16 => -8,
        DataType::F8e4m3 => -4,
        DataType::F8e5m2 => -3,
        DataType::I64 | DataType::I32 | DataType::I16 | DataType::I8 => return None,
        DataType::U64 | DataType::U32 | DataType::U16 | DataType::U8 | DataType::Bool => return None,
    };
    Some(2.0_f64.powi(exponent))
}

impl Rules {
    /// The limits, as those of one output.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            tolerance: self.tolerance,
            nrmse: self.nrmse,
            bias: self.bias,
            allowed_share: self.allowed_share,
        }
    }

    /// The rules for results of these types. The error of a correct result is mostly that of its one rounding, which
    /// grows with the unit roundoff of its type: 2⁻¹¹ for f16, 2⁻⁸ for bf16. So the relative tolerance and the limits
    /// of NRMSE and bias are multiplied by the ratio of the unit roundoff of the coarsest floating-point output to that
    /// of f16; this is 8 for bf16. The limits of f32 are not narrower than those of f16: most of a result's error there
    /// comes from the order of summation. The absolute tolerance stays the same, because it is not relative to a
    /// result.
    #[must_use]
    pub fn suited_to(&self, outputs: &[TensorSpec]) -> Self {
        let roundoffs = outputs.iter().filter_map(|spec| unit_roundoff(spec.data_type));
        let finest = 2.0_f64.powi(-11);
        let factor = roundoffs.fold(finest, f64::max) / finest;
        Self {
            tolerance: Tolerance {
                relative: factor * self.tolerance.relative,
                ..self.tolerance
            },
            nrmse: factor * self.nrmse,
            bias: factor * self.bias,
            ..self.clone()
        }
    }

    /// The error of a result, worst first; none if it is correct. Outputs with limits of their own are judged one by one.
    pub fn fault(&self, errors: &ErrorMeasures, rightness: Rightness) -> Option<String> {
        if let Some(fault) = nan_fault(errors) {
            return Some(fault);
        }
        if errors.unequal == 0 {
            // Every compared element equals the rounded reference. If results are so small that the format has few bits
            // for them, rounding alone may exceed the limits below.
            return None;
        }
        if rightness.is_exact {
            let differ = counted(errors.unequal, "element differs", "elements differ");
            return Some(format!(
                "{differ} from the oracle, though every order of summation is exact on these values; {errors}"
            ));
        }
        let mut with_own = errors
            .parts
            .iter()
            .filter(|part| part.limits.is_some())
            .peekable();
        if with_own.peek().is_some() {
            return with_own.find_map(|part| part.fault_within(&part.limits?, errors));
        }
        if errors.nrmse > self.nrmse {
            return Some(format!(
                "NRMSE {:.2e} is over {:.2e}; {errors}",
                errors.nrmse, self.nrmse
            ));
        }
        self.nrmse_fault_of_part(errors, rightness)
            .or_else(|| self.bias_fault(errors, rightness))
            .or_else(|| {
                tolerance_fault([errors.mismatches, errors.compared], self.allowed_share)
                    .map(|fault| format!("{fault}; {errors}"))
            })
    }

    /// A small part may be wrong as a whole while the error of all parts together is small.
    fn nrmse_fault_of_part(&self, errors: &ErrorMeasures, rightness: Rightness) -> Option<String> {
        let limit = self.nrmse * NRMSE_OF_PART.max(rightness.bias_of_part);
        let parts = errors.parts.iter().filter(|part| part.unequal > 0);
        let mut wrong = parts.filter(|part| part.nrmse > limit);
        let part = wrong.next()?;
        Some(format!(
            "`{}`: NRMSE {:.2e} is over {limit:.2e}; {errors}",
            part.name, part.nrmse
        ))
    }

    fn bias_fault(&self, errors: &ErrorMeasures, rightness: Rightness) -> Option<String> {
        let limit = BiasLimit {
            allowed: self.bias,
            tried: 1,
        };
        let whole = [errors.mean_signed, errors.mean_outward];
        let deviation = errors.nrmse / (errors.compared.max(1) as f64).sqrt();
        if let Some(bias) = limit.exceeded(whole, deviation.max(errors.bias_by_chance)) {
            return Some(format!("{bias}; {errors}"));
        }
        // Each part is checked too: the bias of one head of eight is only an eighth of it in the whole.
        let limit = BiasLimit {
            allowed: self.bias * rightness.bias_of_part,
            tried: errors.parts.len(),
        };
        let mut parts = errors.parts.iter();
        parts.find_map(|part| {
            let bias = part.bias_fault(&limit, rightness.dependent)?;
            Some(format!("`{}`: {bias}; {errors}", part.name))
        })
    }
}

impl PartMeasures {
    /// The error of this output by limits of its own; none if it is correct. The limits on NRMSE and bias take its own root mean
    /// square.
    fn fault_within(&self, limits: &Limits, all: &ErrorMeasures) -> Option<String> {
        let told = self.error_within(limits, all.parts.len())?;
        let named = if all.parts.len() > 1 {
            format!("`{}`: ", self.name)
        } else {
            String::new()
        };
        Some(format!("{named}{told}; {self}"))
    }

    fn error_within(&self, limits: &Limits, outputs: usize) -> Option<String> {
        if self.unequal == 0 {
            return None;
        }
        if self.nrmse > limits.nrmse {
            return Some(format!("NRMSE {:.2e} is over {:.2e}", self.nrmse, limits.nrmse));
        }
        let bias = BiasLimit {
            allowed: limits.bias,
            tried: outputs,
        };
        self.bias_fault(&bias, 1)
            .or_else(|| tolerance_fault([self.mismatches, self.compared], limits.allowed_share))
    }

    /// Whether it keeps these limits and has no NaN that is not expected.
    #[must_use]
    pub fn keeps(&self, limits: &Limits) -> bool {
        self.unwritten == 0 && self.error_within(limits, 1).is_none()
    }

    fn bias_fault(&self, limit: &BiasLimit, dependent: usize) -> Option<String> {
        if self.unequal == 0 {
            return None;
        }
        let independent = (self.compared / dependent.max(1)).max(1) as f64;
        let deviation = (self.nrmse / independent.sqrt()).max(self.bias_by_chance);
        limit.exceeded([self.mean_signed, self.mean_outward], deviation)
    }
}

/// NaN where the reference is not.
fn nan_fault(errors: &ErrorMeasures) -> Option<String> {
    let of = |part: &PartMeasures| {
        let all = counted(part.unwritten, "element", "elements");
        let is = if part.unwritten == 1 { "is" } else { "are" };
        let what = match part.poisoned {
            0 => "NaN",
            _ => "NaN or never written",
        };
        let first = match part.first_unwritten {
            Some([row, column]) => format!(", the first at row {row}, column {column}"),
            None => String::new(),
        };
        format!("{all} of `{}` {is} {what}{first}", part.name)
    };
    let parts = errors.parts.iter().filter(|part| part.unwritten > 0);
    let told: Vec<String> = parts.map(of).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn tolerance_fault([mismatches, compared]: [usize; 2], allowed: f64) -> Option<String> {
    // The share is a quotient, rounded once: 29 of 100 elements are the share 0.29, whereas 0.29 · 100 is less than
    // 29.
    let share = mismatches as f64 / compared.max(1) as f64;
    let are = |count| counted(count, "element is", "elements are");
    (share > allowed).then(|| format!("{} outside the tolerance", are(mismatches)))
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::{DataType, TensorSpec};

    use super::*;
    use crate::{Expected, Output};

    /// The rules' message where `wrong` of 100 elements are off by ten times the tolerance.
    fn said(rules: &Rules, wrong: usize) -> Option<String> {
        let spec = TensorSpec::new("c", DataType::F32, [10, 10]);
        let expected = Expected::whole([(&spec, vec![1.0; 100])]);
        let mut output = Output::poisoned(std::slice::from_ref(&spec));
        let off = rules.tolerance.absolute + rules.tolerance.relative;
        for index in 0..100 {
            output.0[0].set(index, if index < wrong { 1.0 + 10.0 * off } else { 1.0 });
        }
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        rules.fault(&errors, Rightness::default())
    }

    #[test]
    fn as_many_elements_as_allowed_may_be_outside_the_tolerance() {
        for percent in 1..100 {
            let rules = Rules {
                nrmse: 1.0,
                bias: 1.0,
                allowed_share: f64::from(percent) / 100.0,
                ..Rules::default()
            };
            let wrong = percent as usize;
            assert_eq!(said(&rules, wrong), None, "{percent} %");
            let told = said(&rules, wrong + 1).unwrap();
            let starts = counted(wrong + 1, "element is outside", "elements are outside");
            assert!(told.starts_with(&starts), "{told}");
        }
    }

    #[test]
    fn no_element_may_be_outside_the_tolerance_unless_a_share_is_allowed() {
        let rules = Rules {
            nrmse: 1.0,
            bias: 1.0,
            ..Rules::default()
        };
        assert_eq!(said(&rules, 0), None);
        assert!(said(&rules, 1).is_some());
    }

    #[test]
    fn the_other_limits_hold_whatever_share_is_allowed() {
        let rules = Rules {
            allowed_share: 1.0,
            ..Rules::default()
        };
        assert!(said(&rules, 50).unwrap().starts_with("NRMSE"));
    }

    /// The rules' message for 240 results around 3000, of which `wrong` are rounded up where the reference rounds down.
    fn said_of_roundings(wrong: usize, expected: impl Fn(usize) -> f64) -> Option<String> {
        let spec = TensorSpec::new("c", DataType::F16, [20, 12]);
        let value = |index: usize| match index < wrong {
            true => expected(index),
            false => 3000.0 + 2.0 * index as f64,
        };
        let values: Vec<f64> = (0..240).map(value).collect();
        let mut output = Output::poisoned(std::slice::from_ref(&spec));
        for (index, value) in values.iter().enumerate() {
            output.0[0].set(index, if index < wrong { value + 4.001 } else { *value });
        }
        let expected = Expected::whole([(&spec, values)]);
        let rules = Rules::default();
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        assert_eq!(errors.unequal, wrong);
        rules.fault(&errors, Rightness::default())
    }

    #[test]
    fn a_rounding_that_repeats_is_one_coincidence_and_no_bias() {
        // 11068 is halfway between two numbers of f16; the exact values are just below such halves.
        assert_eq!(said_of_roundings(40, |_| 11067.9998), None);
        // Ten different values may all be rounded up by chance, once in five hundred times; forty may not.
        let different = |index: usize| 11067.9998 + 8.0 * index as f64;
        assert_eq!(said_of_roundings(10, different), None);
        assert!(said_of_roundings(40, different).is_some_and(|fault| fault.starts_with("bias +")));
    }
}
