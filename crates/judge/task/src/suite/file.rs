//! Parses suites from TOML.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::error::Fault;
use super::schema::WrittenCase;
use super::written::WrittenSizes;
use super::{Case, SpeedOfLight, Suite, fault_of_name};
use crate::{InputKind, Sizes, Task};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SuiteFile {
    /// The name; the file's own name if it is left out.
    name: Option<String>,
    /// A one-line description.
    #[serde(default)]
    description: String,
    /// The cases on which a kernel must be correct, in addition to those that are timed.
    #[serde(default)]
    #[schemars(with = "Vec<WrittenCase>")]
    correctness: Vec<Spanned<CaseTable>>,
    /// The cases that are timed; at least one.
    #[serde(default)]
    #[schemars(with = "Vec<WrittenCase>", length(min = 1), required)]
    benchmark: Vec<Spanned<CaseTable>>,
}

/// A case: the keys that every case has, and one more that names its task.
type CaseTable = BTreeMap<Spanned<String>, Spanned<toml::Value>>;

/// Reads a suite of these tasks; files of operands that cases name are relative to `folder`.
pub(super) fn parse(
    text: &str,
    default_name: &str,
    folder: &Path,
    tasks: &[&'static dyn Task],
) -> Result<Suite, Fault> {
    let file: SuiteFile = toml::from_str(text)?;
    if file.benchmark.is_empty() {
        let message = "a suite needs at least one [[benchmark]] case";
        return Err(Fault {
            span: None,
            message: message.into(),
        });
    }
    if let Some(message) = file.name.as_deref().and_then(fault_of_name) {
        return Err(Fault { span: None, message });
    }
    let reader = Reader { text, folder, tasks };
    Ok(Suite {
        name: file.name.unwrap_or_else(|| default_name.into()),
        description: file.description,
        correctness: reader.cases(file.correctness)?,
        benchmark: reader.cases(file.benchmark)?,
        notes: Vec::new(),
    })
}

struct Reader<'a> {
    text: &'a str,
    folder: &'a Path,
    tasks: &'a [&'static dyn Task],
}

impl Reader<'_> {
    fn cases(&self, tables: Vec<Spanned<CaseTable>>) -> Result<Vec<Case>, Fault> {
        let mut names = HashSet::new();
        let mut cases = Vec::with_capacity(tables.len());
        for table in tables {
            let (case, span) = self.case(table)?;
            if !names.insert(case.name.clone()) {
                let message = format!("a second case `{}`; give each a name of its own", case.name);
                return Err(Fault::at(span, message));
            }
            cases.push(case);
        }
        Ok(cases)
    }

    /// A case, and the place of its name.
    fn case(&self, table: Spanned<CaseTable>) -> Result<(Case, std::ops::Range<usize>), Fault> {
        let whole = table.span();
        let mut table = table.into_inner();
        let name: Spanned<String> = match take(&mut table, "name")? {
            Some(name) => name,
            None => return Err(Fault::at(whole, "missing field `name`")),
        };
        let inputs: Option<Spanned<InputKind>> = take(&mut table, "inputs")?;
        let data: Option<Spanned<PathBuf>> = take(&mut table, "data")?;
        let bound: Option<Spanned<SpeedOfLight>> = take(&mut table, "speed-of-light")?;
        let sizes = self.sizes(&name, table)?;
        if let Some(bound) = &bound
            && !(bound.get_ref().microseconds > 0.0 && bound.get_ref().microseconds.is_finite())
        {
            return Err(Fault::at(
                bound.span(),
                "the speed of light is a positive number of microseconds",
            ));
        }
        let span = name.span();
        if let Some(message) = fault_of_name(name.get_ref()) {
            return Err(Fault::at(span, message));
        }
        let case = Case {
            name: name.into_inner(),
            data: data.map(|data| self.operands(data, &sizes)).transpose()?,
            sizes,
            inputs: inputs.map(Spanned::into_inner).unwrap_or_default(),
            speed_of_light: bound.map(Spanned::into_inner),
        };
        Ok((case, span))
    }

    /// The sizes, under the key that names their task.
    fn sizes(&self, name: &Spanned<String>, table: CaseTable) -> Result<Sizes, Fault> {
        let find = |key: &str| self.tasks.iter().find(|task| task.name() == key);
        let known: Vec<&str> = self.tasks.iter().map(|task| task.name()).collect();
        // Checked first, so that a misspelt field beside the task is not taken for a second task.
        let unknown = table.keys().filter(|key| find(key.get_ref()).is_none());
        if let Some(key) = unknown.min_by_key(|key| key.span().start) {
            let fields = ["name", "inputs", "data", "speed-of-light"];
            let meant = gauntlet_parameters::did_you_mean(key.get_ref(), known.iter().copied().chain(fields));
            let message = format!(
                "unknown field `{}`{meant}; a case has {}, and one of the tasks {}",
                key.get_ref(),
                quoted(&fields),
                quoted(&known)
            );
            return Err(Fault::at(key.span(), message));
        }
        let mut entries = table
            .into_iter()
            .filter_map(|(key, value)| Some((find(key.get_ref())?, value)));
        let (Some((task, value)), None) = (entries.next(), entries.next()) else {
            let forms: Vec<_> = known.iter().map(|task| format!("`{task} = {{ … }}`")).collect();
            let message = format!(
                "the case `{}` takes one task: {}",
                name.get_ref(),
                forms.join(" or ")
            );
            return Err(Fault::at(name.span(), message));
        };
        task.read(&WrittenSizes::new(value, self.text))
    }

    /// The file of operands that a case names, read once so that a bad one is reported here and not in the middle of a
    /// round.
    fn operands(&self, data: Spanned<PathBuf>, sizes: &Sizes) -> Result<PathBuf, Fault> {
        let span = data.span();
        let path = self.folder.join(data.into_inner());
        match sizes.load(&path) {
            Ok(_) => Ok(path),
            Err(message) => Err(Fault::at(span, message)),
        }
    }
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Removes a key from a case and returns its value.
fn take<T: serde::de::DeserializeOwned>(
    table: &mut CaseTable,
    key: &str,
) -> Result<Option<Spanned<T>>, Fault> {
    let Some(name) = table.keys().find(|name| name.get_ref() == key).cloned() else {
        return Ok(None);
    };
    let Some(value) = table.remove(&name) else {
        return Ok(None);
    };
    let span = value.span();
    match T::deserialize(value.into_inner()) {
        Ok(parsed) => Ok(Some(Spanned::new(span, parsed))),
        Err(error) => Err(Fault::at(span, error.message().to_owned())),
    }
}
