//! The results of null kernels, made from the reference's.

use gauntlet_task::{Limits, Output};
use gauntlet_tensors::{DataType, Tensor};

use crate::NullKernel;

/// The largest value of e4m3.
const LARGEST_E4M3: f64 = 448.0;

impl NullKernel {
    /// What it returns where `result` is right and `earlier` was right for other inputs; none where it cannot return anything, such
    /// as half of a single element. Outputs of which it can say nothing stay right.
    pub fn made(self, result: &Output, earlier: &Output) -> Option<Output> {
        let pairs = result.0.iter().zip(&earlier.0).enumerate();
        let made: Vec<_> = pairs
            .map(|(index, (own, earlier))| self.made_of(index, own, earlier, result))
            .collect();
        made.iter().any(Option::is_some).then(|| {
            let parts = made.into_iter().zip(&result.0);
            Output(
                parts
                    .map(|(made, own)| made.unwrap_or_else(|| own.clone()))
                    .collect(),
            )
        })
    }

    fn made_of(self, index: usize, own: &Tensor, earlier: &Tensor, all: &Output) -> Option<Tensor> {
        if own.is_empty() {
            return None;
        }
        match self {
            Self::Zeros => Some(Tensor::filled(own.spec.clone(), 0)),
            Self::Constant => constant(earlier),
            Self::EarlierResult => Some(earlier.clone()),
            Self::FirstHalf => first_half(own),
            Self::LargestOfRow => largest_of_rows(own),
            Self::NeighbouringRow => from_neighbours(own),
            Self::OtherOutput => another(index, own, all),
            Self::NanForLargest => with_nan(own),
            Self::ZeroForSmallest => without_smallest(own),
            Self::SmallerHalf => without_smaller_half(own),
            Self::Bf16 => rounded(own, |value| DataType::Bf16.round(value)),
            Self::Tf32 => rounded(own, to_tf32),
            Self::E4m3 => {
                let fits = values(own).iter().all(|value| value.abs() <= LARGEST_E4M3);
                fits.then(|| rounded(own, |value| DataType::F8e4m3.round(value)))?
            }
            Self::View | Self::IgnoredInput | Self::ReversedInput | Self::DoubledInput => None,
        }
    }
}

/// All elements.
pub(crate) fn values(tensor: &Tensor) -> Vec<f64> {
    let mut values = vec![0.0; tensor.len()];
    tensor.get_all(0, &mut values);
    values
}

/// Whether two tensors of one form hold different values. Two NaN are alike.
pub fn differs(one: &Tensor, other: &Tensor) -> bool {
    if one.bytes == other.bytes {
        return false;
    }
    // 64-bit integers may differ where their values as floats do not.
    !one.spec.data_type.has_nan()
        || any_pair(one, other, |one, other| {
            one != other && !(one.is_nan() && other.is_nan())
        })
}

/// Whether any output of two results differs.
pub fn differ(one: &Output, other: &Output) -> bool {
    one.0.iter().zip(&other.0).any(|(one, other)| differs(one, other))
}

/// Elements that are read at once.
const RUN: usize = 1 << 12;

/// Whether an element of an output breaks a tolerance that must hold for all elements: then it is wrong, whatever the other limits are.
/// Of most wrong outputs the first elements say so, and nothing else need be measured.
pub fn breaks_tolerance(found: &Tensor, expected: &Tensor, limits: &Limits) -> bool {
    if limits.allowed_share > 0.0 {
        return false;
    }
    let tolerance = limits.tolerance;
    any_pair(found, expected, |found, expected| {
        let tolerated = tolerance.absolute + tolerance.relative * expected.abs();
        let is_within = expected.is_finite() && (found - expected).abs() <= tolerated;
        found != expected && !(found.is_nan() && expected.is_nan()) && !is_within
    })
}

/// Whether something is so for any two elements at the same place of two tensors of one form; no more are read than say so.
fn any_pair(one: &Tensor, other: &Tensor, is_so: impl Fn(f64, f64) -> bool) -> bool {
    let [mut run, mut other_run] = [[0.0; RUN]; 2];
    (0..one.len()).step_by(RUN).any(|first| {
        let length = RUN.min(one.len() - first);
        one.get_all(first, &mut run[..length]);
        other.get_all(first, &mut other_run[..length]);
        let mut pairs = run[..length].iter().zip(&other_run[..length]);
        pairs.any(|(one, other)| is_so(*one, *other))
    })
}

