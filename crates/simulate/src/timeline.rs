//! What happens when: spans of activity on tracks. Simulated and measured timelines have the same form.

use serde::{Deserialize, Serialize};

/// What happens when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// From the start of the call to its end.
    pub seconds: f64,
    /// One a unit or role of a processor, and one for the host.
    pub tracks: Vec<Track>,
}

/// What one unit or role does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Track {
    /// The multiprocessor (thread of a CPU); none for the host and the whole device.
    pub processor: Option<usize>,
    /// How many processors do the same at the same time and are not shown apart, this one included.
    pub alike: usize,
    /// The role or unit.
    pub name: String,
    /// Without overlap, in order of time.
    pub spans: Vec<Span>,
}

/// One activity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// What is done.
    pub activity: Activity,
    /// Seconds since the start of the call.
    pub start: f64,
    /// Seconds since the start of the call.
    pub end: f64,
    /// The tile, if it is for one.
    pub tile: Option<usize>,
    /// The step of the tile, if it is for one.
    pub step: Option<usize>,
}

/// What is done in a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Work of the host.
    Host,
    /// Starting the kernel.
    Launch,
    /// Finding the group, making descriptors.
    Lookup,
    /// Copying operands.
    Load,
    /// Converting operands.
    Convert,
    /// Multiplying.
    Multiply,
    /// Exponentials.
    Softmax,
    /// Results on their way out.
    Store,
    /// Adding up parts of split sums.
    Reduce,
    /// Waiting.
    Wait,
}
