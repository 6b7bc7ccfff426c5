//! Bytes by memory level.

use gauntlet_device::Device;
use gauntlet_problems::{Epilogue, Schedule};

use super::costs::Costs;
use super::ideal::Ideal;
use super::plan::Plan;
use crate::Problem;
use crate::estimate::MissingFigure;

/// Bytes that a schedule moves on a GPU, without tile padding if copies skip it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// From and to memory; data that a cache cannot hold are moved again.
    pub memory: f64,
    /// From and to the second-level cache. Data that a cluster shares count once.
    pub cache: f64,
    /// Into and out of shared memory, by copies, conversions, products and staged results.
    pub shared: f64,
}

impl Traffic {
    /// The traffic of a call.
    ///
    /// # Errors
    /// [`MissingFigure`] if the device is not a GPU or its description lacks a figure that a simulation needs.
    pub fn of(problem: &Problem, schedule: &Schedule, device: &Device) -> Result<Self, MissingFigure> {
        let plan = Plan::of(problem, schedule, device)?;
        let costs = plan.costs(&plan.machine, Ideal::default());
        let mut traffic = Self::default();
        for (kind, costs) in plan.kinds.iter().zip(&costs) {
            let blocks = kind.count as f64 * kind.filled * plan.bundle.processors() as f64;
            traffic.add(&of_a_block(costs, schedule.epilogue), blocks);
        }
        Ok(traffic)
    }

    fn add(&mut self, other: &Self, times: f64) {
        self.memory += other.memory * times;
        self.cache += other.cache * times;
        self.shared += other.shared * times;
    }
}

fn of_a_block(costs: &Costs, epilogue: Epilogue) -> Traffic {
    let steps = costs.steps as f64;
    let (operands, queries, results) = (costs.operands[0], costs.queries[0], costs.store);
    let staged = if epilogue == Epilogue::Staged {
        2.0 * costs.staged_bytes
    } else {
        0.0
    };
    Traffic {
        memory: steps * operands.memory + queries.memory + results.memory,
        cache: steps * operands.cached + queries.cached + results.cached,
        shared: steps * costs.shared_bytes + queries.cached + staged,
    }
}
