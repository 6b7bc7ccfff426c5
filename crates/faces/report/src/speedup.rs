//! Speed-ups as multiples, and criteria as percentages.

use gauntlet_stats::sign;
use gauntlet_tournament::Quantiles;

/// A speed-up as a multiple: `1.65×`, `16.0×`, `0.065×`.
pub fn times(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "—".to_owned();
    }
    let digits = match ratio {
        small if small < 0.1 => 3,
        medium if medium < 10.0 => 2,
        large if large < 100.0 => 1,
        _ => 0,
    };
    format!("{ratio:.digits$}×")
}

/// A claim as its median and its range for eight of ten outcomes: `1.65× [1.50…1.80]`.
pub(crate) fn claim(claimed: Quantiles) -> String {
    let bare = |ratio: f64| times(ratio).trim_end_matches('×').to_owned();
    format!(
        "{} [{}…{}]",
        times(claimed.q50),
        bare(claimed.q10),
        bare(claimed.q90)
    )
}

/// A criterion as a percentage with no more digits than it was given with: `+2 %`, `−0.5 %`.
pub(crate) fn bound(fraction: f64) -> String {
    // A millionth of a percent is binary noise.
    let value = (fraction.abs() * 1e8).round() / 1e6;
    format!("{}{value} %", sign(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_keep_enough_digits() {
        for (ratio, text) in [
            (0.0647, "0.065×"),
            (1.654, "1.65×"),
            (16.0, "16.0×"),
            (1234.0, "1234×"),
        ] {
            assert_eq!(times(ratio), text);
        }
        assert_eq!(
            claim(Quantiles {
                q10: 1.5,
                q50: 1.65,
                q90: 1.8
            }),
            "1.65× [1.50…1.80]"
        );
    }

    #[test]
    fn criteria_show_the_digits_they_were_given() {
        assert_eq!(bound(0.02), "+2 %");
        assert_eq!(bound(-0.005), "−0.5 %");
        assert_eq!(bound(0.29), "+29 %");
    }
}
