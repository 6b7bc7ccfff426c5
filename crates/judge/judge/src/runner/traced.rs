//! The activity of each part of a device over time during a call, traced in a separate worker.

use gauntlet_device::Device;
use gauntlet_parameters::Parameters;
use gauntlet_task::{Case, InputKind, Sizes};
use serde::de::DeserializeOwned;

use crate::evidence::JudgeError;
use crate::runner::operands::Readers;
use crate::runner::rotation::{copies, last_level_cache};
use crate::runner::workshop::Workshop;

/// Size limit on a timeline's file: a million spans need a tenth of it.
const MAX_BYTES: u64 = 1 << 30;

/// The measured timeline of a call, on operands that rotate so that they are not in the cache.
///
/// # Errors
/// If a worker fails, writes no timelines, or writes an invalid one.
pub fn traced<Timeline: DeserializeOwned>(
    workshop: &Workshop,
    problem: &Sizes,
    schedule: &Parameters,
    device: &Device,
) -> Result<Timeline, JudgeError> {
    let case = Case {
        name: "traced".to_owned(),
        sizes: problem.clone(),
        inputs: InputKind::Wide,
        data: None,
        speed_of_light: None,
    };
    let (mut worker, _) = workshop.start_default().map_err(JudgeError::Executor)?;
    let (_, operands) = workshop.write_inputs(&case, case.inputs, rand::random(), Readers::Workers)?;
    worker.build(problem, schedule)?;
    let bytes = problem.input_bytes();
    worker.load(&[&operands], copies(bytes, last_level_cache(device)))?;
    worker.prepare()?;
    let written = worker.folder().join("timeline.json");
    worker.trace(&written)?;
    let no_timeline = |why: String| JudgeError::NoTimeline {
        path: written.clone(),
        why,
    };
    let taken = workshop
        .take(&written, MAX_BYTES)?
        .ok_or_else(|| no_timeline(format!("there is no file of at most {MAX_BYTES} bytes")))?;
    let text = std::fs::read(&taken).map_err(|error| no_timeline(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| no_timeline(error.to_string()))
}
