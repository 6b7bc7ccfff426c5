//! Proof prunes: what is measured, and so may become the schedule of a problem, must not be able to hang or race.

use gauntlet_device::Device;
use gauntlet_model::prove::{FlawKind, prove};
use gauntlet_problem::Case;
use gauntlet_schedule::Schedule;
use gauntlet_schedule::program::TileProgram;

use super::ranking::Ranked;

/// The first `keep` of the ranking that are not refuted, and how many were refuted on the way. Only as many are proved
/// as are needed, for a proof takes far longer than a simulation; and one at least, even if there is no `time`.
pub fn sound(
    ranked: &[Ranked],
    keep: usize,
    case: &Case,
    device: &Device,
    time: &dyn Fn() -> bool,
) -> (Vec<Ranked>, usize) {
    let mut refuted = 0;
    let mut sound = Vec::new();
    for one in ranked {
        if sound.len() >= keep || !sound.is_empty() && !time() {
            break;
        }
        if is_sound(&one.schedule, case, device) {
            sound.push(one.clone());
        } else {
            refuted += 1;
        }
    }
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
            let device = &Device::builtin(name).unwrap();
            let (kept, refuted) = sound(&ranked, 3, case, device, &|| true);
            assert_eq!((kept.as_slice(), refuted), (&ranked[..3], 0), "{name}");
            let (kept, _) = sound(&ranked, 3, case, device, &|| false);
            assert_eq!(kept.as_slice(), &ranked[..1], "{name}, without time");
        }
    }
}
