//! Properties of every prediction.

use std::collections::HashSet;

use gauntlet_device::Device;
use gauntlet_problems::{AttentionFormat, Form, Schedule, Setup};
use gauntlet_simulate::{
    Activity, HostTerm, Part, Problem, break_down, limit, repeated_limit, simulate, timeline,
};
use gauntlet_task::Cached;

use crate::support::{attention, cases, device, gemm, prepared, schedules};

const HOST: HostTerm = HostTerm {
    constant: 95e-6,
    per_group: 35e-6,
};

fn problems() -> Vec<Problem> {
    let dual = gemm(Form::Swiglu, &[256], 4096, 7168);
    let odd = gemm(Form::Plain, &[1, 0, 300], 1040, 208);
    cases()
        .into_iter()
        .chain([dual, odd])
        .chain([
            attention(512, false, AttentionFormat::F16),
            attention(1000, true, AttentionFormat::E4m3),
        ])
        .collect()
}

/// One of `stride` schedules, of every problem on every device.
fn everywhere(stride: usize, each: impl Fn(&Problem, &Schedule, &Device)) {
    for name in Device::builtin_names() {
        let device = device(name);
        let mut tried = 0;
        for problem in problems() {
            for schedule in schedules(&problem, &device).iter().step_by(stride) {
                each(&problem, schedule, &device);
                tried += 1;
            }
        }
        assert!(tried >= 20, "{name}: {tried}");
    }
}

#[test]
fn the_parts_of_every_breakdown_add_up_and_none_is_negative() {
    everywhere(17, |problem, schedule, device| {
        let whole = simulate(problem, schedule, device, HOST).unwrap();
        let breakdown = break_down(problem, schedule, device, HOST).unwrap();
        let off = breakdown.total() / whole.seconds - 1.0;
        assert!(off.abs() < 1e-9, "{} {schedule}: off by {off}", device.name);
        assert_eq!(breakdown.roofline.to_bits(), whole.roofline.to_bits());
        let parts: Vec<_> = breakdown.parts.iter().map(|entry| entry.part).collect();
        assert_eq!(parts, Part::ALL);
        for entry in &breakdown.parts {
            assert!(entry.seconds >= 0.0, "{} {schedule}: {entry:?}", device.name);
        }
    });
}

#[test]
fn a_prediction_is_the_same_to_the_bit_and_above_its_limit() {
    everywhere(7, |problem, schedule, device| {
        let first = simulate(problem, schedule, device, HOST).unwrap();
        let again = simulate(problem, schedule, device, HOST).unwrap();
        assert_eq!(first.seconds.to_bits(), again.seconds.to_bits(), "{schedule}");
        assert!(first.seconds.is_finite() && first.seconds >= first.roofline);
        assert!(first.seconds >= limit(problem, device).unwrap() * (1.0 - 1e-9));
    });
}

#[test]
fn of_what_the_cache_may_keep_only_the_rest_bounds_a_repeated_call() {
    let device = device("h200");
    let limits = |n| {
        let problem = gemm(Form::Plain, &[8], n, 7168);
        let kept = [Cached::Results, Cached::Everything];
        let [results, everything] = kept.map(|cached| repeated_limit(&problem, &device, cached).unwrap());
        [limit(&problem, &device).unwrap(), results, everything]
    };
    let [cold, _, warm] = limits(4096);
    assert!(
        warm < 0.5 * cold,
        "all of it fits: products alone: {warm} and {cold}"
    );
    let bandwidth = device.memory.bandwidth.as_ref().unwrap();
    let seconds = |bytes: f64| bytes / bandwidth.get().max(bandwidth.attainable());
    let [cold, others, warm] = limits(1 << 18);
    assert!((cold - warm - seconds(60e6)).abs() < 1e-9, "{cold} and {warm}");
    let results = seconds(f64::from(16 << 18));
    assert!((cold - others - results).abs() < 1e-9, "{cold} and {others}");

    let mut unknown = device.clone();
    unknown.memory.l2_size = None;
    let problem = gemm(Form::Plain, &[8], 1 << 18, 7168);
    let products = repeated_limit(&problem, &unknown, Cached::Everything).unwrap();
    assert!(products > 0.0 && products < warm);
}

#[test]
fn a_timeline_lasts_as_long_as_the_prediction_and_its_spans_are_in_order() {
    everywhere(7, |problem, schedule, device| {
        let whole = simulate(problem, schedule, device, HOST).unwrap();
        let timeline = timeline(problem, schedule, device, HOST).unwrap();
        assert!((timeline.seconds / whole.seconds - 1.0).abs() < 1e-12);
        let mut processors = HashSet::new();
        let mut shown = 0;
        let mut multiplies = false;
        for track in &timeline.tracks {
            let mut end = 0.0;
            for span in &track.spans {
                assert!(
                    end <= span.start && span.start < span.end,
                    "{}: {span:?}",
                    track.name
                );
                assert!(
                    span.end <= timeline.seconds * (1.0 + 1e-12),
                    "{}: {span:?}",
                    track.name
                );
                multiplies |= span.activity == Activity::Multiply;
                end = span.end;
            }
            if track.processor.is_some_and(|number| processors.insert(number)) {
                shown += track.alike;
            }
        }
        assert!(multiplies, "{schedule}");
        assert!(shown <= device.processors.get() as usize, "{shown}");
    });
}

#[test]
fn a_call_without_work_takes_a_launch_and_nothing_else() {
    let h200 = device("h200");
    let empty = gemm(Form::Plain, &[0], 128, 128);
    let once = simulate(&empty, &prepared([128, 128, 128], 2), &h200, HOST).unwrap();
    // An empty kernel replayed from a graph takes 0.74 µs on an H200.
    assert!((0.73e-6..0.75e-6).contains(&once.seconds), "{once:?}");
    let per_call = Schedule {
        setup: Setup::PerCall,
        ..prepared([128, 128, 128], 2)
    };
    let each_time = simulate(&empty, &per_call, &h200, HOST).unwrap();
    assert!(
        (each_time.seconds - (130e-6 + 2.5e-6)).abs() < 1e-9,
        "{each_time:?}"
    );
}

#[test]
fn few_rows_for_few_tokens_are_simulated_on_hopper() {
    let h200 = device("h200");
    for (form, tile) in [(Form::Plain, [32, 16, 2048]), (Form::Swiglu, [16, 16, 1024])] {
        let problem = gemm(form, &[16, 0, 3], 4096, 7168);
        let schedule = Schedule {
            swap_ab: true,
            ..prepared(tile, 2)
        };
        let seconds = simulate(&problem, &schedule, &h200, HOST).unwrap().seconds;
        assert!(seconds.is_finite() && seconds > 0.0, "{seconds}");
    }
}
