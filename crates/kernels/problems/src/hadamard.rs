//! Hadamard mixing of queries and keys.

/// Multiplies each row of `head_size` values by the orthonormal Walsh–Hadamard matrix, whose entries are ±1/√`head_size`.
///
/// The matrix is orthogonal and its own inverse, so the products of mixed queries with mixed keys equal those of the
/// original ones. An outlier in one value is spread over its whole row, so values that share its scale are rounded less
/// coarsely ("incoherent processing", FlashAttention-3, arXiv 2407.08608, section 3.3). Sums are in `f64` and rounded
/// once.
///
/// # Panics
/// When `head_size` is no power of two, or `values` is not whole rows.
pub fn mix(values: &mut [f32], head_size: usize) {
    assert!(head_size.is_power_of_two() && values.len().is_multiple_of(head_size));
    let norm = (head_size as f64).sqrt().recip();
    for row in values.chunks_exact_mut(head_size) {
        let mut sums: Vec<f64> = row.iter().map(|&value| value.into()).collect();
        let mut half = 1;
        while half < head_size {
            for pair in sums.chunks_exact_mut(2 * half) {
                let (first, second) = pair.split_at_mut(half);
                for (first, second) in first.iter_mut().zip(second) {
                    (*first, *second) = (*first + *second, *first - *second);
                }
            }
            half *= 2;
        }
        for (value, sum) in row.iter_mut().zip(sums) {
            *value = (sum * norm) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(one: &[f32], other: &[f32]) -> f64 {
        one.iter()
            .zip(other)
            .map(|(&one, &other)| f64::from(one) * f64::from(other))
            .sum()
    }

    /// Rows of the matrix: what becomes of the unit vectors.
    fn matrix(size: usize) -> Vec<f32> {
        let mut rows: Vec<f32> = (0..size * size)
            .map(|at| f32::from(at / size == at % size))
            .collect();
        mix(&mut rows, size);
        rows
    }

    #[test]
    fn the_matrix_is_orthonormal_and_even() {
        for size in [1, 2, 64, 128] {
            let rows = matrix(size);
            let entry = (size as f32).sqrt().recip();
            assert!(rows.iter().all(|value| (value.abs() - entry).abs() < 1e-7));
            for (i, row) in rows.chunks(size).enumerate() {
                for (j, other) in rows.chunks(size).enumerate() {
                    assert!(
                        (dot(row, other) - f64::from(u8::from(i == j))).abs() < 1e-6,
                        "{size} {i} {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn mixing_twice_changes_nothing_and_products_stay() {
        let values = |seed: f32| -> Vec<f32> { (0..256).map(|at| (at as f32 * seed).sin() * 3.0).collect() };
        let (query, key) = (values(0.7), values(1.3));
        let (mut mixed_query, mut mixed_key) = (query.clone(), key.clone());
        mix(&mut mixed_query, 128);
        mix(&mut mixed_key, 128);
        for (query, key) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let of = |values: &[f32], row: usize| values[row * 128..][..128].to_vec();
            let exact = dot(&of(&values(0.7), query), &of(&values(1.3), key));
            let mixed = dot(&of(&mixed_query, query), &of(&mixed_key, key));
            assert!((exact - mixed).abs() < 1e-4, "{exact} {mixed}");
        }
        mix(&mut mixed_query, 128);
        assert!(
            mixed_query
                .iter()
                .zip(&query)
                .all(|(twice, once)| (twice - once).abs() < 1e-6)
        );
        assert_ne!(mixed_key, key);
    }

    #[test]
    fn an_outlier_is_spread_over_its_row() {
        let mut row = vec![0.0; 64];
        row[11] = 80.0;
        mix(&mut row, 64);
        assert!(row.iter().all(|value| value.abs() == 10.0));
    }
}
