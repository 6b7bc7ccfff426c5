//! Shipped programs are sound; faulty ones are found out.
#![expect(clippy::unwrap_used, reason = "tests")]

mod mutations;
mod support;

use std::time::{Duration, Instant};

use gauntlet_model::prove::{FlawKind, prove, recorded};

use support::programs;

#[test]
fn every_shipped_program_is_sound() {
    let mut slowest = (Duration::ZERO, 0, String::new());
    let (mut total, mut states) = (Duration::ZERO, 0);
    let programs = programs();
    for (arch, schedule, program) in &programs {
        let start = Instant::now();
        let proof = prove(program)
            .unwrap_or_else(|flaw| panic!("{arch} {schedule}: {flaw}\n{}", flaw.interleaving.join("\n")));
        let took = start.elapsed();
        total += took;
        states += proof.states;
        if took > slowest.0 {
            slowest = (took, proof.states, format!("{arch} {schedule}"));
        }
    }
    println!(
        "{} programs, {states} states, {total:?}; slowest {slowest:?}",
        programs.len()
    );
    assert!(slowest.0 < Duration::from_secs(1), "{slowest:?}");
}

#[test]
fn the_recorded_faults_are_found() {
    let found = |program| prove(&program).unwrap_err();
    for (program, kind) in [
        (recorded::barrier_removed(), FlawKind::ReadBeforeFull),
        (
            recorded::waits_for_the_copy_just_committed(),
            FlawKind::NothingOverlaps,
        ),
        (recorded::races_on_the_last_step(), FlawKind::MissingCommit),
    ] {
        let flaw = found(program);
        println!("{flaw}\n{:?}\n{}\n", flaw.tiles, flaw.interleaving.join("\n"));
        assert_eq!(flaw.kind, kind);
    }
}

#[test]
fn without_any_one_safeguard_a_flaw_is_found() {
    let mut harmless = std::collections::BTreeMap::new();
    let mut found = std::collections::BTreeMap::new();
    for (arch, schedule, program) in programs() {
        for nth in 0.. {
            let Some((mutated, role, operation)) = mutations::without(&program, nth) else {
                break;
            };
            match prove(&mutated) {
                Ok(_) => {
                    let attention = program
                        .buffers
                        .iter()
                        .any(|buffer| buffer.contents == gauntlet_schedule::program::Contents::Queries);
                    let what = format!("{operation:?}");
                    let contents = what.find("buffer: ").map(|at| {
                        let n: usize = what[at + 8..at + 9].parse().unwrap();
                        format!("{:?}", program.buffers[n].contents)
                    });
                    let short = what.split(' ').next().unwrap();
                    harmless
                        .entry(format!(
                            "{arch} {:?} {} {} swap {} {role} {short} {contents:?}",
                            schedule.roles,
                            schedule.epilogue,
                            if attention { "attention" } else { "gemm" },
                            schedule.swap_ab
                        ))
                        .or_insert_with(std::collections::BTreeSet::new)
                        .insert((schedule.stages, nth));
                }
                Err(flaw) => *found.entry(flaw.kind).or_insert(0) += 1,
            }
        }
    }
    println!("{found:?}");
    for (what, count) in &harmless {
        println!("{what}: {count:?}");
    }
}
