//! Timelines for a trace viewer, as a picture, and as sums. Simulated and measured timelines are treated alike.

mod grain;
mod picture;
mod roles;
mod scale;
mod trace;

use gauntlet_simulate::{Activity, Track};

pub use picture::timeline_picture;
pub use roles::timeline_roles;
pub use trace::{Trace, trace};

/// All activities, in the order in which a legend shows them.
const ACTIVITIES: [Activity; 10] = [
    Activity::Host,
    Activity::Launch,
    Activity::Lookup,
    Activity::Load,
    Activity::Convert,
    Activity::Multiply,
    Activity::Softmax,
    Activity::Store,
    Activity::Reduce,
    Activity::Wait,
];

/// The name of an activity.
fn name(activity: Activity) -> &'static str {
    match activity {
        Activity::Host => "host",
        Activity::Launch => "launch",
        Activity::Lookup => "look up",
        Activity::Load => "load",
        Activity::Convert => "convert",
        Activity::Multiply => "multiply",
        Activity::Softmax => "softmax",
        Activity::Store => "store",
        Activity::Reduce => "reduce",
        Activity::Wait => "wait",
    }
}

/// The name of a group of tracks: the processor, and the number of processors that do the same.
fn group(track: &Track) -> String {
    match (track.processor, track.alike) {
        (None, _) => "call".to_owned(),
        (Some(processor), 0 | 1) => format!("processor {processor}"),
        (Some(processor), alike) => format!("processor {processor} and {} alike", alike - 1),
    }
}
