//! Compiled kernels on disk. Compiling takes seconds, and each worker is a process of its own.
//!
//! An entry is written to a temporary file and renamed, so no reader sees half of one. It contains its own digest, so a
//! damaged entry is detected and compiled again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Report, caches};

/// Names the cache folder; the default is `gauntlet/cubins` in the user's cache folder.
pub const CACHE_VARIABLE: &str = "GAUNTLET_CUBIN_CACHE";

/// The first line of an entry; its number changes with the layout.
const MAGIC: &str = "gauntlet-cubin-1";

/// A folder of cache entries.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

/// The contents of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What the compiler said.
    pub report: Report,
    /// Machine code.
    pub cubin: Vec<u8>,
}

impl Cache {
    /// The user's cache; `None` if the system names no folder for it.
    pub fn of_user() -> Option<Self> {
        let named = std::env::var_os(CACHE_VARIABLE).map(PathBuf::from);
        named.or_else(|| Some(caches()?.join("cubins"))).map(Self)
    }

    /// A cache in this folder, which need not exist.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The entry, if it exists and is undamaged.
    pub fn read(&self, key: &blake3::Hash) -> Option<Entry> {
        decode(&fs::read(self.path(key)).ok()?)
    }

    /// Writes an entry atomically.
    ///
    /// # Errors
    /// Says which file cannot be written, and why.
    pub fn write(&self, key: &blake3::Hash, entry: &Entry) -> Result<(), String> {
        let path = self.path(key);
        let written = fs::create_dir_all(&self.0).and_then(|()| {
            let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
            file.write_all(&encode(entry)?)?;
            file.persist(&path)?;
            Ok(())
        });
        written.map_err(|error| {
            format!(
                "{} cannot be kept ({error}), so it will be compiled again; set {CACHE_VARIABLE} to a folder that can be \
                 written",
                path.display()
            )
        })
    }

    fn path(&self, key: &blake3::Hash) -> PathBuf {
        self.0.join(format!("{}.cubin", key.to_hex()))
    }
}

fn encode(entry: &Entry) -> std::io::Result<Vec<u8>> {
    let mut body = serde_json::to_vec(&entry.report)?;
    body.push(b'\n');
    body.extend_from_slice(&entry.cubin);
    let mut bytes = format!("{MAGIC}\n{}\n", blake3::hash(&body).to_hex()).into_bytes();
    bytes.append(&mut body);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Option<Entry> {
    let body = bytes.strip_prefix(MAGIC.as_bytes())?.strip_prefix(b"\n")?;
    let (digest, body) = split_line(body)?;
    if digest != blake3::hash(body).to_hex().as_bytes() {
        return None;
    }
    let (report, cubin) = split_line(body)?;
    Some(Entry {
        report: serde_json::from_slice(report).ok()?,
        cubin: cubin.to_vec(),
    })
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(cubin: Vec<u8>) -> Entry {
        Entry {
            report: Report {
                resources: [("rows".to_owned(), super::super::KernelResources::default())].into(),
                warnings: vec!["two\nlines".to_owned()],
                log: "log\n".to_owned(),
                entry: None,
            },
            cubin,
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(cubin in prop::collection::vec(any::<u8>(), 0..200)) {
            let entry = entry(cubin);
            prop_assert_eq!(decode(&encode(&entry).unwrap()), Some(entry));
        }

        #[test]
        fn damage_is_noticed(
            cubin in prop::collection::vec(any::<u8>(), 0..50),
            place in any::<prop::sample::Index>(),
            change in 1_u8..,
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = encode(&entry(cubin)).unwrap();
            let mut changed = whole.clone();
            *place.get_mut(&mut changed) ^= change;
            prop_assert_eq!(decode(&changed), None);
            prop_assert_eq!(decode(&whole[..cut.index(whole.len())]), None);
        }
    }

    #[test]
    fn a_damaged_entry_is_as_none_and_can_be_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("not/yet/there"));
        let key = blake3::hash(b"key");
        assert_eq!(cache.read(&key), None);
        let entry = entry(vec![1, 2, 3]);
        cache.write(&key, &entry).unwrap();
        assert_eq!(cache.read(&key).as_ref(), Some(&entry));
        fs::write(cache.path(&key), "rubbish").unwrap();
        assert_eq!(cache.read(&key), None);
        cache.write(&key, &entry).unwrap();
        assert_eq!(cache.read(&key), Some(entry));
        let left = fs::read_dir(&cache.0).unwrap().count();
        assert_eq!(left, 1, "no temporary file stays behind");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_with_the_remedy() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::at(&file.path().join("below-a-file"));
        let warning = cache.write(&blake3::hash(b""), &entry(Vec::new())).unwrap_err();
        assert!(warning.contains(CACHE_VARIABLE), "{warning}");
    }
}
