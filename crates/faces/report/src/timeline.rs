//! Timelines for a trace viewer, as a picture, and as sums. Simulated and measured timelines are treated alike.

mod grain;
mod picture;
mod roles;
mod scale;
mod trace;

use gauntlet_simulate::Track;

pub use picture::timeline_picture;
pub use roles::timeline_roles;
pub use trace::{Trace, trace};

/// The name of a group of tracks: the processor, and the number of processors that do the same.
fn group(track: &Track) -> String {
    match (track.processor, track.alike) {
        (None, _) => "call".to_owned(),
        (Some(processor), 0 | 1) => format!("processor {processor}"),
        (Some(processor), alike) => format!("processor {processor} and {} alike", alike - 1),
    }
}
