//! A kernel with its source and its table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_cuda::compiler::File;
use gauntlet_cuda::compiler::UserSource;
use gauntlet_parameters::{Parameters, Value, did_you_mean};
use gauntlet_task::{OwnParameters, Scope};

use crate::error::KernelError;
use crate::headers::{self, Header};
use crate::launch::LaunchPlan;
use crate::table::KernelTable;

/// A kernel of a `.cu` file with its table: what can be known about it without a compiler.
#[derive(Debug)]
pub struct KernelFile {
    path: PathBuf,
    kernel: String,
    text: String,
    headers: Vec<Header>,
    table: KernelTable,
    parameters: OwnParameters,
    /// Defaults of macros that only other kernels of the file have: the file is compiled as a whole.
    others: Parameters,
}

impl KernelFile {
    /// Reads a kernel: its source, the headers that it includes, and its entry in the table beside the source.
    ///
    /// # Errors
    /// If a file is missing or malformed, or the table has no entry for the kernel.
    pub fn open(path: &Path, kernel: &str) -> Result<Self, KernelError> {
        let text = read(path)?;
        let table_path = path.with_extension("toml");
        let in_table = |place: &str, message: String| KernelError::Table {
            path: table_path.clone(),
            place: if place.is_empty() {
                String::new()
            } else {
                format!("{place}: ")
            },
            message,
        };
        if !table_path.exists() {
            return Err(KernelError::NoTable {
                path: table_path,
                cu: path.to_owned(),
                kernel: kernel.to_owned(),
            });
        }
        let mut tables: BTreeMap<String, KernelTable> = toml::from_str(&read(&table_path)?)
            .map_err(|error| in_table("", error.to_string().trim_end().to_owned()))?;
        let Some(table) = tables.remove(kernel) else {
            let names: Vec<&str> = tables.keys().map(String::as_str).collect();
            return Err(KernelError::NoEntry {
                meant: did_you_mean(kernel, names.iter().copied()),
                known: if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                },
                path: table_path,
                kernel: kernel.to_owned(),
            });
        };
        let read_parameters = |table: &KernelTable, kernel: &str| {
            let owner = format!("{}:{kernel}", path.display());
            OwnParameters::new(&owner, &table.parameters, &table.restrictions)
                .map_err(|(name, message)| in_table(&format!("{kernel}.parameters.{name}"), message))
        };
        let parameters = read_parameters(&table, kernel)?;
        let mut others = Parameters::new();
        for (name, other) in &tables {
            let other = read_parameters(other, name)?;
            for row in other
                .table()
                .parameters()
                .iter()
                .filter(|row| parameters.table().find(&row.name).is_none())
            {
                others.set(row.name.to_string(), row.default.clone());
            }
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut folders = vec![folder.to_owned()];
        folders.extend(table.includes.iter().map(|include| folder.join(include)));
        Ok(Self {
            headers: headers::included(&text, &folders)?,
            path: path.to_owned(),
            kernel: kernel.to_owned(),
            text,
            table,
            parameters,
            others,
        })
    }

    /// The kernel's name in messages: file and kernel.
    pub fn name(&self) -> String {
        format!("{}:{}", self.path.display(), self.kernel)
    }

    /// The kernel's parameters.
    pub fn parameters(&self) -> &OwnParameters {
        &self.parameters
    }

    /// The restriction that a case with these parameters breaks, if any.
    ///
    /// # Errors
    /// If a restriction has no value.
    pub(crate) fn broken_restriction(&self, scope: &Scope) -> Result<Option<String>, String> {
        let broken = self
            .parameters
            .broken_restriction(scope)
            .map_err(|error| self.in_table("restrictions", &error.to_string()))?;
        Ok(broken.map(|restriction| {
            self.in_table(
                "restrictions",
                &format!("`{restriction}` does not hold; choose other values of the parameters"),
            )
        }))
    }

    /// The launch of a case.
    ///
    /// # Errors
    /// If an argument or an expression of the table has no value, or no launch is of that shape.
    pub fn launch(&self, scope: &Scope) -> Result<LaunchPlan, String> {
        LaunchPlan::new(&self.table, scope).map_err(|(key, message)| self.in_table(key, &message))
    }

    /// The source with its definitions, as the compiler takes it.
    pub fn with_source<T>(&self, given: &Parameters, compile: impl FnOnce(&UserSource<'_>) -> T) -> T {
        let name = self.path.display().to_string();
        let headers: Vec<File<'_>> = self.headers.iter().map(Header::file).collect();
        let mut options = vec!["--std=c++17".to_owned()];
        options.extend(headers::folders_of_toolkit());
        options.extend(self.table.options.iter().cloned());
        let complete = self.others.changed(&self.parameters.table().complete(given));
        options.extend(complete.iter().map(|(name, value)| {
            let value = match value {
                Value::Flag(flag) => u8::from(*flag).to_string(),
                other => other.to_string(),
            };
            format!("--define-macro={name}={value}")
        }));
        compile(&UserSource {
            file: File {
                name: &name,
                text: &self.text,
            },
            headers: &headers,
            options: &options,
            kernel: self.table.kernel.as_deref().unwrap_or(&self.kernel),
        })
    }

    /// A message about a key of the kernel's table.
    pub(crate) fn in_table(&self, key: &str, message: &str) -> String {
        let table = self.path.with_extension("toml");
        format!("{}: {}.{key}: {message}", table.display(), self.kernel)
    }
}

fn read(path: &Path) -> Result<String, KernelError> {
    std::fs::read_to_string(path).map_err(|source| KernelError::Read {
        path: path.to_owned(),
        source,
    })
}
