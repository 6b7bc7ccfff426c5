//! Whole-number expressions over the names of a scope, such as `ceil_div(rows, ROWS)`: the numbers of launch tables and the
//! work of a task.toml.
//!
//! Operators are those of C, with the same precedence: `?:`, `||`, `&&`, comparisons, `+ -`, `* / %`, unary `- !`; and of
//! Python `//`, which is `/`, and `**`. Functions are `min`, `max`, `ceil_div`, `round_up` (to a multiple), `next_power_of_two`, and for tensors
//! `elements(x)`, `bytes(x)` and `dim(x, index)`. Comparisons give 1 or 0.
//!
//! An expression is a text from outside. It has a greatest length, all arithmetic is checked, and nothing in it repeats, so
//! that reading and evaluating it ends soon.
//!
//! ```
//! use gauntlet_task::{Expression, Scope};
//!
//! let scope = Scope::default().with("rows", 10).with("ROWS", 4);
//! let blocks: Expression = "ceil_div(rows, ROWS)".parse()?;
//! assert_eq!(blocks.value(&scope)?, 3);
//! # Ok::<(), gauntlet_task::ExpressionError>(())
//! ```

mod parser;
mod scope;

use std::fmt;
use std::str::FromStr;

use gauntlet_parameters::did_you_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use scope::Scope;

/// An expression that was read and can be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written")]
#[serde(into = "String")]
pub struct Expression {
    text: String,
    root: Node,
}

/// An expression in a file: text, or a number.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Expression")]
enum Written {
    /// A number.
    Number(i64),
    /// Text, such as `ceil_div(rows, 4)`.
    Text(String),
}

