//! Where the time goes: the gap from the roofline to a prediction, in parts that add up to it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A reason why a prediction is above the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Host work in each call.
    Host,
    /// Starting the kernel (on a CPU: waking the threads, once per wave).
    Launch,
    /// The time from the first block's start until all blocks work.
    Ramp,
    /// Products of rows and columns beyond the problem.
    Padding,
    /// Processors without a tile: incomplete waves, unequal shares.
    Idle,
    /// Filling the pipeline at a tile's start and draining it at its end.
    FillAndDrain,
    /// Multiplying waits for copies in the steady state.
    Copy,
    /// Multiplying waits for operands to be converted.
    Conversion,
    /// Barriers and signals.
    Barriers,
    /// Writing results while nothing multiplies.
    Epilogue,
    /// Contention between processors: memory, caches, units that blocks share.
    Contention,
    /// The time after the last product.
    Tail,
}

impl Part {
    /// All parts, in display order.
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

    /// The name in tables.
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

/// The breakdown of a prediction: the roofline and the further parts, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// The time at the highest rates, with every operand moved once and no padding.
    pub roofline: f64,
    /// The further parts, each once, in the order of [`Part::ALL`].
    pub parts: Vec<PartTime>,
}

/// One part with its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartTime {
    /// The part.
    pub part: Part,
    /// Its share of the prediction.
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
