//! The launch table, as files write it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gauntlet_host_native::Argument;
use gauntlet_parameters::ParameterTable;
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
