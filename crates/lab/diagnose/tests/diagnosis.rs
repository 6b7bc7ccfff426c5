//! Diagnoses of times with known causes, and of the times of the recorded tournament.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_device::Device;
use gauntlet_diagnose::{
    Change, Diagnosis, DiagnosisError, Driver, Explanation, Lever, Measurement, Variant, changes, diagnose,
};
use gauntlet_problems::Schedule;
use gauntlet_problems::{Form, GemmShape, GroupedGemm, Operation};
use proptest::prelude::*;

fn gemm(m: &[usize], n: usize, k: usize) -> Operation {
    Operation::GroupedGemm(GroupedGemm::new(Form::Plain, m.iter().map(|&m| [m, n, k])))
}

/// The four cases of the recorded tournament.
fn cases() -> Vec<Operation> {
    vec![
        gemm(&[80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168),
        gemm(&[40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048),
        gemm(&[192, 320], 3072, 4096),
        gemm(&[128, 384], 4096, 1536),
    ]
}

fn measured(problems: &[Operation], seconds: &[f64]) -> Vec<Measurement> {
    let measured = |(problem, seconds): (&Operation, &f64)| Measurement {
        problem: problem.clone(),
        seconds: *seconds,
        spread: None,
    };
    problems.iter().zip(seconds).map(measured).collect()
}

fn recorded() -> Vec<Measurement> {
    measured(&cases(), &[373e-6, 372e-6, 173e-6, 156e-6])
}

fn diagnosis(measurements: &[Measurement]) -> Diagnosis {
    diagnose(
        measurements,
        &Schedule::baseline(),
        &Device::builtin("b200").unwrap(),
    )
    .unwrap()
}

fn of<'d>(diagnosis: &'d Diagnosis, drivers: &[Driver]) -> Option<&'d Explanation> {
    diagnosis
        .explanations
        .iter()
        .find(|one| one.drivers().eq(drivers.iter().copied()))
}

/// How often a driver occurs in each problem, counted as in the fit: the time of a call that is proportional to this
/// driver alone.
fn counts(problems: &[Operation], driver: Driver) -> Vec<f64> {
    let tiles = |shape: &GemmShape| (shape.m.div_ceil(128) * shape.n.div_ceil(128)) as f64;
    let steps = |shape: &GemmShape| shape.k.div_ceil(256) as f64;
    let product = |shape: &GemmShape| (shape.m * shape.n * shape.k) as f64;
    let bytes = |shape: &GemmShape| {
        ((shape.m + shape.n) * shape.k) as f64 * 0.5625 + 2.0 * (shape.m * shape.n) as f64
    };
    let count = |problem: &Operation| {
        let Operation::GroupedGemm(gemm) = problem else {
            unreachable!()
        };
        let sum = |of: &dyn Fn(&GemmShape) -> f64| gemm.groups.iter().map(of).sum::<f64>();
        let waves = (sum(&tiles) / 148.0).ceil();
        match driver {
            Driver::Constant => 1.0,
            Driver::Groups => gemm.groups.len() as f64,
            Driver::Tiles => sum(&tiles),
            Driver::Waves => waves,
            // All groups of a case are equally deep.
            Driver::Steps => waves * steps(&gemm.groups[0]),
            Driver::Flops => 2.0 * sum(&product),
            Driver::PaddedFlops => 2.0 * sum(&|shape| tiles(shape) * steps(shape)) * (128 * 128 * 256) as f64,
            Driver::Bytes => sum(&bytes),
        }
    };
    problems.iter().map(count).collect()
}

/// Times proportional to a driver, 2 ms on average: far above the roofline.
fn times_by(problems: &[Operation], driver: Driver) -> Vec<f64> {
    let counts = counts(problems, driver);
    let sum: f64 = counts.iter().sum();
    counts
        .iter()
        .map(|count| count * 2e-3 * counts.len() as f64 / sum)
        .collect()
}

