//! The time at the highest rates.

use gauntlet_device::Device;

use super::machine::Machine;
use crate::Problem;
use crate::count;
use crate::estimate::{Bound, MissingFigure};

/// The two sides of the roofline, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Roofline {
    products: f64,
    memory: f64,
}

impl Roofline {
    /// Every operand moved once at the published bandwidth, nothing padded, at the boost clock.
    pub(super) fn of(problem: &Problem, device: &Device) -> Result<Self, MissingFigure> {
        Self::beyond(problem, device, 0.0)
    }

    /// The same, except for `kept` bytes, which a cache holds.
    pub(super) fn beyond(problem: &Problem, device: &Device, kept: f64) -> Result<Self, MissingFigure> {
        let machine = Machine::of(device, problem)?;
        let rate = machine.product_rate * machine.processors as f64 * machine.boost;
        Ok(Self {
            products: count::flops(problem) / rate,
            memory: (count::bytes(problem) - kept).max(0.0) / machine.published_bandwidth,
        })
    }

    pub(super) fn seconds(self) -> f64 {
        self.products.max(self.memory)
    }

    pub(super) fn bound(self) -> Bound {
        if self.memory >= self.products {
            Bound::Memory
        } else {
            Bound::Compute
        }
    }
}
