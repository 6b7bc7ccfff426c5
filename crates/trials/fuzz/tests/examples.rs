//! What each target reads in every test run: its examples, inputs that once failed, and examples that are changed at random, the same
//! ones each time. A parser that panics fails the test; the input is printed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use gauntlet_fuzz::{TARGETS, Target};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Changed examples of each target.
const CHANGED: usize = 200;

/// What parsers stumble over.
const PIECES: [&str; 16] = [
    "0",
    "-1",
    "1e999",
    "nan",
    "18446744073709551616",
    "9223372036854775807",
    "\"",
    "[",
    "{",
    "((((((((",
    "\\",
    "\n",
    "\0",
    "é",
    "\u{202e}",
    ",",
];

fn contents(files: Vec<PathBuf>) -> Vec<Vec<u8>> {
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// The bytes with up to four changes: a piece put in, a stretch left out, doubled, or taken from another example.
fn changed(seeds: &[Vec<u8>], draw: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seeds[draw.random_range(0..seeds.len())].clone();
    for _ in 0..draw.random_range(1..=4) {
        let begin = draw.random_range(0..=bytes.len());
        let end = (begin + draw.random_range(0..12)).min(bytes.len());
        let put: Vec<u8> = match draw.random_range(0..5) {
            0 => PIECES[draw.random_range(0..PIECES.len())].into(),
            1 => Vec::new(),
            2 => bytes[begin..end].repeat(draw.random_range(2..40)),
            3 => {
                let other = &seeds[draw.random_range(0..seeds.len())];
                let from = draw.random_range(0..=other.len());
                other[from..(from + 30).min(other.len())].to_vec()
            }
            _ => vec![draw.random()],
        };
        bytes.splice(begin..end, put);
    }
    bytes
}

fn returns(target: &Target, bytes: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.read)(bytes)))
        .unwrap_or_else(|_| panic!("{} panics at {:?}", target.name, String::from_utf8_lossy(bytes)))
}

#[test]
fn each_target_takes_its_examples() {
    let mut refused = Vec::new();
    for target in TARGETS {
        let seeds = target.seeds();
        assert!(!seeds.is_empty(), "{} has no example", target.name);
        for seed in seeds {
            if !returns(target, &fs::read(&seed).unwrap()) {
                refused.push(seed);
            }
        }
    }
    assert!(refused.is_empty(), "not taken: {refused:?}");
}

#[test]
fn what_once_failed_does_no_more() {
    for target in TARGETS {
        for bytes in contents(target.found()) {
            returns(target, &bytes);
        }
    }
}

#[test]
fn changed_examples_do_no_harm() {
    for target in TARGETS {
        let seeds = contents(target.seeds());
        let mut draw = ChaCha8Rng::seed_from_u64(1);
        let taken = (0..CHANGED)
            .filter(|_| returns(target, &changed(&seeds, &mut draw)))
            .count();
        // Neither nonsense alone, nor so gently changed that nothing is refused.
        assert!(taken < CHANGED, "{} takes everything", target.name);
    }
}
