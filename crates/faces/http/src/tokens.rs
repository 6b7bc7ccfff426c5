//! Who may ask for what: tokens, of which only digests are kept.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gauntlet_queue::digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a token's holder may do. Each one includes those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Look.
    Read,
    /// Have kernels judged, which runs code, and give one's own tickets up.
    Submit,
    /// Give up everyone's tickets.
    Admin,
}

impl Scope {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }
}

/// A token, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Token {
    /// Whose it is: the client to whom tries are counted.
    pub name: String,
    /// What it allows.
    pub scope: Scope,
    /// When it was made.
    pub created: Timestamp,
    /// The SHA-256 digest of the token. A token is 256 random bits, which nobody finds by trying, so that a slow hash or a salt
    /// would add nothing; and comparing digests tells a listener nothing of the token.
    digest: String,
}

/// Why a token cannot be made, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The name cannot be one.
    #[error("`{0}` cannot be the name of a token; give 1 to 60 letters, digits, `-`, `_`, `.` or `@`")]
    Name(String),
    /// There is one of this name.
    #[error("there is a token `{0}` already; remove it first, or choose another name")]
    Taken(String),
    /// There is none of this name.
    #[error("there is no token `{0}`; `gauntlet serve token list` lists them")]
    Unknown(String),
    /// The file is not what this program wrote.
    #[error("{}: {why}; move it away, and make the tokens again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}; check that the folder exists and can be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// The tokens of a queue, in the file `tokens.json` of its folder, which its owner alone may read.
#[derive(Debug, Clone)]
pub struct Tokens {
    path: PathBuf,
}

impl Tokens {
    /// The tokens of the queue in a folder.
    pub fn in_folder(queue: &Path) -> Self {
        Self {
            path: queue.join("tokens.json"),
        }
    }

    /// Makes a token and returns it: it cannot be shown again.
    ///
    /// # Errors
    /// If there is one of this name, the name cannot be one, or the file cannot be written.
    pub fn add(&self, name: &str, scope: Scope) -> Result<String, TokenError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
        if name.is_empty() || name.len() > 60 || !name.chars().all(is_plain) {
            return Err(TokenError::Name(name.to_owned()));
        }
        let token = random()?;
        self.change(|tokens| {
            if tokens.iter().any(|known| known.name == name) {
                return Err(TokenError::Taken(name.to_owned()));
            }
            tokens.push(Token {
                name: name.to_owned(),
                scope,
                created: Timestamp::now(),
                digest: digest(token.as_bytes()),
            });
            Ok(())
        })?;
        Ok(token)
    }

    /// Removes a token: from now on it opens nothing.
    ///
    /// # Errors
    /// If there is none of this name, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), TokenError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|known| known.name != name);
            if tokens.len() == before {
                return Err(TokenError::Unknown(name.to_owned()));
            }
            Ok(())
        })
    }

    /// All tokens, the oldest first.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&self.path)(error)),
        };
        serde_json::from_slice(&text).map_err(|error| TokenError::Damaged {
            path: self.path.clone(),
            why: error.to_string(),
        })
    }

    /// What is kept of a token; none if it is not known. The file is read each time, so that a token counts as soon as it is made, and
    /// no longer than until it is removed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn find(&self, token: &str) -> Result<Option<Token>, TokenError> {
        let wanted = digest(token.as_bytes());
        Ok(self.list()?.into_iter().find(|known| known.digest == wanted))
    }

    /// Reads, changes and writes the file, one program at a time.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let above = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(above).map_err(at(above))?;
        let lock = self.path.with_extension("lock");
        let held = File::create(&lock).map_err(at(&lock))?;
        held.lock().map_err(at(&lock))?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        let draft = self.path.with_extension("draft");
        let text = serde_json::to_vec_pretty(&tokens).unwrap_or_default();
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&draft)?;
            // One that was left behind may be open to others.
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&draft, &self.path)
        };
        write().map_err(at(&self.path))
    }
}

/// Where the system gives random bits.
const RANDOM: &str = "/dev/urandom";

/// A token: 256 random bits in hexadecimal digits, after a word by which scanners of secrets know it.
pub fn random() -> Result<String, TokenError> {
    let mut bits = [0; 32];
    File::open(RANDOM)
        .and_then(|mut file| file.read_exact(&mut bits))
        .map_err(at(Path::new(RANDOM)))?;
    let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("gauntlet_{digits}"))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> TokenError {
    let path = path.to_owned();
    |source| TokenError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_from_its_making_to_its_removal_and_is_kept_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::in_folder(folder.path());
        let [alice, bob] = ["alice", "bob"].map(|name| tokens.add(name, Scope::Submit).unwrap());
        assert_ne!(alice, bob);
        assert_eq!(alice.len(), "gauntlet_".len() + 64);
        assert_eq!(tokens.find(&alice).unwrap().unwrap().name, "alice");
        assert!(tokens.find("").unwrap().is_none());
        assert!(tokens.find(&alice[..alice.len() - 1]).unwrap().is_none());
        let path = folder.path().join("tokens.json");
        assert!(!fs::read_to_string(&path).unwrap().contains(&alice[9..]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(
            tokens.add("bob", Scope::Read),
            Err(TokenError::Taken(_))
        ));
        assert!(matches!(
            tokens.add("b\nb", Scope::Read),
            Err(TokenError::Name(_))
        ));
        tokens.remove("alice").unwrap();
        assert!(tokens.find(&alice).unwrap().is_none());
        assert!(matches!(tokens.remove("alice"), Err(TokenError::Unknown(_))));
        fs::write(&path, "[{}]").unwrap();
        assert!(matches!(tokens.find(&bob), Err(TokenError::Damaged { .. })));
    }

    #[test]
    fn a_scope_includes_those_before() {
        assert!(Scope::Admin > Scope::Submit && Scope::Submit > Scope::Read);
    }
}
