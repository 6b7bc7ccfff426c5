//! Pruning by proof: a measured schedule, which may become the schedule of a problem, must not be able to hang or race.

use gauntlet_barrier_proofs::{FlawKind, prove};
use gauntlet_device::Device;
use gauntlet_parameters::Parameters;
use gauntlet_simulate::Subject;
use gauntlet_task::Case;

use super::ranking::Ranked;

/// The first `keep` schedules of the ranking that are not refuted, and the number refuted on the way. Only as many are
/// proved as are needed, because a proof takes far longer than a simulation; at least one is proved, even if there is
/// no `time`.
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

/// Whether the tile program, if there is one, neither hangs nor races. A program without overlap passes: measurements
/// show how slow it is.
fn is_sound(schedule: &Parameters, case: &Case, device: &Device) -> bool {
    let Ok(subject) = Subject::of(&case.sizes, schedule) else {
        return true;
    };
    match prove(&subject.program(device)) {
        Ok(_) => true,
        Err(flaw) => flaw.kind == FlawKind::NothingOverlaps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_schedules_are_sound_and_no_more_are_kept_than_asked_for() {
        let case = &gauntlet_families::suite("group-gemm").unwrap().benchmark[3];
        let ranked: Vec<Ranked> = (1..=4)
            .map(|stages| Ranked {
                rank: stages,
                schedule: Parameters::new().with("stages", stages),
                predicted: Some(stages as f64),
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
