//! Where the time goes: the gap from the roofline to a prediction, in parts that add up to it.

use gauntlet_parameters::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
    /// A reason why a prediction is above the roofline.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Part {
        /// Host work in each call.
        Host = "host",
        /// Starting the kernel (on a CPU: waking the threads, once per wave).
        Launch = "launch",
        /// The time from the first block's start until all blocks work.
        Ramp = "ramp",
        /// Products of rows and columns beyond the problem.
        Padding = "padding",
        /// Processors without a tile: incomplete waves, unequal shares.
        Idle = "idle processors",
        /// Filling the pipeline at a tile's start and draining it at its end.
        FillAndDrain = "fill and drain",
        /// Multiplying waits for copies in the steady state.
        Copy = "exposed copy",
        /// Multiplying waits for operands to be converted.
        Conversion = "exposed conversion",
        /// Barriers and signals.
        Barriers = "barriers",
        /// Writing results while nothing multiplies.
        Epilogue = "epilogue",
        /// Contention between processors: memory, caches, units that blocks share.
        Contention = "contention",
        /// The time after the last product.
        Tail = "tail",
    }
}

/// The breakdown of a prediction: the roofline and the further parts, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// The time at the highest rates, with every operand moved once and no padding.
    pub roofline: f64,
    /// The further parts, each once, in the order of [`Part::ALL`].
    pub parts: Vec<PartTime>,
}

/// One part with its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