/// The mean of the finite elements everywhere.
fn constant(earlier: &Tensor) -> Option<Tensor> {
    let mut finite = values(earlier);
    finite.retain(|value| value.is_finite());
    let mean = finite.iter().sum::<f64>() / finite.len() as f64;
    let elements = earlier.len();
    (!finite.is_empty()).then(|| Tensor::of(earlier.spec.clone(), std::iter::repeat_n(mean, elements)))
}

fn first_half(own: &Tensor) -> Option<Tensor> {
    let element = own.spec.data_type.bytes();
    let kept = own.len().div_ceil(2) * element;
    (own.len() > 1).then(|| {
        let mut half = own.clone();
        half.bytes[kept..].fill(0);
        half
    })
}

fn largest_of_rows(own: &Tensor) -> Option<Tensor> {
    let columns = own.spec.columns();
    let mut kept = values(own);
    for row in kept.chunks_mut(columns.max(1)) {
        let sizes = row.iter().map(|value| value.abs()).enumerate();
        let largest = sizes.max_by(|(_, one), (_, other)| one.total_cmp(other))?.0;
        let value = row[largest];
        row.fill(0.0);
        row[largest] = value;
    }
    (columns > 1).then(|| Tensor::of(own.spec.clone(), kept))
}

/// Each row in the place of the next; elements where there is one row. The first stays, so that rows are not merely in another
/// order, which some tasks allow.
fn from_neighbours(own: &Tensor) -> Option<Tensor> {
    let length = match own.spec.rows() {
        0 | 1 => own.spec.data_type.bytes(),
        _ => own.spec.columns() * own.spec.data_type.bytes(),
    };
    (own.bytes.len() > length).then(|| {
        let mut moved = own.clone();
        let rest = own.bytes.len() - length;
        moved.bytes[length..].copy_from_slice(&own.bytes[..rest]);
        moved
    })
}

fn another(index: usize, own: &Tensor, all: &Output) -> Option<Tensor> {
    let alike =
        |other: &&Tensor| other.spec.data_type == own.spec.data_type && other.spec.shape == own.spec.shape;
    // The next one, so that two outputs are exchanged.
    let (before, after) = all.0.split_at(index);
    let others = after.iter().skip(1).chain(before);
    others.into_iter().find(alike).map(|other| Tensor {
        spec: own.spec.clone(),
        bytes: other.bytes.clone(),
    })
}

fn with_nan(own: &Tensor) -> Option<Tensor> {
    let finite = values(own).into_iter().enumerate();
    let finite = finite.filter(|(_, value)| value.is_finite() && own.spec.data_type.has_nan());
    let (index, _) = finite.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))?;
    let mut made = own.clone();
    made.set(index, f64::NAN);
    Some(made)
}

fn without_smallest(own: &Tensor) -> Option<Tensor> {
    let nonzero = values(own).into_iter().enumerate();
    let nonzero = nonzero.filter(|(_, value)| *value != 0.0 && !value.is_nan());
    let (index, _) = nonzero.min_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))?;
    let mut made = own.clone();
    made.set(index, 0.0);
    Some(made)
}

fn without_smaller_half(own: &Tensor) -> Option<Tensor> {
    let values = values(own);
    let mut sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    let middle = sizes.len() / 2;
    let (_, median, _) = sizes.select_nth_unstable_by(middle, f64::total_cmp);
    let median = *median;
    let kept = values
        .iter()
        .map(|value| if value.abs() < median { 0.0 } else { *value });
    (values.len() > 1).then(|| Tensor::of(own.spec.clone(), kept))
}

fn rounded(own: &Tensor, round: impl Fn(f64) -> f64) -> Option<Tensor> {
    own.spec
        .data_type
        .has_nan()
        .then(|| Tensor::of(own.spec.clone(), values(own).into_iter().map(round)))
}

