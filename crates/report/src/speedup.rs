//! Speed-ups as percentages and as multiples, with the true minus sign, so that columns line up.

use gauntlet_stats::Interval;
use gauntlet_tournament::Quantiles;

/// A fraction of speed-up as a signed percentage: `+3.1 %`, `−23.6 %`, `+320 %`.
pub fn percent(fraction: f64) -> String {
    format!("{} %", signed(fraction))
}

/// An interval as signed percentages: `+3.1 % [+2.2 … +4.0]`.
pub fn percent_interval(interval: &Interval) -> String {
    format!(
        "{} [{} … {}]",
        percent(interval.estimate_fraction()),
        signed(interval.lower_fraction()),
        signed(interval.upper_fraction())
    )
}

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

fn signed(fraction: f64) -> String {
    if !fraction.is_finite() {
        return if fraction.is_nan() {
            "—".to_owned()
        } else {
            format!("{}∞", sign(fraction))
        };
    }
    let value = fraction.abs() * 100.0;
    let digits = usize::from(value < 99.95);
    let text = format!("{value:.digits$}");
    if text == "0.0" {
        text
    } else {
        sign(fraction).to_owned() + &text
    }
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "−" } else { "+" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gauntlet_stats::declared_interval;

    #[test]
    fn percentages_carry_a_sign_and_one_decimal() {
        for (fraction, text) in [
            (0.031, "+3.1 %"),
            (-0.236, "−23.6 %"),
            (-0.0004, "0.0 %"),
            (0.9996, "+100 %"),
            (3.2, "+320 %"),
            (f64::INFINITY, "+∞ %"),
            (f64::NAN, "— %"),
        ] {
            assert_eq!(percent(fraction), text);
        }
    }

    #[test]
    fn an_interval_is_shown_around_its_estimate() {
        let interval = declared_interval(2.0, 1.0, 0.01).unwrap();
        assert_eq!(percent_interval(&interval), "+100 % [+96.0 … +104]");
    }

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
