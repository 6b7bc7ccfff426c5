//! What git says of a checkout.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gauntlet_judge::ledger::Commit;

/// A command of git that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It does not start.
    #[error("`git` does not start: {0}; install git")]
    Missing(std::io::Error),
    /// It says no.
    #[error("`git {command}` in {}: {said}", place.display())]
    Refused {
        /// The words of the command.
        command: String,
        /// Where it ran.
        place: PathBuf,
        /// Its message.
        said: String,
    },
    /// GOOD is not an ancestor of BAD on the line of first parents.
    #[error(
        "{good} is not before {bad} on its line of first parents, so that no row of commits leads from one to the other"
    )]
    Apart {
        /// The one that should come first.
        good: String,
        /// The other one.
        bad: String,
    },
}

/// Variables by which git would look at another repository than the one around a folder, as in its hooks.
const ELSEWHERE: [&str; 5] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
];

/// Runs git in a folder; returns what it prints, without the end of the last line.
pub(crate) fn git<W: AsRef<OsStr>>(place: &Path, words: &[W]) -> Result<String, GitError> {
    let mut command = Command::new("git");
    for variable in ELSEWHERE {
        command.env_remove(variable);
    }
    let ran = command
        .current_dir(place)
        .args(words)
        // What it prints is read by this program, and nothing is fetched for a question.
        .envs([
            ("LC_ALL", "C"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ])
        .stdin(Stdio::null())
        .output()
        .map_err(GitError::Missing)?;
    if !ran.status.success() {
        let words: Vec<_> = words.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        return Err(GitError::Refused {
            command: words.join(" "),
            place: place.to_owned(),
            said: String::from_utf8_lossy(&ran.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&ran.stdout)
        .trim_end_matches('\n')
        .to_owned())
}

/// Where a function of a file is in the history of the repository around it; none if there is no repository, or no commit, or no git.
///
/// It only looks names up and digests the file: nothing that the repository's configuration names is run, for the file may be
/// a stranger's.
pub fn commit_of(file: &Path, function: &str) -> Option<Commit> {
    let name = file.file_name()?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let told = git(folder, &["rev-parse", "--show-prefix", "HEAD"]).ok()?;
    let (prefix, id) = told.split_once('\n')?;
    let mut of_commit = OsString::from("HEAD:./");
    of_commit.push(name);
    let known: [OsString; 4] = ["rev-parse".into(), "--quiet".into(), "--verify".into(), of_commit];
    let digest: [OsString; 4] = [
        "hash-object".into(),
        "--no-filters".into(),
        "--".into(),
        name.into(),
    ];
    let blob = git(folder, &known).ok();
    Some(Commit {
        id: id.to_owned(),
        kernel: format!("{prefix}{}:{function}", name.to_string_lossy()),
        changed: blob.is_none() || blob != git(folder, &digest).ok(),
    })
}

/// A commit in a row of commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Its full name.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl Revision {
    /// Its name in short.
    pub fn short(&self) -> &str {
        short(&self.id)
    }
}

/// The name of a commit in short.
pub fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

/// A checkout of a repository.
#[derive(Debug, Clone)]
pub struct Checkout {
    root: PathBuf,
}

impl Checkout {
    /// The checkout around a folder.
    ///
    /// # Errors
    /// If there is none, or git is not installed.
    pub fn around(folder: &Path) -> Result<Self, GitError> {
        let root = git(folder, &["rev-parse", "--show-toplevel"])?;
        Ok(Self { root: root.into() })
    }

    /// Its topmost folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commits that lead to the one that is checked out, the oldest first.
    ///
    /// # Errors
    /// If there is no commit.
    pub fn commits(&self) -> Result<Vec<String>, GitError> {
        let told = git(&self.root, &["rev-list", "--topo-order", "--reverse", "HEAD"])?;
        Ok(told.lines().map(str::to_owned).collect())
    }

    /// The row of first parents from one commit to another, both included.
    ///
    /// # Errors
    /// If one of them is unknown, or no such row leads from the first to the second.
    pub fn row(&self, good: &str, bad: &str) -> Result<Vec<Revision>, GitError> {
        let id = |name: &str| {
            let commit = format!("{name}^{{commit}}");
            git(
                &self.root,
                &["rev-parse", "--verify", "--end-of-options", &commit],
            )
        };
        let [from, to] = [id(good)?, id(bad)?];
        let told = git(
            &self.root,
            &[
                "log",
                "--first-parent",
                "--format=%H %s",
                &to,
                "--not",
                &format!("{from}^@"),
            ],
        )?;
        let mut row: Vec<Revision> = told.lines().filter_map(revision).collect();
        row.reverse();
        if row.len() < 2 || row[0].id != from {
            return Err(GitError::Apart {
                good: good.to_owned(),
                bad: bad.to_owned(),
            });
        }
        Ok(row)
    }
}

fn revision(line: &str) -> Option<Revision> {
    let (id, subject) = line.split_once(' ')?;
    Some(Revision {
        id: id.to_owned(),
        subject: subject.to_owned(),
    })
}
