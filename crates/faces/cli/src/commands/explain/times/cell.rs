//! Parses one cell of a table of times. The errors do not name the place; the table adds it.

/// Units of time and their seconds.
const UNITS: [(&str, f64); 6] = [
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    // The micro sign and the Greek letter.
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ns", 1e-9),
];

/// Longer times are refused as implausible for a kernel call.
const MAX_SECONDS: f64 = 86_400.0;

/// The seconds of a unit.
pub fn unit(name: &str) -> Option<f64> {
    UNITS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, seconds)| *seconds)
}

/// A time in seconds: a number with a unit, or one in the column's unit.
pub fn time(text: &str, column: Option<f64>) -> Result<f64, String> {
    if text.is_empty() {
        return Err("the cell is empty; give the time, such as `373 µs`, or leave the row out".to_owned());
    }
    let (number, suffix) = split(text);
    let unit = match (suffix, column) {
        ("", Some(seconds)) => seconds,
        ("", None) => {
            return Err(format!(
                "`{text}` has no unit; write `{text} µs`, or name the column `time (µs)`"
            ));
        }
        (suffix, _) => {
            unit(suffix).ok_or_else(|| format!("`{suffix}` is no unit of time; s, ms, µs, us and ns are"))?
        }
    };
    let seconds = positive(number, text)? * unit;
    if !(f64::MIN_POSITIVE..=MAX_SECONDS).contains(&seconds) {
        return Err(format!(
            "`{text}` is no time of a call, which takes a day at most; check the number and its unit"
        ));
    }
    Ok(seconds)
}

/// A standard error in percent, as a fraction.
pub fn percent(text: &str) -> Result<f64, String> {
    let (number, suffix) = split(text);
    if !matches!(suffix, "" | "%") {
        return Err(format!(
            "`{suffix}` is not %; give the standard error in percent of the time"
        ));
    }
    match number.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value / 100.0),
        _ => Err(format!("`{text}` is no percentage from 0 to 100")),
    }
}

/// Whole numbers: one, or several separated by blanks, commas or semicolons.
pub fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let sizes = text
        .trim_matches(['[', ']'])
        .split(|character: char| character.is_whitespace() || matches!(character, ',' | ';'))
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.parse().map_err(|_| format!("`{piece}` is no whole number")))
        .collect::<Result<Vec<_>, _>>()?;
    if sizes.is_empty() {
        return Err("there is no number; give one, or a list such as `80 176 128`".to_owned());
    }
    Ok(sizes)
}

/// The form of a call that only multiplies.
pub const PLAIN: &str = "plain";

/// `plain` or `swiglu`.
pub fn form(text: &str) -> Result<&'static str, String> {
    match text {
        "" | PLAIN => Ok(PLAIN),
        "swiglu" => Ok("swiglu"),
        _ => Err(format!("`{text}` is no form; plain and swiglu are")),
    }
}

fn positive(number: &str, text: &str) -> Result<f64, String> {
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!(
            "`{text}` is no time; give a number greater than 0, such as `373 µs`"
        )),
    }
}

/// A number and the text after it.
fn split(text: &str) -> (&str, &str) {
    let is_number =
        |character: char| character.is_ascii_digit() || matches!(character, '.' | '-' | '+' | 'e' | 'E');
    let end = text.find(|character| !is_number(character)).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_a_unit_or_take_the_column_s() {
        for (text, column, seconds) in [
            ("373 µs", None, 373e-6),
            ("373us", None, 373e-6),
            ("1.5ms", Some(1e-6), 1.5e-3),
            ("373", Some(1e-6), 373e-6),
            ("2e-3 s", None, 2e-3),
        ] {
            let found = time(text, column).unwrap();
            assert!((found / seconds - 1.0).abs() < 1e-12, "{text}: {found}");
        }
        for (text, phrase) in [
            ("373", "has no unit"),
            ("373 min", "`min` is no unit"),
            ("0 ms", "greater than 0"),
            ("-1 ms", "greater than 0"),
            ("soon", "is no unit"),
            ("", "the cell is empty"),
            ("1e300 µs", "a day at most"),
            ("1e-320 ns", "a day at most"),
            ("2 d", "`d` is no unit"),
        ] {
            let error = time(text, None).unwrap_err();
            assert!(error.contains(phrase), "{text}: {error}");
        }
        assert!(time("", Some(1e-6)).unwrap_err().contains("the cell is empty"));
        assert!(time("inf", Some(1.0)).is_err() && time("NaN", Some(1.0)).is_err());
    }

    #[test]
    fn lists_of_sizes() {
        assert_eq!(sizes("80 176  128"), Ok(vec![80, 176, 128]));
        assert_eq!(sizes("[80, 176; 128]"), Ok(vec![80, 176, 128]));
        assert_eq!(sizes("4096"), Ok(vec![4096]));
        for wrong in ["", "[]", "1.5", "80 x 3", "-4"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(percent("2.5 %"), Ok(0.025));
        assert_eq!(percent("3"), Ok(0.03));
        assert!(percent("3 µs").is_err() && percent("101").is_err() && percent("many").is_err());
    }
}
