//! Tasks: what is to be computed.

use std::fmt;

use gauntlet_parameters::Table;

use crate::{Fault, Sizes, WrittenSizes};

/// What is to be computed, for any sizes.
pub trait Task: fmt::Debug + Send + Sync {
    /// Its name, in kebab case: the key of its sizes in suite files, and its name in records and in the worker protocol.
    fn name(&self) -> &'static str;

    /// What it computes, in a line.
    fn summary(&self) -> &'static str;

    /// The parameters of its built-in kernels.
    fn parameters(&self) -> &'static Table;

    /// The suites that come with it: name and TOML text.
    fn suites(&self) -> &'static [(&'static str, &'static str)];

    /// Reads sizes as suite files write them.
    ///
    /// # Errors
    /// Says what is wrong, and where in the text.
    fn read(&self, written: &WrittenSizes) -> Result<Sizes, Fault>;

    /// Reads sizes as records and the worker protocol carry them: see [`TaskSizes::record`](crate::TaskSizes::record).
    ///
    /// # Errors
    /// Says what is wrong.
    fn open(&self, record: &serde_json::Value) -> Result<Sizes, String>;

    /// Whether sizes given in words on the command line, such as `m=80 n=4096 k=7168`, are this task's, by the names of
    /// the words.
    fn claims(&self, names: &[&str]) -> bool;

    /// Words of the command line as the inline table that a suite file has for them.
    ///
    /// # Errors
    /// Says which word is wrong.
    fn inline_table(&self, words: &[(String, String)]) -> Result<String, String> {
        Ok(crate::words::inline_table(words))
    }
}
