//! The schedules, by name.

use std::error::Error;
use std::path::Path;

use gauntlet_device::Arch;
use gauntlet_kernels_cuda::plan::{Target, attention};
use gauntlet_kernels_cuda::{Choice, LayerShape, Planner, ProductShape};
use gauntlet_problems::{Form, GroupedGemm, Operation, Schedule};
use gauntlet_tournament::RoundFile;

const PLAIN_ROUND: &str = include_str!("../../../../../../examples/h200/rounds/staircase.toml");
const DUAL_ROUND: &str = include_str!("../../../../../../examples/h200/rounds/staircase-dual.toml");
const BASELINE: &str = "baseline";

/// The names of the schedules that `gauntlet_kernels_cuda::api` chooses by itself, for unchanged and for repacked
/// weights.
pub const AUTOMATIC: &str = "automatic";
pub const REPACKED: &str = "repacked";

/// The name of the schedule that is chosen automatically for GPUs before Hopper.
const BEFORE_HOPPER: &str = "before-hopper";

/// A schedule with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub name: String,
    pub schedule: Schedule,
}

/// The staircase of `examples/h200`, by the names of its pitches: each step makes one change to the step below.
pub fn staircase(form: Form) -> Result<Vec<Step>, Box<dyn Error>> {
    let round: RoundFile = toml::from_str(match form {
        Form::Plain => PLAIN_ROUND,
        Form::Swiglu => DUAL_ROUND,
    })?;
    let baseline = round.baseline.ok_or("the staircase has no baseline")?;
    let mut steps = vec![Step {
        name: BASELINE.to_owned(),
        schedule: Schedule::of(&baseline.schedule)?,
    }];
    for pitch in round.pitch {
        let below = pitch.after.as_deref().unwrap_or(BASELINE);
        let below = steps.iter().find(|step| step.name == below);
        let below = below.ok_or_else(|| format!("{} stands on a step that comes after it", pitch.name))?;
        let schedule = below.schedule.changed(&pitch.schedule)?;
        steps.push(Step {
            name: pitch.name,
            schedule,
        });
    }
    Ok(steps)
}

/// All steps and the automatic choices for a problem on a GPU; the steps of the staircase are Hopper's. Hopper also runs what
/// is chosen for GPUs before it.
pub fn all(problem: &Operation, target: Target) -> Result<Vec<Step>, Box<dyn Error>> {
    let mut targets = vec![(AUTOMATIC, target)];
    if target.arch == Arch::Sm90a {
        targets.push((BEFORE_HOPPER, Target::of_arch(Arch::Sm89, target.processors)));
    }
    let step = |name: &str, schedule| Step {
        name: name.to_owned(),
        schedule,
    };
    match problem {
        Operation::GroupedGemm(gemm) => {
            let mut steps = match target.arch {
                Arch::Sm90a => staircase(gemm.form)?,
                _ => Vec::new(),
            };
            let shape = layer(gemm);
            let tokens: Vec<usize> = gemm.groups.iter().map(|shape| shape.m).collect();
            let repacked = (REPACKED, Choice::Repacked(shape.packing(target)), target);
            let automatic = targets
                .iter()
                .map(|(name, target)| (*name, Choice::Automatic, *target));
            for (name, choice, target) in automatic.chain([repacked]) {
                let plan = Planner::new(shape.clone(), choice, target).plan(&tokens)?;
                steps.push(step(name, plan.schedule().clone()));
            }
            Ok(steps)
        }
        Operation::Attention(problem) => {
            let chosen = targets
                .iter()
                .map(|(name, target)| step(name, attention::automatic(problem, *target)));
            Ok(chosen.collect())
        }
    }
}

/// A step by its name, `automatic`, or a schedule as TOML, given inline or as a file.
pub fn named(wanted: &str, problem: &Operation, target: Target) -> Result<Step, Box<dyn Error>> {
    let all = all(problem, target)?;
    if let Some(step) = all.iter().find(|step| step.name == wanted) {
        return Ok(step.clone());
    }
    let path = Path::new(wanted);
    if path.is_file() {
        let text = std::fs::read_to_string(path)?;
        return Ok(Step {
            name: wanted.to_owned(),
            schedule: toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?,
        });
    }
    if !wanted.contains('=') {
        let names: Vec<_> = all.iter().map(|step| step.name.as_str()).collect();
        let names = names.join(", ");
        return Err(format!(
            "there is no schedule `{wanted}`; give its words as TOML, a file, or one of {names}"
        )
        .into());
    }
    Ok(Step {
        name: "words".to_owned(),
        schedule: toml::from_str(wanted)?,
    })
}

/// The layer of which a problem is a call.
fn layer(gemm: &GroupedGemm) -> LayerShape {
    LayerShape {
        products: gemm
            .groups
            .iter()
            .map(|shape| ProductShape {
                n: shape.n,
                k: shape.k,
            })
            .collect(),
        form: gemm.form,
        output: gemm.output,
        tokens: gemm.tokens,
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problems::{GemmShape, OutputFormat};
    use gauntlet_problems::{Packing, Roles, Setup};

    use super::*;

    fn problem(form: Form) -> Operation {
        Operation::GroupedGemm(GroupedGemm {
            groups: vec![GemmShape {
                m: 100,
                n: 512,
                k: 512,
            }],
            form,
            output: OutputFormat::F16,
            tokens: Default::default(),
        })
    }

    #[test]
    fn each_step_changes_the_one_that_it_stands_on() {
        let steps = staircase(Form::Plain).unwrap();
        let step = |name: &str| &steps.iter().find(|step| step.name == name).unwrap().schedule;
        let split = Schedule {
            split_k: 2,
            ..step("persistent-sorted").clone()
        };
        assert_eq!(*step("split-k"), split);
        assert_eq!(step("host-setup").setup, Setup::Once);
        assert!(step("host-setup").swap_ab && !step("warp-roles").swap_ab);
        let dual = staircase(Form::Swiglu).unwrap();
        assert_eq!(dual.last().unwrap().schedule.setup, Setup::Once);
    }

    #[test]
    fn a_schedule_is_a_name_a_file_or_its_words() {
        let problem = problem(Form::Plain);
        let named = |wanted: &str| named(wanted, &problem, Target::hopper(132));
        assert_eq!(named("stages-3").unwrap().schedule.stages, 3);
        assert!(named(AUTOMATIC).unwrap().schedule.swap_ab);
        assert_eq!(named(BEFORE_HOPPER).unwrap().schedule.roles, Roles::Unified);
        assert_eq!(named(REPACKED).unwrap().schedule.packing, Packing::Fragments);
        let words = named("stages = 2\nswap-ab = true").unwrap();
        assert_eq!((words.schedule.stages, words.name.as_str()), (2, "words"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("schedule.toml");
        std::fs::write(&path, "stages = 5").unwrap();
        assert_eq!(named(path.to_str().unwrap()).unwrap().schedule.stages, 5);
        let error = named("fastest").unwrap_err().to_string();
        assert!(
            error.contains("`fastest`") && error.contains("host-setup, automatic, before-hopper, repacked"),
            "{error}"
        );
    }
}
