//! How far an output is from the reference.

use std::fmt;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gauntlet_tensors::Tensor;

use crate::differences::Differences;
use crate::unwritten::Nans;
use crate::{Coverage, Expected, ExpectedPart, Grid, Limits, Output};

/// How far an element may be off: `|found − expected| ≤ absolute + relative · |expected|`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// As a fraction of the expected magnitude.
    pub relative: f64,
    /// In the units of the result.
    pub absolute: f64,
}

/// How far an output is from the reference.
///
/// The largest error alone hides a bias, so the root mean square and the mean signed error are given too. All fields
/// except [`unwritten`](Self::unwritten) refer to the elements that the reference computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorMeasures {
    /// How much the reference computed.
    pub coverage: Coverage,
    /// Elements of the whole output.
    pub elements: usize,
    /// Elements of the whole output that are NaN where the reference is not: never written, or computed as NaN. Always 0
    /// for element types without NaN; see [`unwritten_between`](crate::unwritten_between).
    pub unwritten: usize,
    /// Elements compared.
    pub compared: usize,
    /// Root mean square of the error, divided by the root mean square of the expected values. Infinite when a compared
    /// element is NaN or infinite where the reference is not, or the reverse.
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub nrmse: f64,
    /// The bias: mean of found − expected, divided by the root mean square of the expected values; finite elements
    /// only. The expected values are rounded to the format first: where operands repeat, so do their roundings, and a
    /// correct result would seem biased.
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub mean_signed: f64,
    /// Mean of (found − expected) · sign(expected), divided by the same: the bias away from zero. It is below 0 for
    /// results drawn toward zero, as by truncation; the mean signed error of results of both signs does not show this.
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub mean_outward: f64,
    /// How far the bias strays by chance, as one standard deviation, if the sign of each difference from the rounded
    /// reference is chance; divided by the same. Elements with the same expected value count as one.
    #[serde(with = "crate::number", default)]
    #[schemars(with = "crate::number::Written", default)]
    pub bias_by_chance: f64,
    /// Elements out of tolerance.
    pub mismatches: usize,
    /// Elements that differ from the reference rounded once to the output's format; zeros of either sign are equal.
    pub unequal: usize,
    /// The element farthest off, relative to its tolerance. `None` when all are as expected.
    pub worst: Option<Worst>,
    /// The same by part, to tell which group or head is wrong.
    pub parts: Vec<PartMeasures>,
}

/// The measures of one part: one output tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartMeasures {
    /// The output's name; empty in older records.
    #[serde(default)]
    pub name: String,
    /// NaN elements of the whole part where the reference is not NaN.
    pub unwritten: usize,
    /// Those of them that hold the bytes with which outputs are filled before a call.
    #[serde(default)]
    pub poisoned: usize,
    /// Row and column of the first of them, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_unwritten: Option<[usize; 2]>,
    /// Elements compared.
    pub compared: usize,
    /// As [`ErrorMeasures::nrmse`].
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub nrmse: f64,
    /// As [`ErrorMeasures::mean_signed`].
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub mean_signed: f64,
    /// As [`ErrorMeasures::mean_outward`].
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub mean_outward: f64,
    /// As [`ErrorMeasures::bias_by_chance`].
    #[serde(with = "crate::number", default)]
    #[schemars(with = "crate::number::Written", default)]
    pub bias_by_chance: f64,
    /// Elements out of tolerance.
    pub mismatches: usize,
    /// Elements that differ from the rounded reference.
    pub unequal: usize,
    /// The element farthest off, relative to its tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Worst>,
    /// The limits of this output alone; none where those of the rules hold for all outputs together.
    #[serde(skip)]
    pub limits: Option<Limits>,
}

/// The element farthest off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worst {
    /// The group, or the sequence and head.
    pub part: usize,
    /// Row in the part.
    pub row: usize,
    /// Column in the part.
    pub column: usize,
    /// The value written.
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub found: f64,
    /// The value of the reference, not rounded.
    #[serde(with = "crate::number")]
    #[schemars(with = "crate::number::Written")]
    pub expected: f64,
}

impl ErrorMeasures {
    /// Compares an output with the expected one of the same case.
    pub fn between(output: &Output, expected: &Expected, tolerance: Tolerance) -> Self {
        let sums: Vec<Sums> = expected
            .parts
            .par_iter()
            .zip(&output.0)
            .enumerate()
            .map(|(part, (expected, tensor))| {
                let own = expected.limits.map(|limits| limits.tolerance);
                Sums::of(tensor, part, expected, own.unwrap_or(tolerance))
            })
            .collect();
        let part = |(sums, expected): (&Sums, &ExpectedPart)| PartMeasures {
            name: expected.name.clone(),
            limits: expected.limits,
            ..sums.measures()
        };
        let parts = sums.iter().zip(&expected.parts).map(part).collect();
        let PartMeasures {
            unwritten,
            compared,
            nrmse,
            mean_signed,
            mean_outward,
            bias_by_chance,
            mismatches,
            unequal,
            worst,
            ..
        } = sums.into_iter().fold(Sums::default(), Sums::and).measures();
        Self {
            coverage: expected.coverage,
            elements: output.elements(),
            unwritten,
            compared,
            nrmse,
            mean_signed,
            mean_outward,
            bias_by_chance,
            mismatches,
            unequal,
            worst,
            parts,
        }
    }
}

