//! Tasks: computations for any sizes.

use std::fmt;

use gauntlet_parameters::Table;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::{Fault, Sizes, WrittenSizes};

/// A computation, for any sizes.
pub trait Task: fmt::Debug + Send + Sync {
    /// Its name, in kebab case: the key of its sizes in suite files, and its name in records and in the worker protocol.
    fn name(&self) -> &str;

    /// A one-line description of the computation.
    fn summary(&self) -> &str;

    /// The parameters of its built-in kernels.
    fn parameters(&self) -> &Table;

    /// Its built-in suites: name and TOML text.
    fn suites(&self) -> &'static [(&'static str, &'static str)];

    /// Reads sizes as suite files write them.
    ///
    /// # Errors
    /// The error, and its place in the text.
    fn read(&self, written: &WrittenSizes) -> Result<Sizes, Fault>;

    /// The JSON Schema of sizes as suite files write them: any table, for a task that states no form.
    fn written_schema(&self, _: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }

    /// Reads sizes as records and the worker protocol carry them: see [`TaskSizes::record`](crate::TaskSizes::record).
    ///
    /// # Errors
    /// The error.
    fn open(&self, record: &serde_json::Value) -> Result<Sizes, String>;

    /// Whether sizes given in words on the command line, such as `m=80 n=4096 k=7168`, belong to this task, judged by
    /// the names of the words.
    fn claims(&self, names: &[&str]) -> bool;

    /// Converts words of the command line to the inline table of a suite file.
    ///
    /// # Errors
    /// Says which word is wrong.
    fn inline_table(&self, words: &[(String, String)]) -> Result<String, String> {
        Ok(crate::words::inline_table(words))
    }
}
