//! Rules that follow from the problem and hold on every device.

use gauntlet_device::Arch;

use super::lever::{
    ARITHMETIC, EXPONENTIAL, LAYOUT, MAPS, PACKING, ROLES, SCORES, SPLIT_K, SWAP_AB, TILE_K, VALUES,
};
use super::{Rule, Situation};
use crate::resources::fewest_steps;
use crate::{Choice, Maps, Packing, Roles};

const OF_ATTENTION: &str = "definition of the word: it says how attention's kernels compute on GPUs";

pub(super) const RULES: &[Rule] = rules! {
    [TILE_K], "definition of the word: attention keeps a whole head in one tile", head;
    [SWAP_AB], "definition of the word: it exchanges tokens and weights", swap;
    [SPLIT_K], "definition of the word: each part has at least one step", split;
    [PACKING, SWAP_AB],
        "definition of the word: fragments are those of weights that are the rows of a product of the CUDA kernels",
        packing;
    [PACKING, ROLES],
        "definition of the word: steps are those of the swapped kernel, in which 16-bit tokens need no launch of their own",
        steps;
    [MAPS], "PTX ISA, tensormap.replace: sm_90a and sm_100a; of the CUDA kernels, the native one makes maps", maps;
    [SCORES], OF_ATTENTION, |s| of_attention(s, s.schedule.scores);
    [VALUES], OF_ATTENTION, |s| of_attention(s, s.schedule.values);
    [LAYOUT], OF_ATTENTION, |s| of_attention(s, s.schedule.layout);
    [EXPONENTIAL], OF_ATTENTION, |s| of_attention(s, s.schedule.exponential);
    [ARITHMETIC], OF_ATTENTION, |s| of_attention(s, s.schedule.arithmetic);
};

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
        (None, Arch::Sm80 | Arch::Sm89 | Arch::Sm90a) if situation.schedule.swap_ab => return None,
        (None, Arch::Sm80 | Arch::Sm89 | Arch::Sm90a) => {
            "tokens are the rows, so weights come to shared memory row by row"
        }
        (None, Arch::Cpu | Arch::Sm100a) => "repacked weights are read by the CUDA kernels alone",
    };
    Some(why.to_owned())
}

fn steps(situation: &Situation) -> Option<String> {
    let (schedule, gemm) = (situation.schedule, situation.gemm()?);
    if schedule.packing != Packing::Steps {
        return None;
    }
    let first = gemm.groups.first().map_or(0, |shape| shape.k);
    let why = if situation.arch() != Arch::Sm90a || schedule.roles != Roles::Specialised {
        "only the swapped kernel, which has roles and needs a Hopper GPU, reads weights in steps"
    } else if !gemm.tokens.is_half() {
        "NVFP4 tokens are converted into the order of fragments"
    } else if gemm.groups.iter().any(|shape| shape.k != first) {
        "one tensor map describes the tokens of all groups, so K has to be the same"
    } else {
        return None;
    };
    Some(why.to_owned())
}

fn maps(situation: &Situation) -> Option<String> {
    if situation.schedule.maps == Maps::Prebuilt {
        return None;
    }
    let why = match (situation.attention(), situation.arch()) {
        (Some(_), _) => "attention's tensor maps do not depend on the tile",
        (None, Arch::Cpu) => "a CPU has no tensor maps",
        (None, Arch::Sm80 | Arch::Sm89) => "tensor maps begin with sm_90",
        (None, Arch::Sm90a) => "the kernels for Hopper read maps that the host has made",
        (None, Arch::Sm100a) => return None,
    };
    Some(why.to_owned())
}

fn split(situation: &Situation) -> Option<String> {
    let has_empty_parts = matches!(situation.arch(), Arch::Sm80 | Arch::Sm89 | Arch::Sm90a);
    if situation.attention().is_some() && has_empty_parts {
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

/// A parameter of attention's kernels has the baseline's value where it has no meaning.
fn of_attention<T: Choice + Default>(situation: &Situation, value: T) -> Option<String> {
    let kernel = match (situation.attention(), situation.arch()) {
        (None, _) => "a grouped GEMM",
        (Some(_), Arch::Cpu) => "attention on a CPU",
        (Some(_), Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Sm100a) => return None,
    };
    let default = T::default();
    (value != default).then(|| format!("{kernel} takes only {}", default.name()))
}
