//! The information that a measurement would give.

/// Bins per standard deviation of the noise.
const FINENESS: f64 = 3.0;

/// The range of the noise on either side, in standard deviations.
const REACH: f64 = 4.0;

/// Expected bits about which explanation is right, from one measured time: the mutual information between explanation and
/// log time. `predicted` has for each explanation its probability and its log times with weights that add up to 1;
/// `noise` is the standard deviation of the measured log time around them.
pub(super) fn information(predicted: &[(f64, Vec<(f64, f64)>)], noise: f64) -> f64 {
    let total: f64 = predicted.iter().map(|(probability, _)| probability).sum();
    let all = || {
        predicted
            .iter()
            .flat_map(|(_, times)| times)
            .map(|(time, _)| *time)
    };
    let low = all().fold(f64::INFINITY, f64::min) - (REACH + 1.0) * noise;
    let high = all().fold(f64::NEG_INFINITY, f64::max) + (REACH + 1.0) * noise;
    if !(total > 0.0 && low.is_finite() && high.is_finite()) {
        return 0.0;
    }
    let width = noise / FINENESS;
    let bins = ((high - low) / width).ceil() as usize + 1;
    let kernel = kernel();
    let densities: Vec<(f64, Vec<f64>)> = predicted
        .iter()
        .map(|(probability, times)| {
            let mut bare = vec![0.0; bins];
            for (time, weight) in times {
                bare[((time - low) / width) as usize] += weight;
            }
            (probability / total, smoothed(&bare, &kernel))
        })
        .collect();
    let mean = |bin: usize| -> f64 {
        densities
            .iter()
            .map(|(probability, density)| probability * density[bin])
            .sum()
    };
    (0..bins)
        .map(|bin| {
            let mean = mean(bin);
            densities
                .iter()
                .filter(|(_, density)| density[bin] > 0.0)
                .map(|(probability, density)| probability * density[bin] * (density[bin] / mean).log2())
                .sum::<f64>()
        })
        .sum::<f64>()
        .max(0.0)
}

/// A binned normal distribution that adds up to 1.
fn kernel() -> Vec<f64> {
    let reach = (REACH * FINENESS) as i32;
    let bare: Vec<f64> = (-reach..=reach)
        .map(|bin| (-0.5 * (f64::from(bin) / FINENESS).powi(2)).exp())
        .collect();
    let sum: f64 = bare.iter().sum();
    bare.into_iter().map(|mass| mass / sum).collect()
}

fn smoothed(bare: &[f64], kernel: &[f64]) -> Vec<f64> {
    let reach = kernel.len() / 2;
    let mut smooth = vec![0.0; bare.len()];
    for (bin, mass) in bare.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
        for (offset, part) in kernel.iter().enumerate() {
            if let Some(target) = (bin + offset)
                .checked_sub(reach)
                .and_then(|target| smooth.get_mut(target))
            {
                *target += mass * part;
            }
        }
    }
    smooth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_predict_alike_tells_nothing_and_what_two_predict_apart_a_bit() {
        let at = |time: f64| (0.5, vec![(time, 1.0)]);
        assert!(information(&[at(1.0), at(1.0)], 0.05) < 1e-9);
        assert!((information(&[at(1.0), at(3.0)], 0.05) - 1.0).abs() < 1e-9);
        let near = information(&[at(1.0), at(1.05)], 0.05);
        assert!(0.1 < near && near < 0.5, "{near}");
        // Three to one: 0.811 bits.
        let apart = information(
            &[(0.75, vec![(1.0, 1.0)]), (0.25, vec![(0.0, 0.5), (2.0, 0.5)])],
            0.05,
        );
        assert!((apart - 0.811_278).abs() < 1e-5, "{apart}");
    }
}
