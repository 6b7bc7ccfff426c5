//! Checks that the rules of a device accept what the plans for it accept.
#![expect(clippy::unwrap_used, reason = "tests")]

mod attention;
mod half_tokens;

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_families::operations::accepts;
use gauntlet_kernels_cuda::plan::{Source, Target, plan};
use gauntlet_problems::resources::block_bytes;
use gauntlet_problems::{Operation, Schedule};

/// Checks that the rules of a device accept all that is planned for it, in the bytes that they count. Returns how many schedules
/// each kernel takes, and the first schedule that the rules accept without a plan.
fn rules_beside_plans(
    name: &str,
    problems: &[Operation],
    schedules: impl Fn(&Operation) -> Vec<Schedule>,
) -> (BTreeMap<Source, usize>, Option<String>) {
    let device = Device::builtin(name).unwrap();
    let target = Target::of(&device).unwrap();
    let (mut kernels, mut wider) = (BTreeMap::new(), None);
    for problem in problems {
        for schedule in schedules(problem) {
            // Most schedules are as they should be, and saying which takes longer than trying one.
            let of = || format!("{name}: {schedule}, {problem:?}");
            let is_accepted = accepts(&schedule, problem, &device);
            let planned = match plan(problem, &schedule, target) {
                Ok(planned) => planned,
                Err(error) if is_accepted => {
                    wider.get_or_insert_with(|| format!("{}: {error}", of()));
                    continue;
                }
                Err(_) => continue,
            };
            assert!(is_accepted, "{}", of());
            let variant = planned.variant();
            let counted = block_bytes(&schedule, problem, device.arch);
            assert_eq!(variant.shared_bytes as usize, counted, "{}", of());
            *kernels.entry(variant.source).or_insert(0) += 1;
        }
    }
    (kernels, wider)
}
