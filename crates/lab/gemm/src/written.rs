//! Sizes of grouped GEMM as suite files and command lines write them.

use std::fmt;

use gauntlet_problems::{Form, GemmShape, GroupedGemm, OutputFormat, TokenFormat};
use gauntlet_task::{Fault, WrittenSizes, words};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Groups that `g` can stand for on the command line.
const MAX_GROUPS: usize = 65536;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GemmTable {
    /// The groups.
    groups: Groups,
    /// What is computed of each group.
    #[serde(default)]
    form: Form,
    /// The element type of the output.
    #[serde(default)]
    output: OutputFormat,
    /// The element type of the tokens.
    #[serde(default)]
    tokens: TokenFormat,
}

/// Groups one by one, or their sizes side by side.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Groups {
    /// The sizes of each group.
    List(Vec<GemmShape>),
    /// The sizes of all groups, dimension by dimension.
    Sizes(SizesTable),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SizesTable {
    /// Rows of the output: tokens.
    m: SizeOfGroups,
    /// Columns of the output.
    n: SizeOfGroups,
    /// The length of the sums.
    k: SizeOfGroups,
}

/// One size for every group, or one for each.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum SizeOfGroups {
    /// The size of every group.
    Every(usize),
    /// The size of each group.
    Each(Vec<usize>),
}

/// The JSON Schema of the sizes.
pub fn schema(generator: &mut SchemaGenerator) -> Schema {
    GemmTable::json_schema(generator)
}

/// Reads the sizes of a suite file.
pub fn read(written: &WrittenSizes) -> Result<GroupedGemm, Fault> {
    let table: GemmTable = written.parse()?;
    let groups = match table.groups {
        Groups::List(groups) => groups,
        Groups::Sizes(sizes) => sizes.groups().map_err(|message| written.fault(message))?,
    };
    Ok(GroupedGemm {
        groups,
        form: table.form,
        output: table.output,
        tokens: table.tokens,
    })
}

/// Words of the command line as an inline table, with `g` equal groups where no sizes are listed.
pub fn from_words(words: &[(String, String)]) -> Result<String, String> {
    let mut words = words.to_vec();
    if let Some(place) = words.iter().position(|(name, _)| name == "g") {
        let (_, groups) = words.remove(place);
        repeat_groups(&mut words, &groups)?;
    }
    let is_size = |(name, _): &(String, String)| ["m", "n", "k"].contains(&name.as_str());
    let (sizes, rest): (Vec<_>, Vec<_>) = words.into_iter().partition(is_size);
    let groups = words::entries(&sizes);
    Ok(match words::entries(&rest) {
        nothing if nothing.is_empty() => format!("{{ groups = {{ {groups} }} }}"),
        rest => format!("{{ groups = {{ {groups} }}, {rest} }}"),
    })
}

fn repeat_groups(words: &mut [(String, String)], groups: &str) -> Result<(), String> {
    let count = groups
        .parse()
        .ok()
        .filter(|count| (1..=MAX_GROUPS).contains(count));
    let count: usize = count.ok_or(format!(
        "g = {groups}; give a number of groups up to {MAX_GROUPS}"
    ))?;
    let sizes = words
        .iter_mut()
        .filter(|(name, _)| ["m", "n", "k"].contains(&name.as_str()));
    for (name, value) in sizes {
        let listed = words::list(value).len();
        if listed != 1 && listed != count {
            return Err(format!("g = {count}, but {listed} sizes in {name}"));
        }
        if name == "m" && listed == 1 {
            *value = vec![value.as_str(); count].join(" ");
        }
    }
    Ok(())
}

impl SizesTable {
    fn groups(&self) -> Result<Vec<GemmShape>, String> {
        let named = [("m", &self.m), ("n", &self.n), ("k", &self.k)];
        let mut lengths = named.iter().filter_map(|(name, sizes)| match sizes {
            SizeOfGroups::Every(_) => None,
            SizeOfGroups::Each(list) => Some((name, list.len())),
        });
        let (first, count) = lengths.next().unwrap_or((&"m", 1));
        if let Some((other, length)) = lengths.find(|&(_, length)| length != count) {
            return Err(format!(
                "`{first}` lists {count} groups and `{other}` {length}; give as many of each, or one number for all"
            ));
        }
        Ok((0..count)
            .map(|group| GemmShape {
                m: self.m.of(group),
                n: self.n.of(group),
                k: self.k.of(group),
            })
            .collect())
    }
}

impl SizeOfGroups {
    fn of(&self, group: usize) -> usize {
        match self {
            Self::Every(size) => *size,
            Self::Each(sizes) => sizes[group],
        }
    }
}

// Written by hand: the only error message of untagged enums is that nothing matched.

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GroupsVisitor;

        impl<'de> Visitor<'de> for GroupsVisitor {
            type Value = Groups;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                write!(
                    formatter,
                    "a list of `{{ m = …, n = …, k = … }}`, or `{{ m = […], n = …, k = … }}`"
                )
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Groups, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Groups::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Groups, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(table)).map(Groups::Sizes)
            }
        }

        deserializer.deserialize_any(GroupsVisitor)
    }
}

impl<'de> Deserialize<'de> for SizeOfGroups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;

        impl<'de> Visitor<'de> for SizeVisitor {
            type Value = SizeOfGroups;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                write!(formatter, "a size, or a list of one size a group")
            }

            fn visit_i64<E: de::Error>(self, size: i64) -> Result<SizeOfGroups, E> {
                let size = usize::try_from(size).map_err(|_| {
                    E::invalid_value(de::Unexpected::Signed(size), &"a size, which is never negative")
                })?;
                Ok(SizeOfGroups::Every(size))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<SizeOfGroups, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(SizeOfGroups::Each)
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}
