//! Fuzz targets: each parser of users' files, arguments and programs' messages reads random and damaged bytes.
//!
//! A [`Target`] reads bytes as the rest of Gauntlet reads a file, an argument or a message. Whatever they are, it must return: no
//! panic, no endless loop, no memory without bound. `cargo test -p gauntlet-fuzz` reads the examples of each target (`seeds`), inputs that once
//! failed (`found`), and some thousand changed examples. `scripts/fuzz` searches on with libFuzzer, guided by coverage.
//!
//! ```
//! let target = gauntlet_fuzz::target("expression").unwrap();
//! assert!((target.read)(b"ceil_div(rows, 4) * 2"));
//! assert!(!(target.read)(b"ceil_div(rows"));
//! ```

mod targets;

use std::path::{Path, PathBuf};

pub use targets::TARGETS;

/// A parser that bytes are given to.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, also that of its folders in `seeds` and `found`.
    pub name: &'static str,
    /// Reads the bytes, and says whether it took them.
    pub read: fn(&[u8]) -> bool,
    /// Files of the project that are examples too, by their paths in the repository.
    pub examples: &'static [&'static str],
}

/// The target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Files with inputs that the target takes.
    pub fn seeds(&self) -> Vec<PathBuf> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let examples = self.examples.iter().map(|file| own.join("../../..").join(file));
        examples
            .chain(files(&own.join("seeds").join(self.name)))
            .collect()
    }

    /// Files with inputs that once failed.
    pub fn found(&self) -> Vec<PathBuf> {
        files(
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("found")
                .join(self.name),
        )
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}
