//! Names with values.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Value;
use crate::value::ValueOf;

/// Names with values. A parameter that is not named has the default of its [`Table`](crate::Table).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// No parameter is named: all have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no parameter is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a parameter, if it is named.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Sets the value of a parameter.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(name.into(), value.into());
    }

    /// The same parameters with one value set.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// These parameters, with the values in `change` taking precedence.
    #[must_use]
    pub fn changed(&self, change: &Self) -> Self {
        let mut values = self.0.clone();
        values.extend(change.0.clone());
        Self(values)
    }

    /// Reads `stages = 3, tile = [128, 128, 256]` or `stages=3 tile=128x128x256`: names with values, separated by commas
    /// or spaces.
    ///
    /// # Errors
    /// The part that is not a name with a value, or the parameter that is named twice.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parameters = Self::new();
        for part in assignments(text) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(format!("`{part}` is not a name with a value, as in `stages=3`"));
            };
            let name = name.trim();
            if parameters.get(name).is_some() {
                return Err(format!("`{name}` is given twice"));
            }
            parameters.set(name, Value::parse(value));
        }
        Ok(parameters)
    }
}

/// Splits a text at its commas and spaces, but not within brackets or quotes, nor at spaces beside `=`.
fn assignments(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut parts = vec![String::new()];
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        let is_outside = depth == 0 && quote.is_none();
        let Some(part) = parts.last_mut() else { continue };
        if is_outside && character.is_whitespace() {
            if !part.ends_with('=') && !text[at..].trim_start().starts_with('=') {
                parts.push(String::new());
            }
        } else if is_outside && character == ',' {
            parts.push(String::new());
        } else {
            part.push(character);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

impl FromIterator<(String, Value)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// `stages=3, tile=128×128×256`, a form that [`Parameters::parse`] reads.
impl fmt::Display for Parameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamesAndValues)
    }
}

struct NamesAndValues;

impl<'de> Visitor<'de> for NamesAndValues {
    type Value = Parameters;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("names with values, as in { stages = 3 }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
        let mut parameters = Parameters::new();
        while let Some(name) = map.next_key::<String>()? {
            if parameters.get(&name).is_some() {
                return Err(A::Error::custom(format!("`{name}` is given twice")));
            }
            let value = map.next_value_seed(ValueOf(Some(&name)))?;
            parameters.set(name, value);
        }
        Ok(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_commas_or_spaces() {
        let expected = Parameters::new()
            .with("stages", 3_usize)
            .with("tile", [128, 64, 256])
            .with("order", "sorted")
            .with("swap-ab", true);
        for text in [
            "stages=3 tile=128x64x256 order=sorted swap-ab=true",
            "stages = 3, tile = [128, 64, 256], order = \"sorted\", swap-ab = true",
            "tile=128×64×256,stages=3,order=sorted,swap-ab=true",
            "swap-ab=true tile=[128, 64, 256] order = 'sorted', stages =3",
            &expected.to_string(),
        ] {
            assert_eq!(Parameters::parse(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_assignment_is_said() {
        assert!(
            Parameters::parse("stages")
                .unwrap_err()
                .contains("`stages` is not a name with a value")
        );
        assert!(Parameters::parse("a=1, a=2").unwrap_err().contains("given twice"));
        let error = toml::from_str::<Parameters>("stages = -1").unwrap_err();
        assert!(error.message().contains("-1 is negative"), "{error}");
    }
}
