//! Calls this crate as a serving engine does, on made-up weights and tokens; checks the result against the f64 oracle,
//! and prints the cost of a call on the device and on the host, as JSON.
//!
//! `cargo run --release -p gauntlet-kernels-cuda --example serve -- [problem.json [schedule.toml]]`
//!
//! Operation and schedule are paths, or the text itself; without a schedule the choice is automatic.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gauntlet_cuda::driver::{Context, DeviceMemory, DriverError, Event};
use gauntlet_families::operations;
use gauntlet_kernels_cuda::api::{
    Buffers, CallPlan, Choice, Layer, LayerShape, Library, ProductShape, Queue, ServeError, Weights,
};
use gauntlet_kernels_cuda::plan::DEPTH_STEP;
use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{GroupInputs, GroupedGemm, Inputs, Operation, Output, Tokens};
use gauntlet_task::{ErrorMeasures, InputKind, Tolerance};
use serde_json::{Value, json};

const PROBLEM: &str = r#"{"family": "grouped-gemm", "groups": [
    {"m": 80, "n": 4096, "k": 7168}, {"m": 176, "n": 4096, "k": 7168}, {"m": 1, "n": 4096, "k": 7168}]}"#;
/// Calls that are timed on the host, and the number after which the device may catch up: a full queue makes the host
/// wait.
const HOST_CALLS: usize = 10_000;
const CALLS_BEFORE_WAITING: usize = 100;
/// Calls in a graph, and replays of it.
const GRAPH_CALLS: u32 = 20;
const REPLAYS: usize = 15;
/// Half a unit in the last place of f16 and a little, for sums in another order than the oracle's.
const TOLERANCE: Tolerance = Tolerance {
    relative: 1e-3,
    absolute: 1e-3,
};

fn main() -> ExitCode {
    match serve() {
        Ok(report) => {
            println!("{report:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<Value, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let problem: Operation = serde_json::from_str(&text(arguments.first().map_or(PROBLEM, String::as_str))?)?;
    problem.validate()?;
    let Operation::GroupedGemm(gemm) = &problem else {
        return Err("attention has no CUDA kernels here; give a grouped GEMM".into());
    };
    let choice = match arguments.get(1) {
        Some(schedule) => Choice::Fixed(toml::from_str(&text(schedule)?)?),
        None => Choice::Automatic,
    };

    // Once: the device, and the weights where they lie.
    let library = Library::new(0)?;
    let inputs = operations::generate(&problem, InputKind::Wide, 1);
    let Inputs::GroupedGemm(groups) = &inputs else {
        return Err("these are no operands of a GEMM".into());
    };
    let operands = Operands::upload(library.context(), groups)?;
    let output = DeviceMemory::new(library.context(), problem.output_bytes())?;
    let layer = Layer::new(&library, layer_shape(gemm), operands.weights.clone(), choice)?;
    let queue = Queue::new(&library)?;

    // Once for each list of token counts.
    let tokens: Vec<usize> = gemm.groups.iter().map(|shape| shape.m).collect();
    let began = Instant::now();
    let plan = layer.plan(&tokens)?;
    queue.reserve(&plan)?;
    let planned = began.elapsed();

    // In every call.
    let buffers = Buffers {
        tokens: operands.tokens.address(),
        token_scales: operands.token_scales.address(),
        output: output.address(),
    };
    output.fill(0xFF, queue.stream())?;
    // SAFETY: here and below, the buffers are of this problem, and all of it lives to the end of this function, which
    // waits for the stream.
    unsafe { queue.enqueue(&plan, &buffers) }?;
    let result = Output::new(&problem, output.read(queue.stream())?)?;

    let coverage = operations::sizes(&problem)?.coverage(1);
    let expected = operations::expected(&problem, &inputs, coverage)?;
    let errors = ErrorMeasures::between(&operations::output(&problem, &result), &expected, TOLERANCE);
    let host = host_times(&queue, &plan, &buffers)?;
    let device = device_time(&queue, &plan, &buffers)?;
    Ok(json!({
        "device": library.device().name,
        "kernel": plan.variant().to_string(),
        "schedule": plan.shape().schedule().to_string(),
        "right": errors.unwritten == 0 && errors.mismatches == 0,
        "errors": errors.to_string(),
        "first_plan_ms": planned.as_secs_f64() * 1e3,
        "device_us_in_a_graph": microseconds(device),
        "host_us_a_call": {
            "calls": host.len(),
            "median": microseconds(host[host.len() / 2]),
            "p99": microseconds(host[host.len() * 99 / 100]),
        },
    }))
}

/// Operands where an engine would have them.
struct Operands {
    tokens: DeviceMemory,
    token_scales: DeviceMemory,
    weights: Vec<Weights>,
    _matrices: Vec<DeviceMemory>,
}

impl Operands {
    fn upload(context: &Context, groups: &[GroupInputs]) -> Result<Self, DriverError> {
        let (mut tokens, mut token_scales) = (Vec::new(), Vec::new());
        let (mut weights, mut matrices) = (Vec::new(), Vec::new());
        for GroupInputs { a, b, b2 } in groups {
            match a {
                Tokens::Nvfp4(a) => {
                    tokens.extend(padded(a, a.packed(), 2));
                    token_scales.extend(padded(a, a.scales(), 16));
                }
                Tokens::Floats(a) => tokens.extend(&a.bytes),
            }
            let mut addresses = Weights::default();
            for (index, matrix) in [Some(b), b2.as_ref()].into_iter().flatten().enumerate() {
                let packed = DeviceMemory::from_bytes(context, &padded(matrix, matrix.packed(), 2))?;
                let scales = DeviceMemory::from_bytes(context, &padded(matrix, matrix.scales(), 16))?;
                addresses.packed[index] = packed.address();
                addresses.scales[index] = scales.address();
                addresses.scale[index] = a.tensor_scale() * matrix.tensor_scale();
                matrices.extend([packed, scales]);
            }
            weights.push(addresses);
        }
        Ok(Self {
            tokens: DeviceMemory::from_bytes(context, &tokens)?,
            token_scales: DeviceMemory::from_bytes(context, &token_scales)?,
            weights,
            _matrices: matrices,
        })
    }
}

/// The rows of a matrix with `values` values a byte, padded with zeros to the depth that kernels require.
fn padded(matrix: &Nvfp4Tensor, bytes: &[u8], values: usize) -> Vec<u8> {
    let row_bytes = matrix.columns() / values;
    let padding = matrix.columns().next_multiple_of(DEPTH_STEP) / values - row_bytes;
    let rows = bytes.chunks_exact(row_bytes);
    rows.flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0, padding)))
        .collect()
}