impl ErrorMeasures {
    /// The largest NRMSE and the largest bias that were judged: those of the outputs with limits of their own, or those of all
    /// together.
    pub fn judged(&self) -> [f64; 2] {
        let own = self.parts.iter().filter_map(|part| Some((part, part.limits?)));
        let own: Vec<_> = own.collect();
        if own.is_empty() {
            return [self.nrmse, self.mean_signed.abs()];
        }
        let limited = own.iter().filter(|(_, limits)| limits.nrmse < f64::INFINITY);
        limited.fold([0.0; 2], |[nrmse, bias], (part, _)| {
            [nrmse.max(part.nrmse), bias.max(part.mean_signed.abs())]
        })
    }
}

/// Sums over elements and over parts.
#[derive(Default)]
struct Sums {
    /// The elements of the tensors that are NaN, compared or not.
    nans: Nans,
    /// NaN where the reference is NaN too.
    nan_in_both: usize,
    compared: usize,
    mismatches: usize,
    unequal: usize,
    /// NaN or infinite where the reference is not, or the reverse.
    broken: usize,
    /// Elements with a finite error.
    finite: usize,
    error: f64,
    outward_error: f64,
    differences: Differences,
    squared_error: f64,
    squared_reference: f64,
    /// The worst element, and its error in units of the tolerance.
    worst: Option<(f64, Worst)>,
}

/// Rows of a result are compared in pieces of about this many elements, at most [`PIECES`] of them, in parallel. Neither depends
/// on the machine, so neither do sums.
const PIECE: usize = 1 << 19;
const PIECES: usize = 16;

/// The rows of a grid, and their values.
type Rows<'e> = (&'e Grid, &'e [usize], &'e [f64]);

/// A grid in pieces of whole rows, of about as many elements as `piece`.
fn in_pieces(grid: &Grid, piece: usize) -> impl Iterator<Item = Rows<'_>> {
    let columns = grid.columns.len().max(1);
    let most = piece.div_ceil(columns);
    let values = grid.values.chunks(most * columns);
    let rows = grid.rows.chunks(most);
    rows.zip(values).map(move |(rows, values)| (grid, rows, values))
}

impl Sums {
    fn of(tensor: &Tensor, part: usize, expected: &ExpectedPart, tolerance: Tolerance) -> Self {
        let elements: usize = expected.grids.iter().map(|grid| grid.values.len()).sum();
        let piece = PIECE.max(elements.div_ceil(PIECES));
        let pieces: Vec<Rows> = expected
            .grids
            .iter()
            .flat_map(|grid| in_pieces(grid, piece))
            .collect();
        let pieces: Vec<Self> = pieces
            .into_par_iter()
            .map(|rows| Self::of_rows(tensor, part, expected.columns, rows, tolerance))
            .collect();
        let mut sums = pieces.into_iter().fold(Self::default(), Self::and);
        if tensor.spec.data_type.has_nan() {
            sums.nans = Nans::of(tensor);
        }
        sums
    }

    fn of_rows(
        tensor: &Tensor,
        part: usize,
        columns: usize,
        (grid, rows, values): Rows<'_>,
        tolerance: Tolerance,
    ) -> Self {
        let data_type = tensor.spec.data_type;
        let mut sums = Self::default();
        let mut row_of_tensor = vec![0.0; columns];
        for (&row, values) in rows.iter().zip(values.chunks(grid.columns.len().max(1))) {
            tensor.get_all(row * columns, &mut row_of_tensor);
            for (&column, &expected) in grid.columns.iter().zip(values) {
                let element = Worst {
                    part,
                    row,
                    column,
                    found: row_of_tensor[column],
                    expected,
                };
                sums.add(element, data_type.round(expected), tolerance);
            }
        }
        sums
    }

    fn add(&mut self, element: Worst, rounded: f64, tolerance: Tolerance) {
        self.compared += 1;
        let Worst { found, expected, .. } = element;
        if found.is_nan() && rounded.is_nan() {
            self.nan_in_both += 1;
            return;
        }
        if found == rounded {
            // Where the reference overflows the format too, there is no error that could be added.
            if found.is_finite() {
                self.add_error(found - expected, 0.0, expected);
            }
            return;
        }
        self.unequal += 1;
        let error = found - expected;
        let tolerated = tolerance.absolute + tolerance.relative * expected.abs();
        // No tolerance, however wide, covers the distance to an infinity.
        let is_within = expected.is_finite() && error.abs() <= tolerated;
        let excess = if error.is_nan() || !expected.is_finite() {
            f64::INFINITY
        } else {
            error.abs() / tolerated
        };
        self.mismatches += usize::from(!is_within);
        if self.worst.is_none_or(|(most, _)| excess > most) {
            self.worst = Some((excess, element));
        }
        if found.is_finite() && expected.is_finite() {
            self.add_error(error, found - rounded, expected);
        } else {
            self.broken += 1;
        }
    }

