//! Integration over divisions of time, on a grid that is refined around the probability mass.

/// Cells along an axis, by number of shares.
const CELLS: [usize; 3] = [1, 48, 18];

/// Half the width of a refined grid in standard deviations.
const REACH: f64 = 5.0;

/// The mass must spread over this many cells along an axis for a grid to resolve it.
const RESOLVED: f64 = 3.0;

/// The number of cells that represent a mass that is not resolved.
const LIKELIEST: usize = 9;

/// Logarithms that differ by less count as equal: otherwise rounding would decide which cells are taken, and the result
/// would depend on units and order.
const TIED: f64 = 1e-9;

/// Half the width of the next grid in standard deviations of those cells.
const NARROWING: f64 = 3.0;

/// The maximum number of grids; the last is used as it is. Each narrows a sharp peak several times.
const PASSES: usize = 12;

/// A division into at most three shares, which add up to 1.
pub(super) type Shares = [f64; 3];

/// A division of time with its prior probability.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) shares: Shares,
    pub(super) volume: f64,
}

/// A parallelogram in the plane of the first two shares (an interval of the first share if there are only two).
struct Frame {
    shares: usize,
    middle: [f64; 2],
    /// Half its sides, as columns.
    sides: [[f64; 2]; 2],
}

/// Cells with the result of `likelihood` for each: its logarithm and further data.
///
/// The first grid covers everything. The position of its mass determines the place, width and skew of the next grid:
/// drivers that hardly differ produce narrow ridges, which a grid along the axes would miss. While the mass occupies
/// too few cells, the likeliest cells are used in its place.
pub(super) fn resolve<T>(shares: usize, likelihood: impl Fn(&Shares) -> (f64, T)) -> Vec<(Cell, f64, T)> {
    let mut frame = Frame::whole(shares);
    let mut is_fitted = false;
    let mut pass = 0;
    loop {
        pass += 1;
        let cells: Vec<_> = frame
            .cells()
            .into_iter()
            .map(|cell| {
                let (logarithm, found) = likelihood(&cell.shares);
                (cell, logarithm, found)
            })
            .collect();
        let logarithms = || cells.iter().map(|(_, logarithm, _)| *logarithm);
        let greatest = logarithms().fold(f64::NEG_INFINITY, f64::max);
        let masses: Vec<f64> = cells
            .iter()
            .map(|(cell, logarithm, _)| cell.volume * (logarithm - greatest).exp())
            .collect();
        let is_resolved = spread(&masses) >= RESOLVED.powi(shares as i32 - 1);
        if shares == 1 || greatest == f64::NEG_INFINITY || is_resolved && is_fitted || pass == PASSES {
            return cells;
        }
        frame = if is_resolved {
            Frame::around(&cells, &masses, REACH, &frame)
        } else {
            Frame::around(&cells, &likeliest(logarithms()), NARROWING, &frame)
        };
        is_fitted = is_resolved;
    }
}

/// The effective number of cells that the masses spread over: the square of their sum over the sum of their squares.
fn spread(masses: &[f64]) -> f64 {
    let sum: f64 = masses.iter().sum();
    sum * sum / masses.iter().map(|mass| mass * mass).sum::<f64>()
}

/// 1 for each of the [`LIKELIEST`] possible cells, including ties with the last of them; 0 for the others.
fn likeliest(logarithms: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let mut sorted: Vec<f64> = logarithms
        .clone()
        .filter(|logarithm| logarithm.is_finite())
        .collect();
    sorted.sort_by(|one, other| other.total_cmp(one));
    let least = sorted[LIKELIEST.min(sorted.len()) - 1] - TIED;
    logarithms
        .map(|logarithm| if logarithm >= least { 1.0 } else { 0.0 })
        .collect()
}

impl Frame {
    fn whole(shares: usize) -> Self {
        Self {
            shares,
            middle: [0.5; 2],
            sides: [[0.5, 0.0], [0.0, 0.5]],
        }
    }

