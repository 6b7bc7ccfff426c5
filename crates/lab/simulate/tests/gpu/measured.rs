//! Comparison with published measurements and with prototypes. None of these figures was used to fit the model, and the
//! bounds are wide: they check the accuracy that is claimed. `docs/explanation/model.md` has the figures side by side.

use gauntlet_problems::{Cluster, Epilogue, Lookup, Order, Schedule, Setup};

use crate::support::{cases, device, microseconds, prepared};

fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = ratios.into_iter().map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

/// A prototype on an H200 (NVFP4 weights converted in registers, swapped, tiles of many widths in one kernel) took 100,
/// 54, 27 and 13.6 µs. Here the best single width is used in place of many.
#[test]
fn the_prototype_on_an_h200() {
    let h200 = device("h200");
    for (problem, measured) in cases().iter().zip([100.0, 54.0, 27.0, 13.6]) {
        let best = [64, 96, 128]
            .map(|n| {
                let schedule = Schedule {
                    swap_ab: true,
                    order: Order::Static,
                    ..prepared([128, n, 128], 4)
                };
                microseconds(problem, &schedule, &h200)
            })
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        assert!((0.75..1.33).contains(&(best / measured)), "{best} {measured}");
    }
}

/// Another author's series on a B200: 37.8/33/10.8/8.4 µs, persistent 32.5/22.9/10.4/8.4, swapped alone
/// 39.5/21.2/12.1/8.4, swapped with two-block pairs 29/20.8/10.3/8.4. Only these words of the author's schedules are
/// known.
#[test]
fn the_staircase_on_a_b200_goes_the_same_way() {
    let b200 = device("b200");
    let first = prepared([128, 128, 256], 4);
    let persistent = Schedule {
        order: Order::Static,
        ..first.clone()
    };
    let swapped = Schedule {
        swap_ab: true,
        ..prepared([128, 64, 256], 5)
    };
    let swapped = Schedule {
        order: Order::Static,
        ..swapped
    };
    let pairs = Schedule {
        swap_ab: true,
        order: Order::Static,
        cluster: Cluster { m: 2, n: 1 },
        ..prepared([256, 128, 256], 5)
    };
    let times = |schedule: &Schedule| cases().map(|problem| microseconds(&problem, schedule, &b200));
    let (first, persistent, swapped, pairs) =
        (times(&first), times(&persistent), times(&swapped), times(&pairs));
    // Persistent blocks pay where there are several waves, most in case 2, and cost nothing elsewhere.
    assert!(persistent[0] < 0.95 * first[0] && persistent[1] < 0.8 * first[1]);
    assert!(persistent[2] < 1.02 * first[2] && persistent[3] < 1.02 * first[3]);
    // Swapping alone loses in cases 1 and 3; with pairs it does not.
    assert!(swapped[0] > persistent[0] && swapped[2] > persistent[2]);
    assert!(pairs[0] < swapped[0] && pairs[2] < swapped[2]);
    // Set up once, and no slower than the author's kernel.
    let author = [32.5, 22.9, 10.4, 8.4];
    let ratio = geometric_mean(persistent.iter().zip(author).map(|(ours, theirs)| ours / theirs));
    assert!((0.5..1.2).contains(&ratio), "{ratio}");
}

/// The recorded baseline of the tournament took 373, 372, 173 and 156 µs. Its device time is not known. No schedule
/// explains most of that time, but a host term of 95 µs + 35 µs per group does.
#[test]
fn the_recorded_baseline_is_not_explained_by_its_schedule() {
    let b200 = device("b200");
    let schedule = Schedule {
        setup: Setup::PerCall,
        lookup: Lookup::Linear,
        epilogue: Epilogue::Direct,
        ..Schedule::baseline()
    };
    for (problem, recorded) in cases().iter().zip([373.0, 372.0, 173.0, 156.0]) {
        let kernel = microseconds(problem, &schedule, &b200);
        assert!(kernel < 0.3 * recorded, "{kernel} {recorded}");
    }
}
