//! The lab's gates, which need to know the kernel: whether the device can run it, whether the model thinks it worth
//! building, and whether its warps can race. [`GATES`] puts them before the judge's own, for a session to go through.
//!
//! ```
//! use gauntlet_judge::gates::Gate;
//!
//! let names: Vec<_> = gauntlet_gates::GATES.iter().map(|gate| gate.name()).collect();
//! assert_eq!(names[..4], ["feasible", "worth it", "proved", "compiles"]);
//! assert_eq!(names[7], "faster");
//! ```

mod feasible;
mod predicted;
mod proved;
#[cfg(test)]
mod tests;
mod worth_it;

use gauntlet_judge::OWN_GATES;
use gauntlet_judge::gates::Gate;

pub use feasible::Feasible;
pub use predicted::{Predictions, compare_predicted, host_term, predict};
pub use proved::{CaseFlaw, Interleavings, Proved};
pub use worth_it::WorthIt;

/// All gates in order, those of this crate and then the judge's own: cheaper ones come first.
pub const GATES: [&dyn Gate; 8] = {
    let [compiles, right, race_free, profiled, faster] = OWN_GATES;
    [
        &Feasible, &WorthIt, &Proved, compiles, right, race_free, profiled, faster,
    ]
};
