//! The expected result, in f64.
//!
//! Small results are computed whole, large ones in some rows and columns only.

use gauntlet_tensors::{Tensor, TensorSpec};

use crate::{Coverage, Limits, Output};

/// The part of a result that the reference computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// How much of the output.
    pub coverage: Coverage,
    /// One entry for each output tensor.
    pub parts: Vec<ExpectedPart>,
}

/// The part of one output tensor that the reference computed. The tensor is seen as a matrix of its fastest dimension
/// by all others.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedPart {
    /// The tensor's name.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// The elements computed; grids do not overlap.
    pub grids: Vec<Grid>,
    /// How far this output may be off by itself; none where the limits of the rules hold for all outputs together.
    pub limits: Option<Limits>,
}

/// The elements of one part at the intersections of some rows and some columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Row numbers in the part, ascending.
    pub rows: Vec<usize>,
    /// Column numbers in the part, ascending.
    pub columns: Vec<usize>,
    /// Row-major, `[rows.len(), columns.len()]`, not rounded.
    pub values: Vec<f64>,
}

impl Grid {
    /// Row, column and value of each element.
    pub fn elements(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let columns = self.columns.len().max(1);
        self.rows
            .iter()
            .zip(self.values.chunks_exact(columns))
            .flat_map(|(&row, values)| {
                self.columns
                    .iter()
                    .zip(values)
                    .map(move |(&column, &value)| (row, column, value))
            })
    }
}

impl Expected {
    /// The expected result made of the grids of each output tensor.
    pub fn new(coverage: Coverage, outputs: &[TensorSpec], grids: Vec<Vec<Grid>>) -> Self {
        let part = |(spec, grids): (&TensorSpec, Vec<Grid>)| ExpectedPart {
            name: spec.name.clone(),
            rows: spec.rows(),
            columns: spec.columns(),
            grids,
            limits: None,
        };
        Self {
            coverage,
            parts: outputs.iter().zip(grids).map(part).collect(),
        }
    }

    /// Whole output tensors, each with its values in memory order.
    pub fn whole<'s>(tensors: impl IntoIterator<Item = (&'s TensorSpec, Vec<f64>)>) -> Self {
        let part = |(spec, values): (&TensorSpec, Vec<f64>)| ExpectedPart {
            name: spec.name.clone(),
            rows: spec.rows(),
            columns: spec.columns(),
            grids: vec![Grid {
                rows: (0..spec.rows()).collect(),
                columns: (0..spec.columns()).collect(),
                values,
            }],
            limits: None,
        };
        Self {
            coverage: Coverage::Full,
            parts: tensors.into_iter().map(part).collect(),
        }
    }

    /// The same result, each output tensor with limits of its own.
    #[must_use]
    pub fn within(mut self, limits: impl IntoIterator<Item = Limits>) -> Self {
        for (part, limits) in self.parts.iter_mut().zip(limits) {
            part.limits = Some(limits);
        }
        self
    }

    /// Whether NaN is expected anywhere.
    pub fn has_nan(&self) -> bool {
        let mut grids = self.parts.iter().flat_map(|part| &part.grids);
        grids.any(|grid| grid.values.iter().any(|value| value.is_nan()))
    }

    /// Another kernel's result in place of the reference: every element, with that kernel's rounding.
    pub fn of(output: &Output) -> Self {
        let values = |tensor: &Tensor| {
            let mut values = vec![0.0; tensor.len()];
            tensor.get_all(0, &mut values);
            values
        };
        Self::whole(output.0.iter().map(|tensor| (&tensor.spec, values(tensor))))
    }

    /// Number of elements computed.
    pub fn elements(&self) -> usize {
        self.parts
            .iter()
            .flat_map(|part| &part.grids)
            .map(|grid| grid.values.len())
            .sum()
    }

    /// Output tensor, index in it, and value of each element computed.
    pub fn values(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        self.parts.iter().enumerate().flat_map(|(number, part)| {
            let elements = part.grids.iter().flat_map(Grid::elements);
            elements.map(move |(row, column, value)| (number, row * part.columns + column, value))
        })
    }
}

/// Cuts an ascending list of rows or columns into pieces of at most `size`.
pub fn pieces(list: Vec<usize>, size: usize) -> Vec<Vec<usize>> {
    list.chunks(size).map(<[usize]>::to_vec).collect()
}
