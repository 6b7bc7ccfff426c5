//! Where the time goes: the gap from the roofline to a prediction, in parts that add up.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One reason why a prediction is above the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Work of the host in each call.
    Host,
    /// Getting the kernel started (on a CPU: waking the threads, once a wave).
    Launch,
    /// From the first block to all at work.
    Ramp,
    /// Products of rows and columns beyond the problem.
    Padding,
    /// Processors without a tile: incomplete waves, unequal shares.
    Idle,
    /// Pipelines that fill at a tile's start and drain at its end.
    FillAndDrain,
    /// Multiplying that waits for copies in the steady state.
    Copy,
    /// Multiplying that waits for operands to be converted.
    Conversion,
    /// Waiting at barriers, and signalling.
    Barriers,
    /// Results on their way out while nothing multiplies.
    Epilogue,
    /// Processors in one another's way: memory, caches, units shared by blocks.
    Contention,
    /// After the last product.
    Tail,
}

impl Part {
    /// All parts, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::Host,
        Self::Launch,
        Self::Ramp,
        Self::Padding,
        Self::Idle,
        Self::FillAndDrain,
        Self::Copy,
        Self::Conversion,
        Self::Barriers,
        Self::Epilogue,
        Self::Contention,
        Self::Tail,
    ];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Launch => "launch",
            Self::Ramp => "ramp",
            Self::Padding => "padding",
            Self::Idle => "idle processors",
            Self::FillAndDrain => "fill and drain",
            Self::Copy => "exposed copy",
            Self::Conversion => "exposed conversion",
            Self::Barriers => "barriers",
            Self::Epilogue => "epilogue",
            Self::Contention => "contention",
            Self::Tail => "tail",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A prediction taken apart: the roofline and what comes on top, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// The time at the highest rates, every operand moved once, nothing padded.
    pub roofline: f64,
    /// What comes on top, every part once, in the order of [`Part::ALL`].
    pub parts: Vec<PartTime>,
}

/// One part with its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartTime {
    /// Which.
    pub part: Part,
    /// How much of the prediction.
    pub seconds: f64,
}

impl Breakdown {
    /// The prediction: the roofline and all parts.
    pub fn total(&self) -> f64 {
        self.roofline + self.parts.iter().map(|part| part.seconds).sum::<f64>()
    }

    /// The time of one part.
    pub fn part(&self, part: Part) -> f64 {
        self.parts
            .iter()
            .filter(|entry| entry.part == part)
            .map(|entry| entry.seconds)
            .sum()
    }
}
