//! A kernel's arguments, named by the tensors and sizes of a case.
//!
//! An argument is a tensor (`x`), a whole number (`rows`, `int rows`, `int ceil_div(rows, 2)`), a number with a fraction
//! (`float epsilon`, `double 1e-5`), or the `stream`. The type of a whole number may be left out: it is passed in eight
//! bytes, of which a kernel reads as many as its parameter has.

use std::fmt;
use std::str::FromStr;

use gauntlet_parameters::did_you_mean;
use gauntlet_task::{Expression, ExpressionError, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

/// The name of the argument that is the stream.
pub const STREAM: &str = "stream";

/// Whole-number types with their least and greatest values. Types of several words come before those that begin alike.
const WHOLE: [(&str, i128, i128); 16] = [
    ("unsigned long long", 0, u64::MAX as i128),
    ("unsigned long", 0, u64::MAX as i128),
    ("unsigned int", 0, u32::MAX as i128),
    ("unsigned", 0, u32::MAX as i128),
    ("long long", i64::MIN as i128, i64::MAX as i128),
    ("long", i64::MIN as i128, i64::MAX as i128),
    ("short", i16::MIN as i128, i16::MAX as i128),
    ("int64_t", i64::MIN as i128, i64::MAX as i128),
    ("uint64_t", 0, u64::MAX as i128),
    ("size_t", 0, u64::MAX as i128),
    ("int32_t", i32::MIN as i128, i32::MAX as i128),
    ("uint32_t", 0, u32::MAX as i128),
    ("int16_t", i16::MIN as i128, i16::MAX as i128),
    ("int8_t", i8::MIN as i128, i8::MAX as i128),
    ("int", i32::MIN as i128, i32::MAX as i128),
    ("bool", 0, 1),
];

/// One argument, as a table or an option writes it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(into = "String")]
pub struct Argument {
    text: String,
    meaning: Meaning,
}

#[derive(Debug, Clone, PartialEq)]
enum Meaning {
    /// A tensor, the stream or a number: decided by the name.
    Any(Expression),
    /// A pointer, named with a type.
    Tensor(String),
    Whole {
        expression: Expression,
        type_name: &'static str,
        least: i128,
        most: i128,
    },
    Float(Real),
    Double(Real),
}

#[derive(Debug, Clone, PartialEq)]
enum Real {
    Constant(f64),
    Named(Expression),
}

/// Why an argument cannot be passed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("argument `{argument}`: {message}")]
pub struct ArgumentError {
    /// The argument.
    pub argument: String,
    /// The error, and the remedy.
    pub message: String,
}

/// An argument of one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The address of an input tensor, by its index.
    Input(usize),
    /// The address of an output tensor, by its index.
    Output(usize),
    /// The stream.
    Stream,
    /// A value: whole numbers in eight bytes, floats in their own bytes.
    Value(Passed),
}

/// The bytes of a value, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The bytes; those beyond the value are zero.
    pub bytes: [u8; 8],
    /// Whether it is a floating-point number, which most calling conventions pass in other registers.
    pub is_float: bool,
}

impl Argument {
    /// The argument that stands for a name alone.
    fn named(name: &str) -> Self {
        Self {
            text: name.to_owned(),
            meaning: Meaning::Tensor(name.to_owned()),
        }
    }

    /// The arguments of a kernel without a table: inputs and outputs in the order of the case, then the case's size if
    /// it has one, then the stream if there is one.
    ///
    /// # Errors
    /// If the case has several sizes, since their order in the function is not known.
    pub fn default_list(scope: &Scope, with_stream: bool) -> Result<Vec<Self>, ArgumentError> {
        let tensors = scope.inputs().iter().chain(scope.outputs());
        let mut names: Vec<&str> = tensors.map(|spec| spec.name.as_str()).collect();
        let sizes = scope.sizes();
        names.extend(sizes.iter().map(String::as_str));
        names.extend(with_stream.then_some(STREAM));
        if sizes.len() > 1 {
            return Err(ArgumentError {
                argument: sizes.join(", "),
                message: format!(
                    "the case has {} sizes, and their order in the function is not known",
                    sizes.len()
                ),
            });
        }
        let list = names.iter().map(|name| match *name {
            STREAM => Ok(Self {
                text: STREAM.to_owned(),
                meaning: Meaning::Any(Expression::from_str(STREAM).map_err(|error| error_of(STREAM, error))?),
            }),
            size if sizes.iter().any(|known| known == size) => size.parse(),
            tensor => Ok(Self::named(tensor)),
        });
        list.collect()
    }

