//! Proof prunes: what is measured, and so may become the schedule of a problem, must not be able to hang or race.

use gauntlet_device::Device;
use gauntlet_model::prove::{FlawKind, prove};
use gauntlet_problem::Case;
use gauntlet_schedule::Schedule;
use gauntlet_schedule::program::TileProgram;

use super::ranking::Ranked;

/// The first `keep` of the ranking that are not refuted, and how many were refuted on the way. Only as many are proved
/// as are needed: a proof takes far longer than a simulation.
pub fn sound(ranked: &[Ranked], keep: usize, case: &Case, device: &Device) -> (Vec<Ranked>, usize) {
    let mut refuted = 0;
    let sound = ranked.iter().filter(|one| {
        let passes = is_sound(&one.schedule, case, device);
        refuted += usize::from(!passes);
        passes
    });
    let sound = sound.take(keep).cloned().collect();
    (sound, refuted)
}

/// Whether the schedule's tile program neither hangs nor races; how slow it is when nothing overlaps the clock will say.
fn is_sound(schedule: &Schedule, case: &Case, device: &Device) -> bool {
    match prove(&TileProgram::of(schedule, &case.problem, device.arch)) {
        Ok(_) => true,
        Err(flaw) => flaw.kind == FlawKind::NothingOverlaps,
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problem::Suite;

    use super::*;

    #[test]
    fn shipped_schedules_are_sound_and_no_more_are_kept_than_asked_for() {
        let case = &Suite::builtin("group-gemm").unwrap().benchmark[3];
        let ranked: Vec<Ranked> = (1..=4)
            .map(|stages| Ranked {
                rank: stages,
                schedule: Schedule {
                    stages,
                    ..Schedule::baseline()
                },
                predicted: stages as f64,
            })
            .collect();
        for name in ["h200", "b200"] {
            let (kept, refuted) = sound(&ranked, 3, case, &Device::builtin(name).unwrap());
            assert_eq!((kept.as_slice(), refuted), (&ranked[..3], 0), "{name}");
        }
    }
}
