//! Errors in parameters.

use thiserror::Error;

/// An error in a parameter of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ParameterError {
    /// The name as given.
    pub name: String,
    /// The error, and how to correct it.
    pub message: String,
}

/// The same for a field that a TOML or JSON file misspells, from the reader's message: ``unknown field `taget`, expected one
/// of `target`, `floor` ``. Nothing for any other message.
pub fn field_meant(message: &str) -> String {
    let Some((field, expected)) = message
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.split_once("`, expected "))
    else {
        return String::new();
    };
    // Every second piece stands between backquotes.
    did_you_mean(field, expected.split('`').skip(1).step_by(2))
}

/// `; did you mean …?` if one of `known` is similar enough to `text`, else nothing.
pub fn did_you_mean<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> String {
    let written = text.to_lowercase().replace(['_', ' '], "-");
    known
        .map(|name| (strsim::damerau_levenshtein(&written, name), name))
        .filter(|(distance, name)| *distance * 3 <= name.len().max(3))
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_is_recognised_in_the_readers_message() {
        let said =
            field_meant("unknown field `taget`, expected one of `target`, `practically-zero`, `floor`");
        assert_eq!(said, "; did you mean `target`?");
        assert_eq!(
            field_meant("unknown field `nam`, expected `name` or `title`"),
            "; did you mean `name`?"
        );
        for message in [
            "unknown field `colour`, expected `name` or `title`",
            "missing field `name`",
        ] {
            assert_eq!(field_meant(message), "");
        }
    }
}
