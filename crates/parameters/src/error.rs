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

/// `; did you mean …?` if one of `known` is similar enough to `text`, else nothing.
pub fn did_you_mean<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> String {
    let written = text.to_lowercase().replace(['_', ' '], "-");
    known
        .map(|name| (strsim::damerau_levenshtein(&written, name), name))
        .filter(|(distance, name)| *distance * 3 <= name.len().max(3))
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}
