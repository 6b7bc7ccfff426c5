//! Contents of files by their digest.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

use crate::error::QueueError;

/// A folder of contents, each in a file that is named by its SHA-256 digest.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    /// The contents in a folder, which is made when something is first put there.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Stores contents and returns their digest. What is there already is not written again.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&self, contents: &[u8]) -> Result<String, QueueError> {
        let digest = digest(contents);
        let place = self.place(&digest);
        if self.get(&digest, "").is_ok() {
            return Ok(digest);
        }
        fs::create_dir_all(&self.folder).map_err(QueueError::at(&self.folder))?;
        static DRAFTS: AtomicUsize = AtomicUsize::new(0);
        let draft = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let beside = self
            .folder
            .join(format!(".{digest}.{}.{draft}", std::process::id()));
        let write = || {
            let mut file = File::create(&beside)?;
            file.write_all(contents)?;
            file.sync_all()?;
            fs::rename(&beside, &place)
        };
        write().map_err(QueueError::at(&place))?;
        Ok(digest)
    }

    /// The contents that a digest names; `name` is the file's name in messages.
    ///
    /// # Errors
    /// If they are not there, or are not those that the digest names.
    pub fn get(&self, digest_of_it: &str, name: &str) -> Result<Vec<u8>, QueueError> {
        let missing = || QueueError::NoBlob {
            digest: digest_of_it.to_owned(),
            name: name.to_owned(),
            folder: self.folder.clone(),
        };
        // A digest comes from a ticket, and names no other file.
        if digest_of_it.len() != 64 || !digest_of_it.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(missing());
        }
        let contents = fs::read(self.place(digest_of_it)).map_err(|_| missing())?;
        if digest(&contents) == digest_of_it {
            Ok(contents)
        } else {
            Err(missing())
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn place(&self, digest: &str) -> PathBuf {
        self.folder.join(digest)
    }
}

/// The SHA-256 digest of contents, in hexadecimal digits.
pub fn digest(contents: &[u8]) -> String {
    let digits = Sha256::digest(contents);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_found_by_their_digest_only_while_they_are_what_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::in_folder(folder.path().join("blobs"));
        let digest = blobs.put(b"abc").unwrap();
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            digest,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(blobs.put(b"abc").unwrap(), digest);
        assert_eq!(blobs.get(&digest, "a.py").unwrap(), b"abc");
        fs::write(blobs.folder().join(&digest), "abd").unwrap();
        let error = blobs.get(&digest, "a.py").unwrap_err().to_string();
        assert!(error.contains("a.py"), "{error}");
        assert!(blobs.get("../../etc/passwd", "a.py").is_err());
    }
}
