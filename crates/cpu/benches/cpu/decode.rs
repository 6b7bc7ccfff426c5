//! Few tokens: a call is as long as its weights take to be read, so the memory is what it is held against: calls that read twice
//! the last-level cache, one after another, with a loop that reads as much.

use std::error::Error;
use std::sync::Barrier;
use std::time::Instant;

use gauntlet_problem::Form;
use serde_json::{Value, json};

use crate::Setting;
use crate::alternate::{Contender, Times, alternate};
use crate::operands::{Calls, copies, problem, schedule};
use crate::table::{heading, row};

const WEIGHTS: [usize; 2] = [4096, 7168];
const TOKENS: [usize; 3] = [1, 4, 16];

/// What is read at least to find the memory's bandwidth: long enough for the start of threads not to show.
const READ: usize = 256 << 20;

pub fn measure(setting: &Setting) -> Result<Value, Box<dyn Error>> {
    heading("decoding", &["ms", "GB/s", "memory reads, GB/s", "share of that"]);
    let [n, k] = WEIGHTS;
    let memory = vec![1_u64; READ.max(2 * setting.cache) / size_of::<u64>()];
    let engine = setting.engine(setting.threads)?;
    let mut found = Vec::new();
    for m in TOKENS {
        let shape = [m, n, k];
        let problem = problem(shape, Form::Plain);
        let schedule = schedule(&engine, &problem, setting);
        let copies = copies(&problem, setting);
        let bytes = copies[0].memory_bytes() as f64;
        let mut calls = Calls::new(&engine, &problem, &schedule, &copies)?;
        let times = alternate(
            setting.rounds,
            &mut [
                Contender {
                    name: "gauntlet".to_owned(),
                    turn: Box::new(|_| {
                        // One copy after another, as the layers of a model follow each other.
                        let start = Instant::now();
                        for copy in 0..copies.len() {
                            calls.call(copy)?;
                        }
                        Ok(start.elapsed().as_secs_f64() / copies.len() as f64)
                    }),
                },
                // In the time of as many bytes as a call reads.
                Contender {
                    name: "reading".to_owned(),
                    turn: Box::new(|_| {
                        Ok(read(&memory, setting.threads) * bytes / size_of_val(memory.as_slice()) as f64)
                    }),
                },
            ],
        )?;
        let [ours, reading] = [0, 1].map(|contender| times[contender].spread().middle);
        let share = times[0].speed_over(&times[1]);
        let title = format!("{m}×{n}×{k}");
        let cells = [
            format!("{:.3}", ours * 1e3),
            format!("{:.1}", bytes / ours / 1e9),
            format!("{:.1}", bytes / reading / 1e9),
            share.to_string(),
        ];
        row(&title, &cells);
        found.push(json!({
            "case": title,
            "schedule": schedule,
            "bytes": bytes,
            "times": times.iter().map(Times::json).collect::<Vec<_>>(),
            "share-of-bandwidth": share.json(),
        }));
    }
    Ok(found.into())
}

/// Reads all of `memory` with so many threads; seconds from the first one's start to the last one's end.
fn read(memory: &[u64], threads: usize) -> f64 {
    let ready = Barrier::new(threads);
    let shares = memory.chunks(memory.len().div_ceil(threads));
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let readers: Vec<_> = shares
            .map(|share| {
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    let start = Instant::now();
                    // Independent sums, so that adding does not hold reading up.
                    let mut sums = [0_u64; 32];
                    for chunk in share.as_chunks::<32>().0 {
                        sums.iter_mut()
                            .zip(chunk)
                            .for_each(|(sum, value)| *sum = sum.wrapping_add(*value));
                    }
                    std::hint::black_box(sums);
                    (start, Instant::now())
                })
            })
            .collect();
        readers
            .into_iter()
            .filter_map(|reader| reader.join().ok())
            .collect()
    });
    let first = spans.iter().map(|(start, _)| *start).min();
    let last = spans.iter().map(|(_, end)| *end).max();
    first
        .zip(last)
        .map_or(f64::NAN, |(first, last)| (last - first).as_secs_f64())
}
