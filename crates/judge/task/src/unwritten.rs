//! Elements that a kernel did not write, or wrote as NaN.

use gauntlet_tensors::{Tensor, TensorSpec};
use rayon::prelude::*;

use crate::Output;
use crate::words::counted;

/// The byte with which outputs are filled before a call: it makes every float NaN.
const POISON: u8 = 0xFF;

/// Elements that are read at once to count those that are NaN.
const RUN: usize = 1 << 16;

/// The elements of a tensor that are NaN.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Nans {
    /// How many.
    pub(crate) count: usize,
    /// How many of them consist of the byte with which outputs are filled.
    pub(crate) poisoned: usize,
    /// Row and column of the first.
    pub(crate) first: Option<[usize; 2]>,
}

impl Nans {
    /// Those of a tensor.
    pub(crate) fn of(tensor: &Tensor) -> Self {
        let firsts = (0..tensor.len()).into_par_iter().step_by(RUN);
        let runs: Vec<Self> = firsts.map(|first| Self::of_run(tensor, first)).collect();
        runs.into_iter().fold(Self::default(), Self::and)
    }

    fn of_run(tensor: &Tensor, first: usize) -> Self {
        let mut values = vec![0.0; RUN.min(tensor.len() - first)];
        tensor.get_all(first, &mut values);
        let bytes = tensor.spec.data_type.bytes();
        let mut nans = Self::default();
        let found = values.iter().enumerate().filter(|(_, value)| value.is_nan());
        for index in found.map(|(index, _)| first + index) {
            nans.count += 1;
            nans.poisoned += usize::from(is_filled(&tensor.bytes[index * bytes..][..bytes], POISON));
            nans.first.get_or_insert_with(|| place(&tensor.spec, index));
        }
        nans
    }

    /// Those of two tensors, or of two parts of one.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            poisoned: self.poisoned + other.poisoned,
            first: self.first.or(other.first),
        }
    }
}

fn is_filled(element: &[u8], byte: u8) -> bool {
    element.iter().all(|own| *own == byte)
}

/// Row and column of an element.
fn place(spec: &TensorSpec, index: usize) -> [usize; 2] {
    let columns = spec.columns().max(1);
    [index / columns, index % columns]
}

/// Whether an element of an output holds the byte with which it was filled before the call: only then an element can have been
/// left unwritten.
pub fn holds(output: &Output, poison: u8) -> bool {
    output.0.par_iter().any(|tensor| {
        let elements = tensor.bytes.par_chunks(tensor.spec.data_type.bytes());
        elements.any(|element| is_filled(element, poison))
    })
}

/// The elements that were never written, in words. The two results have the same operands, and their outputs were filled with
/// different bytes beforehand: an element that was written is equal in both, and one that holds the byte of either was not.
pub fn unwritten_between(one: &Output, other: &Output, poisons: [u8; 2]) -> Option<String> {
    let of = |(one, other): (&Tensor, &Tensor)| {
        let bytes = one.spec.data_type.bytes();
        let elements = one.bytes.chunks_exact(bytes).zip(other.bytes.chunks_exact(bytes));
        let mut unwritten = elements.enumerate().filter_map(|(index, (one, other))| {
            let is_unwritten = is_filled(one, poisons[0]) && is_filled(other, poisons[1]);
            is_unwritten.then_some(index)
        });
        let first = unwritten.next()?;
        let [row, column] = place(&one.spec, first);
        let count = 1 + unwritten.count();
        let elements = counted(count, "element", "elements");
        let were = if count == 1 { "was" } else { "were" };
        Some(format!(
            "{elements} of `{}` {were} never written, the first at row {row}, column {column}",
            one.spec.name
        ))
    };
    let told: Vec<String> = one.0.iter().zip(&other.0).filter_map(of).collect();
    (!told.is_empty()).then(|| told.join("; "))
}
