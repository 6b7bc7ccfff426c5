//! The lab's gates, which need to know the kernel: whether the device can run it, and whether the model thinks it worth
//! building. [`GATES`] puts them before the judge's own, for a session to go through.
//!
//! ```
//! use gauntlet_judge::gates::Gate;
//!
//! let names: Vec<_> = gauntlet_gates::GATES.iter().map(|gate| gate.name()).collect();
//! assert_eq!(names[..4], ["feasible", "worth it", "compiles", "right"]);
//! assert_eq!(names[6], "faster");
//! ```

mod feasible;
mod predicted;
#[cfg(test)]
mod tests;
mod worth_it;

use gauntlet_judge::OWN_GATES;
use gauntlet_judge::gates::Gate;

pub use feasible::Feasible;
pub use predicted::{compare_predicted, predict};
pub use worth_it::WorthIt;

/// All gates in order, those of this crate and then the judge's own: cheaper ones come first.
pub const GATES: [&dyn Gate; 7] = {
    let [compiles, right, race_free, profiled, faster] = OWN_GATES;
    [&Feasible, &WorthIt, compiles, right, race_free, profiled, faster]
};
