//! Timelines: spans of activity on tracks. Simulated and measured timelines have the same form.

use gauntlet_parameters::named;
use serde::{Deserialize, Serialize};

/// The timeline of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// From the start of the call to its end.
    pub seconds: f64,
    /// One track per unit or role of a processor, and one for the host.
    pub tracks: Vec<Track>,
}

/// The activities of one unit or role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Track {
    /// The multiprocessor (thread of a CPU); `None` for the host and the whole device.
    pub processor: Option<usize>,
    /// The number of processors with the same activities that this track represents, this one included.
    pub alike: usize,
    /// The role or unit.
    pub name: String,
    /// Non-overlapping spans in order of time.
    pub spans: Vec<Span>,
}

/// One activity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The kind of activity.
    pub activity: Activity,
    /// Seconds since the start of the call.
    pub start: f64,
    /// Seconds since the start of the call.
    pub end: f64,
    /// The tile, if the activity belongs to one.
    pub tile: Option<usize>,
    /// The step of the tile, if the activity belongs to one.
    pub step: Option<usize>,
}

named! {
    /// Kinds of activity.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Activity {
        /// Host work.
        Host = "host",
        /// Starting the kernel.
        Launch = "launch",
        /// Finding the group, making descriptors.
        Lookup = "look up",
        /// Copying operands.
        Load = "load",
        /// Converting operands.
        Convert = "convert",
        /// Multiplying.
        Multiply = "multiply",
        /// Exponentials.
        Softmax = "softmax",
        /// Writing results.
        Store = "store",
        /// Adding up parts of split sums.
        Reduce = "reduce",
        /// Waiting.
        Wait = "wait",
    }
}
