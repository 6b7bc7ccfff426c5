//! Values of parameters.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Number(u64),
    /// Several whole numbers, such as the sides of a tile.
    Numbers(Vec<u64>),
    /// A word, one of several that the parameter accepts.
    Word(String),
}

impl Value {
    /// The number, if this is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Flag(_) | Self::Numbers(_) | Self::Word(_) => None,
        }
    }

    /// Reads a value as command lines and messages write it: `true`, `3`, `128x128x256`, `128×128×256`, `[2, 1]`, a word.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Ok(flag) = text.parse() {
            return Self::Flag(flag);
        }
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let separators: &[char] = if inner.is_some() { &[','] } else { &['x', '×'] };
        let numbers: Result<Vec<u64>, _> = inner
            .unwrap_or(text)
            .split(separators)
            .map(|part| part.trim().parse())
            .collect();
        match numbers {
            Ok(numbers) if inner.is_none() && numbers.len() == 1 => Self::Number(numbers[0]),
            Ok(numbers) => Self::Numbers(numbers),
            Err(_) => Self::Word(text.trim_matches(['"', '\'']).to_owned()),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl<const N: usize> From<[usize; N]> for Value {
    fn from(numbers: [usize; N]) -> Self {
        Self::Numbers(numbers.iter().map(|number| *number as u64).collect())
    }
}

/// Numbers are joined by `×`, as sizes are written.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(formatter),
            Self::Number(number) => number.fmt(formatter),
            Self::Numbers(numbers) => {
                for (index, number) in numbers.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "×" };
                    write!(formatter, "{separator}{number}")?;
                }
                Ok(())
            }
            Self::Word(word) => formatter.write_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// Written by hand rather than as an untagged enum, whose only message is that nothing matched.
struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("`true` or `false`, a whole number, a list of whole numbers, or a word in quotes")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        u64::try_from(number).map(Value::Number).map_err(|_| {
            E::custom(format!(
                "{number} is negative; parameters take whole numbers from 0 up"
            ))
        })
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Value, E> {
        Ok(Value::Word(word.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = sequence.next_element()? {
            numbers.push(number);
        }
        Ok(Value::Numbers(numbers))
    }
}
