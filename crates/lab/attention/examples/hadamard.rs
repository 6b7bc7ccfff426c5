//! What quantising attention's operands costs in accuracy, with and without Hadamard mixing of Q and K.
//!
//! ```sh
//! cargo run --release -p gauntlet-attention --example hadamard -- [--json FILE]
//! ```

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use gauntlet_attention::{generate, grids};
use gauntlet_problems::{
    Attention, AttentionFormat, AttentionInputs, HeadTensor, OutputFormat, Scaling, Sequence, hadamard,
};
use gauntlet_task::{Coverage, Grid, InputKind};
use serde::Serialize;
use serde_json::json;

const HEADS: usize = 4;
const POSITIONS: usize = 512;
const HEAD_SIZE: usize = 64;

/// Measures what quantising attention's operands costs, with and without Hadamard mixing of Q and K.
#[derive(Parser)]
struct Arguments {
    /// Draws of operands that are averaged over.
    #[arg(long, default_value_t = 8)]
    seeds: u64,
    /// Writes the table here as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Normalised root mean square errors, of all draws together.
#[derive(Serialize)]
struct Row {
    inputs: String,
    format: String,
    scaling: String,
    mixed: bool,
    /// Of Q·Kᵀ.
    scores: f64,
    /// Of attention's result, V quantised as well.
    attention: f64,
}

/// Sums of squares of errors and of the expected values.
#[derive(Default)]
struct Squares {
    error: f64,
    power: f64,
}

impl Squares {
    fn add(&mut self, found: impl Iterator<Item = f64>, wanted: impl Iterator<Item = f64>) {
        for (found, wanted) in found.zip(wanted) {
            self.error += (found - wanted).powi(2);
            self.power += wanted.powi(2);
        }
    }

    fn nrmse(&self) -> f64 {
        (self.error / self.power).sqrt()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut rows = Vec::new();
    println!(
        "{:12} {:6} {:10} {:>6} {:>10} {:>10}",
        "inputs", "format", "scales", "mixed", "scores", "attention"
    );
    for kind in [InputKind::Competition, InputKind::Outliers] {
        for format in [AttentionFormat::E4m3, AttentionFormat::Int8] {
            for scaling in Scaling::ALL {
                for mixed in [false, true] {
                    let row = measure(kind, format, scaling, mixed, arguments.seeds);
                    let Row {
                        inputs,
                        format,
                        scaling,
                        mixed,
                        scores,
                        attention,
                    } = &row;
                    println!(
                        "{inputs:12} {format:6} {scaling:10} {mixed:>6} {scores:10.2e} {attention:10.2e}"
                    );
                    rows.push(row);
                }
            }
        }
    }
    if let Some(path) = arguments.json {
        let shape = json!({ "batch": 1, "heads": HEADS, "positions": POSITIONS, "head_size": HEAD_SIZE });
        let report = json!({ "shape": shape, "seeds": arguments.seeds, "rows": rows });
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(())
}

fn attention(format: AttentionFormat, scaling: Scaling) -> Attention {
    Attention {
        sequences: vec![Sequence {
            queries: POSITIONS,
            keys: POSITIONS,
        }],
        heads: HEADS,
        kv_heads: HEADS,
        head_size: HEAD_SIZE,
        causal: false,
        format,
        scaling,
        output: OutputFormat::F32,
    }
}

fn measure(kind: InputKind, format: AttentionFormat, scaling: Scaling, mixed: bool, seeds: u64) -> Row {
    let (mut scores, mut results) = (Squares::default(), Squares::default());
    for seed in 0..seeds {
        // Values of f16 stand for the unquantised ones.
        let unquantised = attention(AttentionFormat::F16, Scaling::default());
        let exact = generate(&unquantised, kind, seed);
        let wanted = results_of(&unquantised, &exact);
        let quantise = |tensor: &HeadTensor, mixed: bool| {
            let mut values: Vec<f32> = tensor.dequantise(0..tensor.len()).collect();
            if mixed {
                hadamard::mix(&mut values, HEAD_SIZE);
            }
            let heads: Vec<Vec<f32>> = values
                .chunks(POSITIONS * HEAD_SIZE)
                .map(<[f32]>::to_vec)
                .collect();
            HeadTensor::quantise(format, scaling, HEAD_SIZE, &heads)
        };
        let quantised = AttentionInputs {
            query: quantise(&exact.query, mixed),
            key: quantise(&exact.key, mixed),
            value: quantise(&exact.value, false),
        };
        let products = |inputs: &AttentionInputs, scaling| {
            products(&values(&inputs.query, scaling), &values(&inputs.key, scaling))
        };
        let (found, expected) = (
            products(&quantised, scaling),
            products(&exact, Scaling::default()),
        );
        scores.add(found.into_iter(), expected.into_iter());
        let found = results_of(&attention(format, scaling), &quantised);
        results.add(found.into_iter(), wanted.into_iter());
    }
    Row {
        inputs: kind.to_string(),
        format: format.to_string(),
        scaling: scaling.to_string(),
        mixed,
        scores: scores.nrmse(),
        attention: results.nrmse(),
    }
}

/// Every element of attention's result, computed in f64.
fn results_of(attention: &Attention, inputs: &AttentionInputs) -> Vec<f64> {
    let heads = grids(attention, inputs, Coverage::Full);
    let elements = heads.iter().flatten().flat_map(Grid::elements);
    elements.map(|(_, _, value)| value).collect()
}

/// The values of a tensor.
fn values(tensor: &HeadTensor, scaling: Scaling) -> Vec<f64> {
    let value = |(at, element): (usize, f32)| {
        let (head, position) = (at / HEAD_SIZE / POSITIONS, at / HEAD_SIZE % POSITIONS);
        let scale = tensor.scales[head * scaling.count(POSITIONS) + scaling.place(position)];
        f64::from(element) * f64::from(scale)
    };
    tensor
        .dequantise(0..tensor.len())
        .enumerate()
        .map(value)
        .collect()
}

/// Every query's product with every key of its head.
fn products(query: &[f64], key: &[f64]) -> Vec<f64> {
    let heads = query
        .chunks(POSITIONS * HEAD_SIZE)
        .zip(key.chunks(POSITIONS * HEAD_SIZE));
    let pairs = heads.flat_map(|(query, key)| {
        query
            .chunks(HEAD_SIZE)
            .flat_map(move |query| key.chunks(HEAD_SIZE).map(move |key| (query, key)))
    });
    pairs
        .map(|(query, key)| query.iter().zip(key).map(|(query, key)| query * key).sum())
        .collect()
}
