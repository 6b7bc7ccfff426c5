//! Puts the commit into the version, so that every record says which code wrote it.

use std::process::Command;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    // Outside a checkout there is no commit, and the version has none.
    let version = match git(&["rev-parse", "--short=10", "HEAD"]) {
        Some(commit) => format!("{version}+{commit}"),
        None => version.to_owned(),
    };
    println!("cargo:rustc-env=GAUNTLET_VERSION={version}");
    println!("cargo:rerun-if-changed=build.rs");
    // Not always in the folder `.git`: a worktree has them elsewhere. A file that does not exist would have this run, and
    // the crate compiled, each time.
    for name in ["HEAD", "refs/heads"] {
        if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", name]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
