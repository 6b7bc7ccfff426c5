//! The values that a parameter accepts.

use std::borrow::Cow;
use std::fmt;

use crate::Value;
use crate::error::did_you_mean;

/// The largest number that the parameters of the built-in families accept: beyond any device, and small enough that no
/// product of three overflows.
pub const LARGEST: u64 = 65_536;

/// The values that a parameter accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Domain {
    /// `true` or `false`.
    Flag,
    /// A whole number in a range, both ends included.
    Number {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// One of several whole numbers.
    OneOf(Vec<u64>),
    /// As many whole numbers as there are names, each in a range, both ends included.
    Numbers {
        /// The names of the numbers, such as `m`, `n`, `k`.
        names: &'static [&'static str],
        /// The least of each.
        least: u64,
        /// The most of each.
        most: u64,
        /// Values to show in messages.
        example: &'static [u64],
    },
    /// One of several words.
    Choice(Vec<Cow<'static, str>>),
}

impl Domain {
    /// A whole number from `least` to `most`.
    pub fn number(least: u64, most: u64) -> Self {
        Self::Number { least, most }
    }

    /// One of several whole numbers.
    pub fn one_of(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self::OneOf(numbers.into_iter().collect())
    }

    /// One of several words. A word that reads as a number cannot be given without quotes: see [`one_of`](Self::one_of).
    pub fn choice<W: Into<Cow<'static, str>>>(words: impl IntoIterator<Item = W>) -> Self {
        Self::Choice(words.into_iter().map(Into::into).collect())
    }

    /// Whether the value is accepted.
    ///
    /// # Errors
    /// The error in the value of the parameter `name`, and the accepted values.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        let refused = |number: &u64| format!("{number} is not allowed in `{name}`; it takes {self}");
        match (self, value) {
            (Self::Flag, Value::Flag(_)) => Ok(()),
            (Self::Number { least, most }, Value::Number(number)) => {
                if (least..=most).contains(&number) {
                    Ok(())
                } else {
                    Err(refused(number))
                }
            }
            (Self::OneOf(known), Value::Number(number)) => {
                if known.contains(number) {
                    Ok(())
                } else {
                    Err(refused(number))
                }
            }
            (Self::Numbers { names, .. }, Value::Numbers(numbers)) if names.len() != numbers.len() => {
                let count = numbers.len();
                Err(format!("`{name}` has {count} numbers; it takes {self}"))
            }
            (Self::Numbers { least, most, .. }, Value::Numbers(numbers)) => {
                match numbers.iter().find(|number| !(least..=most).contains(number)) {
                    Some(number) => Err(refused(number)),
                    None => Ok(()),
                }
            }
            (Self::Choice(words), Value::Word(word)) => {
                if words.iter().any(|known| known == word) {
                    return Ok(());
                }
                let meant = did_you_mean(word, words.iter().map(AsRef::as_ref));
                Err(format!("`{name}` does not know `{word}`{meant}; it takes {self}"))
            }
            // In quotes, as written: `"3"` is not a number.
            (_, Value::Word(word)) => Err(format!("`{name}` is \"{word}\"; it takes {self}")),
            _ => Err(format!("`{name}` is {value}; it takes {self}")),
        }
    }

    /// The values that a search tries: every accepted one, or of a range of numbers its powers of two and both ends; none for
    /// lists of numbers.
    pub fn tried(&self) -> Vec<Value> {
        let Self::Number { least, most } = self else {
            return self.values();
        };
        let powers = (0..u64::BITS).map(|power| 1_u64 << power);
        let mut tried: Vec<u64> = powers.filter(|power| (least..=most).contains(&power)).collect();
        tried.extend([*least, *most]);
        tried.sort_unstable();
        tried.dedup();
        tried.into_iter().map(Value::Number).collect()
    }

    /// Every accepted value, if there are few; none for ranges of numbers.
    pub fn values(&self) -> Vec<Value> {
        match self {
            Self::Flag => vec![Value::Flag(false), Value::Flag(true)],
            Self::Choice(words) => words.iter().map(|word| Value::Word(word.to_string())).collect(),
            Self::OneOf(numbers) => numbers.iter().map(|number| Value::Number(*number)).collect(),
            Self::Number { .. } | Self::Numbers { .. } => Vec::new(),
        }
    }
}

/// The accepted values, as the end of a sentence.
impl fmt::Display for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => formatter.write_str("`true` or `false`"),
            Self::Number { least, most } => write!(formatter, "a whole number from {least} to {most}"),
            Self::OneOf(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
                formatter.write_str(&numbers.join(", "))
            }
            Self::Numbers {
                names,
                least,
                most,
                example,
            } => {
                let count = match names.len() {
                    2 => "two".to_owned(),
                    3 => "three".to_owned(),
                    other => other.to_string(),
                };
                write!(
                    formatter,
                    "{count} whole numbers from {least} to {most}, as in {example:?}"
                )
            }
            Self::Choice(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                formatter.write_str(&words.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_numbers_is_given_as_a_number() {
        let sums = Domain::one_of([1, 8, 32]);
        assert_eq!(sums.check("sums", &Value::parse("8")), Ok(()));
        assert_eq!(
            sums.check("sums", &Value::parse("7")).unwrap_err(),
            "7 is not allowed in `sums`; it takes 1, 8, 32"
        );
        assert_eq!(
            sums.check("sums", &Value::from("8")).unwrap_err(),
            "`sums` is \"8\"; it takes 1, 8, 32"
        );
        assert_eq!(sums.values(), [1_usize, 8, 32].map(Value::from));
    }

    #[test]
    fn every_value_that_is_listed_is_accepted() {
        for domain in [
            Domain::Flag,
            Domain::one_of([1, 8]),
            Domain::choice(["direct", "staged"]),
        ] {
            let values = domain.values();
            assert_eq!(values.len(), 2);
            for value in values {
                assert_eq!(domain.check("p", &value), Ok(()));
                // In the form of command lines and messages.
                assert_eq!(Value::parse(&value.to_string()), value);
            }
        }
    }
}
