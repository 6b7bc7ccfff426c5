//! Rules that follow from the problem and hold on every device.

use gauntlet_device::Arch;
use gauntlet_problems::resources::fewest_steps;
use gauntlet_problems::{Choice, Maps, Packing};
use gauntlet_tiled_family::constraints::{
    ARITHMETIC, EXPONENTIAL, LAYOUT, MAPS, PACKING, Rule, SCORES, SPLIT_K, SWAP_AB, TILE_K, VALUES,
};
use gauntlet_tiled_family::rules;

use super::Situation;
use crate::AttentionFamily;

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [TILE_K], "definition of the word: attention keeps a whole head in one tile", head;
    [SWAP_AB], "definition of the word: it exchanges tokens and weights", swap;
    [SPLIT_K], "definition of the word: each part has at least one step", split;
    [PACKING, SWAP_AB],
        "definition of the word: fragments are those of weights that are the rows of a product of the CUDA kernels",
        packing;
    [MAPS], "PTX ISA, tensormap.replace: sm_90a and sm_100a; of the CUDA kernels, the native one makes maps", maps;
};

const ON_GPUS: &str = "definition of the word: it says how attention's kernels compute on GPUs";

/// Parameters that have no meaning on a CPU have the baseline's value.
pub(super) const CPU: &[Rule<AttentionFamily>] = rules! {
    [SCORES], ON_GPUS, |s| on_gpus(s.schedule.scores);
    [VALUES], ON_GPUS, |s| on_gpus(s.schedule.values);
    [LAYOUT], ON_GPUS, |s| on_gpus(s.schedule.layout);
    [EXPONENTIAL], ON_GPUS, |s| on_gpus(s.schedule.exponential);
    [ARITHMETIC], ON_GPUS, |s| on_gpus(s.schedule.arithmetic);
};

fn head(situation: &Situation) -> Option<String> {
    let size = situation.sizes.head_size;
    (situation.schedule.tile.k != size).then(|| format!("attention takes the whole head, {size}, at once"))
}

fn swap(situation: &Situation) -> Option<String> {
    let swapped = situation.schedule.swap_ab;
    swapped.then(|| "attention has no weights to exchange with its tokens".to_owned())
}

fn packing(situation: &Situation) -> Option<String> {
    (situation.schedule.packing != Packing::Canonical)
        .then(|| "attention has no weights to repack".to_owned())
}

fn maps(situation: &Situation) -> Option<String> {
    let made = situation.schedule.maps != Maps::Prebuilt;
    made.then(|| "attention's tensor maps do not depend on the tile".to_owned())
}

fn split(situation: &Situation) -> Option<String> {
    if situation.arch() != Arch::Cpu {
        return None; // The CUDA kernels take parts without keys.
    }
    let schedule = situation.schedule;
    let steps = fewest_steps(schedule, situation.operation).max(1);
    (schedule.split_k > steps).then(|| {
        format!(
            "the shortest sequence has {steps} step{} of {}",
            if steps == 1 { "" } else { "s" },
            schedule.tile.n
        )
    })
}

fn on_gpus<T: Choice + Default>(value: T) -> Option<String> {
    let default = T::default();
    (value != default).then(|| format!("attention on a CPU takes only {}", default.name()))
}
