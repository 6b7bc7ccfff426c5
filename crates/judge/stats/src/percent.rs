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

/// The size of an effect whose direction is known, without a sign: `12.3 % [10.9 … 13.8]`, the bound nearer to zero first.
pub fn percent_span(interval: &Interval) -> String {
    let size = |fraction: f64| unsigned(fraction.abs());
    let bounds = [interval.lower_fraction(), interval.upper_fraction()];
    let [near, far] = if interval.estimate < 0.0 {
        [bounds[1], bounds[0]]
    } else {
        bounds
    };
    format!(
        "{} % [{} … {}]",
        size(interval.estimate_fraction()),
        size(near),
        size(far)
    )
}

/// The sign of a figure that is shown with one: `+` or the true minus.
pub fn sign(value: f64) -> &'static str {
    if value < 0.0 { "−" } else { "+" }
}

fn signed(fraction: f64) -> String {
    let text = unsigned(fraction.abs());
    if fraction.is_nan() || text == "0.0" {
        text
    } else {
        sign(fraction).to_owned() + &text
    }
}

fn unsigned(size: f64) -> String {
    if size.is_nan() {
        return "—".to_owned();
    }
    if size.is_infinite() {
        return "∞".to_owned();
    }
    let value = size * 100.0;
    let digits = usize::from(value < 99.95);
    format!("{value:.digits$}")
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
    fn a_gain_and_a_loss_are_fractions_of_the_same_baseline() {
        let at_half_speed = declared_interval(1.0, 2.0, 0.01).unwrap();
        assert_eq!(percent_interval(&at_half_speed), "−50.0 % [−51.0 … −49.0]");
        assert_eq!(percent_span(&at_half_speed), "50.0 % [49.0 … 51.0]");
        let faster = declared_interval(2.0, 1.0, 0.01).unwrap();
        assert_eq!(percent_span(&faster), "100 % [96.0 … 104]");
    }

    #[test]
    fn an_interval_is_shown_around_its_estimate() {
        let interval = declared_interval(2.0, 1.0, 0.01).unwrap();
        assert_eq!(percent_interval(&interval), "+100 % [+96.0 … +104]");
    }
}
