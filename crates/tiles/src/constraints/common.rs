//! Rules that follow from the problem and hold on every device.

use gauntlet_device::Arch;

use super::lever::Lever;
use super::{Rule, Situation};
use crate::resources::fewest_steps;
use crate::{Choice, Packing};

const OF_ATTENTION: &str = "definition of the word: it says how attention's kernels compute on GPUs";

pub(super) const RULES: &[Rule] = &[
    Rule {
        parameter: Lever::TILE_K,
        levers: &[Lever::TILE_K],
        source: "definition of the word: attention keeps a whole head in one tile",
        broken: head,
    },
    Rule {
        parameter: Lever::SWAP_AB,
        levers: &[Lever::SWAP_AB],
        source: "definition of the word: it exchanges tokens and weights",
        broken: swap,
    },
    Rule {
        parameter: Lever::SPLIT_K,
        levers: &[Lever::SPLIT_K],
        source: "definition of the word: each part has at least one step",
        broken: split,
    },
    Rule {
        parameter: Lever::PACKING,
        levers: &[Lever::PACKING, Lever::SWAP_AB],
        source: "definition of the word: fragments are those of weights that are the rows of a product on sm_90a",
        broken: packing,
    },
    Rule {
        parameter: Lever::SCORES,
        levers: &[Lever::SCORES],
        source: OF_ATTENTION,
        broken: |situation| of_attention(situation, situation.schedule.scores),
    },
    Rule {
        parameter: Lever::VALUES,
        levers: &[Lever::VALUES],
        source: OF_ATTENTION,
        broken: |situation| of_attention(situation, situation.schedule.values),
    },
    Rule {
        parameter: Lever::LAYOUT,
        levers: &[Lever::LAYOUT],
        source: OF_ATTENTION,
        broken: |situation| of_attention(situation, situation.schedule.layout),
    },
    Rule {
        parameter: Lever::EXPONENTIAL,
        levers: &[Lever::EXPONENTIAL],
        source: OF_ATTENTION,
        broken: |situation| of_attention(situation, situation.schedule.exponential),
    },
    Rule {
        parameter: Lever::ARITHMETIC,
        levers: &[Lever::ARITHMETIC],
        source: OF_ATTENTION,
        broken: |situation| of_attention(situation, situation.schedule.arithmetic),
    },
];

fn head(situation: &Situation) -> Option<String> {
    let size = situation.attention()?.head_size;
    (situation.schedule.tile.k != size).then(|| format!("attention takes the whole head, {size}, at once"))
}

fn swap(situation: &Situation) -> Option<String> {
    situation.attention()?;
    situation
        .schedule
        .swap_ab
        .then(|| "attention has no weights to exchange with its tokens".to_owned())
}

fn packing(situation: &Situation) -> Option<String> {
    if situation.schedule.packing == Packing::Canonical {
        return None;
    }
    let why = match (situation.attention(), situation.arch()) {
        (Some(_), _) => "attention has no weights to repack",
        (None, Arch::Sm90a) if situation.schedule.swap_ab => return None,
        (None, Arch::Sm90a) => "tokens are the rows, so weights come to shared memory row by row",
        (None, _) => "repacked weights are read by the kernels of sm_90a alone",
    };
    Some(why.to_owned())
}

fn split(situation: &Situation) -> Option<String> {
    if situation.attention().is_some() && situation.arch() == Arch::Sm90a {
        return None; // parts without keys are empty
    }
    let steps = fewest_steps(situation.schedule, situation.operation).max(1);
    let schedule = situation.schedule;
    (schedule.split_k > steps).then(|| {
        let what = if situation.attention().is_some() {
            "sequence"
        } else {
            "group"
        };
        let depth = if situation.attention().is_some() {
            schedule.tile.n
        } else {
            schedule.tile.k
        };
        format!(
            "the shortest {what} has {steps} step{} of {depth}",
            if steps == 1 { "" } else { "s" }
        )
    })
}

/// Where attention's words say nothing, they have the baseline's value.
fn of_attention<T: Choice + Default>(situation: &Situation, value: T) -> Option<String> {
    let who = match (situation.attention(), situation.arch()) {
        (None, _) => "a grouped GEMM",
        (Some(_), Arch::Cpu) => "attention on a CPU",
        (Some(_), Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Sm100a) => return None,
    };
    let default = T::default();
    (value != default).then(|| format!("{who} takes only {}", default.name()))
}
