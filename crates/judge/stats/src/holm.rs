//! Correction for several tests in one comparison.

/// Holm's step-down adjusted p-values, in the order given (Holm 1979, "A Simple Sequentially Rejective
/// Multiple Test Procedure"): sorted ascending, p̃₍ᵢ₎ = max over j ≤ i of min(1, (m − j + 1) · p₍ⱼ₎).
/// Rejecting where p̃ ≤ α keeps the chance of any false rejection at most α, whatever the dependence between
/// the tests.
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<usize> = (0..p_values.len()).collect();
    ascending.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut greatest: f64 = 0.0;
    for (rank, index) in ascending.into_iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        greatest = greatest.max((remaining * p_values[index]).min(1.0));
        adjusted[index] = greatest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // Sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, running maximum .02 .03 .06 .06.
        let adjusted = holm_adjusted(&[0.01, 0.04, 0.03, 0.005]);
        for (value, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((value - expected).abs() < 1e-15, "{adjusted:?}");
        }
        assert!(holm_adjusted(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn between_no_correction_and_bonferroni(p_values in prop::collection::vec(0.0..=1.0f64, 1..9)) {
            let adjusted = holm_adjusted(&p_values);
            for (raw, holm) in p_values.iter().zip(&adjusted) {
                let bonferroni = (raw * p_values.len() as f64).min(1.0);
                prop_assert!(raw <= holm && *holm <= bonferroni);
            }
        }
    }
}