#[test]
fn the_recorded_times_lie_outside_the_kernel_but_a_rival_is_not_excluded() {
    let diagnosis = diagnosis(&recorded());
    let first = &diagnosis.explanations[0];
    assert!(
        first.drivers().eq([Driver::Constant, Driver::Groups]),
        "{first:#?}"
    );
    assert!(first.probability > 1.5 * diagnosis.explanations[1].probability);
    let [constant, groups] = [0, 1].map(|index| first.costs[index].seconds);
    assert!(constant.low < 95e-6 && 95e-6 < constant.high, "{constant:?}");
    assert!(groups.low < 35e-6 && 35e-6 < groups.high, "{groups:?}");
    assert!(first.misfit < 0.06, "{}", first.misfit);

    let rival = of(&diagnosis, &[Driver::Constant, Driver::Tiles, Driver::Flops]).unwrap();
    assert!(rival.misfit < 0.02 && rival.probability < first.probability / 2.0);

    // The two explanations predict different times for the next measurement.
    let experiment = &diagnosis.experiments[0];
    assert!(experiment.information > 1.0, "{experiment:?}");
    let place = diagnosis
        .explanations
        .iter()
        .position(|one| one == rival)
        .unwrap();
    assert!(
        experiment.predictions[place].high < experiment.predictions[0].low,
        "{experiment:?}"
    );
    assert_eq!(experiment.predictions.len(), diagnosis.explanations.len());
    assert!(
        diagnosis
            .experiments
            .iter()
            .any(|one| one.change == Change::OneStep)
    );
    assert!(
        diagnosis
            .experiments
            .iter()
            .any(|one| one.change == Change::DeviceClock)
    );
    assert!(!diagnosis.unexplained);

    let host = diagnosis.host_term();
    assert!(
        ((host.constant + 8.0 * host.per_group) / 373e-6 - 1.0).abs() < 0.06
            && ((host.constant + 2.0 * host.per_group) / 165e-6 - 1.0).abs() < 0.06
    );
}

#[test]
fn what_lies_outside_the_kernel_no_schedule_brings_back() {
    let diagnosis = diagnosis(&recorded());
    let gain = |explanation: &Explanation, lever| {
        explanation
            .gains
            .iter()
            .find(|gain| gain.lever == lever)
            .unwrap()
            .speedup
    };
    let first = &diagnosis.explanations[0];
    for lever in [Lever::Stages, Lever::Tile, Lever::Epilogue, Lever::Roles] {
        assert_eq!(gain(first, lever).high, 1.0, "{lever:?}");
    }
    // Down to the rooflines: (373 · 372 · 173 · 156 / (18.8 · 10.7 · 2.4 · 1.5)) to the fourth.
    let most = (373.0 * 372.0 * 173.0 * 156.0 / (18.853 * 10.678 * 2.409 * 1.527_f64)).powf(0.25);
    assert!(
        (gain(first, Lever::Host).mean / most - 1.0).abs() < 0.05,
        "{}",
        gain(first, Lever::Host).mean
    );
    // Under the rival explanation, stages reach the part proportional to FLOPs, and the epilogue the part proportional
    // to tiles.
    let rival = of(&diagnosis, &[Driver::Constant, Driver::Tiles, Driver::Flops]).unwrap();
    for lever in [Lever::Stages, Lever::Epilogue] {
        let speedup = gain(rival, lever);
        assert!(
            1.1 < speedup.mean && speedup.high < gain(rival, Lever::Tile).mean,
            "{lever:?}: {speedup:?}"
        );
    }
}

/// The four cases distinguish all eight drivers: no two are proportional within the noise.
#[test]
fn times_by_one_driver_name_it() {
    for driver in Driver::ALL {
        let diagnosis = diagnosis(&measured(&cases(), &times_by(&cases(), driver)));
        let first = &diagnosis.explanations[0];
        assert!(first.drivers().eq([driver]), "{driver:?}: {:?}", first.costs);
        assert!(first.probability > 0.7, "{driver:?}: {}", first.probability);
        assert!(first.misfit < 1e-6);
        let seconds = first.costs[0].seconds.mean;
        let exact = times_by(&cases(), driver)[0] / counts(&cases(), driver)[0];
        assert!(
            (seconds / exact - 1.0).abs() < 0.01,
            "{driver:?}: {seconds:e} and not {exact:e}"
        );
    }
}