fn layer_shape(gemm: &GroupedGemm) -> LayerShape {
    let product = |shape: &gauntlet_problems::GemmShape| ProductShape {
        n: shape.n,
        k: shape.k,
    };
    LayerShape {
        products: gemm.groups.iter().map(product).collect(),
        form: gemm.form,
        output: gemm.output,
        tokens: gemm.tokens,
    }
}

/// The host's time for each of many calls, sorted.
fn host_times(queue: &Queue, plan: &CallPlan, buffers: &Buffers) -> Result<Vec<Duration>, ServeError> {
    let mut times = Vec::with_capacity(HOST_CALLS);
    for call in 0..HOST_CALLS {
        let began = Instant::now();
        // SAFETY: see `serve`.
        unsafe { queue.enqueue(plan, buffers) }?;
        times.push(began.elapsed());
        if call % CALLS_BEFORE_WAITING == 0 {
            queue.stream().synchronise()?;
        }
    }
    queue.stream().synchronise()?;
    times.sort_unstable();
    Ok(times)
}

/// The device's time of a call among others, by the median replay of a graph; operands that fit stay in the L2 cache.
fn device_time(queue: &Queue, plan: &CallPlan, buffers: &Buffers) -> Result<Duration, ServeError> {
    let stream = queue.stream();
    let graph = stream.capture(|| {
        // SAFETY: see `serve`.
        (0..GRAPH_CALLS).try_for_each(|_| unsafe { queue.enqueue(plan, buffers) })
    })?;
    let [start, end] = [Event::new(stream.context())?, Event::new(stream.context())?];
    let mut times = Vec::with_capacity(REPLAYS);
    for _ in 0..REPLAYS {
        start.record(stream)?;
        // SAFETY: see `serve`.
        unsafe { graph.launch(stream) }?;
        end.record(stream)?;
        stream.synchronise()?;
        times.push(end.since(&start)? / GRAPH_CALLS);
    }
    times.sort_unstable();
    Ok(times[REPLAYS / 2])
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The contents of a file, or the argument itself if it is not a file.
fn text(argument: &str) -> std::io::Result<String> {
    let path = Path::new(argument);
    match path.is_file() {
        true => std::fs::read_to_string(path),
        false => Ok(argument.to_owned()),
    }
}
