//! What each part of a device does when, in a call: asked of a worker of its own.

use gauntlet_device::Device;
use gauntlet_model::Timeline;
use gauntlet_problem::{Case, InputKind, Problem};
use gauntlet_schedule::Schedule;

use crate::comparison::{copies, last_level_cache};
use crate::error::LabError;
use crate::workshop::Workshop;

/// What a timeline's file may take: a million spans have a tenth of it.
const MOST_BYTES: u64 = 1 << 30;

/// A call's measured timeline, on operands that calls rotated over so that the cache does not have them.
///
/// # Errors
/// If a worker fails, writes no timelines, or what it writes is none.
pub fn traced(
    workshop: &Workshop,
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
) -> Result<Timeline, LabError> {
    let case = Case {
        name: "traced".to_owned(),
        problem: problem.clone(),
        inputs: InputKind::Wide,
        data: None,
        speed_of_light: None,
    };
    let (mut worker, _) = workshop.start_default().map_err(LabError::Executor)?;
    let (inputs, operands) = workshop.write_inputs(&case, case.inputs, rand::random())?;
    worker.build(problem, schedule)?;
    let bytes = inputs.memory_bytes() as u64;
    worker.load(&[&operands], copies(bytes, last_level_cache(device)))?;
    let written = worker.folder().join("timeline.json");
    worker.trace(&written)?;
    let no_timeline = |why: String| LabError::NoTimeline {
        path: written.clone(),
        why,
    };
    let taken = workshop
        .take(&written, MOST_BYTES)?
        .ok_or_else(|| no_timeline(format!("there is no file of at most {MOST_BYTES} bytes")))?;
    let text = std::fs::read(&taken).map_err(|error| no_timeline(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| no_timeline(error.to_string()))
}