#[test]
fn many_exact_times_leave_one_explanation() {
    let mut problems = cases();
    for k in [256, 1024, 4096] {
        problems.push(gemm(&[300], 2048, k));
        problems.push(gemm(&[128; 6], 1024, k));
        problems.push(gemm(&[512, 64, 64, 64], 4096, k));
    }
    let parts = [
        (Driver::Constant, 0.3),
        (Driver::Tiles, 0.3),
        (Driver::Flops, 0.4),
    ]
    .map(|(driver, share)| {
        times_by(&problems, driver)
            .iter()
            .map(|time| time * share)
            .collect::<Vec<_>>()
    });
    let times: Vec<f64> = (0..problems.len())
        .map(|index| parts.iter().map(|part| part[index]).sum())
        .collect();
    let diagnosis = diagnosis(&measured(&problems, &times));
    let first = &diagnosis.explanations[0];
    assert!(
        first
            .drivers()
            .eq([Driver::Constant, Driver::Tiles, Driver::Flops])
    );
    assert!(first.probability > 0.9, "{}", first.probability);
    let absent = diagnosis
        .average
        .shares
        .iter()
        .filter(|share| share.probability == 0.0);
    assert!(absent.clone().count() > 0);
    assert!(
        absent
            .into_iter()
            .all(|share| share.probability.is_sign_positive())
    );
    for (fit, parts) in first
        .fits
        .iter()
        .zip((0..problems.len()).map(|index| [0, 1, 2].map(|part| parts[part][index])))
    {
        for (found, exact) in fit.parts.iter().zip(parts) {
            assert!(
                (found.seconds - exact).abs() < 0.03 * fit.seconds,
                "{found:?} and not {exact:e}"
            );
        }
    }
}

#[test]
fn what_fits_nothing_is_said_to() {
    // Times fall as the work grows: no sum of non-negative costs does that.
    let diagnosis = diagnosis(&measured(&cases(), &[100e-6, 300e-6, 900e-6, 2700e-6]));
    assert!(diagnosis.unexplained);
}

#[test]
fn one_time_excludes_nothing_that_one_driver_explains() {
    let diagnosis = diagnosis(&recorded()[..1]);
    // A driver proportional to another of its kind is left out and listed.
    assert_eq!(diagnosis.considered, 5);
    assert_eq!(diagnosis.explanations.len(), 5);
    assert_eq!(diagnosis.indistinct.len(), 3);
    assert!(!diagnosis.experiments.is_empty());
}

/// A plain product has one group, whose cost is that of the call.
#[test]
fn groups_explain_nothing_where_there_is_one() {
    let problems =
        [[64, 4096, 7168], [256, 2048, 1024], [1024, 4096, 4096]].map(|[m, n, k]| gemm(&[m], n, k));
    let diagnosis = diagnosis(&measured(&problems, &[300e-6, 310e-6, 320e-6]));
    let names_groups = |one: &Explanation| one.costs.iter().any(|cost| cost.driver == Driver::Groups);
    assert!(!diagnosis.explanations.iter().any(names_groups), "{diagnosis:?}");
    let left_out = diagnosis
        .indistinct
        .iter()
        .find(|one| one.driver == Driver::Groups);
    assert_eq!(left_out.unwrap().like, Driver::Constant);
}

#[test]
fn a_known_spread_makes_a_time_count_less() {
    let mut measurements = recorded();
    let before = diagnosis(&measurements).explanations[0].misfit;
    // The two times that "constant + groups" misses.
    measurements[2].spread = Some(0.3);
    measurements[3].spread = Some(0.3);
    let after = &diagnosis(&measurements).explanations[0];
    assert!(after.misfit < before / 2.0, "{before} and {}", after.misfit);
}

