//! Few tokens: the time of a call is the time to read its weights, so it is compared with memory bandwidth. Calls run
//! one after another on operands of twice the last-level cache; the reference is loops that only read the same
//! operands, on as many threads.

use std::error::Error;
use std::sync::Barrier;
use std::time::Instant;

use gauntlet_problems::{Form, GroupInputs, Inputs};
use serde_json::{Value, json};

use crate::Setting;
use crate::alternate::{Contender, Times, alternate};
use crate::operands::{Calls, copies, problem, schedule};
use crate::table::{heading, row};

const WEIGHTS: [usize; 2] = [4096, 7168];
const TOKENS: [usize; 3] = [1, 4, 16];

pub fn measure(setting: &Setting) -> Result<Value, Box<dyn Error>> {
    heading("decoding", &["ms", "GB/s", "memory reads, GB/s", "share of that"]);
    let [n, k] = WEIGHTS;
    let engine = setting.engine(setting.threads)?;
    let mut found = Vec::new();
    for m in TOKENS {
        let shape = [m, n, k];
        let problem = problem(shape, Form::Plain);
        let schedule = schedule(&engine, &problem, setting);
        let copies = copies(&problem, setting);
        let memory: Vec<&[u8]> = copies.iter().flat_map(operands).collect();
        let bytes = memory.iter().map(|part| part.len()).sum::<usize>() as f64 / copies.len() as f64;
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
                Contender {
                    name: "reading".to_owned(),
                    turn: Box::new(|_| Ok(read::<false>(&memory, setting.threads) / copies.len() as f64)),
                },
                Contender {
                    name: "reading, asking ahead".to_owned(),
                    turn: Box::new(|_| Ok(read::<true>(&memory, setting.threads) / copies.len() as f64)),
                },
            ],
        )?;
        // The faster loop of each round.
        let best = times[1].seconds.iter().zip(&times[2].seconds);
        let reading = Times {
            name: "best reading".to_owned(),
            seconds: best.map(|(plain, ahead)| plain.min(*ahead)).collect(),
        };
        let share = times[0].speed_over(&reading);
        let [ours, reading] = [&times[0], &reading].map(|times| times.spread().middle);
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

/// The memory that a call reads.
fn operands(inputs: &Inputs) -> Vec<&[u8]> {
    let Inputs::GroupedGemm(groups) = inputs else {
        return Vec::new();
    };
    groups
        .iter()
        .flat_map(|GroupInputs { a, b, .. }| [a.values(), a.scales(), b.packed(), b.scales()])
        .collect()
}

/// Reads all of `memory` with `threads` threads, each its share of every part; if `AHEAD`, prefetches the lines that
/// are read soon into the second-level cache. Returns seconds from the first thread's start to the last one's end.
fn read<const AHEAD: bool>(memory: &[&[u8]], threads: usize) -> f64 {
    let ready = Barrier::new(threads);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|thread| {
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    let start = Instant::now();
                    for part in memory {
                        let share = |thread| part.len() * thread / threads;
                        add_up::<AHEAD>(&part[share(thread)..share(thread + 1)]);
                    }
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

/// Adds bytes to independent sums, so that additions do not delay the reads.
fn add_up<const AHEAD: bool>(bytes: &[u8]) {
    const DISTANCE: usize = 4096;
    let mut sums = [0_u64; 32];
    for chunk in bytes.as_chunks::<256>().0 {
        if AHEAD {
            for line in chunk.chunks(64) {
                ask(line.as_ptr().wrapping_add(DISTANCE));
            }
        }
        for (sum, value) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*value));
        }
    }
    std::hint::black_box(sums);
}

/// Prefetches a line at any address into the second-level cache; does nothing on other architectures.
fn ask(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is in the baseline of x86-64, and a prefetch of any address has no observable effect.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
