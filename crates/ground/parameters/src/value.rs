//! Values of parameters.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ParameterValue")]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Number(u64),
    /// Several whole numbers, such as the sides of a tile.
    Numbers(Vec<u64>),
    /// A word, one of several accepted ones.
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

    /// Reads a value in the form of command lines and messages: `true`, `3`, `128x128x256`, `128×128×256`, `[2, 1]`, a
    /// word.
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
        ValueOf(None).deserialize(deserializer)
    }
}

/// Deserialises a value, with the parameter's name in errors if it is known. Written by hand, because the only error of
/// an untagged enum is that nothing matched.
#[derive(Clone, Copy)]
pub(crate) struct ValueOf<'n>(pub(crate) Option<&'n str>);

impl<'de> DeserializeSeed<'de> for ValueOf<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The start of a message: `` `stages`: ``, or nothing if the parameter is not known.
impl fmt::Display for ValueOf<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(formatter, "`{name}`: "),
            None => Ok(()),
        }
    }
}

impl<'de> Visitor<'de> for ValueOf<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("`true` or `false`, a whole number, a list of whole numbers, or a word in quotes")?;
        match self.0 {
            Some(name) => write!(formatter, " for `{name}`"),
            None => Ok(()),
        }
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
                "{self}{number} is negative; parameters take whole numbers from 0 up"
            ))
        })
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Value, E> {
        Ok(Value::Word(word.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut numbers = Vec::new();
        while let Some(element) = sequence.next_element_seed(self)? {
            match element {
                Value::Number(number) => numbers.push(number),
                other => {
                    return Err(A::Error::custom(format!(
                        "{self}the list holds `{other}`; lists hold whole numbers only"
                    )));
                }
            }
        }
        Ok(Value::Numbers(numbers))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Parameters;

    /// Values with numbers up to the largest that a `toml::Value` can hold, which has signed integers.
    fn any_value() -> impl Strategy<Value = Value> {
        let number = 0..=i64::MAX.unsigned_abs();
        prop_oneof![
            any::<bool>().prop_map(Value::Flag),
            number.clone().prop_map(Value::Number),
            prop::collection::vec(number, 0..4).prop_map(Value::Numbers),
            any::<String>().prop_map(Value::Word),
        ]
    }

    /// Values whose type is clear from their text: lists of two or more numbers, and words of letters.
    fn any_plain_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<bool>().prop_map(Value::Flag),
            any::<u64>().prop_map(Value::Number),
            prop::collection::vec(any::<u64>(), 2..5).prop_map(Value::Numbers),
            "[a-z]{2,8}(-[a-z0-9]{1,8}){0,2}"
                .prop_filter("not a flag", |word| word != "true" && word != "false")
                .prop_map(Value::Word),
        ]
    }

    fn any_parameters(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Parameters> {
        prop::collection::btree_map("[a-z]{1,6}(-[a-z]{1,4})?", value, 0..6)
            .prop_map(|values| values.into_iter().collect())
    }

    proptest! {
        #[test]
        fn parameters_survive_json_and_toml(parameters in any_parameters(any_value())) {
            let json = serde_json::to_string(&parameters).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Parameters>(&json).unwrap(), &parameters);
            let value = serde_json::to_value(&parameters).unwrap();
            prop_assert_eq!(&serde_json::from_value::<Parameters>(value).unwrap(), &parameters);
            let toml = toml::to_string(&parameters).unwrap();
            prop_assert_eq!(&toml::from_str::<Parameters>(&toml).unwrap(), &parameters);
            let value = toml::Value::try_from(&parameters).unwrap();
            prop_assert_eq!(value.try_into::<Parameters>().unwrap(), parameters);
        }

        #[test]
        fn a_line_says_what_it_was_written_from(parameters in any_parameters(any_plain_value())) {
            prop_assert_eq!(Parameters::parse(&parameters.to_string()), Ok(parameters.clone()));
            let spaced = parameters.to_string().replace(", ", " ");
            prop_assert_eq!(Parameters::parse(&spaced), Ok(parameters));
        }

        #[test]
        fn no_text_breaks_the_reader(text in ".*") {
            let _ = Parameters::parse(&text);
            let _ = Value::parse(&text);
        }
    }

    #[test]
    fn the_largest_number_survives_files() {
        let largest = Parameters::new().with("a", usize::MAX);
        let json = serde_json::to_string(&largest).unwrap();
        assert_eq!(serde_json::from_str::<Parameters>(&json).unwrap(), largest);
        let toml = toml::to_string(&largest).unwrap();
        assert_eq!(toml::from_str::<Parameters>(&toml).unwrap(), largest);
    }

    #[test]
    fn what_is_no_value_is_said_with_its_parameter() {
        let message = |text: &str| {
            toml::from_str::<Parameters>(text)
                .unwrap_err()
                .message()
                .to_owned()
        };
        assert_eq!(
            message("stages = -1"),
            "`stages`: -1 is negative; parameters take whole numbers from 0 up"
        );
        assert_eq!(
            message("stages = 1.5"),
            "invalid type: floating point `1.5`, expected `true` or `false`, a whole number, a list of whole numbers, or \
             a word in quotes for `stages`"
        );
        assert_eq!(
            message("tile = [128, \"wide\"]"),
            "`tile`: the list holds `wide`; lists hold whole numbers only"
        );
        assert_eq!(
            message("tile = [128, -8]"),
            "`tile`: -8 is negative; parameters take whole numbers from 0 up"
        );
        let alone = serde_json::from_str::<Value>("-1").unwrap_err();
        assert!(alone.to_string().starts_with("-1 is negative"), "{alone}");
    }
}
