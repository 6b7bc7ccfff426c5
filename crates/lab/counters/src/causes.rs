//! What costs time that another kernel need not spend.
//!
//! The share of a cause is an upper bound of the time that is lost by it, made of two factors: how much of the work is needless, and how
//! much of the time goes to work of that sort. Causes overlap, so shares do not add up.

use schemars::JsonSchema;
use serde::Serialize;

use crate::figures::{EXCESSIVE_SECTORS, Figures, bytes};
use crate::roofs::Used;
use crate::waits::{Wait, share_of};

/// A cause of lost time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Cause {
    /// Which.
    pub kind: Kind,
    /// The figures that it rests on.
    pub evidence: String,
    /// At most this share of the time is lost by it.
    pub share: f64,
}

/// The causes that counters can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Too few blocks for the GPU.
    FewBlocks,
    /// Registers that do not fit and go to local memory.
    Spills,
    /// Lanes of a warp that need the same bank of shared memory.
    BankConflicts,
    /// Lanes of a warp that access places far apart.
    ScatteredAccess,
    /// Too few warps on a multiprocessor to hide latencies.
    LowOccupancy,
    /// More bytes from and to device memory than a call needs.
    NeedlessTraffic,
    /// A last wave of blocks that fills only part of the GPU.
    LastWave,
}

impl Kind {
    /// A name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FewBlocks => "few blocks",
            Self::Spills => "spilled registers",
            Self::BankConflicts => "bank conflicts",
            Self::ScatteredAccess => "scattered accesses",
            Self::LowOccupancy => "low occupancy",
            Self::NeedlessTraffic => "needless traffic",
            Self::LastWave => "the last wave",
        }
    }

    /// What it means for the kernel.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::FewBlocks => "Bound by too few blocks: most of the GPU has nothing to do.",
            Self::Spills => "Bound by spilled registers: they go through local memory.",
            Self::BankConflicts => "Bound by bank conflicts in shared memory.",
            Self::ScatteredAccess => "Bound by scattered accesses to global memory.",
            Self::LowOccupancy => "Bound by low occupancy: too few warps to hide latencies.",
            Self::NeedlessTraffic => "Bound by needless traffic to device memory.",
            Self::LastWave => "Bound by the last wave of blocks.",
        }
    }

    /// What to try.
    pub fn next(self) -> &'static str {
        match self {
            Self::FewBlocks => {
                "divide the work into more blocks (split the reduction, smaller tiles), several problems in one launch, or \
                 launches captured in a graph"
            }
            Self::Spills => {
                "smaller tiles for a thread, fewer values alive at once, a larger bound of registers (__launch_bounds__), or \
                 indices that are known when it is compiled, so that arrays stay in registers"
            }
            Self::BankConflicts => "pad rows of shared memory by one element, or swizzle the places",
            Self::ScatteredAccess => {
                "let neighbouring lanes access neighbouring addresses: turn the loops around, or go through shared memory"
            }
            Self::LowOccupancy => {
                "less of what limits the blocks on a multiprocessor, larger blocks, or more loads in flight for each thread"
            }
            Self::NeedlessTraffic => {
                "keep what is used again in registers or shared memory, or order blocks so that they share the cache"
            }
            Self::LastWave => {
                "tiles that divide the work evenly, smaller tiles, or blocks that stay and take tiles in turn"
            }
        }
    }
}

/// Causes with less than this share are left out.
const LEAST: f64 = 0.05;

/// Waits of warps for global and local memory.
const GLOBAL: [&str; 2] = ["long-scoreboard", "lg-throttle"];

/// The causes, the largest share first.
pub fn causes(figures: &Figures, used: &[Used], waits: &[Wait], least_bytes: u64) -> Vec<Cause> {
    let best = used.first().map_or(0.0, |best| best.share);
    let found = [
        few_blocks(figures, best),
        spills(figures, waits),
        bank_conflicts(figures),
        scattered(figures, waits),
        low_occupancy(figures, best),
        needless_traffic(figures, least_bytes),
        last_wave(figures),
    ];
    let mut causes: Vec<Cause> = found
        .into_iter()
        .flatten()
        .filter(|cause| cause.share >= LEAST)
        .collect();
    causes.sort_by(|one, other| other.share.total_cmp(&one.share));
    causes
}

/// Either multiprocessors get no block at all, or those they get leave most of their places empty while nothing is well used.
fn few_blocks(figures: &Figures, best: f64) -> Option<Cause> {
    let launched = figures.launched();
    if launched.multiprocessors <= 0.0 {
        return None;
    }
    let without = 1.0 - (launched.blocks / launched.multiprocessors).min(1.0);
    let empty = (1.0 - launched.waves.min(1.0)) * (1.0 - best);
    let short = match figures.seconds() {
        time if time > 0.0 && time < 5e-6 => format!(
            "; at {:.1} us a launch itself, some 2 to 3 us, is most of the time",
            time * 1e6
        ),
        _ => String::new(),
    };
    Some(Cause {
        kind: Kind::FewBlocks,
        evidence: format!(
            "{:.0} blocks for {:.0} multiprocessors; they fill {:.1} % of the places for such blocks{short}",
            launched.blocks,
            launched.multiprocessors,
            launched.waves.min(1.0) * 100.0
        ),
        share: without.max(empty),
    })
}

