//! Words whose value is one of a few names.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::read::suggestion;
use crate::{
    Arithmetic, Epilogue, Exponential, Layout, Lookup, Order, Packing, Roles, Scores, Setup, Values, Word,
};

/// A word whose value is one of a few names.
pub trait Choice: Copy + PartialEq + Sized + 'static {
    /// The word.
    const WORD: Word;
    /// Every value with its name, in the order of their documentation.
    const ALL: &'static [(Self, &'static str)];

    /// The name in files and messages.
    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(value, _)| *value == self)
            .map_or("", |(_, name)| name)
    }
}

macro_rules! choices {
    ($($type:ident { $($variant:ident = $name:literal),+ })+) => {$(
        impl Choice for $type {
            const WORD: Word = Word::$type;
            const ALL: &'static [(Self, &'static str)] = &[$(($type::$variant, $name)),+];
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.name())
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read(deserializer)
            }
        }
    )+};
}

choices! {
    Epilogue { Direct = "direct", Staged = "staged" }
    Roles { Unified = "unified", Specialised = "specialised" }
    Order { PerTile = "per-tile", Static = "static", Sorted = "sorted", Dynamic = "dynamic" }
    Lookup { Linear = "linear", Precomputed = "precomputed" }
    Setup { PerCall = "per-call", Once = "once" }
    Packing { Canonical = "canonical", Fragments = "fragments" }
    Scores { Registers = "registers", InPlace = "in-place", Separate = "separate" }
    Values { Matrix = "matrix", Scalar = "scalar" }
    Layout { Swizzled = "swizzled", Plain = "plain" }
    Exponential { Hardware = "hardware", Polynomial = "polynomial", Table = "table" }
    Arithmetic { Fp16 = "fp16", Fp8 = "fp8" }
}

fn read<'de, T: Choice, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Name<T>(std::marker::PhantomData<T>);

    impl<T: Choice> serde::de::Visitor<'_> for Name<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "one of {} for `{}`", names::<T>(), T::WORD)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::ALL
                .iter()
                .find(|(_, name)| *name == text)
                .map(|(value, _)| *value)
                .ok_or_else(|| {
                    let known = T::ALL.iter().map(|(_, name)| *name);
                    E::custom(format!(
                        "`{}` does not know `{text}`{}; it accepts {}",
                        T::WORD,
                        suggestion(text, known),
                        names::<T>()
                    ))
                })
        }
    }

    deserializer.deserialize_str(Name(std::marker::PhantomData))
}

/// The accepted values, quoted and separated by commas.
pub(crate) fn names<T: Choice>() -> String {
    let names: Vec<_> = T::ALL.iter().map(|(_, name)| format!("`{name}`")).collect();
    names.join(", ")
}
