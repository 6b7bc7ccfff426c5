//! The files that judgements depend on, kept beside the ledger by their digests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Larger files are known by their digests alone.
const MAX_BYTES: u64 = 64 << 20;

/// The contents of files, each under its BLAKE3 digest. A file is never changed, so that programs may share the folder.
#[derive(Debug, Clone)]
pub struct Sources {
    folder: PathBuf,
}

impl Sources {
    /// Those beside a ledger: in the folder `LEDGER.sources`.
    pub fn beside(ledger: &Path) -> Self {
        let mut folder = OsString::from(ledger);
        folder.push(".sources");
        Self {
            folder: folder.into(),
        }
    }

    /// Keeps the contents of these files, unless they are there. A file that is too large, gone, or no longer what its digest says,
    /// is left out.
    ///
    /// # Errors
    /// If a file cannot be read, or the folder cannot be written.
    pub fn keep(&self, files: &BTreeMap<String, String>) -> io::Result<()> {
        for (path, digest) in files {
            // What has gone meanwhile is no longer what its digest says either.
            let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
            if is_small && !self.place(digest).exists() {
                self.put(digest, &fs::read(path)?)?;
            }
        }
        Ok(())
    }

    /// The contents with this digest; none if they are not here, or damaged.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn read(&self, digest: &str) -> io::Result<Option<Vec<u8>>> {
        // It may be another ledger's word, and becomes part of a path.
        if digest.is_empty() || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        match fs::read(self.place(digest)) {
            Ok(contents) => Ok(has_digest(&contents, digest).then_some(contents)),
            Err(absent) if absent.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds everything that another ledger has kept.
    ///
    /// # Errors
    /// If it cannot be read, or not be written here.
    pub fn add(&self, other: &Self) -> io::Result<()> {
        let entries = match fs::read_dir(&other.folder) {
            Err(absent) if absent.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let digest = entry?.file_name().to_string_lossy().into_owned();
            if self.place(&digest).exists() {
                continue;
            }
            if let Some(contents) = other.read(&digest)? {
                self.put(&digest, &contents)?;
            }
        }
        Ok(())
    }

    fn place(&self, digest: &str) -> PathBuf {
        self.folder.join(digest)
    }

    /// Moves the contents into place whole, so that a program that is killed leaves no part of them there.
    fn put(&self, digest: &str, contents: &[u8]) -> io::Result<()> {
        if !has_digest(contents, digest) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let mut draft = tempfile::Builder::new()
            .prefix(".draft-")
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(&self.folder)?;
        draft.write_all(contents)?;
        draft.as_file().sync_all()?;
        draft.persist(self.place(digest)).map_err(|error| error.error)?;
        Ok(())
    }
}

fn has_digest(contents: &[u8], digest: &str) -> bool {
    blake3::hash(contents).to_hex().as_str() == digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_back_by_their_digest_and_damaged_ones_do_not() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("kernel.py");
        fs::write(&file, "def f(): pass").unwrap();
        let digest = blake3::hash(b"def f(): pass").to_hex().to_string();
        let stale = "0".repeat(64);
        let name = file.display().to_string();
        let (one, other) = (
            Sources::beside(&place.path().join("one.sqlite")),
            Sources::beside(&place.path().join("other.sqlite")),
        );
        one.keep(&BTreeMap::from([(name.clone(), digest.clone())]))
            .unwrap();
        one.keep(&BTreeMap::from([
            (name, stale.clone()),
            ("gone.py".to_owned(), stale.clone()),
        ]))
        .unwrap();
        assert_eq!(one.read(&digest).unwrap().unwrap(), b"def f(): pass");
        assert_eq!(one.read(&stale).unwrap(), None, "the file had changed");
        other.add(&one).unwrap();
        fs::write(one.place(&digest), "def f(): cheat()").unwrap();
        assert_eq!(one.read(&digest).unwrap(), None);
        assert_eq!(other.read(&digest).unwrap().unwrap(), b"def f(): pass");
    }
}
