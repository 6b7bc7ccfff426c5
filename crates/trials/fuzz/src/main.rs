//! The targets under libFuzzer; `GAUNTLET_FUZZ` names the one, or is `list`. `scripts/fuzz` builds and runs this.
#![no_main]

use std::sync::OnceLock;

use gauntlet_fuzz::{TARGETS, Target, target};

static CHOSEN: OnceLock<&Target> = OnceLock::new();

/// A line a target: its name, and the files with its examples.
fn list() -> ! {
    for target in TARGETS {
        let seeds = target.seeds();
        let seeds: Vec<_> = seeds.iter().map(|seed| seed.to_string_lossy()).collect();
        println!("{} {}", target.name, seeds.join(" "));
    }
    std::process::exit(0)
}

fn chosen() -> &'static Target {
    let name = std::env::var("GAUNTLET_FUZZ").unwrap_or_default();
    if name == "list" {
        list();
    }
    target(&name).unwrap_or_else(|| {
        eprintln!("GAUNTLET_FUZZ names no target: {name:?}");
        std::process::exit(2)
    })
}

libfuzzer_sys::fuzz_target!(
    init: {
        CHOSEN.get_or_init(chosen);
    },
    |bytes: &[u8]| {
        (CHOSEN.get_or_init(chosen).read)(bytes);
    }
);
