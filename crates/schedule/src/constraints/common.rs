//! Rules that follow from the problem and hold on every device.

use super::lever::Lever;
use super::{Rule, Situation};
use crate::resources::fewest_steps;

pub(super) const RULES: &[Rule] = &[
    Rule {
        word: Lever::TileK,
        levers: &[Lever::TileK],
        source: "definition of the word: attention keeps a whole head in one tile",
        broken: head,
    },
    Rule {
        word: Lever::SwapAb,
        levers: &[Lever::SwapAb],
        source: "definition of the word: it exchanges tokens and weights",
        broken: swap,
    },
    Rule {
        word: Lever::SplitK,
        levers: &[Lever::SplitK],
        source: "definition of the word: each part has at least one step",
        broken: split,
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

fn split(situation: &Situation) -> Option<String> {
    let steps = fewest_steps(situation.schedule, situation.problem).max(1);
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