    /// A frame centred on the mean of the masses in another frame's cells, extending `reach` standard deviations to
    /// either side along the axes of their covariance (its Cholesky factor).
    fn around<T>(cells: &[(Cell, f64, T)], masses: &[f64], reach: f64, last: &Self) -> Self {
        let shares = last.shares;
        let total: f64 = masses.iter().sum();
        let mean = |of: &dyn Fn(&Shares) -> f64| -> f64 {
            cells
                .iter()
                .zip(masses)
                .map(|((cell, ..), mass)| mass * of(&cell.shares))
                .sum::<f64>()
                / total
        };
        let middle = [mean(&|shares| shares[0]), mean(&|shares| shares[1])];
        // Mass within a cell is spread evenly: its variance is a twelfth of the squared width.
        let width = 2.0 / CELLS[shares - 1] as f64;
        let within = |row: usize, column: usize| -> f64 {
            let sides = &last.sides;
            let product: f64 = (0..shares - 1)
                .map(|axis| sides[axis][row] * sides[axis][column])
                .sum();
            product * width * width / 12.0
        };
        let covariance = |row: usize, column: usize| {
            mean(&|shares| (shares[row] - middle[row]) * (shares[column] - middle[column]))
                + within(row, column)
        };
        let first = covariance(0, 0).sqrt();
        let across = covariance(0, 1) / first;
        let second = (covariance(1, 1) - across * across).max(0.0).sqrt();
        Self {
            shares,
            middle,
            sides: [[reach * first, reach * across], [0.0, reach * second]],
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let count = CELLS[self.shares - 1];
        let at = |index: usize| (2.0 * index as f64 + 1.0) / count as f64 - 1.0;
        match self.shares {
            1 => vec![Cell {
                shares: [1.0, 0.0, 0.0],
                volume: 1.0,
            }],
            2 => (0..count)
                .filter_map(|index| self.cell([at(index), 0.0]))
                .collect(),
            _ => (0..count * count)
                .filter_map(|index| self.cell([at(index / count), at(index % count)]))
                .collect(),
        }
    }

    /// The cell at a place within ±1; `None` outside of the valid shares. At the edge, only the valid part of the cell.
    fn cell(&self, place: [f64; 2]) -> Option<Cell> {
        let count = CELLS[self.shares - 1] as f64;
        let [one, other] = self.sides;
        let along = |row: usize| self.middle[row] + place[0] * one[row] + place[1] * other[row];
        let reach = |row: usize| 2.0 / count * (one[row].abs() + other[row].abs());
        let (first, second) = (along(0), along(1));
        let (shares, reaches, density) = if self.shares == 2 {
            ([first, 1.0 - first, 0.0], [reach(0), reach(0), 1.0], one[0])
        } else {
            let last = 2.0 / count * ((one[0] + one[1]).abs() + (other[0] + other[1]).abs());
            // The flat density on the triangle of three shares, whose area is ½, is 2.
            let density = 2.0 * (one[0] * other[1] - one[1] * other[0]).abs();
            (
                [first, second, 1.0 - first - second],
                [reach(0), reach(1), last],
                density,
            )
        };
        let inside: f64 = (0..self.shares)
            .map(|index| (shares[index] / reaches[index] + 0.5).clamp(0.0, 1.0))
            .product();
        if inside <= 0.0 {
            return None;
        }
        let shares = shares.map(|share| share.max(0.0));
        let sum: f64 = shares.iter().sum();
        Some(Cell {
            shares: shares.map(|share| share / sum),
            volume: inside * density * (2.0 / count).powi(self.shares as i32 - 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integral(shares: usize, logarithm: impl Fn(&Shares) -> f64) -> f64 {
        resolve(shares, |at| (logarithm(at), ()))
            .iter()
            .map(|(cell, logarithm, ())| cell.volume * logarithm.exp())
            .sum()
    }

    #[test]
    fn cells_that_differ_by_rounding_are_taken_together() {
        let logarithms = |last: f64| {
            let likelier = [0.0; LIKELIEST - 1];
            likelier.into_iter().chain([-1.0, -1.0 + 1e-13, last, -2.0])
        };
        for last in [-1.0, -1.0 - 1e-13] {
            let mut expected = vec![1.0; LIKELIEST + 2];
            expected.push(0.0);
            assert_eq!(likeliest(logarithms(last)), expected);
        }
    }

    #[test]
    fn the_prior_adds_up_to_one() {
        for shares in 1..=3 {
            let sum = integral(shares, |_| 0.0);
            assert!((sum - 1.0).abs() < 0.02, "{shares} shares: {sum}");
        }
    }

    #[test]
    fn narrow_peaks_are_found_wherever_they_are() {
        for deviation in [0.1, 0.01, 1e-3, 1e-4] {
            for middle in [0.3, 0.517, 0.9] {
                let normal = |at: f64| -0.5 * ((at - middle) / deviation).powi(2);
                let exact = deviation * std::f64::consts::TAU.sqrt();
                let found = integral(2, |shares| normal(shares[0]));
                let tail = if deviation > 0.05 { 0.2 } else { 0.01 };
                assert!(
                    (found / exact - 1.0).abs() < tail,
                    "{deviation} at {middle}: {found} and not {exact}"
                );
            }
        }
        // Half of a normal distribution, at the edge.
        let found = integral(2, |shares| -0.5 * (shares[0] / 0.01).powi(2));
        assert!(
            (found / (0.005 * std::f64::consts::TAU.sqrt()) - 1.0).abs() < 0.05,
            "{found}"
        );
    }

    #[test]
    fn ridges_are_followed() {
        // The first share is known to a thousandth, the other two divide the rest arbitrarily: 2 · 0.6 · √τ/1000.
        let exact = 2.0 * 0.6 * 1e-3 * std::f64::consts::TAU.sqrt();
        for of in [0, 1, 2] {
            let found = integral(3, |shares| -0.5 * ((shares[of] - 0.4) / 1e-3).powi(2));
            assert!(
                (found / exact - 1.0).abs() < 0.05,
                "{of}: {found} and not {exact}"
            );
        }
    }
}
