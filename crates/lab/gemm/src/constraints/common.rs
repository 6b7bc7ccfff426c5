//! Rules that follow from the problem and hold on every device.

use gauntlet_device::Arch;
use gauntlet_problems::resources::fewest_steps;
use gauntlet_problems::{Choice, Maps, Packing, Roles};
use gauntlet_tiled_family::constraints::{
    ARITHMETIC, EXPONENTIAL, LAYOUT, MAPS, PACKING, ROLES, Rule, SCORES, SPLIT_K, SWAP_AB, VALUES,
};
use gauntlet_tiled_family::rules;

use super::Situation;
use crate::GemmFamily;

const OF_ATTENTION: &str = "definition of the word: it says how attention's kernels compute on GPUs";

pub(super) const RULES: &[Rule<GemmFamily>] = rules! {
    [SPLIT_K], "definition of the word: each part has at least one step", split;
    [PACKING, SWAP_AB],
        "definition of the word: fragments are those of weights that are the rows of a product of the CUDA kernels",
        packing;
    [PACKING, ROLES],
        "definition of the word: steps are those of the swapped kernel, in which 16-bit tokens need no launch of their own",
        steps;
    [MAPS], "PTX ISA, tensormap.replace: sm_90a and sm_100a; of the CUDA kernels, the native one makes maps", maps;
    [SCORES], OF_ATTENTION, |s| of_attention(s.schedule.scores);
    [VALUES], OF_ATTENTION, |s| of_attention(s.schedule.values);
    [LAYOUT], OF_ATTENTION, |s| of_attention(s.schedule.layout);
    [EXPONENTIAL], OF_ATTENTION, |s| of_attention(s.schedule.exponential);
    [ARITHMETIC], OF_ATTENTION, |s| of_attention(s.schedule.arithmetic);
};

fn packing(situation: &Situation) -> Option<String> {
    let schedule = situation.schedule;
    if schedule.packing == Packing::Canonical {
        return None;
    }
    let why = match situation.arch() {
        Arch::Sm80 | Arch::Sm89 | Arch::Sm90a if schedule.swap_ab => return None,
        Arch::Sm80 | Arch::Sm89 | Arch::Sm90a => {
            "tokens are the rows, so weights come to shared memory row by row"
        }
        Arch::Cpu | Arch::Sm100a => "repacked weights are read by the CUDA kernels alone",
    };
    Some(why.to_owned())
}

fn steps(situation: &Situation) -> Option<String> {
    let (schedule, gemm) = (situation.schedule, situation.sizes);
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
    let why = match situation.arch() {
        Arch::Cpu => "a CPU has no tensor maps",
        Arch::Sm80 | Arch::Sm89 => {
            "tensor maps begin with sm_90; kernels that also run on older GPUs make none"
        }
        Arch::Sm90a => "the kernels for Hopper read maps that the host has made",
        Arch::Sm100a => return None,
    };
    Some(why.to_owned())
}

fn split(situation: &Situation) -> Option<String> {
    let schedule = situation.schedule;
    let steps = fewest_steps(schedule, situation.operation).max(1);
    (schedule.split_k > steps).then(|| {
        format!(
            "the shortest group has {steps} step{} of {}",
            if steps == 1 { "" } else { "s" },
            schedule.tile.k
        )
    })
}

/// A parameter of attention's kernels has the baseline's value.
fn of_attention<T: Choice + Default>(value: T) -> Option<String> {
    let default = T::default();
    (value != default).then(|| format!("a grouped GEMM takes only {}", default.name()))
}
