//! The speed of the engine, compared with other libraries for Rust and with the limits of the machine.
//!
//! ```sh
//! cargo bench -p gauntlet-kernels-cpu --features peers -- [--only products] [--simd avx2] [--threads 2] [--rounds 15] [--json FILE]
//! ```
//!
//! The compared programs take turns call by call in one process, and the threads of a program that waits sleep. On a shared
//! machine the ratios are therefore meaningful; the times alone are not.

mod alternate;
mod decode;
mod floats;
mod launch;
mod machine;
mod operands;
mod paths;
mod peers;
mod products;
mod scaling;
mod table;

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use gauntlet_kernels_cpu::{Engine, EngineOptions, SimdPath};
use gauntlet_problems::Schedule;
use serde_json::{Value, json};

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// NVFP4 products beside the crate `gemm` on operands dequantised to f32 beforehand.
    Products,
    /// 16-bit and f32 tokens beside NVFP4 tokens.
    Floats,
    /// One to sixteen tokens beside the memory's read bandwidth.
    Decode,
    /// One to all threads.
    Scaling,
    /// Each instruction set beside the portable code.
    Paths,
    /// Calls that have hardly anything to do.
    Launch,
}

#[derive(Debug, Parser)]
struct Arguments {
    /// Only these parts; may be given several times.
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// amx, avx512, avx2, neon or portable; the best there is by default.
    #[arg(long, env = "GAUNTLET_SIMD")]
    simd: Option<SimdPath>,
    /// Threads; as many as there are processors by default.
    #[arg(long, env = "GAUNTLET_THREADS")]
    threads: Option<usize>,
    /// Rounds in which each contender has one turn.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// A schedule as JSON, for all products; by default one follows from the sizes.
    #[arg(long, value_parser = schedule)]
    schedule: Option<Schedule>,
    /// Write everything measured here.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// An argument that `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn schedule(text: &str) -> Result<Schedule, serde_json::Error> {
    serde_json::from_str(text)
}

/// The settings that all parts share.
struct Setting {
    threads: usize,
    simd: Option<SimdPath>,
    rounds: usize,
    schedule: Option<Schedule>,
    /// Bytes of the last-level cache.
    cache: usize,
}

impl Setting {
    fn engine(&self, threads: usize) -> Result<Engine, Box<dyn Error>> {
        Ok(Engine::new(EngineOptions {
            simd: self.simd,
            threads: Some(threads),
            pinned: false,
        })?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let engine = Engine::new(EngineOptions {
        simd: arguments.simd,
        threads: arguments.threads,
        pinned: false,
    })?;
    let setting = Setting {
        threads: engine.threads(),
        simd: arguments.simd,
        rounds: arguments.rounds.max(1),
        schedule: arguments.schedule,
        cache: machine::last_level_cache(),
    };
    println!(
        "{}, {} threads, {}",
        machine::model(),
        setting.threads,
        engine.simd()
    );
    let mut found = serde_json::Map::new();
    type Measure = fn(&Setting) -> Result<Value, Box<dyn Error>>;
    let parts: [(Part, &str, Measure); 6] = [
        (Part::Products, "products", products::measure),
        (Part::Floats, "floats", floats::measure),
        (Part::Decode, "decode", decode::measure),
        (Part::Scaling, "scaling", scaling::measure),
        (Part::Paths, "paths", paths::measure),
        (Part::Launch, "launch", launch::measure),
    ];
    for (part, name, measure) in parts {
        if arguments.only.is_empty() || arguments.only.contains(&part) {
            found.insert(name.to_owned(), measure(&setting)?);
        }
    }
    if let Some(path) = arguments.json {
        let report = json!({
            "date": jiff::Zoned::now().date().to_string(),
            "machine": machine::describe(),
            "version": env!("CARGO_PKG_VERSION"),
            "commit": machine::commit(),
            "simd": engine.simd().to_string(),
            "threads": setting.threads,
            "rounds": setting.rounds,
            "parts": found,
        });
        std::fs::write(path, format!("{report:#}\n"))?;
    }
    Ok(())
}
