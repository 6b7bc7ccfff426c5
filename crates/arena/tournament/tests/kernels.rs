//! Rounds on kernels in files.

use std::fs;
use std::path::Path;

use gauntlet_tournament::{Overrides, Round};

const ROUND: &str = r#"
name = "norms"
title = "Two libraries"
executor = "cpu"
device = "host"
task = "rms-norm"
pitches = ["pitches/other.toml"]
baseline.kernel = "libnorm.so:norm"
"#;

const PITCH: &str = r#"
name = "other"
author = "Ada"
problem = "slow"
change = "another library"
kernel = "libother.so:norm"
claim.speedup = { q10 = 1.0, q50 = 1.1, q90 = 1.2 }
odds = { adopt = 1.0 }
cost.hours = 1
risk = { level = "low", why = "none" }
evidence = [{ kind = "intuition", text = "it helps" }]
abort = []
fallback = { plan = "keep it" }
"#;

/// A run may be resumed only if the kernels are as they were, wherever the files that name them lie.
#[test]
fn the_digest_of_a_round_depends_on_every_kernel_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("pitches")).unwrap();
    write("round.toml", ROUND);
    write("pitches/other.toml", PITCH);
    write("libnorm.so", "1");
    write("pitches/libother.so", "1");
    let digest = |path: &Path| Round::load(path, &Overrides::default()).unwrap().digest;
    let path = folder.path().join("round.toml");
    let first = digest(&path);
    assert_eq!(digest(&path), first);
    write("pitches/libother.so", "2");
    let second = digest(&path);
    assert_ne!(second, first);
    write("libnorm.so", "2");
    assert_ne!(digest(&path), second);
    fs::remove_file(folder.path().join("pitches/libother.so")).unwrap();
    let error = Round::load(&path, &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("libother.so"), "{error}");
}
