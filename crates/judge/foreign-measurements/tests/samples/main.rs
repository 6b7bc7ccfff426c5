//! Measurements of other programs: what is read from their files, and what is decided by them.

#![expect(clippy::unwrap_used, reason = "tests")]

mod evidence;
mod failures;
mod formats;
mod verdicts;

use std::path::PathBuf;

use gauntlet_foreign_measurements::{Compared, Measurements, SamplesError, compare, read};
use gauntlet_stats::Criteria;
use tempfile::TempDir;

/// A folder with one file.
fn file(name: &str, contents: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, contents).unwrap();
    (folder, path)
}

fn measured(name: &str, contents: &str) -> Measurements {
    let (_folder, path) = file(name, contents);
    read(&path).unwrap()
}

#[track_caller]
fn says(name: &str, contents: &str, phrases: &[&str]) {
    let (_folder, path) = file(name, contents);
    let SamplesError { remedy, .. } = &read(&path).unwrap_err();
    let said = format!("{}; {remedy}", read(&path).unwrap_err());
    for phrase in phrases {
        assert!(said.contains(phrase), "no {phrase:?} in: {said}");
    }
}

/// Times around a typical one, with a spread of about 1 % and no trend; different ones for each `luck`.
fn times(typical: f64, count: usize, luck: u64) -> Vec<f64> {
    let mut state = luck;
    let mut uniform = || {
        // A linear congruential generator; its upper bits are as good as random here.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count)
        .map(|_| typical * (1.0 + 0.035 * (uniform() - 0.5)))
        .collect()
}

fn hyperfine(command: &str, times: &[f64]) -> String {
    format!(r#"{{"results": [{{"command": "{command}", "times": {times:?}}}]}}"#)
}

fn judged(baseline: &Measurements, candidate: &Measurements, between: Option<f64>) -> Compared {
    compare(baseline, candidate, &Criteria::default(), between).unwrap()
}
