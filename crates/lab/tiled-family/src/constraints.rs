//! The engine of constraints, and the rules that several families share. A rule is a row: the parameters that may be
//! changed to satisfy it, its source, and the test. A family lists its rules for each instruction set.

/// A table of rules: `[levers], source, test;` a row, where the lever at fault comes first.
#[macro_export]
macro_rules! rules {
    ($($levers:expr, $source:expr, $broken:expr;)+) => {
        const { &[$($crate::constraints::Rule::new(&$levers, $source, $broken)),+] }
    };
}

pub mod blackwell;
pub mod cpu;
pub mod gpu;
mod lever;
pub mod mma_sync;
mod remedy;
pub mod wgmma;

use gauntlet_device::{Arch, Device, Gpu};
use gauntlet_problems::resources::kernel_arch;
use gauntlet_problems::{Operation, Schedule};
use gauntlet_task::Violation;

use crate::TiledFamily;
pub use lever::{
    ARITHMETIC, CLUSTER, EPILOGUE, EXPONENTIAL, LAYOUT, Lever, MAPS, ORDER, PACKING, ROLES, SCORES, SPLIT_K,
    STAGES, SWAP_AB, TILE_K, TILE_M, TILE_N, VALUES,
};

/// Rules by theme.
pub type Rules<F> = &'static [&'static [Rule<F>]];

/// Every rule that the schedule breaks for this operation on this device; none means that it can be built.
pub fn check<F: TiledFamily>(schedule: &Schedule, operation: &Operation, device: &Device) -> Vec<Violation> {
    let Some(situation) = Situation::<F>::of(schedule, operation, device) else {
        return Vec::new();
    };
    let violation = |(rule, text): (&Rule<F>, String)| Violation {
        parameter: rule.parameter().name().to_owned(),
        value: rule.parameter().value(schedule),
        rule: text,
        source: rule.source.to_owned(),
        remedies: remedy::find(&situation, rule),
    };
    situation.broken().map(violation).collect()
}

/// Whether the schedule keeps every rule; [`check`] without the search for remedies.
pub fn accepts<F: TiledFamily>(schedule: &Schedule, operation: &Operation, device: &Device) -> bool {
    Situation::<F>::of(schedule, operation, device).is_none_or(|situation| situation.is_kept())
}

/// One rule.
#[derive(Debug)]
pub struct Rule<F: TiledFamily> {
    levers: &'static [Lever],
    source: &'static str,
    broken: fn(&Situation<F>) -> Option<String>,
}

impl<F: TiledFamily> Rule<F> {
    /// A rule: the parameters that may be changed to satisfy it, the likeliest first (it is the one at fault), the source
    /// of the rule, and a message if it is broken.
    pub const fn new(
        levers: &'static [Lever],
        source: &'static str,
        broken: fn(&Situation<F>) -> Option<String>,
    ) -> Self {
        Self {
            levers,
            source,
            broken,
        }
    }

    fn parameter(&self) -> Lever {
        self.levers[0]
    }
}

/// The input of a rule.
#[derive(Debug)]
pub struct Situation<'a, F: TiledFamily> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// The sizes.
    pub sizes: &'a F::Sizes,
    /// The same sizes as an operation.
    pub operation: &'a Operation,
    /// The device.
    pub device: &'a Device,
}

impl<'a, F: TiledFamily> Situation<'a, F> {
    fn of(schedule: &'a Schedule, operation: &'a Operation, device: &'a Device) -> Option<Self> {
        Some(Self {
            schedule,
            sizes: F::sizes_of(operation)?,
            operation,
            device,
        })
    }

    /// The same sizes on the same device under another schedule.
    fn with<'b>(&self, schedule: &'b Schedule) -> Situation<'b, F>
    where
        'a: 'b,
    {
        Situation { schedule, ..*self }
    }

    /// The figures of a GPU.
    pub fn gpu(&self) -> Option<&Gpu> {
        self.device.gpu.as_ref()
    }

    /// The instruction set of the kernels that compute the operation on the device.
    pub fn arch(&self) -> Arch {
        kernel_arch(self.operation, self.device.arch)
    }

    /// Whether two blocks share one `tcgen05` instruction.
    pub fn paired(&self) -> bool {
        self.schedule.cluster.m.is_multiple_of(2)
    }

    fn broken(&self) -> impl Iterator<Item = (&'static Rule<F>, String)> {
        let rules = F::rules(self).iter().copied().flatten();
        rules.filter_map(|rule| (rule.broken)(self).map(|text| (rule, text)))
    }

    fn is_kept(&self) -> bool {
        self.broken().next().is_none()
    }
}
