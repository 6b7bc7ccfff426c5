//! Sizes given in words on the command line, and numbers with what they count.

/// A number with what it counts, in the singular or the plural.
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Words as an inline table of TOML.
pub fn inline_table(words: &[(String, String)]) -> String {
    format!("{{ {} }}", entries(words))
}

/// Words as the entries of an inline table.
pub fn entries(words: &[(String, String)]) -> String {
    let entry = |(name, value): &(String, String)| format!("{name} = {}", toml_value(value));
    words.iter().map(entry).collect::<Vec<_>>().join(", ")
}

/// The parts of a value, separated by commas or spaces.
pub fn list(value: &str) -> Vec<&str> {
    let separator = |character: char| character == ',' || character.is_whitespace();
    value.split(separator).filter(|part| !part.is_empty()).collect()
}

/// Numbers and booleans unchanged, several numbers as a list, everything else as text.
fn toml_value(value: &str) -> String {
    let parts = list(value);
    let numbers = !parts.is_empty() && parts.iter().all(|part| part.parse::<i64>().is_ok());
    match parts.as_slice() {
        ["true" | "false"] => value.trim().to_owned(),
        [one] if numbers => (*one).to_owned(),
        several if numbers => format!("[{}]", several.join(", ")),
        _ => toml::Value::String(value.to_owned()).to_string(),
    }
}
