//! Headers of a source. Those that lie in folders of the user are given to the compiler in memory, so that they count
//! in the key of the cache; those of the toolkit are found by the compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_cuda::compiler::File;

use crate::error::KernelError;

/// A header with the name by which it is included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    name: String,
    text: String,
}

impl Header {
    pub fn file(&self) -> File<'_> {
        File {
            name: &self.name,
            text: &self.text,
        }
    }
}

/// The headers that a text includes, and those that they include, as far as the folders have them; the first folder
/// that has a header gives it.
pub(crate) fn included(text: &str, folders: &[PathBuf]) -> Result<Vec<Header>, KernelError> {
    let mut found = BTreeMap::new();
    let mut waiting = names(text);
    while let Some(name) = waiting.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let Some(path) = folders
            .iter()
            .map(|folder| folder.join(&name))
            .find(|path| path.is_file())
        else {
            continue;
        };
        let text = std::fs::read_to_string(&path).map_err(|source| KernelError::Read { path, source })?;
        waiting.extend(names(&text));
        found.insert(name, text);
    }
    Ok(found
        .into_iter()
        .map(|(name, text)| Header { name, text })
        .collect())
}

/// The names of the lines `#include "…"` and `#include <…>`.
fn names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let end = match rest.chars().next()? {
            '"' => '"',
            '<' => '>',
            _ => return None,
        };
        Some(rest[1..].split(end).next()?.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// Options for the toolkit's folders of headers, such as that of `cuda_fp16.h`, as far as there are any.
pub(crate) fn folders_of_toolkit() -> Vec<String> {
    let named = ["GAUNTLET_CUDA_INCLUDE", "CUDA_HOME", "CUDA_PATH"].map(std::env::var_os);
    let roots = named.into_iter().flatten().map(PathBuf::from);
    roots
        .chain([PathBuf::from("/usr/local/cuda")])
        .flat_map(|root| [root.join("include"), root])
        .filter(|folder| folder.join("cuda_fp16.h").is_file())
        .take(1)
        .map(|folder| format!("--include-path={}", Path::new(&folder).display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_followed_as_far_as_the_folders_have_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.cuh"), "# include <b.cuh>\nint a;").unwrap();
        std::fs::write(folder.path().join("b.cuh"), "#include \"a.cuh\"\n").unwrap();
        let text = "#include \"a.cuh\"\n  #include <cuda_fp16.h>\n// include \"b\"\n#include MACRO\n";
        let found = included(text, &[PathBuf::from("nowhere"), folder.path().to_owned()]).unwrap();
        let names: Vec<_> = found.iter().map(|header| header.file().name).collect();
        assert_eq!(names, ["a.cuh", "b.cuh"]);
    }
}
