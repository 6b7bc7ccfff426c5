//! Typed values of parameters.

use gauntlet_parameters::{Domain, LARGEST, Value};

/// A type whose values are those of a parameter.
pub trait Field: Sized + PartialEq {
    /// Which values the parameter accepts.
    fn domain() -> Domain;
    /// The value of the parameter.
    fn to_value(&self) -> Value;
    /// The typed value; none for a value outside the [`domain`](Self::domain).
    fn from_value(value: &Value) -> Option<Self>;
}

/// A type whose values are a few words.
pub trait Choice: Field + Copy + 'static {
    /// Every value with its word, in the order of their documentation; the first is the default.
    const ALL: &'static [(Self, &'static str)];

    /// The word in files and messages.
    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(value, _)| *value == self)
            .map_or("", |(_, name)| name)
    }
}

/// Defines an enum whose values are words: the enum, its words, and how it is read and shown. The first value is the
/// default.
macro_rules! choice {
    (
        $(#[$documentation:meta])*
        pub enum $name:ident {
            $(#[$first_documentation:meta])* $first:ident = $first_word:literal,
            $($(#[$value_documentation:meta])* $value:ident = $word:literal,)*
        }
    ) => {
        $(#[$documentation])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[$first_documentation])* #[default] $first,
            $($(#[$value_documentation])* $value,)*
        }

        impl $crate::field::Choice for $name {
            const ALL: &'static [(Self, &'static str)] =
                &[(Self::$first, $first_word), $((Self::$value, $word)),*];
        }

        impl $crate::field::Field for $name {
            fn domain() -> gauntlet_parameters::Domain {
                let words = <Self as $crate::field::Choice>::ALL.iter().map(|(_, word)| *word);
                gauntlet_parameters::Domain::choice(words)
            }

            fn to_value(&self) -> gauntlet_parameters::Value {
                $crate::field::Choice::name(*self).into()
            }

            fn from_value(value: &gauntlet_parameters::Value) -> Option<Self> {
                let gauntlet_parameters::Value::Word(word) = value else {
                    return None;
                };
                let all = <Self as $crate::field::Choice>::ALL;
                all.iter().find(|(_, known)| known == word).map(|(value, _)| *value)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str($crate::field::Choice::name(*self))
            }
        }
    };
}
pub(crate) use choice;

impl Field for bool {
    fn domain() -> Domain {
        Domain::Flag
    }

    fn to_value(&self) -> Value {
        Value::Flag(*self)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(*flag),
            Value::Number(_) | Value::Numbers(_) | Value::Word(_) => None,
        }
    }
}

impl Field for usize {
    fn domain() -> Domain {
        Domain::number(1, LARGEST)
    }

    fn to_value(&self) -> Value {
        (*self).into()
    }

    fn from_value(value: &Value) -> Option<Self> {
        Self::try_from(value.number()?).ok()
    }
}

/// Several numbers of one parameter, as an array.
pub(crate) fn numbers<const N: usize>(value: &Value) -> Option<[usize; N]> {
    let Value::Numbers(numbers) = value else {
        return None;
    };
    let numbers: Vec<usize> = numbers
        .iter()
        .map(|number| usize::try_from(*number).ok())
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}
