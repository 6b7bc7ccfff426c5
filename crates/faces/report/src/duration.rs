//! Times with a sensible unit.

/// Units and their seconds, greatest first.
const UNITS: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)];

/// Seconds with three significant digits, from nanoseconds to seconds: `373 µs`, `1.25 ms`. A dash if the value is not
/// a time.
pub fn duration(seconds: f64) -> String {
    if !(seconds.is_finite() && seconds >= 0.0) {
        return "—".to_owned();
    }
    // Rounded before the unit is chosen, so that 999.9 µs becomes 1.00 ms and not 1000 µs.
    let rounded: f64 = format!("{seconds:.2e}").parse().unwrap_or(seconds);
    let unit = UNITS.iter().find(|(_, size)| rounded >= *size * (1.0 - 1e-9));
    let (name, size) = unit.unwrap_or(&("ns", 1e-9));
    let value = rounded / size;
    let digits = match value {
        small if small < 1.0 => 0,
        ones if ones < 9.995 => 2,
        tens if tens < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

/// The same within a sentence: number and unit stay on one line.
pub fn unbroken(seconds: f64) -> String {
    duration(seconds).replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn three_digits_and_the_unit_that_fits() {
        for (seconds, text) in [
            (0.0, "0 ns"),
            (5e-10, "0 ns"),
            (1e-9, "1.00 ns"),
            (12.34e-9, "12.3 ns"),
            (373e-6, "373 µs"),
            (42.45e-6, "42.5 µs"),
            (999.4e-6, "999 µs"),
            (999.9e-6, "1.00 ms"),
            (1.25e-3, "1.25 ms"),
            (9.999e-3, "10.0 ms"),
            (0.0999, "99.9 ms"),
            (0.09999, "100 ms"),
            (1.0, "1.00 s"),
            (123.4, "123 s"),
            (f64::NAN, "—"),
            (f64::INFINITY, "—"),
            (-1.0, "—"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }
}
