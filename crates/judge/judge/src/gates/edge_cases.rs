//! Small cases at the edges of a kernel's tile sizes.

use gauntlet_device::Device;
use gauntlet_parameters::Parameters;
use gauntlet_task::{Case, Sizes};

/// Cases around the tile sizes that these parameters give: the edge cases that each timed task names, for the first of
/// its cases.
pub fn edge_cases(parameters: &Parameters, timed: &[Case], device: &Device) -> Vec<Case> {
    let mut tasks: Vec<&Case> = Vec::new();
    for case in timed {
        if tasks
            .iter()
            .all(|known| known.sizes.task().name() != case.sizes.task().name())
        {
            tasks.push(case);
        }
    }
    let edges = |like: &Case| {
        let named = like.sizes.edge_sizes(parameters, device).into_iter();
        let case = |(name, sizes): (&str, Sizes)| Case {
            name: name.to_owned(),
            sizes,
            // Operands from a file fit only the sizes they were made for.
            data: None,
            ..like.clone()
        };
        named.map(case).collect::<Vec<_>>()
    };
    tasks.into_iter().flat_map(edges).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_split_the_depth_take_their_edge_cases() {
        let device = Device::builtin("h200").unwrap();
        for (suite, split) in [("group-gemm", 1_usize), ("group-gemm", 4), ("dual-gemm", 3)] {
            let parameters = Parameters::new().with("split-k", split);
            let timed = gauntlet_families::suite(suite).unwrap().benchmark;
            let cases = edge_cases(&parameters, &timed, &device);
            assert!(!cases.is_empty());
            for case in cases {
                assert_eq!(
                    case.sizes.violations(&parameters, &device),
                    [],
                    "{suite}, {}, split in {split}",
                    case.name
                );
            }
        }
    }

    #[test]
    fn where_all_keys_are_held_the_deep_case_has_as_many_but_one() {
        let timed = gauntlet_families::suite("attention").unwrap().benchmark;
        let resident = Parameters::new()
            .with("tile", [64, 128, 64])
            .with("roles", "specialised")
            .with("split-k", 2_usize)
            .with("cluster", [1, 2]);
        let deepest = |device: &Device| {
            let cases = edge_cases(&resident, &timed, device);
            let keys = cases.iter().flat_map(|case| {
                let record = case.sizes.to_record();
                let sequences = record["sequences"].as_array().unwrap().clone();
                sequences.into_iter().map(|sequence| sequence["keys"].as_u64())
            });
            keys.max().flatten()
        };
        assert_eq!(deepest(&Device::builtin("h200").unwrap()), Some(511));
        assert_eq!(deepest(&Device::host()), Some(3 * 128 * 2 + 1));
    }
}