    /// The argument for the tensors and sizes of one case.
    ///
    /// # Errors
    /// If the case has no such tensor or size, or the value does not fit the type.
    pub fn bind(&self, scope: &Scope) -> Result<Bound, ArgumentError> {
        let error = |message: String| ArgumentError {
            argument: self.text.clone(),
            message,
        };
        match &self.meaning {
            Meaning::Tensor(name) => tensor(name, scope).ok_or_else(|| error(no_tensor(name, scope))),
            Meaning::Any(expression) => {
                let name = expression.as_name().unwrap_or_default();
                match tensor(name, scope) {
                    Some(bound) => Ok(bound),
                    None if name == STREAM => Ok(Bound::Stream),
                    None => {
                        whole(expression, scope, "int64_t", i64::MIN.into(), i64::MAX.into()).map_err(error)
                    }
                }
            }
            Meaning::Whole {
                expression,
                type_name,
                least,
                most,
            } => whole(expression, scope, type_name, *least, *most).map_err(error),
            Meaning::Float(number) => {
                let number = real(number, scope).map_err(error)? as f32;
                Ok(Bound::Value(Passed::float(&number.to_le_bytes())))
            }
            Meaning::Double(number) => {
                let number = real(number, scope).map_err(error)?;
                Ok(Bound::Value(Passed::float(&number.to_le_bytes())))
            }
        }
    }
}

impl Passed {
    fn float(bytes: &[u8]) -> Self {
        let mut passed = [0; 8];
        passed[..bytes.len()].copy_from_slice(bytes);
        Self {
            bytes: passed,
            is_float: true,
        }
    }
}

impl FromStr for Argument {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let text = text.trim();
        let named = text.trim_start_matches("const ").trim_start();
        let meaning = if let Some((_, name)) = text.rsplit_once('*').filter(|_| is_pointer(text)) {
            Meaning::Tensor(name.replace("__restrict__", "").trim().to_owned())
        } else if let Some(rest) = typed(named, "float") {
            Meaning::Float(Real::read(rest).map_err(|error| error_of(text, error))?)
        } else if let Some(rest) = typed(named, "double") {
            Meaning::Double(Real::read(rest).map_err(|error| error_of(text, error))?)
        } else if let Some((rest, (type_name, least, most))) = WHOLE
            .into_iter()
            .find_map(|known| Some((typed(named, known.0)?, known)))
        {
            Meaning::Whole {
                expression: rest.parse().map_err(|error| error_of(text, error))?,
                type_name,
                least,
                most,
            }
        } else {
            Meaning::Any(text.parse().map_err(|error| error_of(text, error))?)
        };
        Ok(Self {
            text: text.to_owned(),
            meaning,
        })
    }
}

impl TryFrom<String> for Argument {
    type Error = ArgumentError;

    fn try_from(text: String) -> Result<Self, ArgumentError> {
        text.parse()
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Real {
    fn read(text: &str) -> Result<Self, ExpressionError> {
        match text.parse() {
            Ok(number) => Ok(Self::Constant(number)),
            Err(_) => text.parse().map(Self::Named),
        }
    }
}

/// Whether a text is a type with an asterisk and then a name, and not a product.
fn is_pointer(text: &str) -> bool {
    text.split_once('*').is_some_and(|(before, _)| {
        let last = before.split_whitespace().last().unwrap_or_default();
        let types = [
            "float",
            "double",
            "void",
            "half",
            "__half",
            "__nv_bfloat16",
            "char",
            "__nv_fp8_e4m3",
        ];
        types.contains(&last)
            || WHOLE
                .iter()
                .any(|(name, ..)| name.split(' ').any(|word| word == last))
    })
}

/// The rest of a text that begins with this type.
fn typed<'t>(text: &'t str, type_name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(type_name)?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim_start())
}

fn tensor(name: &str, scope: &Scope) -> Option<Bound> {
    let position = |specs: &[gauntlet_tensors::TensorSpec]| specs.iter().position(|spec| spec.name == name);
    let input = position(scope.inputs()).map(Bound::Input);
    input.or_else(|| position(scope.outputs()).map(Bound::Output))
}

fn whole(
    expression: &Expression,
    scope: &Scope,
    type_name: &str,
    least: i128,
    most: i128,
) -> Result<Bound, String> {
    let number = expression.value(scope).map_err(|error| error.message)?;
    if !(least..=most).contains(&i128::from(number)) {
        return Err(format!(
            "its value {number} does not fit {type_name}; use a wider type in the table and in the kernel"
        ));
    }
    Ok(Bound::Value(Passed {
        bytes: number.to_le_bytes(),
        is_float: false,
    }))
}

