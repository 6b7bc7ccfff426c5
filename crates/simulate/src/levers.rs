//! The parameters that affect each part of a call's time.

use gauntlet_device::Arch;
use gauntlet_operations::Operation;

use crate::Part;
use crate::Problem;

/// The names of the parameters that affect a part most directly; empty if there are none.
pub fn levers(part: Part, problem: &Problem, arch: Arch) -> Vec<&'static str> {
    let shared: &[&str] = match part {
        Part::Host => &["setup"],
        Part::Launch if arch == Arch::Cpu => &["order", "tile"],
        Part::Launch | Part::Ramp => &[],
        Part::Padding => &["tile", "swap-ab"],
        Part::Idle => &["tile", "order", "split-k"],
        Part::FillAndDrain => &["stages", "roles", "order"],
        Part::Copy => &["stages", "roles", "cluster"],
        Part::Conversion => &["roles", "stages"],
        Part::Barriers => &["roles", "tile"],
        Part::Epilogue => &["epilogue", "roles", "order"],
        Part::Contention => &["tile", "cluster"],
        Part::Tail => &["epilogue", "tile"],
    };
    match problem.operation() {
        Operation::GroupedGemm(_) => shared.to_vec(),
        Operation::Attention(_) => {
            // Attention has no weights to exchange with its tokens.
            let mut levers: Vec<_> = shared.iter().copied().filter(|name| *name != "swap-ab").collect();
            levers.extend(of_attention(part).iter().filter(|_| arch != Arch::Cpu));
            levers
        }
    }
}

/// Further parameters for a part of attention, on GPUs.
fn of_attention(part: Part) -> &'static [&'static str] {
    match part {
        // Multiply-adds take longer than the matrix unit, whatever they wait for.
        Part::Padding => &["values"],
        Part::Copy => &["layout", "arithmetic"],
        Part::Conversion => &["exponential", "arithmetic", "scores"],
        Part::Barriers => &["scores"],
        _ => &[],
    }
}
