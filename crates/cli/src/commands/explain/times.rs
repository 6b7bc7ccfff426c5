//! What measured times alone say.

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_schedule::Schedule;

use crate::exit::Exit;
use crate::trouble::Trouble;

/// Diagnoses the times of a file.
pub fn explain(file: &Path, _schedule: &Schedule, _device: &Device, _json: bool) -> Result<Exit, Trouble> {
    Err(Trouble::bad_input(
        format!("{} cannot be diagnosed yet", file.display()),
        "wait for the next version",
    ))
}
