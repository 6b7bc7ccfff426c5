//! The content of a source folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Most files of a source, and most bytes: more is a folder named by mistake.
const MAX_FILES: usize = 5000;
const MAX_BYTES: usize = 64 << 20;

/// What lies in source folders and is no source.
const LEFT_OUT: [&str; 3] = [".git", "__pycache__", ".pytest_cache"];

/// All files of a folder, by their paths in it, with `/` between parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// Reads a folder.
    ///
    /// # Errors
    /// If it cannot be read, holds a link or another file that is not plain, or is too large.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut bytes = 0;
        tree.add(folder, "", &mut bytes)?;
        Ok(tree)
    }

    fn add(&mut self, folder: &Path, prefix: &str, bytes: &mut usize) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| {
                io::Error::other(format!("a name in `{prefix}` is not UTF-8: {}", name.display()))
            })?;
            if LEFT_OUT.contains(&name) {
                continue;
            }
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.add(&entry.path(), &format!("{path}/"), bytes)?;
            } else if kind.is_file() {
                // Its length first: a file may be larger than memory.
                let length = usize::try_from(entry.metadata()?.len()).unwrap_or(usize::MAX);
                *bytes = bytes.saturating_add(length);
                if *bytes <= MAX_BYTES {
                    self.files.insert(path, fs::read(entry.path())?);
                }
            } else {
                return Err(io::Error::other(format!("`{path}` is a link or no plain file")));
            }
            if self.files.len() > MAX_FILES || *bytes > MAX_BYTES {
                return Err(io::Error::other(format!(
                    "it holds more than {MAX_FILES} files or {} MiB",
                    MAX_BYTES >> 20
                )));
            }
        }
        Ok(())
    }

    /// Writes its files into a folder.
    ///
    /// # Errors
    /// If one of them cannot be written.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        for (path, content) in &self.files {
            let file = folder.join(path);
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&file, content)?;
            // Most of what is no text was made by a build, which must not take it for newer than the texts.
            if std::str::from_utf8(content).is_err() {
                File::options()
                    .write(true)
                    .open(file)?
                    .set_modified(SystemTime::UNIX_EPOCH)?;
            }
        }
        Ok(())
    }

    /// A digest of all paths and contents.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (path, content) in &self.files {
            for part in [path.as_bytes(), content] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The same for all trees that differ in blank lines and blanks at the end of lines only.
    pub fn effect(&self) -> String {
        let plain = |content: &Vec<u8>| match std::str::from_utf8(content) {
            Ok(text) => {
                let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
                lines.collect::<Vec<_>>().join("\n").into_bytes()
            }
            Err(_) => content.clone(),
        };
        let files = self
            .files
            .iter()
            .map(|(path, content)| (path.clone(), plain(content)));
        Self {
            files: files.collect(),
        }
        .digest()
    }

    /// The text of a file; none if there is no such file, or it is no text.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// The paths and texts of all files that are texts.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, content)| Some((path.as_str(), std::str::from_utf8(content).ok()?)))
    }

    /// Puts a text in the place of a file, or adds it.
    pub fn put(&mut self, path: &str, text: String) {
        self.files.insert(path.to_owned(), text.into_bytes());
    }

    /// Takes a file out.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// A file that other paths take for a folder.
    pub fn in_the_way(&self) -> Option<&str> {
        let is_in_the_way = |path: &&String| {
            let inside = format!("{path}/");
            self.files
                .range(inside.clone()..)
                .next()
                .is_some_and(|(next, _)| next.starts_with(&inside))
        };
        self.files.keys().find(is_in_the_way).map(String::as_str)
    }

    /// Whether there is a file of this path.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// The paths whose files differ in the other tree, or are in one of the two only.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let mut paths: Vec<&String> = self.files.keys().chain(other.files.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        let differs = |path: &&&String| self.files.get(**path) != other.files.get(**path);
        paths.iter().filter(differs).map(|path| (*path).clone()).collect()
    }

    /// The tree with this file alone.
    pub fn only(&self, path: &str) -> Self {
        let file = self.files.get_key_value(path);
        Self {
            files: file
                .map(|(path, content)| (path.clone(), content.clone()))
                .into_iter()
                .collect(),
        }
    }

    /// The unified diff that makes the other tree of this one, as far as files are texts.
    pub fn diff(&self, other: &Self) -> String {
        let mut diff = String::new();
        for path in self.differing(other) {
            let [before, after] = [self, other].map(|tree| tree.text(&path));
            let name = |side: &str, text: Option<&str>| match text {
                Some(_) => format!("{side}/{path}"),
                None => "/dev/null".to_owned(),
            };
            // What is no text on either side is made by a build.
            let header = match (before, after) {
                (None, None) => continue,
                (None, Some(_)) => "new file mode 100644\n",
                (Some(_), None) => "deleted file mode 100644\n",
                (Some(_), Some(_)) => "",
            };
            diff += &format!("diff --git a/{path} b/{path}\n{header}");
            if before.unwrap_or_default() == after.unwrap_or_default() {
                continue;
            }
            let mut options = diffy::DiffOptions::new();
            options.set_original_filename(name("a", before));
            options.set_modified_filename(name("b", after));
            let patch = options.create_patch(before.unwrap_or_default(), after.unwrap_or_default());
            diff += &patch.to_string();
        }
        diff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_takes_nothing_that_it_made_before_for_newer_than_its_source() {
        let before = tempfile::tempdir().unwrap();
        fs::write(before.path().join("a.c"), "int a;").unwrap();
        fs::write(before.path().join("libz.so"), [0x7f, 0xff]).unwrap();
        let tree = Tree::read(before.path()).unwrap();
        let after = tempfile::tempdir().unwrap();
        tree.write_to(after.path()).unwrap();
        let modified = |name: &str| fs::metadata(after.path().join(name)).unwrap().modified().unwrap();
        assert!(modified("libz.so") < modified("a.c"));
        assert_eq!(Tree::read(after.path()).unwrap(), tree);
    }

    #[test]
    fn links_are_refused_and_blanks_at_the_ends_of_lines_change_no_effect() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("a.py")).unwrap();
        let said = Tree::read(folder.path()).unwrap_err().to_string();
        assert!(said.contains("a.py"), "{said}");
        let of = |text: &str| {
            let mut tree = Tree::default();
            tree.put("a.py", text.to_owned());
            tree.effect()
        };
        assert_eq!(of("a = 1  \n\nb = 2"), of("a = 1\nb = 2\n"));
        assert_ne!(of("a = 1\nb = 2"), of("a = 1\nb = 3"));
    }
}
