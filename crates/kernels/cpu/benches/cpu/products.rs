//! NVFP4 products compared with f32 products of operands dequantised beforehand.

use std::error::Error;

use gauntlet_problems::{Form, Inputs};
use serde_json::{Value, json};

use crate::Setting;
use crate::alternate::{Contender, Times, alternate};
use crate::operands::{Calls, copies, problem, schedule};
use crate::peers::Dense;
use crate::table::{heading, row};

/// Tokens, weights, depth.
const CASES: [[usize; 3]; 4] = [
    [64, 4096, 7168],
    [40, 7168, 2048],
    [248, 4096, 7168],
    [192, 3072, 4096],
];

/// The relative difference of the two results that f16 and a different order of summation explain.
const TOLERANCE: f64 = 2e-3;

pub fn measure(setting: &Setting) -> Result<Value, Box<dyn Error>> {
    heading(
        "products",
        &["ms", "GFLOP/s", "× gemm f32", "share of inner loop"],
    );
    let plain = CASES.map(|shape| (shape, Form::Plain));
    let dual = CASES.map(|shape| (shape, Form::Swiglu));
    let cases = plain.into_iter().chain(dual);
    cases.map(|(shape, form)| case(setting, shape, form)).collect()
}

fn case(setting: &Setting, shape: [usize; 3], form: Form) -> Result<Value, Box<dyn Error>> {
    let problem = problem(shape, form);
    let engine = setting.engine(setting.threads)?;
    let schedule = schedule(&engine, &problem, setting);
    let copies = copies(&problem, setting);
    let mut calls = Calls::new(&engine, &problem, &schedule, &copies)?;
    let Inputs::GroupedGemm(groups) = &copies[0] else {
        return Err("a product has operands of a product".into());
    };
    let mut by_gemm = Dense::new(&groups[0], setting.threads);
    calls.call(0)?;
    check(&calls.result(), by_gemm.gemm())?;
    let products = if form == Form::Swiglu { 2.0 } else { 1.0 };
    let operations = 2.0 * products * shape.iter().product::<usize>() as f64;
    let times = alternate(
        setting.rounds,
        &mut [
            Contender::timed("gauntlet", |turn| calls.call(turn)),
            Contender::timed("gemm", |_| {
                by_gemm.gemm();
                Ok(())
            }),
            // The register block alone, for as many multiply-adds.
            Contender {
                name: "inner loop".to_owned(),
                turn: Box::new(|_| Ok(operations / 2.0 / engine.inner_loop_rate(shape[0])?)),
            },
        ],
    )?;
    let [m, n, k] = shape;
    let title = format!("{m}×{n}×{k}{}", if products > 1.0 { " dual" } else { "" });
    let ours = times[0].spread();
    let [over, share] = [1, 2].map(|other| times[0].speed_over(&times[other]));
    let rate = operations / ours.middle / 1e9;
    let cells = [
        format!("{:.3}", ours.middle * 1e3),
        format!("{rate:.0}"),
        over.to_string(),
        share.to_string(),
    ];
    row(&title, &cells);
    Ok(json!({
        "case": title,
        "schedule": schedule,
        "operations": operations,
        "times": times.iter().map(Times::json).collect::<Vec<_>>(),
        "over-gemm": over.json(),
        "share-of-inner-loop": share.json(),
    }))
}

/// Checks that both computed the same function.
pub fn check(ours: &[f32], theirs: &[f32]) -> Result<(), Box<dyn Error>> {
    let power = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let mut differences = ours
        .iter()
        .zip(theirs)
        .map(|(ours, theirs)| f64::from(*ours) - f64::from(*theirs));
    let error = (power(&mut differences) / power(&mut theirs.iter().map(|value| f64::from(*value)))).sqrt();
    if error > TOLERANCE || error.is_nan() {
        return Err(
            format!("the results differ by {error:e} of their size, so the times compare nothing").into(),
        );
    }
    Ok(())
}
