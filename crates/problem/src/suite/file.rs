//! Suites as they are written in TOML.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::error::Fault;
use super::{Case, SpeedOfLight, Suite};
use crate::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, InputKind, Inputs, OutputFormat, Problem,
    Scaling, Sequence,
};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SuiteFile {
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    correctness: Vec<CaseTable>,
    #[serde(default)]
    benchmark: Vec<CaseTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CaseTable {
    name: Spanned<String>,
    #[serde(default)]
    inputs: InputKind,
    data: Option<Spanned<PathBuf>>,
    speed_of_light: Option<Spanned<SpeedOfLight>>,
    grouped_gemm: Option<Spanned<GemmTable>>,
    attention: Option<Spanned<AttentionTable>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GemmTable {
    groups: Groups,
    #[serde(default)]
    form: Form,
    #[serde(default)]
    output: OutputFormat,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AttentionTable {
    batch: Option<usize>,
    length: Option<usize>,
    sequences: Option<Vec<Sequence>>,
    heads: usize,
    kv_heads: Option<usize>,
    head_size: usize,
    #[serde(default)]
    causal: bool,
    format: AttentionFormat,
    #[serde(default)]
    scaling: Scaling,
    #[serde(default)]
    output: OutputFormat,
}

/// Groups one by one, or their sizes side by side.
enum Groups {
    List(Vec<GemmShape>),
    Sizes(SizesTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SizesTable {
    m: Sizes,
    n: Sizes,
    k: Sizes,
}

/// One size for every group, or one for each.
enum Sizes {
    Every(usize),
    Each(Vec<usize>),
}

/// Reads a suite; the operands that cases name are sought from `folder`.
pub(super) fn parse(text: &str, default_name: &str, folder: &Path) -> Result<Suite, Fault> {
    let file: SuiteFile = toml::from_str(text)?;
    if file.benchmark.is_empty() {
        let message = "a suite needs at least one [[benchmark]] case";
        return Err(Fault {
            span: None,
            message: message.into(),
        });
    }
    Ok(Suite {
        name: file.name.unwrap_or_else(|| default_name.into()),
        description: file.description,
        correctness: cases(file.correctness, folder)?,
        benchmark: cases(file.benchmark, folder)?,
    })
}

fn cases(tables: Vec<CaseTable>, folder: &Path) -> Result<Vec<Case>, Fault> {
    let mut names = HashSet::new();
    let check = |table: CaseTable| {
        let (name, span) = (table.name.get_ref().clone(), table.name.span());
        if !names.insert(name.clone()) {
            return Err(Fault::at(
                span,
                format!("a second case `{name}`; give each a name of its own"),
            ));
        }
        case(table, folder)
    };
    tables.into_iter().map(check).collect()
}

fn case(table: CaseTable, folder: &Path) -> Result<Case, Fault> {
    let (problem, span) = problem(&table)?;
    problem
        .validate()
        .map_err(|error| Fault::at(span, error.to_string()))?;
    if let Some(bound) = &table.speed_of_light
        && !(bound.get_ref().microseconds > 0.0 && bound.get_ref().microseconds.is_finite())
    {
        return Err(Fault::at(
            bound.span(),
            "the speed of light is a positive number of microseconds",
        ));
    }
    let data = table
        .data
        .map(|data| operands(data, &problem, folder))
        .transpose()?;
    Ok(Case {
        name: table.name.into_inner(),
        problem,
        inputs: table.inputs,
        data,
        speed_of_light: table.speed_of_light.map(Spanned::into_inner),
    })
}

/// The file of operands that a case names, read once so that a bad one is told here and not in the middle of a round.
fn operands(data: Spanned<PathBuf>, problem: &Problem, folder: &Path) -> Result<PathBuf, Fault> {
    let span = data.span();
    let path = folder.join(data.into_inner());
    match Inputs::load(&path, problem) {
        Ok(_) => Ok(path),
        Err(error) => Err(Fault::at(span, error.to_string())),
    }
}

/// The problem, and where it is written.
fn problem(table: &CaseTable) -> Result<(Problem, Range<usize>), Fault> {
    let (problem, span) = match (&table.grouped_gemm, &table.attention) {
        (Some(gemm), None) => (gemm.get_ref().problem().map(Problem::GroupedGemm), gemm.span()),
        (None, Some(attention)) => (
            attention.get_ref().problem().map(Problem::Attention),
            attention.span(),
        ),
        _ => {
            let message = format!(
                "the case `{}` takes one problem: either `grouped-gemm = {{ … }}` or `attention = {{ … }}`",
                table.name.get_ref()
            );
            return Err(Fault::at(table.name.span(), message));
        }
    };
    match problem {
        Ok(problem) => Ok((problem, span)),
        Err(message) => Err(Fault::at(span, message)),
    }
}

impl GemmTable {
    fn problem(&self) -> Result<GroupedGemm, String> {
        let groups = match &self.groups {
            Groups::List(groups) => groups.clone(),
            Groups::Sizes(sizes) => sizes.groups()?,
        };
        Ok(GroupedGemm {
            groups,
            form: self.form,
            output: self.output,
        })
    }
}

impl SizesTable {
    fn groups(&self) -> Result<Vec<GemmShape>, String> {
        let named = [("m", &self.m), ("n", &self.n), ("k", &self.k)];
        let mut lengths = named.iter().filter_map(|(name, sizes)| match sizes {
            Sizes::Every(_) => None,
            Sizes::Each(list) => Some((name, list.len())),
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

impl Sizes {
    fn of(&self, group: usize) -> usize {
        match self {
            Self::Every(size) => *size,
            Self::Each(sizes) => sizes[group],
        }
    }
}

impl AttentionTable {
    fn problem(&self) -> Result<Attention, String> {
        let sequences = match (&self.sequences, self.batch, self.length) {
            (Some(sequences), None, None) => sequences.clone(),
            (None, batch, Some(length)) => {
                // Refused here, before so many sequences are laid out in memory.
                let batch = batch.unwrap_or(1);
                if batch > MAX_BATCH {
                    return Err(format!("batch = {batch} is over {MAX_BATCH}; use a smaller one"));
                }
                vec![
                    Sequence {
                        queries: length,
                        keys: length
                    };
                    batch
                ]
            }
            _ => {
                let message = "attention takes either `batch` and `length`, or `sequences = [{ queries = …, keys = … }, …]`";
                return Err(message.into());
            }
        };
        Ok(Attention {
            sequences,
            heads: self.heads,
            kv_heads: self.kv_heads.unwrap_or(self.heads),
            head_size: self.head_size,
            causal: self.causal,
            format: self.format,
            scaling: self.scaling,
            output: self.output,
        })
    }
}

/// Sequences that `batch` can stand for.
const MAX_BATCH: usize = 65536;

// Written by hand rather than as untagged enums, whose only message is that nothing matched.

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

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizesVisitor;

        impl<'de> Visitor<'de> for SizesVisitor {
            type Value = Sizes;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                write!(formatter, "a size, or a list of one size a group")
            }

            fn visit_i64<E: de::Error>(self, size: i64) -> Result<Sizes, E> {
                let size = usize::try_from(size).map_err(|_| {
                    E::invalid_value(de::Unexpected::Signed(size), &"a size, which is never negative")
                })?;
                Ok(Sizes::Every(size))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Sizes, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Sizes::Each)
            }
        }

        deserializer.deserialize_any(SizesVisitor)
    }
}
