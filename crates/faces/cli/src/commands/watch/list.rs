//! The list of what is watched.

use std::fs;
use std::path::Path;

use clap::Parser;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{Setup, WatchedSetup};
use crate::error::CliError;

/// The file that `gauntlet watch` reads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WatchList {
    /// The kernels.
    pub watched: Vec<Watched>,
}

/// A kernel that is watched.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Watched {
    /// The kernel in a file, as it is named at the root of the repository, such as `libnorm.so:norm`.
    pub kernel: String,
    /// The task: a file as it is now in the folder where `gauntlet watch` runs, and the same one for all commits, or a name.
    pub task: String,
    /// Only these benchmark cases.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Time for each comparison, such as `60s`; two minutes unless given.
    #[serde(default)]
    pub budget: Option<String>,
    /// What builds a commit: a command of the shell, run at the root of a checkout of it.
    #[serde(default)]
    pub build: Option<String>,
    /// Whether the kernels are one's own, and not watched for cheats.
    #[serde(default)]
    pub quick: bool,
}

impl WatchList {
    /// The list in a file.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string());
        let read = text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()));
        let list: Self = read.map_err(|error| {
            CliError::bad_input(
                format!("{}: {error}", path.display()),
                "docs/guide/history.md has an example of the list",
            )
        })?;
        if list.watched.is_empty() {
            return Err(CliError::bad_input(
                format!("{} lists nothing to watch", path.display()),
                "docs/guide/history.md has an example of the list",
            ));
        }
        Ok(list)
    }
}

impl Watched {
    /// How it is compared.
    pub fn setup(&self) -> Result<Setup, CliError> {
        let read = WatchedSetup::try_parse_from(self.words());
        read.map(|read| read.setup).map_err(|error| {
            CliError::bad_input(format!("{}: {error}", self.kernel), "mend the entry in the list")
        })
    }

    /// How it is compared, in the words of `compare`.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["compare", "--task", &self.task];
        words.extend(self.cases.iter().flat_map(|case| ["--case", case]));
        words.extend(self.budget.iter().flat_map(|budget| ["--budget", budget]));
        words.extend(self.quick.then_some("--quick"));
        words.into_iter().map(str::to_owned).collect()
    }
}
