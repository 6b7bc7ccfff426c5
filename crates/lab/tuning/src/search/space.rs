//! The points of a search in numbers: what the model learns from, and how far points lie apart.

use serde_json::Value;

/// The points that may be evaluated.
pub struct Space {
    /// For each point the place of each parameter's value among the values in use, as a fraction.
    places: Vec<Vec<f64>>,
    /// What a model learns from: the places, and then sums and differences of logarithms of parameters, since the times
    /// of kernels often depend on products such as the threads of a block.
    features: Vec<Vec<f64>>,
}

impl Space {
    /// The space of these points, each with a value for every parameter in the same order. Lists of numbers count as
    /// one parameter for each number. Parameters with one value in all points are left out.
    pub fn of(points: &[Vec<Value>]) -> Self {
        let rows: Vec<Vec<Value>> = points.iter().map(|point| unfolded(point)).collect();
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut places = vec![Vec::new(); rows.len()];
        let mut logarithms: Vec<Vec<f64>> = Vec::new();
        for column in 0..width {
            let cells: Vec<&Value> = rows
                .iter()
                .map(|row| row.get(column).unwrap_or(&Value::Null))
                .collect();
            let (of_points, values) = places_of(&cells);
            let Some(last) = values.len().checked_sub(1).filter(|last| *last > 0) else {
                continue;
            };
            for (row, place) in places.iter_mut().zip(&of_points) {
                row.push(*place as f64 / last as f64);
            }
            // Two values say the same in any form.
            let positive: Option<Vec<f64>> = values
                .into_iter()
                .map(|value| value.filter(|v| *v > 0.0))
                .collect();
            if let Some(values) = positive.filter(|_| last > 1) {
                logarithms.push(of_points.iter().map(|place| values[*place].ln()).collect());
            }
        }
        let mut features = places.clone();
        for (index, one) in logarithms.iter().enumerate() {
            for other in &logarithms[index + 1..] {
                for (row, (one, other)) in features.iter_mut().zip(one.iter().zip(other)) {
                    row.extend([one + other, one - other]);
                }
            }
        }
        Self { places, features }
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many features at the beginning stand for one parameter each.
    pub(super) fn columns(&self) -> usize {
        self.places.first().map_or(0, Vec::len)
    }

    pub(super) fn features(&self, point: usize) -> &[f64] {
        &self.features[point]
    }

    /// The sum of the distances of all parameters, each from 0 to 1.
    pub(super) fn distance(&self, one: usize, other: usize) -> f64 {
        let pairs = self.places[one].iter().zip(&self.places[other]);
        pairs.map(|(one, other)| (one - other).abs()).sum()
    }

    /// Whether two points differ in at most one parameter.
    pub(super) fn are_neighbours(&self, one: usize, other: usize) -> bool {
        let pairs = self.places[one].iter().zip(&self.places[other]);
        pairs.filter(|(one, other)| one != other).nth(1).is_none()
    }
}

/// A point with lists of numbers taken apart.
fn unfolded(point: &[Value]) -> Vec<Value> {
    let mut row = Vec::new();
    for value in point {
        match value {
            Value::Array(numbers) => row.extend(numbers.iter().cloned()),
            one => row.push(one.clone()),
        }
    }
    row
}

/// The place of each cell among the column's values in their order, and these values, as far as they are numbers.
fn places_of(cells: &[&Value]) -> (Vec<usize>, Vec<Option<f64>>) {
    let mut values = cells.to_vec();
    let key = |value: &Value| (value.as_f64().unwrap_or(f64::MAX), value.to_string());
    let order = |one: &&Value, other: &&Value| {
        let (one, other) = (key(one), key(other));
        one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1))
    };
    values.sort_by(order);
    values.dedup();
    let places = cells
        .iter()
        .map(|cell| values.partition_point(|value| order(value, cell).is_lt()))
        .collect();
    (places, values.iter().map(|value| value.as_f64()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_taken_apart_and_constant_parameters_left_out() {
        let point =
            |tile: [u64; 2], word: &str, flag: bool| vec![json!(tile), json!(7), json!(word), json!(flag)];
        let space = Space::of(&[
            point([16, 1], "b", false),
            point([64, 4], "a", true),
            point([32, 2], "a", true),
        ]);
        assert_eq!((space.len(), space.columns()), (3, 4));
        assert_eq!(space.features(1)[..4], [1.0, 1.0, 0.0, 1.0]);
        assert_eq!(space.features(2)[..2], [0.5, 0.5]);
        // The product and the quotient of both sides of the tile.
        assert!((space.features(1)[4] - 256_f64.ln()).abs() < 1e-9 && space.features(1).len() == 6);
        assert!(!space.are_neighbours(1, 2) && space.are_neighbours(1, 1));
        assert_eq!(space.distance(0, 1), 4.0);
    }
}
