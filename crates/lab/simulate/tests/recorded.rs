//! Counts and estimates compared with figures that were recorded or worked out by hand.

use gauntlet_device::{Arch, Device};
use gauntlet_families::operations::problem;
use gauntlet_problems::{Attention, AttentionFormat, Form, GroupedGemm, Operation};
use gauntlet_problems::{Order, Schedule, Setup, Tile};
use gauntlet_simulate::{
    Bound, Counts, HostTerm, Problem, Subject, count, estimate, limit, predicted_speedup,
};

fn gemm(form: Form, rows: &[usize], n: usize, k: usize) -> Problem {
    let groups = rows.iter().map(|&m| [m, n, k]);
    problem(&Operation::GroupedGemm(GroupedGemm::new(form, groups)))
}

/// The four recorded benchmark cases of the plain form.
fn plain() -> [Problem; 4] {
    [
        gemm(Form::Plain, &[80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168),
        gemm(Form::Plain, &[40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048),
        gemm(Form::Plain, &[192, 320], 3072, 4096),
        gemm(Form::Plain, &[128, 384], 4096, 1536),
    ]
}

/// The four recorded shapes of the dual form.
fn dual() -> [Problem; 4] {
    [
        [256, 4096, 7168],
        [512, 4096, 7168],
        [256, 3072, 4096],
        [512, 3072, 7168],
    ]
    .map(|[m, n, k]| gemm(Form::Swiglu, &[m], n, k))
}

fn attention(queries: usize, keys: usize, causal: bool) -> Problem {
    problem(&Operation::Attention(Attention {
        causal,
        ..Attention::new(AttentionFormat::E4m3, [[queries, keys]], [8, 2], 64)
    }))
}

fn swapped() -> Schedule {
    Schedule {
        swap_ab: true,
        tile: Tile { m: 128, n: 8, k: 256 },
        ..Schedule::baseline()
    }
}

fn percent(share: f64) -> u32 {
    (share * 100.0).round() as u32
}

#[test]
fn tiles_steps_and_useful_rows_of_the_recorded_cases() {
    let counts = plain().map(|problem| Counts::of(&problem, &Schedule::baseline(), Arch::Sm100a, 148));
    assert_eq!(counts.each_ref().map(|counts| counts.tiles), [352, 728, 120, 128]);
    assert_eq!(counts.each_ref().map(|counts| counts.waves), [3, 5, 1, 1]);
    assert_eq!(counts.each_ref().map(|counts| counts.steps), [28, 8, 16, 6]);
    assert_eq!(
        counts.each_ref().map(|counts| percent(counts.useful_rows)),
        [73, 62, 80, 100]
    );
    // N and K are whole tiles, so padding is in the rows alone.
    for counts in counts {
        assert!((counts.padding * counts.useful_rows - 1.0).abs() < 1e-12);
    }
}

#[test]
fn swapping_the_operands_makes_nearly_all_rows_useful() {
    let useful = plain().map(|problem| Counts::of(&problem, &swapped(), Arch::Sm100a, 148).useful_rows);
    assert_eq!(
        useful.map(|useful| (useful * 1000.0).round() as u32),
        [1000, 985, 1000, 1000]
    );
    // 4096 / 128 = 32 blocks of weights, and 1024 / 8 = 128 blocks of tokens.
    assert_eq!(
        Counts::of(&plain()[0], &swapped(), Arch::Sm100a, 148).tiles,
        32 * 128
    );
}

#[test]
fn splitting_the_depth_multiplies_tiles_and_shortens_them() {
    let split = Schedule {
        split_k: 4,
        ..Schedule::baseline()
    };
    let counts = Counts::of(&plain()[0], &split, Arch::Sm100a, 148);
    assert_eq!((counts.tiles, counts.steps), (352 * 4, 7));
}

#[test]
fn the_roofline_reproduces_the_recorded_speeds_of_light() {
    let b200 = Device::builtin("b200").unwrap();
    for (problem, recorded) in plain().iter().zip([18.833, 10.667, 2.406, 1.525]) {
        let estimate = estimate(problem, &Schedule::baseline(), &b200).unwrap();
        let ours = estimate.roofline_seconds * 1e6;
        assert!(
            (ours / recorded - 1.0).abs() < 0.02,
            "{ours} µs, recorded {recorded} µs"
        );
        assert_eq!(estimate.bound, Bound::Memory);
    }
}

#[test]
fn the_recorded_dual_speeds_are_bytes_or_a_lower_clock() {
    let b200 = Device::builtin("b200").unwrap();
    // The recorded figures are the slower of bytes at 7.68 TB/s and products at 6.9 PFLOP/s. That is 1423 MHz on 148
    // multiprocessors; the roofline takes the boost clock, which nothing exceeds, so it is lower for the two shapes
    // of 512 rows: a bound must not be one that a kernel at a higher clock beats.
    for (problem, recorded) in dual().iter().zip([4.708, 8.714, 2.125, 6.535]) {
        let memory = count::bytes(problem) / 7.68e12 * 1e6;
        let compute = count::flops(problem) / 6.9e15 * 1e6;
        assert!(
            (memory.max(compute) / recorded - 1.0).abs() < 0.001,
            "{memory} {compute} {recorded}"
        );
        let estimate = estimate(problem, &Schedule::baseline(), &b200).unwrap();
        let ours = estimate.roofline_seconds * 1e6;
        assert!(ours < recorded * 1.02, "{ours} {recorded}");
        if memory > compute {
            assert!((ours / recorded - 1.0).abs() < 0.02, "{ours} {recorded}");
        } else {
            assert_eq!(estimate.bound, Bound::Compute);
        }
    }
}

#[test]
fn attention_counts_by_hand() {
    // 8 heads × 512 × 512 pairs × 64 values × 2 products × 2.
    assert_eq!(
        count::flops(&attention(512, 512, false)),
        4.0 * 64.0 * 8.0 * 512.0 * 512.0
    );
    // Causal, square: 512·513/2 pairs; 2 queries at the end of 5 keys: 4 + 5; 5 queries on 2 keys: 1 + 2.
    assert_eq!(
        count::flops(&attention(512, 512, true)),
        4.0 * 64.0 * 8.0 * 131_328.0
    );
    assert_eq!(count::flops(&attention(2, 5, true)), 4.0 * 64.0 * 8.0 * 9.0);
    assert_eq!(count::flops(&attention(5, 2, true)), 4.0 * 64.0 * 8.0 * 3.0);
    // Q in 1 byte and the result in 2 for 8 heads, K and V in 1 for 2 heads.
    assert_eq!(
        count::bytes(&attention(512, 256, false)),
        64.0 * (512.0 * 8.0 * 3.0 + 2.0 * 256.0 * 2.0)
    );
    let schedule = Schedule {
        tile: Tile { m: 64, n: 64, k: 64 },
        ..Schedule::baseline()
    };
    let counts = Counts::of(&attention(500, 512, true), &schedule, Arch::Sm89, 58);
    assert_eq!((counts.tiles, counts.waves, counts.steps), (8 * 8, 2, 8));
}

#[test]
fn an_estimate_lies_over_its_roofline_and_adds_up() {
    for name in Device::builtin_names() {
        let device = Device::builtin(name).unwrap();
        for problem in plain()
            .into_iter()
            .chain(dual())
            .chain([attention(512, 512, false), attention(1, 4096, true)])
        {
            for schedule in [
                Schedule::baseline(),
                swapped(),
                Schedule {
                    stages: 3,
                    order: Order::Sorted,
                    split_k: 2,
                    ..Schedule::baseline()
                },
            ] {
                let estimate = estimate(&problem, &schedule, &device).unwrap();
                assert_eq!(limit(&problem, &device), Some(estimate.roofline_seconds));
                assert!(estimate.roofline_seconds <= estimate.low, "{name} {schedule}");
                assert!(estimate.low <= estimate.seconds && estimate.seconds < estimate.high);
                let sum: f64 = estimate.shares.iter().map(|share| share.seconds).sum();
                assert!((sum / estimate.seconds - 1.0).abs() < 1e-9);
                assert!(
                    estimate.shares.iter().all(|share| share.seconds >= 0.0),
                    "{name} {schedule}"
                );
            }
        }
    }
}

#[test]
fn padding_and_an_empty_wave_cost_time() {
    let h200 = Device::builtin("h200").unwrap();
    let seconds = |rows: usize, n: usize| {
        let persistent = Schedule {
            order: Order::Static,
            ..Schedule::baseline()
        };
        estimate(&gemm(Form::Plain, &[rows], n, 16_384), &persistent, &h200)
            .unwrap()
            .seconds
    };
    // 132 tiles are one wave of a H200, 133 are two.
    assert!(seconds(128, 133 * 128) > 1.8 * seconds(128, 132 * 128));
    // 129 rows cost as much as 256 where products are the bound.
    assert!(seconds(129, 132 * 128) > 1.8 * seconds(128, 132 * 128));
    assert!(seconds(256, 132 * 128) < 1.1 * seconds(129, 132 * 128));
}

#[test]
fn a_predicted_speedup_has_a_wide_bar_and_turns_around() {
    let b200 = Device::builtin("b200").unwrap();
    let candidate = Schedule {
        order: Order::Static,
        stages: 4,
        ..Schedule::baseline()
    };
    let one = Schedule {
        order: Order::Static,
        ..Schedule::baseline()
    };
    let there = predicted_speedup(&plain(), &one, &candidate, &b200).unwrap();
    let back = predicted_speedup(&plain(), &candidate, &one, &b200).unwrap();
    assert!(
        there.middle > 1.5,
        "{there:?}: buffers in flight are what this model knows best"
    );
    assert!((there.middle * back.middle - 1.0).abs() < 1e-12);
    // exp(1.645 · √2 · 0.37 · √(π/2)) = 2.94
    assert!(
        (there.high / there.middle - 2.94).abs() < 0.01 && (there.middle / there.low - 2.94).abs() < 0.01
    );
    assert_eq!(
        predicted_speedup(&[], &one, &candidate, &b200).unwrap().middle,
        1.0
    );
    let empty = gemm(Form::Plain, &[0], 128, 128);
    assert!(
        predicted_speedup(&[empty], &one, &candidate, &b200)
            .unwrap()
            .middle
            .is_finite()
    );
}

#[test]
fn a_cpu_has_a_limit_and_no_estimate() {
    let host = Device::host();
    assert!(limit(&plain()[3], &host).unwrap() > 0.0);
    assert!(estimate(&plain()[3], &Schedule::baseline(), &host).is_err());
    let sizes = &gauntlet_families::suite("group-gemm").unwrap().benchmark[0].sizes;
    let schedule = sizes.task().parameters().complete(&Default::default());
    let error = Subject::of(sizes, &schedule)
        .unwrap()
        .estimate(&host)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no model of CPUs; only measurements tell how long kernels take on `host`"
    );
}

#[test]
fn what_is_set_up_once_costs_no_call() {
    let problem = gemm(Form::Plain, &[1; 8], 16, 16);
    let host = HostTerm {
        constant: 95e-6,
        per_group: 35e-6,
    };
    let mut schedule = Schedule::baseline();
    assert!((host.seconds(&problem, &schedule) - 375e-6).abs() < 1e-12);
    schedule.setup = Setup::Once;
    assert_eq!(host.seconds(&problem, &schedule), 0.0);
}
