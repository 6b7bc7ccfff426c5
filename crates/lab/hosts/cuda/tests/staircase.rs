//! Every step of the examples for a GPU has a kernel there.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_judge::Candidate;
use gauntlet_kernels_cuda::plan::{Target, plan};
use gauntlet_problems::Schedule;
use gauntlet_tournament::{Overrides, Round, Tournament};

#[test]
fn each_step_of_the_example_is_planned_for_each_of_its_cases() {
    for example in [
        "attention/staircase.toml",
        "l4/tournament.toml",
        "b200/staircase.toml",
    ] {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../examples");
        let tournament = Tournament::load(&examples.join(example), &Overrides::default()).unwrap();
        for round in &tournament.rounds {
            each_step_is_planned(round);
        }
    }
}

fn each_step_is_planned(round: &Round) {
    let baseline = round.baseline_schedule().unwrap();
    let target = Target::of(&round.setting.device).unwrap();
    let mut steps = BTreeMap::new();
    for pitch in &round.pitches {
        let below = pitch.after.as_ref().map_or(&baseline, |after| &steps[after]);
        let step = Candidate {
            name: pitch.name.clone(),
            schedule: below.changed(&pitch.schedule),
            command: None,
            hosted: false,
            device_only: false,
            source: None,
            dispatch: round.dispatch(&pitch.dispatch),
        };
        for case in &round.setting.benchmark_cases {
            let operation = gauntlet_tiled_family::operation(&case.sizes).unwrap();
            for parameters in [&baseline, step.schedule_for(&case.sizes, &round.setting.device)] {
                let schedule = Schedule::of(parameters).unwrap();
                let planned = plan(operation, &schedule, target);
                assert!(planned.is_ok(), "{}: {:?}", step.name, planned.err());
            }
        }
        steps.insert(pitch.name.clone(), step.schedule);
    }
}