/// Sectors of local memory among all, times the waits for memory.
fn spills(figures: &Figures, waits: &[Wait]) -> Option<Cause> {
    let local = figures.sum("l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum", &["ld", "st"]);
    let part = local / (local + global_sectors(figures));
    let spilling = figures
        .get("derived__local_spilling_requests_pct")
        .map(|percent| format!(", {percent:.0} % of it by the compiler's spills"))
        .unwrap_or_default();
    (local > 0.0).then(|| Cause {
        kind: Kind::Spills,
        evidence: format!(
            "{:.0} % of the sectors that pass the level-1 cache are of local memory{spilling}; {:.0} registers a thread",
            part * 100.0,
            figures.count("launch__registers_per_thread")
        ),
        share: part * share_of(waits, &GLOBAL),
    })
}

/// Sectors of 32 bytes that loads and stores of global memory touch.
fn global_sectors(figures: &Figures) -> f64 {
    figures.sum("l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum", &["ld", "st"])
}

/// Accesses to shared memory that are repeated, times the use of the path to it.
fn bank_conflicts(figures: &Figures) -> Option<Cause> {
    let conflicts = figures.count("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum");
    let accesses = figures.get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")?;
    let used =
        figures.share("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed")?;
    (accesses > 0.0).then(|| Cause {
        kind: Kind::BankConflicts,
        evidence: format!(
            "{:.0} % of the passes over shared memory repeat others for conflicts; its path is used by {:.0} %",
            conflicts / accesses * 100.0,
            used * 100.0
        ),
        share: (conflicts / accesses).min(1.0) * used,
    })
}

/// Sectors that closer addresses would spare, times the waits for memory or the use of the path to it, whichever is more.
fn scattered(figures: &Figures, waits: &[Wait]) -> Option<Cause> {
    let excessive = figures.get(EXCESSIVE_SECTORS)?;
    let local = figures.sum("l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum", &["ld", "st"]);
    let all = global_sectors(figures);
    let path = figures
        .share("l1tex__throughput.avg.pct_of_peak_sustained_active")
        .unwrap_or(0.0);
    (all > 0.0).then(|| Cause {
        kind: Kind::ScatteredAccess,
        evidence: format!(
            "{:.0} % of the 32-byte sectors that global accesses touch would be spared by neighbouring addresses",
            excessive / all * 100.0
        ),
        share: (excessive / (all + local)).min(1.0) * share_of(waits, &GLOBAL).max(path).min(1.0),
    })
}

/// Where nothing is well used, the warps that are missing.
fn low_occupancy(figures: &Figures, best: f64) -> Option<Cause> {
    let launched = figures.launched();
    let possible = launched.possible_occupancy?;
    let limit = launched.limit.clone()?;
    let of_limit = match limit.as_str() {
        "registers" => format!("{:.0} registers a thread", launched.registers),
        "shared memory" => format!(
            "{:.1} KiB of shared memory a block",
            launched.shared_bytes / 1024.0
        ),
        _ => format!("blocks of {:.0} threads", launched.threads),
    };
    Some(Cause {
        kind: Kind::LowOccupancy,
        evidence: format!(
            "at most {:.0} % of a multiprocessor's warps, since {of_limit} leave room for {:.0} block{} at once; the best used part \
             of the GPU is at {:.0} %",
            possible * 100.0,
            launched.blocks_at_once?,
            if launched.blocks_at_once == Some(1.0) { "" } else { "s" },
            best * 100.0
        ),
        share: (1.0 - possible) * (1.0 - best).max(0.0),
    })
    .filter(|_| possible <= 0.5)
}

/// Bytes beyond the least, times the use of device memory.
fn needless_traffic(figures: &Figures, least_bytes: u64) -> Option<Cause> {
    let moved = figures.moved();
    let used = figures.share("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")?;
    let least = least_bytes as f64;
    (least > 0.0 && moved > least).then(|| Cause {
        kind: Kind::NeedlessTraffic,
        evidence: format!(
            "{} from and to device memory, where a call needs {} at least",
            bytes(moved),
            bytes(least)
        ),
        share: (1.0 - least / moved) * used,
    })
}

/// The places that the last wave leaves empty.
fn last_wave(figures: &Figures) -> Option<Cause> {
    let waves = figures.launched().waves;
    (waves > 1.0).then(|| Cause {
        kind: Kind::LastWave,
        evidence: format!(
            "{waves:.2} waves of blocks take the time of {:.0}, if all blocks take equally long",
            waves.ceil()
        ),
        share: 1.0 - waves / waves.ceil(),
    })
}
