//! The same product by each instruction set that the processor has.

use std::error::Error;

use gauntlet_kernels_cpu::{Engine, EngineOptions, SimdPath};
use gauntlet_problems::Form;
use serde_json::{Value, json};

use crate::Setting;
use crate::alternate::{Contender, Times, alternate};
use crate::operands::{Calls, copies, problem, schedule};
use crate::table::{heading, row};

const CASES: [[usize; 3]; 2] = [[64, 4096, 7168], [40, 7168, 2048]];

pub fn measure(setting: &Setting) -> Result<Value, Box<dyn Error>> {
    heading("instructions", &["ms", "GFLOP/s", "× portable"]);
    CASES.map(|shape| case(setting, shape)).into_iter().collect()
}

fn case(setting: &Setting, shape: [usize; 3]) -> Result<Value, Box<dyn Error>> {
    let problem = problem(shape, Form::Plain);
    let copies = copies(&problem, setting);
    let mut calls = Vec::new();
    for path in SimdPath::available() {
        let engine = Engine::new(EngineOptions {
            simd: Some(path),
            threads: Some(setting.threads),
            pinned: false,
        })?;
        let schedule = schedule(&engine, &problem, setting);
        let name = format!("{path} ({})", engine.dots());
        calls.push((name, Calls::new(&engine, &problem, &schedule, &copies)?));
    }
    let mut contenders: Vec<_> = calls
        .iter_mut()
        .map(|(name, calls)| Contender::timed(name.as_str(), |turn| calls.call(turn)))
        .collect();
    let times = alternate(setting.rounds, &mut contenders)?;
    let [m, n, k] = shape;
    let title = format!("{m}×{n}×{k}");
    let Some(portable) = times.last() else {
        return Err("no instruction set is available".into());
    };
    for own in &times {
        let middle = own.spread().middle;
        let cells = [
            format!("{:.3}", middle * 1e3),
            format!("{:.0}", 2.0 * (m * n * k) as f64 / middle / 1e9),
            own.speed_over(portable).to_string(),
        ];
        row(&format!("{title} {}", own.name), &cells);
    }
    Ok(json!({
        "case": title,
        "times": times.iter().map(Times::json).collect::<Vec<_>>(),
        "over-portable": times.iter().map(|own| own.speed_over(portable).json()).collect::<Vec<_>>(),
    }))
}