fn real(number: &Real, scope: &Scope) -> Result<f64, String> {
    match number {
        Real::Constant(number) => Ok(*number),
        Real::Named(expression) => match expression.as_name().and_then(|name| scope.real(name)) {
            Some(number) => Ok(number),
            None => expression
                .value(scope)
                .map(|number| number as f64)
                .map_err(|error| error.message),
        },
    }
}

fn no_tensor(name: &str, scope: &Scope) -> String {
    let specs = scope.inputs().iter().chain(scope.outputs());
    let names: Vec<&str> = specs.map(|spec| spec.name.as_str()).collect();
    let meant = did_you_mean(name, names.iter().copied());
    format!(
        "the task has no tensor `{name}`{meant}; its tensors are {}",
        names.join(", ")
    )
}

fn error_of(text: &str, error: ExpressionError) -> ArgumentError {
    ArgumentError {
        argument: text.to_owned(),
        message: error.message,
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::{DataType, TensorSpec};
    use serde_json::json;

    use super::*;

    fn case() -> Scope {
        let sizes = json!({ "rows": 7, "row-groups": 2, "epsilon": 0.5, "format": "f32", "causal": true });
        let inputs = [
            TensorSpec::new("x", DataType::F32, [7, 5]),
            TensorSpec::new("weight", DataType::F32, [5]),
        ];
        Scope::of(&sizes, &inputs, &[TensorSpec::new("y", DataType::F32, [7, 5])])
    }

    fn bound(text: &str) -> Result<Bound, String> {
        let argument: Argument = text.parse().map_err(|error: ArgumentError| error.to_string())?;
        argument.bind(&case()).map_err(|error| error.to_string())
    }

    fn number(value: i64) -> Result<Bound, String> {
        Ok(Bound::Value(Passed {
            bytes: value.to_le_bytes(),
            is_float: false,
        }))
    }

    #[test]
    fn arguments_are_tensors_numbers_or_the_stream() {
        assert_eq!(bound("x"), Ok(Bound::Input(0)));
        assert_eq!(bound("const float* weight"), Ok(Bound::Input(1)));
        assert_eq!(bound("float *__restrict__ y"), Ok(Bound::Output(0)));
        assert_eq!(bound("stream"), Ok(Bound::Stream));
        assert_eq!(bound("rows"), number(7));
        assert_eq!(bound("int rows * 2"), number(14));
        assert_eq!(bound("unsigned int rows"), number(7));
        assert_eq!(bound("long long 1 - rows"), number(-6));
        assert_eq!(
            bound("float epsilon"),
            Ok(Bound::Value(Passed::float(&0.5_f32.to_le_bytes())))
        );
        assert_eq!(
            bound("double 1e-5"),
            Ok(Bound::Value(Passed::float(&1e-5_f64.to_le_bytes())))
        );
        assert_eq!(
            bound("float rows"),
            Ok(Bound::Value(Passed::float(&7_f32.to_le_bytes())))
        );
    }

    #[test]
    fn what_cannot_be_passed_is_named_with_what_there_is() {
        assert_eq!(
            bound("float* wieght").unwrap_err(),
            "argument `float* wieght`: the task has no tensor `wieght`; did you mean `weight`?; its tensors are x, weight, y"
        );
        assert_eq!(
            bound("unsigned 1 - rows").unwrap_err(),
            "argument `unsigned 1 - rows`: its value -6 does not fit unsigned; use a wider type in the table and in the \
             kernel"
        );
        assert!(bound("columns").unwrap_err().contains("known are x, weight, y"));
    }

    #[test]
    fn the_default_is_inputs_outputs_the_size_and_the_stream() {
        let scope = Scope::of(&json!({ "rows": 7 }), case().inputs(), case().outputs());
        let list = Argument::default_list(&scope, true).unwrap();
        let bound: Vec<_> = list.iter().map(|one| one.bind(&scope).unwrap()).collect();
        assert_eq!(bound[..3], [Bound::Input(0), Bound::Input(1), Bound::Output(0)]);
        assert_eq!(bound[3..], [number(7).unwrap(), Bound::Stream]);
        let several = Argument::default_list(&case(), false).unwrap_err();
        assert_eq!(
            several.to_string(),
            "argument `row_groups, rows`: the case has 2 sizes, and their order in the function is not known"
        );
    }
}
