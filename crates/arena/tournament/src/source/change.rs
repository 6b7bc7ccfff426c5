//! A change to a source, and its application.

use std::collections::BTreeMap;

use diffy::patch_set::{FileOperation, ParseOptions, PatchSet};
use gauntlet_parameters::Parameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Protected, Tree};
use crate::round::digest_of;

/// A change to a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SourceChange {
    /// What is done to the files.
    #[serde(flatten)]
    pub edit: Edit,
    /// The kernel, if the function has another name then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// What is done to the files of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Edit {
    /// A unified diff, of one or several files.
    Patch(String),
    /// New texts of whole files, by path.
    Files(BTreeMap<String, String>),
}

/// The longest change, in bytes: more is no kernel, and all of it goes into the ledger.
const MAX_LENGTH: usize = 1 << 20;

/// The longest path in a source, in bytes: what every file system takes as a name.
const MAX_PATH: usize = 255;

/// The same for sources that lead to the same kernel with the same parameters.
pub fn effect(tree: &Tree, kernel: &str, schedule: &Parameters) -> String {
    digest_of(&[&tree.effect(), kernel, &format!("{schedule:?}")])
}

impl SourceChange {
    /// The same for changes that do the same, whatever they are applied to.
    pub fn identity(&self, schedule: &Parameters) -> String {
        let kernel = self.kernel.clone().unwrap_or_default();
        let digest = digest_of(&[self.edit.lines(), kernel, format!("{schedule:?}")]);
        format!("source {}", &digest[..16])
    }
}

impl Edit {
    /// What is changed where: the files, with the lines that come and go and those around them, wherever in the file they stand.
    pub fn lines(&self) -> String {
        match self {
            Self::Files(files) => files
                .iter()
                .map(|(path, text)| format!("{path}\n{text}\n"))
                .collect(),
            Self::Patch(text) => {
                let is_place = |line: &&str| line.starts_with("@@") || line.starts_with("index ");
                let lines = text.lines().filter(|line| !is_place(line)).map(str::trim_end);
                let lines: Vec<_> = lines.filter(|line| line.len() > 1).collect();
                lines.join("\n")
            }
        }
    }

    /// The source after the change.
    ///
    /// # Errors
    /// Why it cannot be made: what does not apply, with file, hunk and line; a path outside the source; a protected file.
    pub fn applied(&self, tree: &Tree, protected: &Protected) -> Result<Tree, String> {
        let mut changed = tree.clone();
        let length = match self {
            Self::Files(files) => files.values().map(String::len).sum(),
            Self::Patch(text) => text.len(),
        };
        if length > MAX_LENGTH {
            return Err(format!(
                "the change has {length} bytes, and may have {MAX_LENGTH}"
            ));
        }
        match self {
            Self::Files(files) => {
                // What is handed back as it was is no change, whatever it is.
                for (path, text) in files
                    .iter()
                    .filter(|(path, text)| tree.text(path) != Some(text.as_str()))
                {
                    changed.put(&changeable(path, protected)?, text.clone());
                }
            }
            Self::Patch(text) => apply(text, &mut changed, protected)?,
        }
        match changed.in_the_way() {
            Some(path) => Err(format!("`{path}` is a file and would have to be a folder too")),
            None => Ok(changed),
        }
    }
}

/// A path in the source, in its shortest form.
///
/// # Errors
/// If it leads out of the source, or is no path of a file.
pub fn inside(path: &str) -> Result<String, String> {
    let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    let is_strange = |part: &&str| part.is_empty() || *part == ".." || part.contains(['\0', '\\']);
    if parts.is_empty() || path.len() > MAX_PATH || parts.iter().any(is_strange) {
        return Err(format!(
            "`{path}` is not a file inside the source; paths are relative to its folder and have no `..`"
        ));
    }
    Ok(parts.join("/"))
}

/// The same of a file that may be changed.
fn changeable(path: &str, protected: &Protected) -> Result<String, String> {
    let path = inside(path)?;
    match protected.forbids(&path) {
        Some(why) => Err(why),
        None => Ok(path),
    }
}

