//! Multiplies activations by an NVFP4 weight out of a safetensors file, planned once and packed once.
//!
//! ```sh
//! cargo run --release -p gauntlet-cpu --example linear                        # a made-up layer of 4096 × 7168
//! cargo run --release -p gauntlet-cpu --example linear -- FILE NAME           # `NAME.weight` of a checkpoint
//! ```
//!
//! In the file `NAME.weight` is U8 `[n, k / 2]`, two codes a byte, `NAME.weight_scale` F8_E4M3 `[n, k / 16]`, and
//! `NAME.weight_scale_2` one F32, as checkpoints quantised for NVFP4 hold them.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gauntlet_cpu::{Engine, EngineOptions, GemmOperands, Weights};
use gauntlet_formats::Nvfp4Tensor;
use gauntlet_problem::{Form, GemmShape, GroupedGemm, Output, OutputFormat, Problem};
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
    let weights = read(&file, &name)?;
    let (n, k) = (weights.rows(), weights.columns());

    // Shapes make a plan, without any operand.
    let engine = Engine::new(EngineOptions::default())?;
    let gemm = GroupedGemm {
        groups: vec![GemmShape { m: TOKENS, n, k }],
        form: Form::Plain,
        output: OutputFormat::Bf16,
    };
    let schedule = engine.recommend(&gemm);
    let problem = Problem::GroupedGemm(gemm);
    let mut kernel = engine.build(&problem, &schedule)?;
    println!(
        "{name}: {TOKENS} × {n} × {k} on {} threads of {}, tile {:?}",
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
            a: &tokens,
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
fn read(file: &Path, name: &str) -> Result<Nvfp4Tensor, Box<dyn Error>> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let tensors = SafeTensors::deserialize(&bytes)?;
    let tensor = |suffix: &str| {
        let full = format!("{name}.{suffix}");
        tensors
            .tensor(&full)
            .map_err(|error| format!("{}: {full}: {error}", file.display()))
    };
    let (codes, scales) = (tensor("weight")?, tensor("weight_scale")?);
    let [n, half] = *codes.shape() else {
        return Err(format!("{name}.weight has shape {:?}; expected [n, k / 2]", codes.shape()).into());
    };
    let scale = match tensor("weight_scale_2") {
        Ok(scale) => f32::from_le_bytes(scale.data().try_into()?),
        Err(_) => 1.0,
    };
    let (codes, scales) = (codes.data().to_vec(), scales.data().to_vec());
    Ok(Nvfp4Tensor::new(n, 2 * half, codes, scales, scale)?)
}

/// Writes a checkpoint of one layer.
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

/// Something that is neither constant nor random.
fn wave(length: usize) -> Vec<f32> {
    (0..length).map(|at| (at as f32 * 0.37).sin() * 1.5).collect()
}
