//! JSON as benchmark programs write it: some write numbers that JSON has not.

use serde_json::Value;

/// What stands before the line in the text that takes the place of a number which is not finite.
const MARK: &str = "not finite: ";

/// The value of a text. `NaN`, `Infinity` and their kin become texts that [`not_finite`] knows, and `12%` the number 12, as
/// old versions of google-benchmark write the error of a fit.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| serde_json::from_str(&tolerated(text)).map_err(|_| error))
}

/// The number that is not finite, as it was written, with its line; none for any other value.
pub fn not_finite(value: &Value) -> Option<&str> {
    value.as_str()?.strip_prefix(MARK)
}

/// The text with what JSON does not know replaced, outside of its own texts.
fn tolerated(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let (mut line, mut rest) = (1, text);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => length_of_text(rest),
            _ if first.is_ascii_alphabetic() || first == '-' => word(rest).len(),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        line += token.matches('\n').count();
        let number = token.trim_start_matches('-').to_ascii_lowercase();
        match number.as_str() {
            "nan" | "inf" | "infinity" => found += &format!("\"{MARK}{token} (line {line})\""),
            "%" => {}
            _ => found += token,
        }
        rest = after;
    }
    found
}

/// The bytes of a JSON text that begins here, with its quotes.
fn length_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// The sign and the letters that begin here.
fn word(text: &str) -> &str {
    let letters = text.trim_start_matches('-');
    let end = letters
        .find(|letter: char| !letter.is_ascii_alphabetic())
        .unwrap_or(letters.len());
    &text[..text.len() - letters.len() + end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_has_not_are_kept_with_their_line() {
        let value = parse("{\"a\": [1e-3, -Infinity,\n nan], \"NaN \\\" %\": true, \"rms\": 12%}").unwrap();
        assert_eq!(not_finite(&value["a"][1]), Some("-Infinity (line 1)"));
        assert_eq!(not_finite(&value["a"][2]), Some("nan (line 2)"));
        assert_eq!(value["NaN \" %"], true);
        assert_eq!(value["rms"], 12);
        assert_eq!(not_finite(&value["rms"]), None);
        // The message is that of the text as it stands.
        assert_eq!(parse("{\n\"a\": NaN,\n").unwrap_err().line(), 2);
        assert!(parse("\"cut").is_err() && parse("[1, nah]").is_err());
    }
}
