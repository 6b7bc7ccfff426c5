//! Puts the commit into the version, so that every record says which code wrote it.

use std::process::Command;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    // Outside a checkout there is no commit, and the version has none.
    let commit = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let version = match commit {
        Some(commit) => format!("{version}+{}", commit.trim()),
        None => version.to_owned(),
    };
    println!("cargo:rustc-env=GAUNTLET_VERSION={version}");
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
}
