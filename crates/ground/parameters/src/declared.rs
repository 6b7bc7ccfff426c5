//! Parameters as the table beside a user's kernel declares them.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Domain, Parameter, Value};

/// One parameter: its values and default, or a list of values, of which the first is the default.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a list of values such as [1, 2, 4], or a table with `values`, or `least` and `most`, and `default`"
)]
pub enum ParameterTable {
    /// Values.
    Values(Vec<Value>),
    /// A table.
    Table(ParameterRow),
}

/// A parameter with everything said.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ParameterRow {
    /// The values it takes.
    pub values: Option<Vec<Value>>,
    /// The least whole number it takes.
    pub least: Option<u64>,
    /// The greatest.
    pub most: Option<u64>,
    /// The value where a candidate gives none; the first value, or the least, if left out.
    pub default: Option<Value>,
    /// What it does, in one line.
    #[serde(default)]
    pub meaning: String,
}

impl ParameterTable {
    /// The parameter of this name.
    ///
    /// # Errors
    /// The error and the remedy.
    pub fn parameter(&self, name: &str) -> Result<Parameter, String> {
        let row = match self {
            Self::Table(row) => row.clone(),
            Self::Values(values) => ParameterRow {
                values: Some(values.clone()),
                least: None,
                most: None,
                default: None,
                meaning: String::new(),
            },
        };
        let (domain, first) = row.domain()?;
        let default = row.default.or(first).ok_or("it has no default; add one")?;
        domain
            .check(name, &default)
            .map_err(|message| format!("its default: {message}"))?;
        Ok(Parameter::new(name.to_owned(), domain, default, row.meaning))
    }
}

impl ParameterRow {
    /// The values, and the first of them.
    fn domain(&self) -> Result<(Domain, Option<Value>), String> {
        match (&self.values, self.least, self.most) {
            (None, Some(least), Some(most)) if least <= most => {
                Ok((Domain::number(least, most), Some(Value::Number(least))))
            }
            (None, Some(least), Some(most)) => {
                Err(format!("least = {least} is above most = {most}; exchange them"))
            }
            (None, None, None) if matches!(self.default, Some(Value::Flag(_))) => Ok((Domain::Flag, None)),
            (Some(values), None, None) => Ok((of_values(values)?, values.first().cloned())),
            _ => Err(
                "give either `values`, or `least` and `most`, or only `default = true` or `false`".to_owned(),
            ),
        }
    }
}

fn of_values(values: &[Value]) -> Result<Domain, String> {
    let numbers: Vec<u64> = values.iter().filter_map(Value::number).collect();
    let words: Vec<String> = values
        .iter()
        .filter_map(|value| match value {
            Value::Word(word) => Some(word.clone()),
            _ => None,
        })
        .collect();
    let flags = values
        .iter()
        .filter(|value| matches!(value, Value::Flag(_)))
        .count();
    match values.len() {
        0 => Err("`values` is empty; give at least one".to_owned()),
        count if numbers.len() == count => Ok(Domain::one_of(numbers)),
        count if words.len() == count => Ok(Domain::choice(words)),
        count if flags == count => Ok(Domain::Flag),
        _ => Err("`values` mixes kinds; give whole numbers only, words only, or flags only".to_owned()),
    }
}
