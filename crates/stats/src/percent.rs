//! Speed-ups as percentages, with the true minus sign, so that columns line up and every message writes it alike.

use crate::Interval;

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

/// The sign of a figure that is shown with one: `+` or the true minus.
pub fn sign(value: f64) -> &'static str {
    if value < 0.0 { "−" } else { "+" }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared_interval;

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
}
