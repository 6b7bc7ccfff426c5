//! The table beside a library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_host_native::Argument;
use gauntlet_parameters::ParameterTable;
use gauntlet_task::{Expression, OwnParameters, table_entry};
use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

/// How a function is called.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FunctionTable {
    /// Its arguments, in order; the default order if left out.
    pub arguments: Option<Vec<Argument>>,
    /// What it returns.
    pub returns: Returns,
    /// Where its pointers point.
    pub device: Target,
    /// Macros that can vary, of a function whose source is named.
    pub parameters: BTreeMap<String, ParameterTable>,
    /// Conditions that parameters and sizes must meet.
    pub restrictions: Vec<Expression>,
    /// Options of the compiler, of a function whose source is named; `{NAME}` stands for the value of a parameter.
    pub options: Option<Vec<String>>,
}

/// What a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Returns {
    /// Nothing.
    #[default]
    Void,
    /// 0 if it succeeded, anything else if not.
    Int,
}

/// Where a function's pointers point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Memory of the CPU.
    #[default]
    Cpu,
    /// Memory of a GPU; the function also takes a stream.
    Cuda,
}

/// Why a function cannot be served.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// The library cannot be loaded.
    #[error("{path} cannot be loaded: {message}; name a shared library for this machine with its path")]
    Load {
        /// The library.
        path: PathBuf,
        /// What the dynamic linker said.
        message: String,
    },
    /// The library has no such function.
    #[error(
        "{path} has no function `{function}`; export it with C linkage (`extern \"C\"` in C++); `nm -D {path}` lists what there is"
    )]
    NoFunction {
        /// The library.
        path: PathBuf,
        /// The function.
        function: String,
    },
    /// The table is wrong.
    #[error("{path}: {message}")]
    Table {
        /// The table.
        path: PathBuf,
        /// The error, its place, and the remedy.
        message: String,
    },
    /// There is no GPU to run on.
    #[error("{path}:{function} is for CUDA, and {message}")]
    NoGpu {
        /// The library.
        path: PathBuf,
        /// The function.
        function: String,
        /// The driver's error.
        message: String,
    },
}

impl FunctionTable {
    /// The table of a function: its entry in the file beside the library, or the defaults if there is none.
    ///
    /// # Errors
    /// If the file is malformed.
    pub fn beside(library: &Path, function: &str) -> Result<Self, LibraryError> {
        let path = library.with_extension("toml");
        let error = |message: String| LibraryError::Table {
            path: path.clone(),
            message,
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(other) => return Err(error(format!("it cannot be read: {other}"))),
        };
        let entry = table_entry(&text, function)
            .map_err(|problem| error(problem.to_string().trim_end().to_owned()))?;
        Ok(entry.unwrap_or_default())
    }

    /// The parameters of the function.
    ///
    /// # Errors
    /// If one of them is wrong.
    pub fn own_parameters(&self, source: &Path, function: &str) -> Result<OwnParameters, LibraryError> {
        let owner = format!("{}:{function}", source.display());
        OwnParameters::new(&owner, &self.parameters, &self.restrictions).map_err(|(name, message)| {
            LibraryError::Table {
                path: source.with_extension("toml"),
                message: format!("{function}.parameters.{name}: {message}"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(text: &str) -> Result<FunctionTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libscale.so");
        std::fs::write(library.with_extension("toml"), text).unwrap();
        FunctionTable::beside(&library, "scale").map_err(|error| error.to_string())
    }

    #[test]
    fn a_function_without_an_entry_has_the_defaults() {
        let none = FunctionTable::beside(Path::new("nowhere/libscale.so"), "scale").unwrap();
        assert_eq!(none, FunctionTable::default());
        assert_eq!(
            beside("[other]\nreturns = \"int\"").unwrap(),
            FunctionTable::default()
        );
        let full = beside("[scale]\narguments = [\"x\", \"int rows\"]\nreturns = \"int\"\ndevice = \"cuda\"")
            .unwrap();
        assert_eq!((full.returns, full.device), (Returns::Int, Target::Cuda));
        assert_eq!(full.arguments.unwrap()[1].to_string(), "int rows");
    }

    #[test]
    fn a_wrong_table_is_told_with_its_file_key_and_remedy() {
        let unknown = beside("[scale]\nreturn = \"int\"").unwrap_err();
        assert!(
            unknown.contains("libscale.toml: ") && unknown.contains("unknown field `return`"),
            "{unknown}"
        );
        assert!(
            unknown.contains("line 2") && unknown.contains("`returns`"),
            "{unknown}"
        );
        let expression = beside("[scale]\narguments = [\"x\", \"int (rows\"]").unwrap_err();
        assert!(
            expression.contains("argument `int (rows`: `)` is missing at the end"),
            "{expression}"
        );
    }
}
