//! Describes the machine of a measurement.

use std::error::Error;

use gauntlet_cuda::driver::driver_version;
use gauntlet_cuda::nvml;
use gauntlet_kernels_cuda::Engine;
use gauntlet_kernels_cuda::plan::Target;
use serde_json::{Value, json};

/// Names the built commit, since a program does not know its own.
const COMMIT_VARIABLE: &str = "GAUNTLET_COMMIT";

/// The GPU's engine, or an error that says what is missing and how to get it: a driver, a GPU that can run the kernels,
/// or a compiler.
pub fn engine() -> Result<Engine, Box<dyn Error>> {
    let needs = |error: &dyn Error| format!("this program needs an NVIDIA GPU from A100 to Hopper: {error}");
    let engine = Engine::new(0).map_err(|error| needs(&error))?;
    Target::of_gpu(engine.device()).map_err(|error| needs(&error))?;
    engine.compiler()?;
    Ok(engine)
}

/// Device, driver, compiler, commit and date.
pub fn describe(engine: &Engine) -> Value {
    let device = engine.device();
    let version = driver_version().unwrap_or(0);
    json!({
        "device": device.name,
        "multiprocessors": device.processors,
        "l2_bytes": device.l2_bytes,
        "driver": nvml::driver_name().unwrap_or_else(|error| error.to_string()),
        "driver_cuda": format!("{}.{}", version / 1000, version % 1000 / 10),
        "nvrtc": engine.compiler().map_or_else(|error| error.to_string(), |compiler| compiler.version().to_string()),
        "commit": std::env::var(COMMIT_VARIABLE).unwrap_or_else(|_| "unknown".to_owned()),
        "date": jiff::Timestamp::now().to_string(),
    })
}
