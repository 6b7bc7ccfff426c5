//! The f64 oracle: what a problem's result is, from its exactly dequantised operands.
//!
//! Small problems are computed whole; of large ones some rows and columns, each exact. On the competition's plain
//! operands every sum is exact in f64, elsewhere its relative error is near 1e-15 of the sum of magnitudes.

mod attention;
mod coverage;
mod gemm;
mod product;

pub use coverage::Coverage;

use crate::{Inputs, InputsError, Output, Part, Problem};

/// What the oracle computed of a problem's output.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// How much of the output.
    pub coverage: Coverage,
    /// One entry a [part](Problem::parts).
    pub parts: Vec<ExpectedPart>,
}

/// What the oracle computed of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedPart {
    /// Its sizes.
    pub part: Part,
    /// Index of its first element in the whole output.
    pub first: usize,
    /// The elements computed; no two grids share one.
    pub grids: Vec<Grid>,
}

/// The elements of one part where some rows cross some columns.
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
    /// Another computation's result in the oracle's place: every element, as rounded as it is.
    pub fn of(output: &Output) -> Self {
        let mut first = 0;
        let whole = |part: &Part| {
            let elements = part.rows * part.columns;
            let grid = Grid {
                rows: (0..part.rows).collect(),
                columns: (0..part.columns).collect(),
                values: (first..first + elements)
                    .map(|index| output.get(index).into())
                    .collect(),
            };
            let expected = ExpectedPart {
                part: *part,
                first,
                grids: vec![grid],
            };
            first += elements;
            expected
        };
        Self {
            coverage: Coverage::Full,
            parts: output.parts.iter().map(whole).collect(),
        }
    }

    /// Number of elements computed.
    pub fn elements(&self) -> usize {
        self.parts
            .iter()
            .flat_map(|part| &part.grids)
            .map(|grid| grid.values.len())
            .sum()
    }

    /// Index in the whole output and value of each element computed.
    pub fn values(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.parts.iter().flat_map(|part| {
            let elements = part.grids.iter().flat_map(Grid::elements);
            elements.map(|(row, column, value)| (part.first + row * part.part.columns + column, value))
        })
    }
}

/// Says what a result should be.
#[derive(Debug, Clone, Copy)]
pub struct Oracle;

impl Oracle {
    /// Computes what `coverage` asks for of a [valid](Problem::validate) problem's output.
    ///
    /// # Errors
    /// When the operands do not fit the problem.
    pub fn compute(problem: &Problem, inputs: &Inputs, coverage: Coverage) -> Result<Expected, InputsError> {
        inputs.validate(problem)?;
        let parts = problem.parts();
        let grids = match (problem, inputs) {
            (Problem::GroupedGemm(gemm), Inputs::GroupedGemm(groups)) => gemm::grids(gemm, groups, coverage),
            (Problem::Attention(attention), Inputs::Attention(inputs)) => {
                attention::grids(attention, inputs, coverage)
            }
            _ => return Err(InputsError::Family),
        };
        let mut first = 0;
        let with_place = |(part, grids): (Part, Vec<Grid>)| {
            let expected = ExpectedPart { part, first, grids };
            first += part.rows * part.columns;
            expected
        };
        Ok(Expected {
            coverage,
            parts: parts.into_iter().zip(grids).map(with_place).collect(),
        })
    }
}

/// Cuts an ascending list of rows or columns into pieces of at most `size`.
fn pieces(list: Vec<usize>, size: usize) -> Vec<Vec<usize>> {
    list.chunks(size).map(<[usize]>::to_vec).collect()
}
