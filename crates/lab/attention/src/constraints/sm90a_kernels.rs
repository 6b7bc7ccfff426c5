//! sm_90a: what attention's kernels with roles take, and which parts of keys each of the three has. Which one computes is up
//! to roles and queries of a tile.

use gauntlet_problems::resources::{HopperAttention, MAX_SPECIALISED_STAGES, resident_keys, warp_groups};
use gauntlet_problems::{Arithmetic, Cluster, Epilogue, Order};
use gauntlet_tiled_family::constraints::{
    ARITHMETIC, CLUSTER, EPILOGUE, ORDER, ROLES, Rule, SPLIT_K, STAGES, TILE_M, TILE_N,
};
use gauntlet_tiled_family::rules;

use super::Situation;
use super::words::listed;
use crate::AttentionFamily;

const PRODUCTS: &str =
    "the CUDA kernels: a warp group owns 64 queries, and products exist for these numbers of keys";
const RINGS: &str = "the CUDA kernels: the next scores begin before this step's values are done; where there is one \
                     step, values are multiplied by a run of weights while the next run is computed";
const REGISTERS: &str =
    "the CUDA kernels: a warp group's sums, scores, weights and converted queries are in registers";
const BUILT: &str = "the CUDA kernels: so the kernel is built";
const CLUSTERS: &str =
    "the CUDA kernels: blocks that share the keys of a tile are a cluster, and merge over its shared memory";
const RESIDENT: &str =
    "the CUDA kernels: with roles and 64 queries a tile, all keys are in shared memory at once";

/// Depth of a product of e4m3 as it is, and of fp16 (PTX ISA, wgmma).
const DEPTHS: [usize; 2] = [32, 16];

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [TILE_M], "the CUDA kernels: with roles, a warp group owns 64 queries", queries;
    [TILE_M, ARITHMETIC], REGISTERS, registers;
    [TILE_N], PRODUCTS, |s| keys(s, HopperAttention::Specialised, &[64, 128]);
    [TILE_N], PRODUCTS, |s| keys(s, HopperAttention::Resident, &[64, 128, 256]);
    [STAGES, ROLES], RINGS, stages;
    [EPILOGUE, ROLES], BUILT, epilogue;
    [ORDER, ROLES], BUILT, order;
    [SPLIT_K, CLUSTER], CLUSTERS, parts;
    [CLUSTER], "the CUDA kernels: parts of the keys of a tile that is no cluster's meet in memory", alone;
    [SPLIT_K, ROLES, TILE_M], CLUSTERS, merging;
    [TILE_N, SPLIT_K, TILE_M], RESIDENT, held;
};

fn kernel(situation: &Situation) -> HopperAttention {
    HopperAttention::of(situation.schedule)
}

/// The name of a kernel in messages.
fn name(kernel: HopperAttention) -> &'static str {
    match kernel {
        HopperAttention::Unified => "unified attention",
        HopperAttention::Specialised => "specialised attention",
        HopperAttention::Resident => "resident attention (64 queries a tile)",
    }
}

fn queries(situation: &Situation) -> Option<String> {
    let allowed = [64, 128, 192, 256];
    let has_roles = kernel(situation) != HopperAttention::Unified;
    (has_roles && !allowed.contains(&situation.schedule.tile.m))
        .then(|| format!("specialised attention on sm_90a takes M of {}", listed(&allowed)))
}

fn keys(situation: &Situation, of: HopperAttention, allowed: &[usize]) -> Option<String> {
    let schedule = situation.schedule;
    (kernel(situation) == of && !allowed.contains(&schedule.tile.n))
        .then(|| format!("{} on sm_90a takes N of {}", name(of), listed(allowed)))
}

fn registers(situation: &Situation) -> Option<String> {
    let attention = situation.sizes;
    let groups = warp_groups(situation.schedule, attention);
    (kernel(situation) == HopperAttention::Specialised && groups.count > groups.most).then(|| {
        format!(
            "registers are there for {} warp groups of 64 queries, with heads of {} multiplied in {}",
            groups.most, attention.head_size, situation.schedule.arithmetic
        )
    })
}

fn stages(situation: &Situation) -> Option<String> {
    let schedule = situation.schedule;
    match kernel(situation) {
        HopperAttention::Unified => None,
        HopperAttention::Specialised if schedule.stages > MAX_SPECIALISED_STAGES => Some(format!(
            "a word has bits for {MAX_SPECIALISED_STAGES} stages of K and of V, and one for tiles; {MAX_SPECIALISED_STAGES} are the most"
        )),
        HopperAttention::Specialised => (schedule.stages < 2).then(|| {
            "the next step's scores begin before this step's values are done with; it takes 2".to_owned()
        }),
        HopperAttention::Resident => {
            let depth = DEPTHS[usize::from(schedule.arithmetic == Arithmetic::Fp16)];
            let runs = [1, 2, 4];
            let allowed: Vec<_> = runs
                .into_iter()
                .filter(|runs| runs * depth <= schedule.tile.n)
                .collect();
            (!allowed.contains(&schedule.stages)).then(|| {
                format!(
                    "where all keys are there at once, stages are runs of weights: {} for {} keys",
                    listed(&allowed),
                    schedule.tile.n
                )
            })
        }
    }
}

fn epilogue(situation: &Situation) -> Option<String> {
    (kernel(situation) != HopperAttention::Unified && situation.schedule.epilogue == Epilogue::Staged)
        .then(|| "attention with roles on sm_90a stores its results directly".to_owned())
}

fn order(situation: &Situation) -> Option<String> {
    let order = situation.schedule.order;
    match kernel(situation) {
        HopperAttention::Specialised => (order == Order::Dynamic)
            .then(|| "specialised attention on sm_90a has no counter of tiles".to_owned()),
        HopperAttention::Resident => (order != Order::PerTile).then(|| {
            format!(
                "a block of {} on sm_90a computes one tile",
                name(HopperAttention::Resident)
            )
        }),
        HopperAttention::Unified => None,
    }
}

/// Blocks of the other two kernels leave their parts in the workspace.
fn alone(situation: &Situation) -> Option<String> {
    let (kernel, cluster) = (kernel(situation), situation.schedule.cluster);
    (kernel != HopperAttention::Resident && cluster != Cluster { m: 1, n: 1 })
        .then(|| format!("blocks of {} on sm_90a are no clusters", name(kernel)))
}

fn parts(situation: &Situation) -> Option<String> {
    if kernel(situation) != HopperAttention::Resident {
        return None;
    }
    let (split, cluster) = (situation.schedule.split_k, situation.schedule.cluster);
    (split != cluster.n || cluster.m != 1).then(|| {
        format!(
            "keys are split over the blocks of a cluster, one part each: {split} {} a cluster of 1×{split}",
            if split == 1 { "is" } else { "are" }
        )
    })
}

fn merging(situation: &Situation) -> Option<String> {
    let allowed: &[usize] = match kernel(situation) {
        HopperAttention::Unified | HopperAttention::Specialised => return None,
        HopperAttention::Resident => &[1, 2, 4],
    };
    (!allowed.contains(&situation.schedule.split_k)).then(|| {
        format!(
            "each block of a cluster owns whole slots of 16 of a tile's rows: split-k {}",
            listed(allowed)
        )
    })
}

fn held(situation: &Situation) -> Option<String> {
    let held = resident_keys(situation.schedule, situation.arch())?;
    let sequences = &situation.sizes.sequences;
    let longest = sequences.iter().map(|sequence| sequence.keys).max()?;
    (longest > held).then(|| {
        format!("a cluster holds {held} keys (2 × split-k × tile.n), and the longest sequence has {longest}")
    })
}