#[test]
fn variants_are_compared_where_both_were_measured() {
    let diagnosed = |name: &str, times: &[f64]| Variant {
        name: Some(name.to_owned()),
        diagnosis: diagnosis(&measured(&cases(), times)),
    };
    let variants = [
        diagnosed("one stage", &[373e-6, 372e-6, 173e-6, 156e-6]),
        diagnosed("three stages", &[488e-6, 462e-6, 249e-6, 228e-6]),
    ];
    let changes = changes(&variants, &Device::builtin("b200").unwrap()).unwrap();
    assert_eq!((changes.len(), changes[0].problems), (1, 4));
    let exact = (373.0 * 372.0 * 173.0 * 156.0 / (488.0 * 462.0 * 249.0 * 228.0_f64)).powf(0.25);
    assert!((changes[0].speedup - exact).abs() < 1e-12);
    let constant = changes[0]
        .drivers
        .iter()
        .find(|change| change.driver == Driver::Constant)
        .unwrap();
    assert!(constant.after.mean - constant.before.mean > 50e-6, "{constant:?}");
}

#[test]
fn what_only_one_variant_was_measured_on_is_not_compared() {
    let variant = |name: &str, cases: &[Operation], times: &[f64]| Variant {
        name: Some(name.to_owned()),
        diagnosis: diagnosis(&measured(cases, times)),
    };
    let device = Device::builtin("b200").unwrap();
    let compared = |variants: &[Variant]| changes(variants, &device).unwrap();
    let (all, times) = (cases(), [373e-6, 372e-6, 173e-6, 156e-6]);
    let same = compared(&[
        variant("one", &all[..3], &times[..3]),
        variant("other", &all[..3], &times[..3]),
    ]);
    // The fourth problem is faster than the others, so the mean over all four, and each part of it, is smaller.
    let more = compared(&[
        variant("one", &all[..3], &times[..3]),
        variant("other", &all, &times),
    ]);
    assert_eq!(more, same);
    assert_eq!(more[0].problems, 3);
    assert!((more[0].speedup - 1.0).abs() < 1e-12);
    for change in &more[0].drivers {
        assert_eq!(change.before, change.after, "{}", change.driver);
    }

    // A time that occurs twice in one variant has no more weight than the others.
    let again = [&all[..3], &all[..1]].concat();
    let twice = compared(&[
        variant("one", &again, &[373e-6, 372e-6, 173e-6, 373e-6]),
        variant("other", &all[..3], &times[..3]),
    ]);
    assert_eq!(twice[0].problems, 3);
    assert!((twice[0].speedup - 1.0).abs() < 1e-12);
    for change in &twice[0].drivers {
        let apart = change.before.mean - change.after.mean;
        assert!(apart.abs() < 1e-9, "{}: {apart}", change.driver);
    }
}

#[test]
fn what_cannot_be_diagnosed_is_refused_with_its_place() {
    let device = Device::builtin("b200").unwrap();
    let refused =
        |times: &[f64]| diagnose(&measured(&cases(), times), &Schedule::baseline(), &device).unwrap_err();
    assert_eq!(refused(&[]), DiagnosisError::NoTimes);
    assert_eq!(refused(&[1.0, f64::NAN]).measurement(), Some(1));
    assert_eq!(refused(&[1.0, 1.0, 0.0]).measurement(), Some(2));
    let under = refused(&[1.0, 1.0, 1.0, 1.5e-6]);
    assert!(
        matches!(under, DiagnosisError::UnderTheRoofline { measurement: 3, .. }),
        "{under}"
    );
    assert!(under.to_string().contains("b200"), "{under}");
    let empty = measured(&[gemm(&[0, 0], 128, 256)], &[1.0]);
    let refused = diagnose(&empty, &Schedule::baseline(), &device).unwrap_err();
    assert_eq!(refused, DiagnosisError::NoWork { measurement: 0 });
}

#[test]
fn a_diagnosis_survives_json() {
    let diagnosis = diagnosis(&recorded());
    let text = serde_json::to_string(&diagnosis).unwrap();
    assert_eq!(serde_json::from_str::<Diagnosis>(&text).unwrap(), diagnosis);
}

/// A B200 without a clock has no roofline, so times of any size are possible.
fn without_roofline() -> Device {
    let mut device = Device::builtin("b200").unwrap();
    device.clock = None;
    device
}

