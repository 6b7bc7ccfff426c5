//! The corpus of cheats, without outcomes that depend on measured times: the expected gate catches each cheat, for the
//! expected reason, and only the measuring gate may stop the honest candidates. `gauntlet selftest --cheats` tries the
//! whole corpus.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../../faces/cli/tests/end_to_end/common/interpreter.rs"]
mod interpreter;

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use gauntlet_judge::gates::{Faster, Gate};
use gauntlet_selftest::cheats::{
    Cheat, CheatReport, Kind, On, Outcome, Settings, corpus, corpus_of_kernels, run,
};
use gauntlet_worker::Program;
use interpreter::{has_numpy, interpreter};

/// One kind at a time: a cheat that looks for the process of the honest kernel would find a worker of another test.
static MACHINE: Mutex<()> = Mutex::new(());

/// Tries cheats one after another.
fn tried(wanted: impl Fn(&Cheat) -> bool) -> Vec<CheatReport> {
    tried_of(corpus(), None, wanted)
}

fn tried_of(corpus: Vec<Cheat>, kernels: Option<On>, wanted: impl Fn(&Cheat) -> bool) -> Vec<CheatReport> {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let corpus = corpus.into_iter().filter(wanted);
    tried_by_name(corpus.map(|cheat| cheat.name.to_owned()).collect(), kernels)
}

/// Tries candidates that look for no other process four at a time: the coordinator mostly waits for them.
fn tried_together(wanted: impl Fn(&Cheat) -> bool) -> Vec<CheatReport> {
    tried_together_of(corpus(), None, wanted)
}

fn tried_together_of(
    corpus: Vec<Cheat>,
    kernels: Option<On>,
    wanted: impl Fn(&Cheat) -> bool,
) -> Vec<CheatReport> {
    const AT_ONCE: usize = 4;
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut names = vec![Vec::new(); AT_ONCE];
    for (place, cheat) in corpus.into_iter().filter(wanted).enumerate() {
        names[place % AT_ONCE].push(cheat.name.to_owned());
    }
    names.retain(|some| !some.is_empty());
    std::thread::scope(|scope| {
        let start = |names| scope.spawn(move || tried_by_name(names, kernels));
        let started: Vec<_> = names.into_iter().map(start).collect();
        let ended = started.into_iter().flat_map(|some| some.join().unwrap());
        ended.collect()
    })
}

/// The caller holds the machine.
fn tried_by_name(names: Vec<String>, kernels: Option<On>) -> Vec<CheatReport> {
    assert!(!names.is_empty());
    // Threads that numpy starts wait for work by spinning, and a `python3` may be a script that looks for the interpreter.
    let python = interpreter().map(|path| format!("GAUNTLET_PYTHON={path}"));
    let variables = python.into_iter().chain(["OPENBLAS_NUM_THREADS=1".to_owned()]);
    let own = Path::new(env!("CARGO_BIN_EXE_gauntlet-selftest"));
    let program = match kernels {
        None => own.to_owned(),
        Some(_) => own.with_file_name("gauntlet"),
    };
    assert!(
        program.exists(),
        "build it first: cargo build --release -p kernel-gauntlet"
    );
    let settings = Settings {
        program: Program {
            file: "/usr/bin/env".into(),
            arguments: variables
                .map(OsString::from)
                .chain([program.into_os_string()])
                .collect(),
        },
        kinds: Kind::ALL.to_vec(),
        names,
        kernels,
    };
    run(&settings, &mut |report| {
        println!(
            "{} {:?}, {}: {}",
            report.name, report.outcome, report.verdict, report.reason
        );
    })
    .unwrap()
}

fn of_kind(kind: Kind) -> impl Fn(&Cheat) -> bool {
    move |cheat| cheat.kind == kind && !cheat.needs_quiet()
}

#[track_caller]
fn none_is_at_fault(reports: Vec<CheatReport>) {
    let faults: Vec<String> = reports
        .into_iter()
        // A missing protection of the system is reported by `doctor`, and is not an error of the gates.
        .filter(|report| !report.outcome.is_right() && report.outcome != Outcome::Unheld)
        .map(|report| {
            format!(
                "{}: {} — {}",
                report.name,
                report.fault.unwrap_or_default(),
                report.reason
            )
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn cheats_by_results_are_caught() {
    // They would find the files and processes of the trials beside theirs.
    let looks_around = |cheat: &Cheat| cheat.name.starts_with("steals-");
    let is_wanted = of_kind(Kind::Results);
    none_is_at_fault(tried(|cheat| is_wanted(cheat) && looks_around(cheat)));
    none_is_at_fault(tried_together(|cheat| is_wanted(cheat) && !looks_around(cheat)));
}

#[test]
fn cheats_by_times_that_cannot_be_are_caught() {
    none_is_at_fault(tried_together(of_kind(Kind::Times)));
}

#[test]
fn cheats_that_do_less_in_trials_are_caught() {
    none_is_at_fault(tried(of_kind(Kind::Deferred)));
}

#[test]
fn cheats_on_the_protocol_are_caught() {
    none_is_at_fault(tried_together(of_kind(Kind::Protocol)));
}

#[test]
fn cheats_by_processes_are_caught() {
    none_is_at_fault(tried(of_kind(Kind::Processes)));
}

#[test]
fn kernels_that_are_not_measured_are_caught() {
    if !has_numpy() {
        return;
    }
    let on = On::Cpu;
    let looks_around = |cheat: &Cheat| cheat.kind == Kind::Processes;
    let alone = |cheat: &Cheat| !cheat.needs_quiet() && looks_around(cheat);
    none_is_at_fault(tried_of(corpus_of_kernels(on), Some(on), alone));
    let together = |cheat: &Cheat| !cheat.needs_quiet() && !looks_around(cheat);
    none_is_at_fault(tried_together_of(corpus_of_kernels(on), Some(on), together));
}

#[test]
fn the_honest_come_as_far_as_the_comparison() {
    let reports = tried_together(|cheat| cheat.kind == Kind::Honest);
    for report in reports {
        let stopped = report.gate.as_deref();
        assert!(
            stopped.is_none_or(|gate| gate == Faster.name()),
            "{}, stopped by {stopped:?}: {}",
            report.name,
            report.reason
        );
    }
}
