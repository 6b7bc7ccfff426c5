//! The same product on one to all threads.

use std::error::Error;

use gauntlet_problems::Form;
use serde_json::{Value, json};

use crate::Setting;
use crate::alternate::{Contender, Times, alternate};
use crate::operands::{Calls, copies, problem, schedule};
use crate::table::{heading, row};

/// One shape that is bound by arithmetic, and one by memory.
const CASES: [[usize; 3]; 2] = [[192, 3072, 4096], [1, 4096, 7168]];

pub fn measure(setting: &Setting) -> Result<Value, Box<dyn Error>> {
    heading("threads", &["ms", "GFLOP/s", "× one thread"]);
    let mut found = Vec::new();
    for shape in CASES {
        let [m, n, k] = shape;
        let problem = problem(shape, Form::Plain);
        let copies = copies(&problem, setting);
        let counts = counts(setting.threads);
        let mut calls = Vec::new();
        for threads in &counts {
            let engine = setting.engine(*threads)?;
            let schedule = schedule(&engine, &problem, setting);
            calls.push(Calls::new(&engine, &problem, &schedule, &copies)?);
        }
        let mut contenders: Vec<_> = counts
            .iter()
            .zip(&mut calls)
            .map(|(threads, calls)| Contender::timed(threads.to_string(), |turn| calls.call(turn)))
            .collect();
        let times = alternate(setting.rounds, &mut contenders)?;
        for (threads, own) in counts.iter().zip(&times) {
            let (spread, over) = (own.spread(), own.speed_over(&times[0]));
            let rate = 2.0 * (m * n * k) as f64 / spread.middle / 1e9;
            let cells = [
                format!("{:.3}", spread.middle * 1e3),
                format!("{rate:.0}"),
                over.to_string(),
            ];
            row(&format!("{m}×{n}×{k} on {threads}"), &cells);
        }
        found.push(json!({
            "case": format!("{m}×{n}×{k}"),
            "times": times.iter().map(Times::json).collect::<Vec<_>>(),
            "over-one": times.iter().map(|own| own.speed_over(&times[0]).json()).collect::<Vec<_>>(),
        }));
    }
    Ok(found.into())
}

/// One, two, four and so on, and `threads`.
fn counts(threads: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..usize::BITS)
        .map(|power| 1 << power)
        .take_while(|count| *count < threads)
        .collect();
    counts.push(threads);
    counts
}
