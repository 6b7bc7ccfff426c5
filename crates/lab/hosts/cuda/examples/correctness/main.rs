//! Checks every shipped schedule against the f64 oracle on a GPU: all cases of the suites in every result
//! format, and random ragged problems, each with four kinds of operands, each computed twice.
//!
//! `cargo run --release -p gauntlet-host-cuda --example correctness -- [--problems 200] [--seed 1] [--budget 480] [--schedule TEXT] [--json FILE]`
//!
//! The lab's correctness gate decides which results are right. The exit code is 1 if any result is wrong.
//!
//! With `--compile-only` the kernels are compiled into the cache that `GAUNTLET_CUBIN_CACHE` names, without a GPU, so
//! that compilation takes no GPU time.

mod kernels;
mod machine;
mod problems;
mod tally;
mod trial;

use std::error::Error;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use gauntlet_cuda::compiler::Compiler;
use gauntlet_device::Device;
use gauntlet_kernels_cuda::plan::Target;
use rayon::ThreadPoolBuilder;
use serde_json::json;

use problems::{Family, Named};
use tally::Tally;
use trial::{Bench, Prepared};

/// Prepared problems that wait for the GPU; the largest takes gigabytes of the host's memory.
const AHEAD: usize = 3;

/// Problems prepared at a time: one thread draws a tensor, and some problems have only two tensors.
const PREPARING: usize = 3;

/// The share of the cores for preparation, in a separate pool: comparisons are short, and in a shared pool each of them
/// would wait behind the oracle.
const SHARE: f64 = 0.75;

/// Checks every shipped schedule against the f64 oracle on a GPU.
#[derive(Parser)]
struct Arguments {
    /// The kernel family; both families if not given
    #[arg(long, value_enum)]
    family: Option<Family>,
    /// Only schedules whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    schedule: String,
    /// How many random problems of each family
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    problems: usize,
    /// Only random problems, which are small: for sanitizers, under which kernels are slow
    #[arg(long)]
    random_only: bool,
    /// The seed of the problems and of all operands
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Start no problem after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 480)]
    budget: u64,
    /// Where to write the results
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compile the kernels into the cache, and nothing else; needs no GPU
    #[arg(long, conflicts_with_all = ["budget", "json"])]
    compile_only: bool,
    /// The GPU to compile for: a100, l4, h100 or h200. Its architecture and its number of multiprocessors decide about
    /// kernels
    #[arg(long, value_name = "NAME", default_value = "h200", requires = "compile_only")]
    device: String,
    /// Only schedules that are shipped for this GPU, such as l4, compiled for the GPU at hand; those of earlier GPUs run on
    /// later ones
    #[arg(long, value_name = "NAME", conflicts_with = "compile_only")]
    shipped_for: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.compile_only {
        true => compile(&arguments),
        false => run(&arguments),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The problems of the requested families.
fn problems_of(arguments: &Arguments) -> Result<Vec<Named>, Box<dyn Error>> {
    let families = match &arguments.family {
        Some(family) => std::slice::from_ref(family),
        None => Family::value_variants(),
    };
    let mut named = Vec::new();
    for &family in families {
        if !arguments.random_only {
            named.extend(problems::of_suites(family)?);
        }
        named.extend(problems::drawn(family, arguments.seed, arguments.problems));
    }
    Ok(named)
}

/// Compiles all kernels; returns whether all of them compile.
fn compile(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let device = Device::builtin(&arguments.device)?;
    let target = Target::of(&device).ok_or_else(|| format!("{} is no GPU", device.name))?;
    let (named, steps) = (
        problems_of(arguments)?,
        kernels::schedules(&arguments.schedule, target.arch),
    );
    let kernels = kernels::compile_all(&Compiler::new()?, &named, &steps, target);
    let broken: Vec<_> = kernels.values().flatten().collect();
    broken.iter().for_each(|error| println!("{error}"));
    println!("{} kernels, {} do not compile", kernels.len(), broken.len());
    Ok(broken.is_empty())
}

/// Tries all problems; returns whether all results are right.
fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let began = Instant::now();
    let engine = machine::engine()?;
    let named = problems_of(arguments)?;
    let all = named.len();
    let target = Target::of_gpu(engine.device())?;
    let shipped_for = match &arguments.shipped_for {
        Some(name) => Device::builtin(name)?.arch,
        None => target.arch,
    };
    let steps = kernels::schedules(&arguments.schedule, shipped_for);
    let bench = Bench {
        kernels: kernels::compile_all(engine.compiler()?, &named, &steps, target),
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

/// Tries one problem after another while the next ones are prepared; returns how many were tried completely.
fn try_problems(
    bench: &Bench<'_>,
    named: Vec<Named>,
    seed: u64,
    deadline: Instant,
    tally: &mut Tally,
) -> (usize, Result<(), Box<dyn Error>>) {
    let all = named.len();
    let named = Mutex::new(named.into_iter());
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (SHARE * cores as f64).ceil() as usize;
    let pool = match ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool,
        Err(error) => return (0, Err(error.into())),
    };
    let mut done = 0;
    let ended = thread::scope(|scope| {
        let (sender, prepared) = sync_channel::<Result<Prepared, String>>(AHEAD);
        for _ in 0..PREPARING {
            let (named, pool, sender) = (&named, &pool, sender.clone());
            scope.spawn(move || {
                while let Some(one) = next(named) {
                    if Instant::now() > deadline {
                        return;
                    }
                    let prepared = pool.install(|| Prepared::new(one, seed));
                    // The receiver is gone after a failure of the device.
                    if sender.send(prepared).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
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

/// The next problem that no thread has taken yet.
fn next(named: &Mutex<impl Iterator<Item = Named>>) -> Option<Named> {
    named.lock().unwrap_or_else(PoisonError::into_inner).next()
}
