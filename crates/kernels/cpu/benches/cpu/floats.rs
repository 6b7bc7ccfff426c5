//! Tokens without scales beside NVFP4 tokens, and beside f32 products of weights dequantised beforehand.

use std::error::Error;

use gauntlet_kernels_cpu::Engine;
use gauntlet_problems::{Form, Inputs, TokenFormat};
use serde_json::{Value, json};

use crate::Setting;
use crate::alternate::{Contender, Times, alternate};
use crate::operands::{Calls, copies, problem_of, schedule};
use crate::peers::Dense;
use crate::products::check;
use crate::table::{heading, row};

/// Tokens, weights, depth.
const CASES: [[usize; 3]; 5] = [
    [1, 4096, 7168],
    [16, 4096, 7168],
    [64, 4096, 7168],
    [248, 4096, 7168],
    [40, 7168, 2048],
];

/// The first is what the others are compared with.
const FORMATS: [TokenFormat; 4] = [
    TokenFormat::Nvfp4,
    TokenFormat::Bf16,
    TokenFormat::F16,
    TokenFormat::F32,
];

pub fn measure(setting: &Setting) -> Result<Value, Box<dyn Error>> {
    heading(
        "tokens without scales",
        &["ms", "GFLOP/s", "× nvfp4 tokens", "× gemm f32"],
    );
    let engine = setting.engine(setting.threads)?;
    CASES
        .map(|shape| case(setting, &engine, shape))
        .into_iter()
        .collect()
}

fn case(setting: &Setting, engine: &Engine, shape: [usize; 3]) -> Result<Value, Box<dyn Error>> {
    let problems = FORMATS.map(|format| problem_of(shape, Form::Plain, format));
    let copies = problems.each_ref().map(|problem| copies(problem, setting));
    let schedules = problems
        .each_ref()
        .map(|problem| schedule(engine, problem, setting));
    let mut calls = Vec::new();
    for ((problem, schedule), copies) in problems.iter().zip(&schedules).zip(&copies) {
        calls.push(Calls::new(engine, problem, schedule, copies)?);
    }
    let Inputs::GroupedGemm(groups) = &copies[1][0] else {
        return Err("a product has operands of a product".into());
    };
    let mut by_gemm = Dense::new(&groups[0], setting.threads);
    calls[1].call(0)?;
    check(&calls[1].result(), by_gemm.gemm())?;
    let mut contenders: Vec<_> = FORMATS
        .iter()
        .zip(&mut calls)
        .map(|(format, calls)| Contender::timed(format.to_string(), |turn| calls.call(turn)))
        .collect();
    contenders.push(Contender::timed("gemm", |_| {
        by_gemm.gemm();
        Ok(())
    }));
    let times = alternate(setting.rounds, &mut contenders)?;
    drop(contenders);
    let [m, n, k] = shape;
    let operations = 2.0 * (m * n * k) as f64;
    let (over_nvfp4, over_gemm) = (&times[0], &times[FORMATS.len()]);
    for own in &times {
        let middle = own.spread().middle;
        let cells = [
            format!("{:.3}", middle * 1e3),
            format!("{:.0}", operations / middle / 1e9),
            own.speed_over(over_nvfp4).to_string(),
            own.speed_over(over_gemm).to_string(),
        ];
        row(&format!("{m}×{n}×{k} {}", own.name), &cells);
    }
    Ok(json!({
        "case": format!("{m}×{n}×{k}"),
        "loops": FORMATS.map(|format| engine.loops(m, format)),
        "schedules": schedules,
        "operations": operations,
        "times": times.iter().map(Times::json).collect::<Vec<_>>(),
        "over-nvfp4": times.iter().map(|own| own.speed_over(over_nvfp4).json()).collect::<Vec<_>>(),
        "over-gemm": times.iter().map(|own| own.speed_over(over_gemm).json()).collect::<Vec<_>>(),
    }))
}
