//! Places of files in the history of a repository. Without git these tests print a note and pass.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

use gauntlet_history::git::{Checkout, GitError, commit_of};
use tempfile::TempDir;

fn git(folder: &Path, words: &[&str]) -> bool {
    let configured = [
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b.c",
        "-c",
        "commit.gpgsign=false",
    ];
    let ran = Command::new("git")
        .current_dir(folder)
        .args(configured)
        .args(words)
        .output();
    match ran {
        Ok(ran) => {
            assert!(
                ran.status.success(),
                "{words:?}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
            true
        }
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    }
}

fn write(folder: &TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn commit(folder: &TempDir, subject: &str) {
    git(folder.path(), &["add", "-A"]);
    git(folder.path(), &["commit", "-q", "--allow-empty", "-m", subject]);
}

#[test]
fn a_file_is_known_by_its_commit_and_whether_it_differs_from_it() {
    let folder = tempfile::tempdir().unwrap();
    if !git(folder.path(), &["init", "-q"]) {
        return;
    }
    write(&folder, "src/k.py", "one");
    let file = folder.path().join("src/k.py");
    assert_eq!(commit_of(&file, "f"), None, "there is no commit yet");
    commit(&folder, "first");
    let first = commit_of(&file, "f").unwrap();
    assert_eq!((first.kernel.as_str(), first.changed), ("src/k.py:f", false));
    write(&folder, "src/k.py", "two");
    let edited = commit_of(&file, "f").unwrap();
    assert_eq!((&edited.id, edited.changed), (&first.id, true));
    write(&folder, "src/new.py", "new");
    assert!(commit_of(&folder.path().join("src/new.py"), "f").unwrap().changed);
    commit(&folder, "second");
    let second = commit_of(&file, "f").unwrap();
    assert!(second.id != first.id && !second.changed);

    let checkout = Checkout::around(&folder.path().join("src")).unwrap();
    assert_eq!(checkout.commits().unwrap(), [first.id.clone(), second.id.clone()]);
    let row = checkout.row("HEAD~1", "HEAD").unwrap();
    let told: Vec<_> = row
        .iter()
        .map(|one| (one.id.as_str(), one.subject.as_str()))
        .collect();
    assert_eq!(
        told,
        [(first.id.as_str(), "first"), (second.id.as_str(), "second")]
    );
    let backwards = checkout.row("HEAD", "HEAD~1").unwrap_err();
    assert!(matches!(backwards, GitError::Apart { .. }), "{backwards}");
    assert!(matches!(
        checkout.row("nothing", "HEAD"),
        Err(GitError::Refused { .. })
    ));
}

/// A stranger's repository may name programs that git would run to compare files.
#[test]
fn looking_a_file_up_runs_nothing_that_a_repository_names() {
    let folder = tempfile::tempdir().unwrap();
    if !git(folder.path(), &["init", "-q"]) {
        return;
    }
    write(&folder, "k.py", "one");
    write(&folder, ".gitattributes", "*.py filter=own diff=own");
    commit(&folder, "first");
    let trap = format!("touch {}", folder.path().join("ran").display());
    for name in [
        "core.fsmonitor",
        "filter.own.clean",
        "filter.own.process",
        "diff.own.textconv",
    ] {
        git(folder.path(), &["config", name, &trap]);
    }
    assert!(!commit_of(&folder.path().join("k.py"), "f").unwrap().changed);
    assert!(!folder.path().join("ran").exists());
}