    fn add_error(&mut self, error: f64, signed: f64, expected: f64) {
        self.finite += 1;
        // A finite result where the rounded reference is infinite is an error of unknown size.
        if signed.is_finite() {
            self.error += signed;
            self.outward_error += if expected == 0.0 {
                0.0
            } else {
                signed * expected.signum()
            };
            if signed != 0.0 {
                self.differences.add(expected, signed);
            }
        }
        self.squared_error += error * error;
        self.squared_reference += expected * expected;
    }

    fn and(self, other: Self) -> Self {
        let worst = match (self.worst, other.worst) {
            (Some(first), Some(second)) if second.0 > first.0 => Some(second),
            (first, second) => first.or(second),
        };
        Self {
            nans: self.nans.and(other.nans),
            nan_in_both: self.nan_in_both + other.nan_in_both,
            compared: self.compared + other.compared,
            mismatches: self.mismatches + other.mismatches,
            unequal: self.unequal + other.unequal,
            broken: self.broken + other.broken,
            finite: self.finite + other.finite,
            error: self.error + other.error,
            outward_error: self.outward_error + other.outward_error,
            differences: self.differences.and(other.differences),
            squared_error: self.squared_error + other.squared_error,
            squared_reference: self.squared_reference + other.squared_reference,
            worst,
        }
    }

    fn measures(&self) -> PartMeasures {
        let finite = self.finite.max(1) as f64;
        let reference = (self.squared_reference / finite).sqrt();
        let rms = (self.squared_error / finite).sqrt();
        let unwritten = self.nans.count.saturating_sub(self.nan_in_both);
        let worst = self.worst.map(|(_, worst)| worst);
        // Where NaN is expected elsewhere, the first NaN need not be wrong; the worst element is the first that is.
        let first_wrong = worst.filter(|worst| worst.found.is_nan());
        let first_unwritten = match self.nan_in_both {
            0 => self.nans.first,
            _ => first_wrong.map(|worst| [worst.row, worst.column]),
        };
        PartMeasures {
            name: String::new(),
            unwritten,
            poisoned: self.nans.poisoned.min(unwritten),
            first_unwritten: first_unwritten.filter(|_| unwritten > 0),
            compared: self.compared,
            nrmse: if self.broken > 0 {
                f64::INFINITY
            } else {
                normalise(rms, reference)
            },
            mean_signed: normalise(self.error / finite, reference),
            mean_outward: normalise(self.outward_error / finite, reference),
            bias_by_chance: normalise(self.differences.deviation() / finite, reference),
            mismatches: self.mismatches,
            unequal: self.unequal,
            worst,
            limits: None,
        }
    }
}

/// If all expected values are 0, an error of 0 stays 0, and any other is infinite.
fn normalise(error: f64, reference: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / reference }
}

/// An error and what is known of it, in words.
struct Described<'m> {
    nrmse: f64,
    bias: [f64; 2],
    mismatches: usize,
    compared: usize,
    unequal: usize,
    worst: Option<(Worst, &'m str)>,
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [signed, outward] = self.bias;
        write!(
            formatter,
            "NRMSE {:.2e}, bias {signed:+.1e} and {outward:+.1e} outward, {} of {} compared out of tolerance, {} not bit-equal",
            self.nrmse, self.mismatches, self.compared, self.unequal
        )?;
        match self.worst {
            Some((worst, name)) => write!(formatter, ", worst at `{name}`, {worst}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ErrorMeasures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |worst: &Worst| self.parts.get(worst.part).map_or("", |part| part.name.as_str());
        let described = Described {
            nrmse: self.nrmse,
            bias: [self.mean_signed, self.mean_outward],
            mismatches: self.mismatches,
            compared: self.compared,
            unequal: self.unequal,
            worst: self.worst.as_ref().map(|worst| (*worst, name(worst))),
        };
        write!(formatter, "{described}")?;
        if self.unwritten > 0 {
            write!(
                formatter,
                ", {} of {} NaN or never written",
                self.unwritten, self.elements
            )?;
        }
        write!(formatter, " (oracle: {})", self.coverage)
    }
}

impl fmt::Display for PartMeasures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let described = Described {
            nrmse: self.nrmse,
            bias: [self.mean_signed, self.mean_outward],
            mismatches: self.mismatches,
            compared: self.compared,
            unequal: self.unequal,
            worst: self.worst.map(|worst| (worst, self.name.as_str())),
        };
        described.fmt(formatter)
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            row,
            column,
            found,
            expected,
            ..
        } = self;
        write!(
            formatter,
            "row {row}, column {column}: {found} instead of {expected}"
        )
    }
}
