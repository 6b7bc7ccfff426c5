//! How far two kernels' results are from each other, told quickly: it is asked for while a comparison's clock runs.

use gauntlet_tensors::Tensor;
use rayon::prelude::*;

/// Elements that are compared at once. It does not depend on the machine, so neither do sums.
const RUN: usize = 1 << 16;

/// Sums over elements.
#[derive(Default, Clone, Copy)]
struct Sums {
    /// Elements that are finite in both.
    finite: usize,
    /// Whether an element is NaN or infinite in one and something else in the other.
    broken: bool,
    squared_error: f64,
    squared_reference: f64,
}

/// The root mean square of the difference between all elements of the same output tensors of two results, divided by the root
/// mean square of the second's: [`ErrorMeasures::nrmse`](crate::ErrorMeasures::nrmse) with the second as the reference.
pub fn nrmse_between(output: &[Tensor], reference: &[Tensor]) -> f64 {
    let pairs = output.iter().zip(reference);
    let runs: Vec<(&Tensor, &Tensor, usize)> = pairs
        .flat_map(|(one, other)| {
            let firsts = (0..one.len().min(other.len())).step_by(RUN);
            firsts.map(move |first| (one, other, first))
        })
        .collect();
    let sums: Vec<Sums> = runs
        .into_par_iter()
        .map(|(one, other, first)| of_run(one, other, first))
        .collect();
    let all = sums.into_iter().fold(Sums::default(), Sums::and);
    let rms = |sum: f64| (sum / all.finite.max(1) as f64).sqrt();
    if all.broken {
        f64::INFINITY
    } else if all.squared_error == 0.0 {
        0.0
    } else {
        rms(all.squared_error) / rms(all.squared_reference)
    }
}

fn of_run(one: &Tensor, other: &Tensor, first: usize) -> Sums {
    let length = RUN.min(one.len() - first);
    let (mut found, mut expected) = (vec![0.0; length], vec![0.0; length]);
    one.get_all(first, &mut found);
    other.get_all(first, &mut expected);
    let mut sums = Sums::default();
    for (&found, &expected) in found.iter().zip(&expected) {
        if found.is_finite() && expected.is_finite() {
            let error: f64 = found - expected;
            sums.finite += 1;
            sums.squared_error += error * error;
            sums.squared_reference += expected * expected;
        } else {
            sums.broken |= found != expected && !(found.is_nan() && expected.is_nan());
        }
    }
    sums
}

impl Sums {
    fn and(self, other: Self) -> Self {
        Self {
            finite: self.finite + other.finite,
            broken: self.broken || other.broken,
            squared_error: self.squared_error + other.squared_error,
            squared_reference: self.squared_reference + other.squared_reference,
        }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::{DataType, TensorSpec};

    use super::*;
    use crate::{ErrorMeasures, Expected, Output, Tolerance};

    const TOLERANCE: Tolerance = Tolerance {
        relative: 0.0,
        absolute: 0.0,
    };

    /// Two outputs, the first longer than a run, with these values at the beginning of each.
    fn output(values: &[f64]) -> Output {
        let tensor = |(name, columns)| {
            let mut tensor = Tensor::filled(TensorSpec::new(name, DataType::F32, [3, columns]), 0);
            for index in 0..tensor.len() {
                let value = values.get(index).copied().unwrap_or((index % 97) as f64 - 48.5);
                tensor.set(index, value);
            }
            tensor
        };
        Output([("long", RUN), ("short", 5)].map(tensor).into())
    }

    #[test]
    fn it_is_that_of_the_whole_measures() {
        let (nan, infinite) = (f64::NAN, f64::INFINITY);
        let values: [&[f64]; 9] = [
            &[],
            &[1.0, 2.0],
            &[1.0, 2.5],
            &[nan],
            &[nan, 3.0],
            &[infinite],
            &[-infinite],
            &[1e30, -1e30],
            &[0.0, -0.0],
        ];
        for one in values.map(output) {
            for other in values.map(output) {
                let whole = ErrorMeasures::between(&one, &Expected::of(&other), TOLERANCE).nrmse;
                let quick = nrmse_between(&one.0, &other.0);
                let close = (quick / whole - 1.0).abs() < 1e-12;
                assert!(close || quick == whole, "{quick} {whole}");
            }
        }
    }

    #[test]
    fn a_reference_of_zeros_is_met_or_infinitely_far() {
        let zeros = Output(vec![Tensor::filled(
            TensorSpec::new("y", DataType::F32, [2, 2]),
            0,
        )]);
        let mut other = zeros.clone();
        assert_eq!(nrmse_between(&other.0, &zeros.0), 0.0);
        other.0[0].set(3, 1.0);
        assert_eq!(nrmse_between(&other.0, &zeros.0), f64::INFINITY);
    }
}
