//! Shipped programs are sound; faulty ones are detected.
#![expect(clippy::unwrap_used, reason = "tests")]

mod faults;
mod mutations;
mod support;

use std::time::{Duration, Instant};

use gauntlet_barrier_proofs::prove;

use support::{Shipped, programs};

#[test]
fn every_shipped_program_is_sound() {
    let mut slowest = (Duration::ZERO, 0, String::new());
    let (mut total, mut states, mut most_states) = (Duration::ZERO, 0, 0);
    let programs = programs();
    for Shipped {
        arch,
        schedule,
        program,
        ..
    } in &programs
    {
        let start = Instant::now();
        let proof = prove(program)
            .unwrap_or_else(|flaw| panic!("{arch} {schedule}: {flaw}\n{}", flaw.interleaving.join("\n")));
        let took = start.elapsed();
        total += took;
        states += proof.states;
        most_states = most_states.max(proof.states);
        if took > slowest.0 {
            slowest = (took, proof.states, format!("{arch} {schedule}"));
        }
    }
    println!(
        "{} programs, {states} states, {total:?}; slowest {slowest:?}",
        programs.len()
    );
    // The number of states stands for time here, because it does not depend on the load of the machine.
    assert!(most_states < 500_000, "{slowest:?}");
}
