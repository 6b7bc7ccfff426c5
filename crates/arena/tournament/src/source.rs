//! Kernels that are source files: a folder, changes to it, and what is built from both.

mod builds;
mod change;
mod tree;

use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use builds::{Builds, Fault};
pub use change::{Edit, SourceChange, effect, inside};
pub use tree::Tree;

/// The source of a round's kernels. The kernel in it as it stands is the round's baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceFolder {
    /// The folder. What pitches change is a copy of it.
    pub folder: PathBuf,
    /// The kernel, in a form that `gauntlet compare` takes; its file is relative to the folder.
    pub kernel: String,
    /// A program with its arguments that builds the kernel in the folder, confined; none if nothing is to be built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<String>,
    /// Files and folders in it that no pitch may change. The task's own files and tests are always among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<PathBuf>,
}

/// What may not be changed in a source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Protected(Vec<PathBuf>);

impl Protected {
    /// The paths that a round names, and those of its task, which lie in the folder.
    pub fn new(folder: &Path, named: &[PathBuf], task: &[PathBuf]) -> Self {
        let in_full = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = in_full(folder);
        let of_task = task.iter().filter(|file| file.exists()).filter_map(|file| {
            let file = in_full(file);
            let inside = file.strip_prefix(&folder).ok()?;
            // A task may be the folder itself.
            (inside != Path::new("")).then(|| inside.to_owned())
        });
        let named = named.iter().map(|path| {
            path.components()
                .filter(|part| *part != Component::CurDir)
                .collect()
        });
        let mut paths: Vec<PathBuf> = named.chain(of_task).collect();
        paths.sort();
        paths.dedup();
        Self(paths)
    }

    /// Why a file may not be changed; none if it may.
    pub fn forbids(&self, path: &str) -> Option<String> {
        let file = Path::new(path);
        if self.0.iter().any(|kept| file.starts_with(kept)) {
            return Some(format!(
                "`{path}` is protected: it belongs to the task, or the round keeps it; leave it as it is"
            ));
        }
        let is_test = |part: &str| {
            let stem = part.split('.').next().unwrap_or_default();
            stem.starts_with("test_")
                || stem.ends_with("_test")
                || ["tests", "test", "conftest"].contains(&stem)
        };
        path.split('/')
            .any(is_test)
            .then(|| format!("`{path}` is a test, and a pitch changes no tests"))
    }

    /// The paths, for those who should know them beforehand.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }
}
