//! Schedules and changes of schedules from TOML.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::read::{Number, Switch};
use crate::{
    Arithmetic, Cluster, Epilogue, Exponential, Layout, Lookup, Order, Packing, Roles, Schedule, Scores,
    Setup, Tile, Values, Word,
};

/// A schedule of which only some words are given.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScheduleChange {
    /// See [`Schedule::tile`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tile: Option<Tile>,
    /// See [`Schedule::stages`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<usize>,
    /// See [`Schedule::epilogue`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epilogue: Option<Epilogue>,
    /// See [`Schedule::roles`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Roles>,
    /// See [`Schedule::order`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// See [`Schedule::lookup`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lookup: Option<Lookup>,
    /// See [`Schedule::setup`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// See [`Schedule::swap_ab`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_ab: Option<bool>,
    /// See [`Schedule::split_k`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_k: Option<usize>,
    /// See [`Schedule::cluster`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// See [`Schedule::packing`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
    /// See [`Schedule::scores`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// See [`Schedule::values`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
    /// See [`Schedule::layout`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// See [`Schedule::exponential`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential: Option<Exponential>,
    /// See [`Schedule::arithmetic`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<Arithmetic>,
}

/// A word with its value before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordChange {
    /// The word.
    pub word: Word,
    /// Its value before.
    pub from: String,
    /// Its value after.
    pub to: String,
}

/// What is wrong with a schedule's text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {message}", file.display())]
pub struct ScheduleError {
    /// Which file.
    pub file: PathBuf,
    /// The bytes at fault, where they are known.
    pub span: Option<Range<usize>>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl ScheduleChange {
    /// The schedule with the given words replaced.
    pub fn apply(&self, base: &Schedule) -> Schedule {
        Schedule {
            tile: self.tile.unwrap_or(base.tile),
            stages: self.stages.unwrap_or(base.stages),
            epilogue: self.epilogue.unwrap_or(base.epilogue),
            roles: self.roles.unwrap_or(base.roles),
            order: self.order.unwrap_or(base.order),
            lookup: self.lookup.unwrap_or(base.lookup),
            setup: self.setup.unwrap_or(base.setup),
            swap_ab: self.swap_ab.unwrap_or(base.swap_ab),
            split_k: self.split_k.unwrap_or(base.split_k),
            cluster: self.cluster.unwrap_or(base.cluster),
            packing: self.packing.unwrap_or(base.packing),
            scores: self.scores.unwrap_or(base.scores),
            values: self.values.unwrap_or(base.values),
            layout: self.layout.unwrap_or(base.layout),
            exponential: self.exponential.unwrap_or(base.exponential),
            arithmetic: self.arithmetic.unwrap_or(base.arithmetic),
        }
    }

    /// The words that applying this to `base` changes; a word given its old value is not among them.
    pub fn words(&self, base: &Schedule) -> Vec<WordChange> {
        base.changes_to(&self.apply(base))
    }

    /// Reads the words of a table; `file` is what messages call it.
    ///
    /// # Errors
    /// If the text is not TOML, or a word or its value is unknown.
    pub fn from_toml(text: &str, file: &Path) -> Result<Self, ScheduleError> {
        toml::from_str(text).map_err(|error| ScheduleError {
            file: file.to_owned(),
            span: error.span(),
            message: error.message().to_owned(),
        })
    }
}

impl Schedule {
    /// Reads a schedule, starting from the baseline; `file` is what messages call it.
    ///
    /// # Errors
    /// As [`ScheduleChange::from_toml`].
    pub fn from_toml(text: &str, file: &Path) -> Result<Self, ScheduleError> {
        ScheduleChange::from_toml(text, file).map(Self::from)
    }

    /// The words in which `other` differs.
    pub fn changes_to(&self, other: &Self) -> Vec<WordChange> {
        Word::ALL
            .into_iter()
            .map(|word| WordChange {
                word,
                from: word.value(self),
                to: word.value(other),
            })
            .filter(|change| change.from != change.to)
            .collect()
    }
}

impl From<ScheduleChange> for Schedule {
    fn from(change: ScheduleChange) -> Self {
        change.apply(&Self::baseline())
    }
}

impl fmt::Display for WordChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} → {}", self.word, self.from, self.to)
    }
}

/// Ledgers know a change by this text, so words that came after the first ledgers are in it only where they are given.
impl fmt::Debug for ScheduleChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("ScheduleChange");
        text.field("tile", &self.tile)
            .field("stages", &self.stages)
            .field("epilogue", &self.epilogue)
            .field("roles", &self.roles)
            .field("order", &self.order)
            .field("lookup", &self.lookup)
            .field("setup", &self.setup)
            .field("swap_ab", &self.swap_ab)
            .field("split_k", &self.split_k)
            .field("cluster", &self.cluster);
        let later: [(&str, Option<&dyn fmt::Debug>); 6] = [
            ("packing", self.packing.as_ref().map(|value| value as _)),
            ("scores", self.scores.as_ref().map(|value| value as _)),
            ("values", self.values.as_ref().map(|value| value as _)),
            ("layout", self.layout.as_ref().map(|value| value as _)),
            ("exponential", self.exponential.as_ref().map(|value| value as _)),
            ("arithmetic", self.arithmetic.as_ref().map(|value| value as _)),
        ];
        for (word, value) in later {
            if let Some(value) = value {
                text.field(word, value);
            }
        }
        text.finish()
    }
}

impl<'de> Deserialize<'de> for ScheduleChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Words)
    }
}

struct Words;

impl<'de> Visitor<'de> for Words {
    type Value = ScheduleChange;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of schedule words, as in { stages = 3 }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScheduleChange, A::Error> {
        let mut change = ScheduleChange::default();
        let mut seen = Vec::new();
        while let Some(word) = map.next_key::<Word>()? {
            if seen.contains(&word) {
                return Err(A::Error::duplicate_field(word.name()));
            }
            seen.push(word);
            match word {
                Word::Tile => change.tile = Some(map.next_value()?),
                Word::Stages => change.stages = Some(map.next_value_seed(Number(word))?),
                Word::Epilogue => change.epilogue = Some(map.next_value()?),
                Word::Roles => change.roles = Some(map.next_value()?),
                Word::Order => change.order = Some(map.next_value()?),
                Word::Lookup => change.lookup = Some(map.next_value()?),
                Word::Setup => change.setup = Some(map.next_value()?),
                Word::SwapAb => change.swap_ab = Some(map.next_value_seed(Switch(word))?),
                Word::SplitK => change.split_k = Some(map.next_value_seed(Number(word))?),
                Word::Cluster => change.cluster = Some(map.next_value()?),
                Word::Packing => change.packing = Some(map.next_value()?),
                Word::Scores => change.scores = Some(map.next_value()?),
                Word::Values => change.values = Some(map.next_value()?),
                Word::Layout => change.layout = Some(map.next_value()?),
                Word::Exponential => change.exponential = Some(map.next_value()?),
                Word::Arithmetic => change.arithmetic = Some(map.next_value()?),
            }
        }
        Ok(change)
    }
}
