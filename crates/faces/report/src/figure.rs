//! Plain figures with the true minus sign, so that columns line up.

/// A figure that is rarely negative: `0.12`, `−0.30`, `0.00`.
pub fn plain(value: f64, digits: usize) -> String {
    signed(value, digits).trim_start_matches('+').to_owned()
}

/// A figure with its sign: `+0.12`, `−0.30`, `0.00`.
pub fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let is_zero = text.chars().all(|character| matches!(character, '0' | '.'));
    match () {
        () if is_zero => text,
        () if value < 0.0 => format!("−{text}"),
        () => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, signed};

    #[test]
    fn nothing_has_no_sign() {
        assert_eq!(
            [signed(0.123, 2), signed(-0.3, 2), signed(-0.001, 2)],
            ["+0.12", "−0.30", "0.00"]
        );
        assert_eq!(
            [plain(0.123, 2), plain(-0.3, 2), plain(-0.001, 2)],
            ["0.12", "−0.30", "0.00"]
        );
    }
}
