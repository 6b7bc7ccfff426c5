//! How long the system let threads wait for a processor while they were timed.

use gauntlet_stats::Block;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::slot::Slot;

/// How long the threads of both sides waited for a processor while they were timed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Waiting {
    /// Seconds that they waited.
    pub waited: f64,
    /// Seconds that they ran.
    pub ran: f64,
    /// Pairs of slots timed side by side.
    pub slots: usize,
    /// Those in which neither side waited long, by their typical calls.
    pub undisturbed: Vec<Block>,
}

/// A slot in which threads wait for more than this share of the time in which they could run is disturbed.
const DISTURBED: f64 = 0.05;

impl Waiting {
    pub fn of(process: usize, [baseline, candidate]: [&[Slot]; 2]) -> Option<Self> {
        let mut waiting = Self::default();
        for (baseline, candidate) in baseline.iter().zip(candidate) {
            let mut longest: f64 = 0.0;
            for effort in [baseline.effort, candidate.effort] {
                waiting.waited += effort.waited?;
                waiting.ran += effort.cpu?;
                longest = longest.max(effort.waiting()?);
            }
            waiting.slots += 1;
            if longest <= DISTURBED {
                let block = Block::new(process, vec![baseline.typical], vec![candidate.typical]);
                waiting.undisturbed.push(block);
            }
        }
        Some(waiting)
    }
}