fn any_measurements() -> impl Strategy<Value = Vec<Measurement>> {
    let group = (1..500_usize, 1..40_usize, 1..64_usize).prop_map(|(m, n, k)| (m, 64 * n, 64 * k));
    let problem = prop::collection::vec(group, 1..5).prop_map(|groups| {
        Operation::GroupedGemm(GroupedGemm::new(
            Form::Plain,
            groups.into_iter().map(|(m, n, k)| [m, n, k]),
        ))
    });
    let measurement = (problem, 1e-5..1e-2_f64).prop_map(|(problem, seconds)| Measurement {
        problem,
        seconds,
        spread: None,
    });
    prop::collection::vec(measurement, 1..7)
}

fn probability(diagnosis: &Diagnosis, explanation: &Explanation) -> Option<f64> {
    let drivers: Vec<_> = explanation.drivers().collect();
    of(diagnosis, &drivers).map(|same| same.probability)
}

/// The maximum difference between two sums over grids: a grid covers five standard deviations, with 6·10⁻⁷ of the mass
/// beyond, and its position depends on rounding.
const GRID: f64 = 1e-5;

/// Whether the kept explanations of both are equal, except at the border of the set.
fn agree(one: &Diagnosis, other: &Diagnosis) -> bool {
    let (last_of_one, last_of_other) = (
        &one.explanations[one.explanations.len() - 1],
        other.explanations.len() - 1,
    );
    let border = last_of_one
        .probability
        .max(other.explanations[last_of_other].probability);
    one.explanations.iter().all(|explanation| {
        probability(other, explanation)
            .map_or(explanation.probability <= border * (1.0 + GRID), |probability| {
                (probability / explanation.probability - 1.0).abs() < GRID
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parts_add_up_and_probabilities_too(measurements in any_measurements()) {
        let diagnosis = diagnose(&measurements, &Schedule::baseline(), &without_roofline()).unwrap();
        let total: f64 = diagnosis.explanations.iter().map(|one| one.probability).sum();
        prop_assert!((0.95 - 1e-9..1.0 + 1e-9).contains(&total), "{}", total);
        for one in &diagnosis.explanations {
            prop_assert!(one.costs.iter().all(|cost| cost.seconds.low >= 0.0));
            for fit in &one.fits {
                let (seconds, shares): (Vec<_>, Vec<_>) =
                    fit.parts.iter().map(|part| (part.seconds, part.share.mean)).unzip();
                prop_assert!((seconds.iter().sum::<f64>() / fit.seconds - 1.0).abs() < 1e-12);
                prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
            prop_assert!(one.gains.iter().all(|gain| gain.speedup.low >= 1.0 - 1e-12));
        }
        let shares: f64 = diagnosis.average.shares.iter().map(|share| share.share.mean).sum();
        prop_assert!((shares - 1.0).abs() < 1e-9, "{}", shares);
    }

    #[test]
    fn times_on_another_scale_cost_as_much_more(measurements in any_measurements(), factor in 0.01..100.0_f64) {
        let scaled: Vec<_> = measurements
            .iter()
            .map(|one| Measurement { seconds: one.seconds * factor, ..one.clone() })
            .collect();
        let before = diagnose(&measurements, &Schedule::baseline(), &without_roofline()).unwrap();
        let after = diagnose(&scaled, &Schedule::baseline(), &without_roofline()).unwrap();
        prop_assert!(agree(&before, &after));
        for one in &before.explanations {
            let drivers: Vec<_> = one.drivers().collect();
            let Some(same) = of(&after, &drivers) else { continue };
            for (before, after) in one.costs.iter().zip(&same.costs) {
                prop_assert!((after.seconds.mean / before.seconds.mean / factor - 1.0).abs() < GRID);
            }
        }
    }

    #[test]
    fn the_order_of_times_does_not_matter(measurements in any_measurements()) {
        let reversed: Vec<_> = measurements.iter().rev().cloned().collect();
        let one = diagnose(&measurements, &Schedule::baseline(), &without_roofline()).unwrap();
        let other = diagnose(&reversed, &Schedule::baseline(), &without_roofline()).unwrap();
        prop_assert!(agree(&one, &other));
    }
}