fn apply(text: &str, tree: &mut Tree, protected: &Protected) -> Result<(), String> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let is_of_git = text.lines().any(|line| line.starts_with("diff --git "));
    let options = if is_of_git {
        ParseOptions::gitdiff()
    } else {
        ParseOptions::unidiff()
    };
    for file in PatchSet::parse(text, options) {
        let file = file.map_err(|error| format!("the patch is no unified diff: {error}"))?;
        let (from, to) = match file.operation() {
            FileOperation::Create(path) => (None, Some(path.as_ref())),
            FileOperation::Delete(path) => (Some(path.as_ref()), None),
            FileOperation::Modify { original, modified } => {
                (Some(original.as_ref()), Some(modified.as_ref()))
            }
            FileOperation::Rename { from, to } | FileOperation::Copy { from, to } => {
                (Some(from.as_ref()), Some(to.as_ref()))
            }
        };
        let renames = file.operation().is_rename();
        let at = |path: Option<&str>, side: &str| {
            path.map(|path| changeable(path.strip_prefix(side).unwrap_or(path), protected))
                .transpose()
        };
        let (from, to) = (at(from, "a/")?, at(to, "b/")?);
        let named = to.as_ref().or(from.as_ref()).cloned().unwrap_or_default();
        let patch = file
            .patch()
            .as_text()
            .ok_or_else(|| format!("the patch of {named} is binary, and a source is text"))?;
        let before = match &from {
            None if tree.has(&named) => return Err(format!("the patch makes {named}, which exists")),
            None => "",
            Some(from) => tree.text(from).ok_or_else(|| {
                format!("the patch changes {from}, and there is no such text in the source")
            })?,
        };
        let after = diffy::apply(before, patch).map_err(|error| refused(&named, patch, &error))?;
        match (from, to) {
            (Some(from), None) => tree.remove(&from),
            (from, Some(to)) => {
                if let Some(from) = from.filter(|from| renames && *from != to) {
                    tree.remove(&from);
                }
                tree.put(&to, after);
            }
            (None, None) => {}
        }
    }
    Ok(())
}

/// Which hunk of a patch does not apply, and where it would.
fn refused(file: &str, patch: &diffy::Patch<'_, str>, error: &diffy::ApplyError) -> String {
    let said = error.to_string();
    let number = said
        .rsplit('#')
        .next()
        .and_then(|number| number.parse::<usize>().ok());
    let hunk = number.and_then(|number| Some((number, patch.hunks().get(number.checked_sub(1)?)?)));
    match hunk {
        Some((number, hunk)) => format!(
            "hunk {number} of the patch does not apply to {file} at line {}: the lines there are others",
            hunk.old_range().start()
        ),
        None => format!("the patch does not apply to {file}: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.put("kernel.py", "a = 1\nb = 2\nc = 3\n".to_owned());
        tree.put("task.py", "t = 1\n".to_owned());
        tree
    }

    fn protected() -> Protected {
        Protected::new("/x".as_ref(), &[PathBuf::from("task.py")], &[])
    }

    fn applied(edit: Edit) -> Result<Tree, String> {
        edit.applied(&tree(), &protected())
    }

    fn patch(text: &str) -> Edit {
        Edit::Patch(text.to_owned())
    }

    #[test]
    fn a_diff_of_two_trees_makes_the_one_of_the_other() {
        let mut other = tree();
        other.put("kernel.py", "a = 1\nb = 22\nc = 3\n".to_owned());
        other.put("more/helper.py", "h = 1\n".to_owned());
        let diff = tree().diff(&other);
        assert_eq!(applied(patch(&diff)), Ok(other.clone()), "{diff}");
        let back = other.diff(&tree());
        assert_eq!(patch(&back).applied(&other, &protected()), Ok(tree()), "{back}");
        // Empty files, and one that is no text, which is left out.
        other.put("more/__init__.py", String::new());
        let diff = tree().diff(&other);
        assert_eq!(applied(patch(&diff)), Ok(other.clone()), "{diff}");
    }

    #[test]
    fn what_does_not_apply_is_named_with_hunk_and_line() {
        let text = "--- a/kernel.py\n+++ b/kernel.py\n@@ -1,1 +1,1 @@\n-a = 1\n+a = 5\n@@ -3,1 +3,1 @@\n-c = 4\n+c = 5\n";
        let said = applied(patch(text)).unwrap_err();
        assert!(
            said.contains("hunk 2") && said.contains("kernel.py at line 3"),
            "{said}"
        );
        let said = applied(patch("--- a/none.py\n+++ b/none.py\n@@ -1 +1 @@\n-a\n+b\n")).unwrap_err();
        assert!(said.contains("none.py"), "{said}");
        assert!(applied(patch("what is this")).is_err());
    }

    #[test]
    fn nothing_outside_the_source_and_nothing_protected_is_changed() {
        for (path, words) in [
            ("../task.py", "not a file inside"),
            ("/etc/passwd", "not a file inside"),
            ("a/../../b.py", "not a file inside"),
            ("./task.py", "protected"),
            ("tests/deep/x.py", "a test"),
            ("test_kernel.py", "a test"),
            ("", "not a file inside"),
            ("kernel.py/deeper", "would have to be a folder"),
        ] {
            let files = BTreeMap::from([(path.to_owned(), String::new())]);
            let said = applied(Edit::Files(files)).unwrap_err();
            assert!(said.contains(words), "{path}: {said}");
        }
        for path in ["../../etc/passwd", "task.py"] {
            let text = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-t = 1\n+t = 2\n");
            assert!(applied(patch(&text)).is_err(), "{path}");
        }
        let ok = BTreeMap::from([("./kernel.py".to_owned(), "x".to_owned())]);
        assert_eq!(applied(Edit::Files(ok)).unwrap().text("kernel.py"), Some("x"));
    }
}