/// To the nearest with ten fraction bits, as tensor cores take f32.
fn to_tf32(value: f64) -> f64 {
    let single = value as f32;
    if !single.is_finite() {
        return value;
    }
    let bits = single.to_bits();
    let even = (bits >> 13) & 1;
    f64::from(f32::from_bits(bits.wrapping_add(0xfff + even) & !0x1fff))
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::TensorSpec;

    use super::*;

    fn tensor(shape: &[usize], values: &[f64]) -> Tensor {
        Tensor::of(TensorSpec::new("y", DataType::F32, shape), values.iter().copied())
    }

    fn made(kernel: NullKernel, shape: &[usize], own: &[f64], earlier: &[f64]) -> Option<Vec<f64>> {
        let [own, earlier] = [own, earlier].map(|values| Output(vec![tensor(shape, values)]));
        kernel.made(&own, &earlier).map(|output| values(&output.0[0]))
    }

    #[test]
    fn each_null_kernel_returns_what_its_name_says() {
        let own = [1.0, -2.0, 3.0, 4.0];
        let earlier = [5.0, 6.0, 7.0, 8.0];
        let of = |kernel| made(kernel, &[2, 2], &own, &earlier).unwrap();
        assert_eq!(of(NullKernel::Zeros), [0.0; 4]);
        assert_eq!(of(NullKernel::Constant), [6.5; 4]);
        assert_eq!(of(NullKernel::EarlierResult), earlier);
        assert_eq!(of(NullKernel::FirstHalf), [1.0, -2.0, 0.0, 0.0]);
        assert_eq!(of(NullKernel::LargestOfRow), [0.0, -2.0, 0.0, 4.0]);
        assert_eq!(of(NullKernel::NeighbouringRow), [1.0, -2.0, 1.0, -2.0]);
        assert_eq!(of(NullKernel::ZeroForSmallest), [0.0, -2.0, 3.0, 4.0]);
        assert_eq!(of(NullKernel::SmallerHalf), [0.0, 0.0, 3.0, 4.0]);
        let with_nan = of(NullKernel::NanForLargest);
        assert!(with_nan[3].is_nan() && with_nan[..3] == own[..3]);
        let fine = made(NullKernel::NeighbouringRow, &[3], &[1.0, 2.0, 3.0], &[0.0; 3]);
        assert_eq!(fine.unwrap(), [1.0, 1.0, 2.0]);
    }

    #[test]
    fn rounding_leaves_as_many_digits_as_its_format_has() {
        let of = |kernel, value: f64| made(kernel, &[1], &[value], &[0.0]).unwrap()[0];
        assert_eq!(
            of(NullKernel::Bf16, 1.0 + 1.0 / 128.0 + 1.0 / 1024.0),
            1.0 + 1.0 / 128.0
        );
        assert_eq!(
            of(NullKernel::Tf32, 1.0 + 1.0 / 1024.0 + 1.0 / 4096.0),
            1.0 + 1.0 / 1024.0
        );
        assert_eq!(of(NullKernel::E4m3, 1.2), 1.25);
        assert_eq!(
            made(NullKernel::E4m3, &[1], &[1000.0], &[0.0]),
            None,
            "it overflows"
        );
    }

    #[test]
    fn an_element_out_of_tolerance_is_seen_before_anything_is_measured() {
        let limits = |allowed_share| Limits {
            tolerance: gauntlet_task::Tolerance {
                relative: 0.0,
                absolute: 0.5,
            },
            nrmse: 1.0,
            bias: 1.0,
            allowed_share,
        };
        let breaks = |found: &[f64], expected: &[f64], share| {
            let [found, expected] = [found, expected].map(|values| tensor(&[values.len()], values));
            breaks_tolerance(&found, &expected, &limits(share))
        };
        let mut late = vec![1.0; RUN + 3];
        let expected = late.clone();
        assert!(!breaks(&late, &expected, 0.0));
        late[RUN + 2] = 1.75;
        assert!(breaks(&late, &expected, 0.0));
        assert!(!breaks(&late, &expected, 0.5), "some may be out of tolerance");
        let infinite = f64::INFINITY;
        assert!(!breaks(
            &[f64::NAN, infinite, 1.5],
            &[f64::NAN, infinite, 1.0],
            0.0
        ));
        for (found, expected) in [(f64::NAN, 1.0), (1.0, f64::NAN), (1.0, infinite), (infinite, 1.0)] {
            assert!(breaks(&[found], &[expected], 0.0), "{found} for {expected}");
        }
    }

    #[test]
    fn outputs_of_one_form_are_exchanged_and_others_stay() {
        let [one, two] = [[1.0, 2.0], [3.0, 4.0]].map(|values| tensor(&[2], &values));
        let all = Output(vec![one.clone(), two, tensor(&[1], &[5.0])]);
        let exchanged = NullKernel::OtherOutput.made(&all, &all).unwrap();
        let found: Vec<_> = exchanged.0.iter().map(values).collect();
        assert_eq!(found, [vec![3.0, 4.0], vec![1.0, 2.0], vec![5.0]]);
        let alone = Output(vec![one]);
        assert_eq!(NullKernel::OtherOutput.made(&alone, &alone), None);
    }

    #[test]
    fn nothing_is_made_of_too_few_elements() {
        assert_eq!(made(NullKernel::FirstHalf, &[1], &[1.0], &[2.0]), None);
        assert_eq!(made(NullKernel::NeighbouringRow, &[1], &[1.0], &[2.0]), None);
        assert_eq!(made(NullKernel::Zeros, &[0], &[], &[]), None);
    }
}