/// An operator of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Number(i64),
    Name(String),
    Negative(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    /// Condition, value if it holds, value if not.
    Choice(Box<[Node; 3]>),
    Call(String, Vec<Node>),
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}`: {message}")]
pub struct ExpressionError {
    /// The expression.
    pub text: String,
    /// The error, and the remedy.
    pub message: String,
}

/// Names of the functions, for messages.
const FUNCTIONS: &str = "min, max, ceil_div, round_up, next_power_of_two, elements, bytes, dim";

/// Letters of an expression that a message shows.
const SHOWN: usize = 60;

impl Expression {
    /// The value with the names of a scope.
    ///
    /// # Errors
    /// If a name is unknown, or the value is undefined or too large.
    pub fn value(&self, scope: &Scope) -> Result<i64, ExpressionError> {
        evaluate(&self.root, scope).map_err(|message| ExpressionError {
            text: self.text.clone(),
            message,
        })
    }

    /// Whether the expression says that something holds, and counts nothing.
    pub fn is_condition(&self) -> bool {
        use Operator::{And, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Or, Unequal};
        matches!(
            &self.root,
            Node::Not(_)
                | Node::Binary(
                    And | Equal | Greater | GreaterOrEqual | Less | LessOrEqual | Or | Unequal,
                    ..
                )
        )
    }

    /// The name, if the expression is nothing but a name.
    pub fn as_name(&self) -> Option<&str> {
        match &self.root {
            Node::Name(name) => Some(name),
            _ => None,
        }
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let root = parser::parse(text).map_err(|message| ExpressionError {
            text: shortened(text),
            message,
        })?;
        Ok(Self {
            text: text.to_owned(),
            root,
        })
    }
}

impl TryFrom<Written> for Expression {
    type Error = ExpressionError;

    fn try_from(written: Written) -> Result<Self, ExpressionError> {
        match written {
            Written::Number(number) => Ok(number.into()),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<i64> for Expression {
    fn from(number: i64) -> Self {
        Self {
            text: number.to_string(),
            root: Node::Number(number),
        }
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn evaluate(node: &Node, scope: &Scope) -> Result<i64, String> {
    let value = |node: &Node| evaluate(node, scope);
    match node {
        Node::Number(number) => Ok(*number),
        Node::Name(name) => scope.number(name).ok_or_else(|| unknown(name, scope)),
        Node::Negative(inner) => value(inner)?.checked_neg().ok_or_else(too_large),
        Node::Not(inner) => Ok(i64::from(value(inner)? == 0)),
        // Both sides of `&&` and `||` are evaluated only as far as they decide, as in C.
        Node::Binary(Operator::And, left, right) => Ok(i64::from(value(left)? != 0 && value(right)? != 0)),
        Node::Binary(Operator::Or, left, right) => Ok(i64::from(value(left)? != 0 || value(right)? != 0)),
        Node::Binary(operator, left, right) => binary(*operator, value(left)?, value(right)?),
        Node::Choice(parts) => {
            let [condition, yes, no] = parts.as_ref();
            if value(condition)? != 0 {
                value(yes)
            } else {
                value(no)
            }
        }
        Node::Call(name, arguments) => call(name, arguments, scope),
    }
}

fn binary(operator: Operator, left: i64, right: i64) -> Result<i64, String> {
    let zero = || "it divides by zero; check the sizes and parameters in it".to_owned();
    let found = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide | Operator::Remainder if right == 0 => return Err(zero()),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        Operator::Power => return power(left, right),
        Operator::Equal => Some(i64::from(left == right)),
        Operator::Unequal => Some(i64::from(left != right)),
        Operator::Less => Some(i64::from(left < right)),
        Operator::LessOrEqual => Some(i64::from(left <= right)),
        Operator::Greater => Some(i64::from(left > right)),
        Operator::GreaterOrEqual => Some(i64::from(left >= right)),
        Operator::And => Some(i64::from(left != 0 && right != 0)),
        Operator::Or => Some(i64::from(left != 0 || right != 0)),
    };
    found.ok_or_else(too_large)
}

fn power(base: i64, exponent: i64) -> Result<i64, String> {
    if exponent < 0 {
        return Err(format!("{base} to the power of {exponent} is no whole number"));
    }
    match base {
        0 | 1 => Ok(if exponent == 0 { 1 } else { base }),
        -1 => Ok(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => u32::try_from(exponent)
            .ok()
            .and_then(|exponent| base.checked_pow(exponent))
            .ok_or_else(too_large),
    }
}

fn call(name: &str, arguments: &[Node], scope: &Scope) -> Result<i64, String> {
    if let ("elements" | "bytes" | "dim", Some(first)) = (name, arguments.first()) {
        return of_tensor(name, first, &arguments[1..], scope);
    }
    let values = arguments
        .iter()
        .map(|argument| evaluate(argument, scope))
        .collect::<Result<Vec<_>, _>>()?;
    match (name, values.as_slice()) {
        ("min", [left, right]) => Ok(*left.min(right)),
        ("max", [left, right]) => Ok(*left.max(right)),
        ("ceil_div", [number, by]) => {
            let floor = binary(Operator::Divide, *number, *by)?;
            Ok(floor + i64::from(number % by != 0 && (*number < 0) == (*by < 0)))
        }
        ("round_up", [number, to]) => {
            let whole = binary(Operator::Divide, *number, *to)?;
            let rounded = whole + i64::from(number % to != 0 && (*number < 0) == (*to < 0));
            binary(Operator::Multiply, rounded, *to)
        }
        ("next_power_of_two", [number]) => u64::try_from((*number).max(1))
            .ok()
            .and_then(u64::checked_next_power_of_two)
            .and_then(|power| i64::try_from(power).ok())
            .ok_or_else(too_large),
        ("min" | "max" | "ceil_div" | "round_up", _) => Err(format!(
            "`{name}` takes two numbers, and {} are given",
            values.len()
        )),
        ("next_power_of_two", _) => Err(format!(
            "`{name}` takes one number, and {} are given",
            values.len()
        )),
        _ => Err(format!("there is no function `{name}`; there are {FUNCTIONS}")),
    }
}

fn of_tensor(function: &str, tensor: &Node, rest: &[Node], scope: &Scope) -> Result<i64, String> {
    let Node::Name(name) = tensor else {
        return Err(format!("`{function}` takes the name of a tensor first"));
    };
    let spec = scope.tensor(name).ok_or_else(|| unknown(name, scope))?;
    let found = match (function, rest) {
        ("elements", []) => spec.elements(),
        ("bytes", []) => spec.bytes(),
        ("dim", [index]) => {
            let index = evaluate(index, scope)?;
            let found = usize::try_from(index)
                .ok()
                .and_then(|index| spec.shape.get(index));
            *found.ok_or_else(|| {
                format!(
                    "`{name}` has {} dimensions, counted from 0, and no dimension {index}",
                    spec.shape.len()
                )
            })?
        }
        _ => {
            return Err(format!(
                "`{function}` is written `elements(x)`, `bytes(x)` or `dim(x, 0)`"
            ));
        }
    };
    i64::try_from(found).map_err(|_| too_large())
}

/// A text for a message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn too_large() -> String {
    "the value is beyond 64 bits".to_owned()
}

fn unknown(name: &str, scope: &Scope) -> String {
    if scope.tensor(name).is_some() {
        return format!("`{name}` is a tensor; use elements({name}), bytes({name}) or dim({name}, 0)");
    }
    let names = scope.names();
    let meant = did_you_mean(name, names.iter().copied());
    format!(
        "there is no size, parameter or tensor `{name}`{meant}; known are {}",
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use scope::tests::case;

    fn value(text: &str) -> Result<i64, String> {
        let scope = case().with("ROWS", 4).with("zero", 0);
        let expression: Expression = text.parse().map_err(|error: ExpressionError| error.to_string())?;
        expression.value(&scope).map_err(|error| error.to_string())
    }

    #[test]
    fn operators_bind_as_in_c() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 4 - 3", 3),
            ("100 / 7 % 5", 4),
            ("-2 * -3", 6),
            ("1 + 1 == 2 && 3 < 2 || 1", 1),
            ("!0 + 1", 2),
            ("rows > 5 ? ROWS : 0 ? 1 : 2", 4),
            ("zero && 1 / zero", 0),
            ("ceil_div(rows, ROWS)", 2),
            ("ceil_div(8, ROWS)", 2),
            ("round_up(rows, ROWS)", 8),
            ("min(rows, 3) + max(1, 2)", 5),
            ("next_power_of_two(5) + next_power_of_two(0)", 9),
            ("elements(x) - dim(x, 1) * dim(x, 0)", 0),
            ("bytes(y)", 140),
            ("2 * 3 ** 2 + -2 ** 2", 14),
            ("2 ** 3 ** 2", 512),
            ("rows // 2", 3),
            ("(-1) ** 9223372036854775807 + 0 ** 0", 0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn messages_name_the_expression_the_error_and_the_remedy() {
        for (text, expected) in [
            (
                "rows / zero",
                "`rows / zero`: it divides by zero; check the sizes and parameters in it",
            ),
            (
                "dim(x, 2)",
                "`dim(x, 2)`: `x` has 2 dimensions, counted from 0, and no dimension 2",
            ),
            ("min(1)", "`min(1)`: `min` takes two numbers, and 1 are given"),
            (
                "9223372036854775807 + 1",
                "`9223372036854775807 + 1`: the value is beyond 64 bits",
            ),
            (
                "ceil_div(rows ROWS)",
                "`ceil_div(rows ROWS)`: `,` or `)` is missing before `ROWS`",
            ),
            (
                "rows +",
                "`rows +`: it ends where a number, a name or `(` is missing",
            ),
            ("rows $ 2", "`rows $ 2`: `$` has no meaning here"),
            (
                "2.5 * rows",
                "`2.5 * rows`: `.` has no meaning here: numbers are whole, and 2.5 * n is 5 * n / 2",
            ),
            ("9**9**9", "`9**9**9`: the value is beyond 64 bits"),
            ("10**400 * rows", "`10**400 * rows`: the value is beyond 64 bits"),
            ("2 ** -1", "`2 ** -1`: 2 to the power of -1 is no whole number"),
            ("(rows", "`(rows`: `)` is missing at the end"),
            (
                "x + 1",
                "`x + 1`: `x` is a tensor; use elements(x), bytes(x) or dim(x, 0)",
            ),
            ("", "``: it ends where a number, a name or `(` is missing"),
            ("rows 2", "`rows 2`: an operator is missing before `2`"),
        ] {
            assert_eq!(value(text), Err(expected.to_owned()), "{text}");
        }
        let unknown = value("ceil_div(row, ROWS)").unwrap_err();
        assert!(unknown.contains("did you mean `rows`?"), "{unknown}");
        assert!(
            value("cdiv(1, 2)")
                .unwrap_err()
                .contains("there are min, max, ceil_div")
        );
    }

    #[test]
    fn what_would_exhaust_the_stack_is_refused() {
        let deep = format!("{}1{}", "(".repeat(400), ")".repeat(400));
        assert!(value(&deep).unwrap_err().contains("nested too deeply"));
        let powers = vec!["1"; 400].join(" ** ");
        assert!(value(&powers).unwrap_err().contains("nested too deeply"));
        for long in [
            format!("{}1", "-".repeat(50_000)),
            format!("{}1", "!".repeat(50_000)),
            vec!["1"; 50_000].join("+"),
            format!("min({})", vec!["1"; 50_000].join(",")),
            format!("{}1", "1 ? 2 : ".repeat(50_000)),
        ] {
            let error = value(&long).unwrap_err();
            assert!(error.contains("at most 1000") && error.len() < 300, "{error}");
        }
        // The most that is read can also be evaluated.
        assert_eq!(value(&vec!["1"; 500].join("+")), Ok(500));
        assert_eq!(value(&format!("{}1", "-".repeat(998))), Ok(1));
    }

    #[test]
    fn a_condition_is_told_from_a_number() {
        let is_condition = |text: &str| text.parse::<Expression>().unwrap().is_condition();
        assert!(is_condition("rows > 3") && is_condition("!rows") && is_condition("(a == b)"));
        assert!(!is_condition("rows") && !is_condition("(rows > 3) * 2") && !is_condition("a > b ? 1 : 2"));
    }
}
