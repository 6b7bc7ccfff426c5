//! Multiplies activations by an NVFP4 weight from a safetensors file. The plan is made once, and so is the packed weight.
//!
//! ```sh
//! cargo run --release -p gauntlet-kernels-cpu --example linear                        # a made-up layer of 4096 × 7168
//! cargo run --release -p gauntlet-kernels-cpu --example linear -- FILE NAME           # the layer `NAME` of a checkpoint
//! ```
//!
//! The file may have been written by ModelOpt (`NAME.weight`, `NAME.weight_scale`, `NAME.weight_scale_2`) or by
//! compressed-tensors (`NAME.weight_packed`, `NAME.weight_scale`, `NAME.weight_global_scale`). The example prints which
//! of the two it found, and ends with an error where it found neither: see [`gauntlet_nvfp4::checkpoint`].

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gauntlet_kernels_cpu::{Engine, EngineOptions, GemmOperands, Weights};
use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_nvfp4::checkpoint::{self, Layer};
use gauntlet_problems::{Form, GemmShape, GroupedGemm, Operation, Output, OutputFormat};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize_to_file};

const TOKENS: usize = 32;
const CALLS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scratch = tempfile::tempdir()?;
    let (file, name) = match arguments.as_slice() {
        [] => (made_up(scratch.path())?, "layer".to_owned()),
        [file, name] => (PathBuf::from(file), name.clone()),
        _ => return Err("expected nothing, or a file and the name of a layer in it".into()),
    };
    let Layer {
        layout,
        weight: weights,
    } = read(&file, &name)?;
    let (n, k) = (weights.rows(), weights.columns());

    // A plan needs the shapes alone, no operands.
    let engine = Engine::new(EngineOptions::default())?;
    let gemm = GroupedGemm {
        groups: vec![GemmShape { m: TOKENS, n, k }],
        form: Form::Plain,
        output: OutputFormat::Bf16,
        tokens: Default::default(),
    };
    let schedule = engine.recommend(&gemm);
    let problem = Operation::GroupedGemm(gemm);
    let mut kernel = engine.build(&problem, &schedule)?;
    println!(
        "{name}, stored as {layout} does: {TOKENS} × {n} × {k} on {} threads of {}, tile {:?}",
        engine.threads(),
        engine.dots(),
        schedule.tile
    );

    let tokens = Nvfp4Tensor::quantise(TOKENS, k, &wave(TOKENS * k))?;
    let packed = kernel.pack_weights(&weights)?;
    let mut output = Output::poisoned(&problem);
    for (what, b) in [
        ("as it is", Weights::Tensor(&weights)),
        ("packed once", Weights::Packed(&packed)),
    ] {
        let operands = [GemmOperands {
            a: (&tokens).into(),
            b,
            b2: None,
        }];
        kernel.run_gemm(&operands, &mut output)?;
        let start = Instant::now();
        for _ in 0..CALLS {
            kernel.run_gemm(&operands, &mut output)?;
        }
        let seconds = start.elapsed().as_secs_f64() / f64::from(CALLS);
        let flop = 2.0 * (TOKENS * n * k) as f64;
        println!(
            "weight {what:11}  {:7.3} ms  {:5.0} GFLOP/s  first results {:?}",
            seconds * 1e3,
            flop / seconds / 1e9,
            [0, 1, 2].map(|at| output.get(at))
        );
    }
    Ok(())
}

/// Reads one layer's weight.
fn read(file: &Path, name: &str) -> Result<Layer, Box<dyn Error>> {
    let at_fault = |error: &dyn Error| format!("{}: {error}", file.display());
    let bytes = std::fs::read(file).map_err(|error| at_fault(&error))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| at_fault(&error))?;
    Ok(checkpoint::read(&tensors, name).map_err(|error| at_fault(&error))?)
}

/// Writes a checkpoint of one layer as ModelOpt does.
fn made_up(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    const N: usize = 4096;
    const K: usize = 7168;
    let weights = Nvfp4Tensor::quantise(N, K, &wave(N * K))?;
    let scale = weights.tensor_scale().to_le_bytes();
    let file = folder.join("made-up.safetensors");
    let tensors = [
        (
            "layer.weight",
            TensorView::new(Dtype::U8, vec![N, K / 2], weights.packed())?,
        ),
        (
            "layer.weight_scale",
            TensorView::new(Dtype::F8_E4M3, vec![N, K / 16], weights.scales())?,
        ),
        (
            "layer.weight_scale_2",
            TensorView::new(Dtype::F32, vec![1], &scale)?,
        ),
    ];
    serialize_to_file(tensors, None, &file)?;
    Ok(file)
}

/// Values that are neither constant nor random.
fn wave(length: usize) -> Vec<f32> {
    (0..length).map(|at| (at as f32 * 0.37).sin() * 1.5).collect()
}
