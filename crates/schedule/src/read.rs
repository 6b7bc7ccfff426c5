//! Reading values so that a message names the word, what it accepts, and what was probably meant.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};

use crate::Word;

/// `; did you mean …?` when one of `known` is near enough to `text`, else nothing.
pub(crate) fn suggestion<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> String {
    let written = text.to_lowercase().replace(['_', ' '], "-");
    known
        .map(|name| (strsim::damerau_levenshtein(&written, name), name))
        .filter(|(distance, name)| *distance * 3 <= name.len().max(3))
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

/// The largest number a word takes: beyond any device, and small enough that no product of three overflows.
pub(crate) const LARGEST: usize = 65_536;

/// A whole number from 1 to [`LARGEST`].
pub(crate) struct Number(pub(crate) Word);

impl<'de> DeserializeSeed<'de> for Number {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_u64(self)
    }
}

impl Visitor<'_> for Number {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} for `{}`", self.0.accepts(), self.0)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<usize, E> {
        usize::try_from(value)
            .ok()
            .filter(|value| (1..=LARGEST).contains(value))
            .ok_or_else(|| refused(self.0, value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<usize, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::custom(format!(
                "`{}` is {value}; it takes {}",
                self.0,
                self.0.accepts()
            ))),
        }
    }
}

fn refused<E: Error>(word: Word, value: impl fmt::Display) -> E {
    E::custom(format!(
        "{value} is not allowed in `{word}`; it takes {}",
        word.accepts()
    ))
}

/// `true` or `false`.
pub(crate) struct Switch(pub(crate) Word);

impl<'de> DeserializeSeed<'de> for Switch {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_bool(self)
    }
}

impl Visitor<'_> for Switch {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} for `{}`", self.0.accepts(), self.0)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }
}

/// Exactly `N` whole numbers from 1 to [`LARGEST`].
pub(crate) struct Numbers<const N: usize>(Word);

impl<const N: usize> Numbers<N> {
    pub(crate) fn of<'de, D: Deserializer<'de>>(word: Word, deserializer: D) -> Result<[usize; N], D::Error> {
        deserializer.deserialize_seq(Self(word))
    }
}

impl<'de, const N: usize> Visitor<'de> for Numbers<N> {
    type Value = [usize; N];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} for `{}`", self.0.accepts(), self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<[usize; N], A::Error> {
        let mut values = Vec::with_capacity(N);
        while let Some(value) = sequence.next_element_seed(Number(self.0))? {
            values.push(value);
        }
        let count = values.len();
        values.try_into().map_err(|_| {
            A::Error::custom(format!(
                "`{}` has {count} numbers; it takes {}",
                self.0,
                self.0.accepts()
            ))
        })
    }
}
