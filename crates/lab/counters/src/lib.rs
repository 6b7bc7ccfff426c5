//! What a GPU's counters say of a kernel: what bounds it, how far it is from each roof, and what to try next.
//!
//! The counters are Nsight Compute's of one launch, by its own names. Nothing is measured here, so that a table kept from a GPU can be
//! explained anywhere. Each cause comes with the figures that it rests on, and what the counters cannot tell is said.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use gauntlet_counters::{Kind, explain};
//!
//! // Four blocks on a GPU with 132 multiprocessors.
//! let counters = [
//!     ("gpu__time_duration.sum", 2_656.0),
//!     ("launch__grid_size", 4.0),
//!     ("launch__sm_count", 132.0),
//!     ("launch__waves_per_multiprocessor", 0.004),
//!     ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 0.1),
//! ];
//! let counters: BTreeMap<String, f64> = counters.map(|(name, value)| (name.to_owned(), value)).into();
//! let explanation = explain(&counters, 4_112);
//! assert_eq!(explanation.causes[0].kind, Kind::FewBlocks);
//! assert!(explanation.causes[0].share > 0.9);
//! ```

mod causes;
mod figures;
mod roofs;
mod waits;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use causes::{Cause, Kind};
pub use figures::Launched;
pub use roofs::{Roof, Used};
pub use waits::Wait;

use figures::Figures;

/// A cause with this share of the time or more is what bounds a kernel.
const MAIN: f64 = 0.4;

/// From this share of its highest rate on, a part of the GPU is what bounds a kernel. Nsight Compute's own rule for a part that is
/// well used.
const WELL_USED: f64 = 0.6;

/// What bounds a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Explanation {
    /// What bounds it, in a sentence.
    pub bound: String,
    /// Seconds of the counted launch. It began with an empty level-2 cache.
    pub seconds: f64,
    /// The least time that each roof allows for the whole call.
    pub roofs: Vec<Roof>,
    /// How well the parts of the GPU are used, the best used first.
    pub used: Vec<Used>,
    /// How it was launched, and what it was compiled to.
    pub launched: Launched,
    /// What costs time that another kernel need not spend, the largest share first.
    pub causes: Vec<Cause>,
    /// What its warps wait for, the longest first.
    pub waits: Vec<Wait>,
    /// What the counters do not tell.
    pub unknown: Vec<String>,
}

/// Explains the counters of a kernel, which Nsight Compute read on one launch, by its own names. `least_bytes` are those of each operand
/// and result of a call, once; 0 if they are not known.
pub fn explain(counters: &BTreeMap<String, f64>, least_bytes: u64) -> Explanation {
    let figures = Figures(counters);
    let used = roofs::used(&figures);
    let waits = waits::waits(&figures);
    let causes = causes::causes(&figures, &used, &waits, least_bytes);
    Explanation {
        bound: bound(&causes, &used, &waits),
        seconds: figures.seconds(),
        roofs: roofs::roofs(&figures, least_bytes),
        launched: figures.launched(),
        unknown: unknown(&figures, least_bytes),
        used,
        causes,
        waits,
    }
}

fn bound(causes: &[Cause], used: &[Used], waits: &[Wait]) -> String {
    match (causes.first(), roofs::limiting(used), waits.first()) {
        (Some(cause), _, _) if cause.share >= MAIN => cause.kind.sentence().to_owned(),
        (_, Some(best), _) if best.share >= WELL_USED => {
            format!(
                "Bound by {}: {:.0} % of its highest rate.",
                best.part,
                best.share * 100.0
            )
        }
        (_, _, Some(wait)) => format!(
            "Bound by latency: no part of the GPU is used by {:.0} %, and warps wait, mostly for {}.",
            WELL_USED * 100.0,
            wait.reason
        ),
        _ => "The counters do not tell what bounds it.".to_owned(),
    }
}

fn unknown(figures: &Figures, least_bytes: u64) -> Vec<String> {
    let mut unknown = vec![
        "which source lines wait: Nsight Compute shows them on its page of sources".to_owned(),
        "how much of the loss a cause would give back: shares are upper bounds, and causes overlap"
            .to_owned(),
        "how near arithmetic is to its roof, which depends on the type of the numbers".to_owned(),
    ];
    if least_bytes == 0 {
        unknown.push("the fewest bytes of a call, since its task does not say them (`work`)".to_owned());
    }
    if figures.get(figures::EXCESSIVE_SECTORS).is_none() {
        unknown.push("whether accesses are coalesced: this version of ncu does not say".to_owned());
    }
    unknown
}
