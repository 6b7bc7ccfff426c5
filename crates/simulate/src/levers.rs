//! The parameters that affect each part of a call's time.

use gauntlet_device::Arch;
use gauntlet_operations::Operation;

use crate::Part;

/// The names of the parameters that affect a part most directly; empty if there are none.
pub fn levers(part: Part, operation: &Operation, arch: Arch) -> Vec<&'static str> {
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
    match operation {
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

#[cfg(test)]
mod tests {
    use gauntlet_operations::Schedule;

    use super::*;

    #[test]
    fn every_lever_is_a_parameter_of_its_family() {
        for (suite, table) in [
            ("group-gemm", Schedule::table_of_gemm()),
            ("attention", Schedule::table_of_attention()),
        ] {
            let suite = gauntlet_families::suite(suite).unwrap();
            let operation = gauntlet_tiles::operation(&suite.benchmark[0].sizes).unwrap();
            for arch in [Arch::Cpu, Arch::Sm90a] {
                for name in Part::ALL
                    .into_iter()
                    .flat_map(|part| levers(part, operation, arch))
                {
                    assert!(table.find(name).is_some(), "{name} in {}", suite.name);
                }
            }
        }
    }
}
