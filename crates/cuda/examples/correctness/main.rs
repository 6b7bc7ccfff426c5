//! Holds every shipped schedule against the f64 oracle on a Hopper GPU: all cases of the suites in every format of
//! results, and random ragged problems, each with four kinds of operands, each computed twice.
//!
//! `cargo run --release -p gauntlet-cuda --example correctness -- [--problems 200] [--seed 1] [--budget 480] [--json FILE]`
//!
//! What counts as right is what the lab's gate says. The exit code is 1 if anything is wrong.

mod kernels;
#[path = "../support/machine.rs"]
mod machine;
mod problems;
mod tally;
mod trial;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use gauntlet_problem::InputsError;
use serde_json::json;

use problems::{Family, Named};
use tally::Tally;
use trial::{Bench, Prepared};

/// Problems prepared beforehand while the GPU computes; the largest takes gigabytes of the host's memory.
const AHEAD: usize = 3;

/// Holds every shipped schedule against the f64 oracle on a Hopper GPU.
#[derive(Parser)]
struct Arguments {
    /// The kernel family; both without it
    #[arg(long, value_enum)]
    family: Option<Family>,
    /// How many random problems of each family
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    problems: usize,
    /// What they and all operands are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No problem is begun after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 480)]
    budget: u64,
    /// Where to write what was found
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is right.
fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let began = Instant::now();
    let engine = machine::engine()?;
    let families = match &arguments.family {
        Some(family) => std::slice::from_ref(family),
        None => Family::value_variants(),
    };
    let mut named = Vec::new();
    for &family in families {
        named.extend(problems::of_suites(family)?);
        named.extend(problems::drawn(family, arguments.seed, arguments.problems));
    }
    let all = named.len();
    let steps = kernels::schedules();
    let bench = Bench {
        kernels: kernels::compile_all(engine.compiler(), &named, &steps, engine.device().processors),
        engine: &engine,
        steps: &steps,
    };
    let kernels = bench.kernels.len();
    eprintln!("{kernels} kernels after {:.0} s", began.elapsed().as_secs_f64());

    let mut tally = Tally::new(&steps);
    let deadline = began + Duration::from_secs(arguments.budget);
    let (done, ended) = try_problems(&bench, named, arguments.seed, deadline, &mut tally);
    print!("{tally}");
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{done} of {all} problems, {} comparisons, {} wrong, {kernels} kernels, {seconds:.0} s",
        tally.comparisons(),
        tally.failures()
    );
    let aborted = ended.as_ref().err().map(ToString::to_string);
    if let Some(path) = &arguments.json {
        let value = json!({
            "machine": machine::describe(&engine),
            "seed": arguments.seed,
            "problems": { "asked": all, "done": done },
            "kernels": kernels,
            "seconds": seconds,
            "comparisons": tally.comparisons(),
            "wrong": tally.failures(),
            "aborted": aborted,
            "found": tally,
        });
        std::fs::write(path, format!("{value:#}\n"))
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    ended?;
    if done < all {
        println!(
            "the budget of {} s was spent before the rest was begun",
            arguments.budget
        );
    }
    Ok(tally.failures() == 0)
}

/// Tries one problem after the other, those to come being prepared meanwhile; how many were tried whole.
fn try_problems(
    bench: &Bench<'_>,
    named: Vec<Named>,
    seed: u64,
    deadline: Instant,
    tally: &mut Tally,
) -> (usize, Result<(), Box<dyn Error>>) {
    let all = named.len();
    let mut done = 0;
    let ended = thread::scope(|scope| {
        let (sender, prepared) = sync_channel::<Result<Prepared, InputsError>>(AHEAD);
        scope.spawn(move || {
            for one in named {
                // The receiver has gone once the budget is spent or the device is.
                if Instant::now() > deadline || sender.send(Prepared::new(one, seed)).is_err() {
                    return;
                }
            }
        });
        for prepared in prepared {
            let prepared = prepared?;
            prepared.try_all(bench, tally)?;
            done += 1;
            eprintln!("{done} of {all}: {}", prepared.named.name);
        }
        Ok(())
    });
    (done, ended)
}
