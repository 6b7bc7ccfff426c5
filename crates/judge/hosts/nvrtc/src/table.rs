//! The launch table, as files write it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gauntlet_host_native::Argument;
use gauntlet_parameters::{Domain, Parameter, Table, Value};
use gauntlet_task::{Expression, ExpressionError};
use schemars::JsonSchema;
use serde::Deserialize;

/// How a kernel is compiled and launched.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KernelTable {
    /// The kernel as C++ names it, such as `softmax<128>`; the table's own name if left out.
    pub kernel: Option<String>,
    /// The kernel's arguments, in order.
    pub arguments: Vec<Argument>,
    /// Blocks in x, y and z.
    pub grid: Sides,
    /// Threads of a block in x, y and z.
    pub block: Sides,
    /// Blocks of a cluster in x, y and z.
    #[serde(default)]
    pub cluster: Option<Sides>,
    /// Bytes of dynamic shared memory.
    #[serde(default)]
    pub shared: Option<Expression>,
    /// Macros that can vary.
    #[serde(default)]
    pub parameters: BTreeMap<String, ParameterTable>,
    /// Conditions that parameters and sizes must meet.
    #[serde(default)]
    pub restrictions: Vec<Expression>,
    /// Folders of headers, relative to the table.
    #[serde(default)]
    pub includes: Vec<PathBuf>,
    /// Further options of the compiler.
    #[serde(default)]
    pub options: Vec<String>,
}

/// One to three sides: an expression, or a list of them.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenSides")]
pub struct Sides(Vec<Expression>);

/// Sides as files write them. They are parsed afterwards, so that the error is that of the expression.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an expression such as \"ceil_div(rows, 4)\", or a list of one to three of them"
)]
#[schemars(rename = "Sides")]
enum WrittenSides {
    /// One side; the others are 1.
    One(WrittenSide),
    /// One to three sides.
    Several(Vec<WrittenSide>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Side")]
enum WrittenSide {
    /// A number.
    Number(i64),
    /// An expression, such as `ceil_div(rows, 4)`.
    Text(String),
}

impl TryFrom<WrittenSides> for Sides {
    type Error = ExpressionError;

    fn try_from(written: WrittenSides) -> Result<Self, ExpressionError> {
        let sides = match written {
            WrittenSides::One(one) => vec![one],
            WrittenSides::Several(several) => several,
        };
        let expression = |side| match side {
            WrittenSide::Number(number) => Ok(number.into()),
            WrittenSide::Text(text) => text.parse(),
        };
        sides
            .into_iter()
            .map(expression)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Sides {
    /// The sides that are given.
    pub fn expressions(&self) -> &[Expression] {
        &self.0
    }
}

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

impl KernelTable {
    /// The kernel's parameters; `owner` names the kernel in messages.
    ///
    /// # Errors
    /// The parameter that is wrong, with the error and the remedy.
    pub fn parameters(&self, owner: &str) -> Result<Table, (String, String)> {
        let rows = self.parameters.iter().map(|(name, row)| {
            let is_macro = name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
                && !name.starts_with(|letter: char| letter.is_ascii_digit());
            if !is_macro {
                let message = "a macro's name has letters, digits and underscores only".to_owned();
                return Err((name.clone(), message));
            }
            row.parameter(name).map_err(|message| (name.clone(), message))
        });
        Ok(Table::new(owner.to_owned(), rows.collect::<Result<_, _>>()?))
    }
}
