//! The schedules to check, and the kernels that they need.

use std::collections::{HashMap, HashSet};

use gauntlet_cuda::compiler::Compiler;
use gauntlet_device::Arch;
use gauntlet_kernels_cuda::plan::{self, Target, Variant};
use gauntlet_kernels_cuda::shipped;
use gauntlet_problems::Operation;
use gauntlet_problems::Schedule;
use rayon::prelude::*;

use super::problems::{Family, Named, with_output};

/// A schedule with a name, and the family that it is shipped for.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub name: String,
    pub family: Family,
    pub schedule: Schedule,
}

/// The schedules of all shipped variants whose names contain `part`, each once per family; each problem accepts those
/// that have a kernel for its form and format.
pub fn schedules(part: &str, arch: Arch) -> Vec<Step> {
    let mut seen = HashSet::new();
    shipped(arch)
        .into_iter()
        .filter(|one| one.name.contains(part))
        .map(|one| Step {
            name: one.name,
            family: Family::of(&one.problem),
            schedule: one.schedule,
        })
        .filter(|one| seen.insert((one.family, one.schedule.clone())))
        .collect()
}

/// The schedules of a problem's family that have kernels for it, with these kernels, the main one first. A schedule of
/// the other family may be valid for the problem too, but no shipped variant uses it there.
pub fn accepting<'s>(
    steps: &'s [Step],
    problem: &Operation,
    target: Target,
) -> Vec<(&'s Step, Vec<Variant>)> {
    let planned = |step: &'s Step| {
        let plan = plan::plan(problem, &step.schedule, target).ok()?;
        Some((step, plan.variants().into_iter().cloned().collect()))
    };
    let family = Family::of(problem);
    let own = steps.par_iter().filter(|step| step.family == family);
    own.filter_map(planned).collect()
}

/// Compiles every variant that the problems need, on all cores; returns the error of each variant, if any.
pub fn compile_all(
    compiler: &Compiler,
    problems: &[Named],
    steps: &[Step],
    target: Target,
) -> HashMap<Variant, Option<String>> {
    let variants: HashSet<Variant> = problems
        .iter()
        .flat_map(|named| {
            named
                .outputs
                .iter()
                .map(|&output| with_output(&named.problem, output))
        })
        .flat_map(|problem| accepting(steps, &problem, target))
        .flat_map(|(_, variants)| variants)
        .collect();
    let compile = |variant: Variant| {
        let broken = variant.compile(compiler, target.arch).err();
        (variant, broken.map(|error| error.to_string()))
    };
    variants.into_par_iter().map(compile).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gauntlet_problems::Form;

    use super::*;
    use crate::problems;

    #[test]
    fn every_schedule_is_tried_on_drawn_problems_and_every_form_and_format_has_kernels() {
        let steps = schedules("", Arch::Sm90a);
        let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
        let mut formats = HashSet::new();
        let gemms = problems::drawn(Family::Gemm, 1, 24);
        for one in gemms.chain(problems::drawn(Family::Attention, 1, 48)) {
            let accepting = accepting(&steps, &one.problem, Target::hopper(132));
            assert!(!accepting.is_empty(), "{}", one.name);
            if let Operation::GroupedGemm(gemm) = &one.problem {
                formats.insert((gemm.form == Form::Plain, gemm.output));
            }
            for (step, _) in accepting {
                *tried.entry(&step.name).or_default() += 1;
            }
        }
        assert_eq!(formats.len(), 6);
        let never: Vec<_> = steps
            .iter()
            .filter(|step| !tried.contains_key(step.name.as_str()))
            .collect();
        assert!(never.is_empty(), "{never:?}");
    }
}
