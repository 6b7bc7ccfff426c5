//! Cost drivers: the counts that a call's time may be proportional to.

use gauntlet_device::Device;
use gauntlet_families::operations::problem;
use gauntlet_parameters::named;
use gauntlet_problems::Operation;
use gauntlet_problems::Schedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gauntlet_simulate::Problem;
use gauntlet_simulate::count::{self, Counts};
use gauntlet_simulate::tiles::{self, Class};

named! {
    /// A cost driver: a count that follows from sizes and schedule, and that time may be proportional to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Driver {
        /// The call itself: 1.
        Constant = "constant",
        /// Groups of a GEMM, sequences of attention.
        Groups = "groups",
        /// Tiles.
        Tiles = "tiles",
        /// Rounds needed to give every tile a processor.
        Waves = "waves",
        /// Steps along the summed dimension on the busiest processor.
        Steps = "steps",
        /// Floating-point operations of the problem.
        Flops = "FLOPs",
        /// Floating-point operations of the tiles, padding included.
        PaddedFlops = "padded FLOPs",
        /// Bytes moved if every operand is read once and every result written once.
        Bytes = "bytes",
    }
}

/// A group of drivers that count the same cause in different ways. An explanation contains at most one driver of a
/// kind, and [its prior](super::Diagnosis) counts kinds, not ways of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Paid once per call.
    Call,
    /// Paid once per group.
    Group,
    /// Paid once per tile: starting, finding the group, filling, storing.
    Tile,
    /// Paid in the loop over the summed dimension.
    Loop,
    /// Paid for moving data.
    Traffic,
}

impl Driver {
    /// The kind of this driver.
    pub fn kind(self) -> Kind {
        match self {
            Self::Constant => Kind::Call,
            Self::Groups => Kind::Group,
            Self::Tiles | Self::Waves => Kind::Tile,
            Self::Steps | Self::Flops | Self::PaddedFlops => Kind::Loop,
            Self::Bytes => Kind::Traffic,
        }
    }

    /// Whether the caller pays this cost, outside the kernel's loop over tiles.
    pub fn is_host(self) -> bool {
        matches!(self.kind(), Kind::Call | Kind::Group)
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Call, Self::Group, Self::Tile, Self::Loop, Self::Traffic];
}

/// The counts of a problem, known before it runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Amounts {
    counts: [f64; Driver::ALL.len()],
    floors: [f64; Driver::ALL.len()],
    /// A lower bound of the time in seconds; 0 if there is no reliable bound.
    pub(super) roofline: f64,
    /// The number of bytes that are results.
    pub(super) stored: f64,
}

impl Amounts {
    pub(super) fn of(operation: &Operation, schedule: &Schedule, device: &Device) -> Self {
        let problem = &problem(operation);
        let processors = device.processors.get() as usize;
        let classes = problem.model().classes(schedule, device.arch);
        let totals = Counts::of(problem, schedule, device.arch, processors);
        let bytes = count::bytes(problem);
        let count = |driver| match driver {
            Driver::Constant => 1.0,
            Driver::Groups => problem.model().groups() as f64,
            Driver::Tiles => totals.tiles as f64,
            Driver::Waves => totals.waves as f64,
            Driver::Steps => tiles::busiest(&classes, processors, schedule.order, |class| class.steps as f64),
            Driver::Flops => count::flops(problem),
            Driver::PaddedFlops => classes.iter().map(|class| class.count as f64 * class.flops).sum(),
            Driver::Bytes => bytes,
        };
        Self {
            counts: Driver::ALL.map(count),
            floors: floors(problem, &classes, device),
            roofline: gauntlet_simulate::limit(problem, device).unwrap_or(0.0),
            stored: if bytes > 0.0 {
                operation.output_bytes() as f64 / bytes
            } else {
                0.0
            },
        }
    }

    /// How often a driver occurs.
    pub(super) fn count(&self, driver: Driver) -> f64 {
        self.counts[driver as usize]
    }

    /// A lower bound in seconds of a driver's cost per occurrence.
    pub(super) fn floor(&self, driver: Driver) -> f64 {
        self.floors[driver as usize]
    }
}

/// Lower bounds from a GPU's best published rates; 0 for drivers that no rate bounds, and on a CPU, whose peak is a
/// guess.
fn floors(problem: &Problem, classes: &[Class], device: &Device) -> [f64; Driver::ALL.len()] {
    let (Some(gpu), Some(clock)) = (&device.gpu, &device.clock) else {
        return [0.0; Driver::ALL.len()];
    };
    let processor = problem.model().product_rate(gpu) * clock.get();
    let step = classes
        .iter()
        .filter(|class| class.steps > 0)
        .map(|class| class.flops / class.steps as f64)
        .reduce(f64::min);
    Driver::ALL.map(|driver| match driver {
        Driver::Constant | Driver::Groups | Driver::Tiles | Driver::Waves => 0.0,
        Driver::Steps => step.unwrap_or(0.0) / processor,
        Driver::Flops | Driver::PaddedFlops => 1.0 / (processor * device.processors.get()),
        Driver::Bytes => {
            let bandwidth = device.memory.bandwidth.as_ref();
            bandwidth.map_or(0.0, |bandwidth| 1.0 / bandwidth.get())
        }
    })
}
