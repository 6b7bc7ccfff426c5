//! The parameters that affect each part of a call's time.

use crate::{Part, Problem};

/// The names of the parameters that affect a part most directly; empty if there are none.
pub fn levers(part: Part, problem: &Problem) -> Vec<&'static str> {
    let shared: &[&str] = match part {
        Part::Host => &["setup"],
        Part::Launch | Part::Ramp => &[],
        Part::Padding => &["tile"],
        Part::Idle => &["tile", "order", "split-k"],
        Part::FillAndDrain => &["stages", "roles", "order"],
        Part::Copy => &["stages", "roles", "cluster"],
        Part::Conversion => &["roles", "stages"],
        Part::Barriers => &["roles", "tile"],
        Part::Epilogue => &["epilogue", "roles", "order"],
        Part::Contention => &["tile", "cluster"],
        Part::Tail => &["epilogue", "tile"],
    };
    [shared, problem.model().levers(part)].concat()
}
