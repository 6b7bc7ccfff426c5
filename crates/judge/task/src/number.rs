//! Floating-point numbers in JSON, which has neither infinity nor NaN: they are written as the strings `inf`, `-inf`
//! and `NaN`, so that a record of a broken result can be read back.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A floating-point number in JSON.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "NumberOrName")]
pub enum Written {
    /// A finite number.
    Number(f64),
    /// `inf`, `-inf` or `NaN`.
    Name(#[schemars(regex(pattern = "^(-?inf|NaN)$"))] String),
}

/// Writes a number, or the name of one that JSON does not have.
///
/// # Errors
/// As the serializer.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        value.serialize(serializer)
    } else {
        value.to_string().serialize(serializer)
    }
}

/// Reads what [`serialize`] wrote.
///
/// # Errors
/// If it is neither a number nor the name of one.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match Written::deserialize(deserializer)? {
        Written::Number(value) => Ok(value),
        Written::Name(name) => name.parse().map_err(de::Error::custom),
    }
}
