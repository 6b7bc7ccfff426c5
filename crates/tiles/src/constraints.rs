//! The constraints of each instruction set. A rule is a row: the parameters that may be changed to satisfy it, its source,
//! and the test. An instruction set is a file with its rows and a line in [`rules`].

/// A table of rules.
macro_rules! rules {
    ($($levers:expr, $source:expr, $broken:expr;)+) => {
        &[$(Rule { levers: &$levers, source: $source, broken: $broken }),+]
    };
}

mod attention;
mod common;
mod cpu;
mod gpu;
mod lever;
mod mma_sync;
mod remedy;
mod sm100a;
mod sm90a;
mod sm90a_attention;

use gauntlet_device::{Arch, Device, Gpu};
use gauntlet_operations::{Attention, GroupedGemm, Operation};
use gauntlet_task::Violation;

use crate::Schedule;
use crate::resources::{by_mma_sync, multiplied_bytes};
use lever::Lever;

/// Every rule that the schedule breaks for this operation on this device; none means that it can be built.
pub fn check(schedule: &Schedule, operation: &Operation, device: &Device) -> Vec<Violation> {
    let situation = Situation {
        schedule,
        operation,
        device,
    };
    broken(&situation)
        .map(|(rule, text)| Violation {
            parameter: rule.parameter().name().to_owned(),
            value: rule.parameter().value(schedule),
            rule: text,
            source: rule.source.to_owned(),
            remedies: remedy::find(&situation, rule),
        })
        .collect()
}

/// Whether the schedule keeps every rule; [`check`] without the search for remedies.
pub fn accepts(schedule: &Schedule, operation: &Operation, device: &Device) -> bool {
    broken(&Situation {
        schedule,
        operation,
        device,
    })
    .next()
    .is_none()
}

/// The rules of an instruction set, by theme.
fn rules(arch: Arch) -> &'static [&'static [Rule]] {
    match arch {
        Arch::Cpu => &[common::RULES, cpu::RULES],
        Arch::Sm80 | Arch::Sm89 => &[common::RULES, attention::RULES, mma_sync::RULES, gpu::RULES],
        Arch::Sm90a => &[
            common::RULES,
            attention::RULES,
            attention::FUSED,
            sm90a::RULES,
            sm90a_attention::RULES,
            gpu::RULES,
        ],
        Arch::Sm100a => &[
            common::RULES,
            attention::RULES,
            attention::FUSED,
            sm100a::RULES,
            gpu::RULES,
        ],
    }
}

fn broken<'a>(situation: &'a Situation<'a>) -> impl Iterator<Item = (&'static Rule, String)> + 'a {
    rules(situation.device.arch)
        .iter()
        .copied()
        .flatten()
        .filter_map(|rule| (rule.broken)(situation).map(|text| (rule, text)))
}

/// One rule.
struct Rule {
    /// The parameters that may be changed to satisfy the rule, the likeliest first: it is the one at fault.
    levers: &'static [Lever],
    /// The source of the rule.
    source: &'static str,
    /// A message if the rule is broken.
    broken: fn(&Situation) -> Option<String>,
}

impl Rule {
    fn parameter(&self) -> Lever {
        self.levers[0]
    }
}

/// The input of a rule.
struct Situation<'a> {
    schedule: &'a Schedule,
    operation: &'a Operation,
    device: &'a Device,
}

impl Situation<'_> {
    fn gpu(&self) -> Option<&Gpu> {
        self.device.gpu.as_ref()
    }

    fn arch(&self) -> Arch {
        self.device.arch
    }

    fn gemm(&self) -> Option<&GroupedGemm> {
        match self.operation {
            Operation::GroupedGemm(gemm) => Some(gemm),
            Operation::Attention(_) => None,
        }
    }

    fn attention(&self) -> Option<&Attention> {
        match self.operation {
            Operation::GroupedGemm(_) => None,
            Operation::Attention(attention) => Some(attention),
        }
    }

    /// The instruction that multiplies attention without storing its scores in shared memory, if there is one.
    fn fused(&self) -> Option<&'static str> {
        self.attention()?;
        match self.arch() {
            Arch::Sm90a if !by_mma_sync(self.schedule, Arch::Sm90a) => Some("wgmma"),
            Arch::Sm100a => Some("tcgen05.mma"),
            Arch::Cpu | Arch::Sm80 | Arch::Sm89 | Arch::Sm90a => None,
        }
    }

    /// Products of attention's operands that one instruction sums: 32 bytes of them.
    fn summed_at_once(&self, attention: &Attention) -> usize {
        32 / multiplied_bytes(self.schedule, attention)
    }

    /// Whether two blocks share one `tcgen05` instruction.
    fn paired(&self) -> bool {
        self.schedule.cluster.m.is_multiple_of(2)
    }
}
