//! The CPU's simulation under a made-up calibration, so that the effect of each word is known.
#![expect(clippy::unwrap_used, reason = "tests")]

mod whole;

use std::collections::BTreeMap;

use gauntlet_device::calibration::{Calibration, Machine, Parameter, Quality, REVISION};
use gauntlet_device::{Basis, Count, Device, Figure, Flops};
use gauntlet_families::operations::problem;
use gauntlet_problems::{Attention, AttentionFormat, Form, GroupedGemm, Operation};
use gauntlet_problems::{Epilogue, Order, Roles, Schedule, Setup, Tile};
use gauntlet_simulate::{
    Activity, HostTerm, Part, Problem, break_down, cpu_phases, estimate, predicted_speedup, simulate,
    timeline,
};

const NO_HOST: HostTerm = HostTerm {
    constant: 0.0,
    per_group: 0.0,
};

/// Costs in nanoseconds: of attention's 8 × 32 register block 3 a step and 30 a call, of a GEMM's 2 × 6 0.05 a step and 5 a
/// call.
fn parameters() -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    let mut put = |name: &str, value: f64| {
        all.insert(name.to_owned(), value);
    };
    put("multiply.step", 3.0);
    put("multiply.call", 30.0);
    put("dots.step", 0.05);
    put("dots.call", 5.0);
    for (size, cost) in [(32, 0.0), (256, 0.001), (2048, 0.004), (16384, 0.015)] {
        put(&format!("dots.rows.{size}KiB"), cost / 2.0);
        put(&format!("dots.columns.{size}KiB"), cost);
    }
    for (size, cost) in [(32, 0.0), (256, 0.1), (2048, 0.4), (16384, 1.5)] {
        put(&format!("multiply.rows.{size}KiB"), cost / 2.0);
        put(&format!("multiply.columns.{size}KiB"), cost);
        put(&format!("setup.buffer.{size}KiB"), 0.03);
    }
    for side in ["rows", "columns"] {
        put(&format!("pack.{side}.chunk"), 6.0);
        put(&format!("pack.{side}.run"), 6.0);
        for format in ["e4m3", "f16", "bf16"] {
            put(&format!("attention.across.{format}.{side}"), 0.9);
            put(&format!("attention.along.{format}.{side}"), 0.5);
        }
        put(&format!("attention.softmax.{side}"), 0.4);
        put(&format!("attention.softmax-call.{side}"), 40.0);
    }
    for depth in [64, 256, 1024] {
        put(&format!("pack.far.{depth}.4MiB"), 0.01);
        put(&format!("pack.far.{depth}.512MiB"), 0.06);
        put(&format!("pack.ahead.{depth}.4MiB"), 0.01);
        put(&format!("pack.ahead.{depth}.512MiB"), 0.03);
    }
    for format in ["f16", "bf16", "f32"] {
        for manner in ["direct", "staged"] {
            for kind in ["scale", "swiglu", "plain"] {
                put(&format!("epilogue.{format}.{manner}.{kind}"), 20.0);
            }
            put(&format!("epilogue.{format}.{manner}.swapped"), 25.0);
        }
    }
    for side in ["plain", "swapped"] {
        put(&format!("attention.rescale.{side}"), 0.3);
        put(&format!("attention.merge.{side}"), 1.5);
    }
    for (name, value) in [
        ("epilogue.row", 12.0),
        ("split.store", 0.13),
        ("split.add", 0.13),
        ("launch.wake", 4000.0),
        ("launch.join", 2000.0),
        ("ring.wake", 2000.0),
        ("ring.step", 200.0),
        ("ring.read", 0.5),
        ("ring.write", 0.5),
        ("setup.tile.static", 15.0),
        ("setup.tile.sorted", 20.0),
        ("lookup.group", 0.5),
        ("attention.turn", 0.6),
        ("codes.value", 0.01),
        ("codes.column", 0.005),
        ("memory.read", 20.0),
        ("memory.write", 15.0),
    ] {
        put(name, value);
    }
    all
}

fn uncalibrated(threads: usize) -> Device {
    let mut device = Device::host();
    device.processors = Figure::<Count>::new(threads as f64, "made up").in_unit("thread");
    if let Some(cpu) = &mut device.cpu {
        cpu.fp32_peak = Some(Figure::<Flops>::new(threads as f64 * 2e11, "made up"));
    }
    device
}

fn calibration(device: &Device, parameters: BTreeMap<String, f64>) -> Calibration {
    let parameter = |value| Parameter {
        value,
        low: value,
        high: value,
        unit: "ns".to_owned(),
        samples: 1,
    };
    Calibration {
        device: device.name.clone(),
        revision: REVISION,
        date: "2026-01-01T00:00:00Z".parse().unwrap(),
        machine: Machine {
            processor: device.processor().to_owned(),
            threads: device.processors.get() as usize,
            details: BTreeMap::from([
                ("simd".to_owned(), "avx512".to_owned()),
                ("dots".to_owned(), "avx512vnni".to_owned()),
            ]),
            version: "test".to_owned(),
        },
        quality: None,
        parameters: parameters
            .into_iter()
            .map(|(name, value)| (name, parameter(value)))
            .collect(),
    }
}

fn with(threads: usize, change: impl FnOnce(&mut BTreeMap<String, f64>)) -> Device {
    let device = uncalibrated(threads);
    let mut parameters = parameters();
    change(&mut parameters);
    let calibration = calibration(&device, parameters);
    device.calibrated(&calibration).unwrap()
}

fn calibrated(threads: usize) -> Device {
    with(threads, |_| {})
}

fn gemm(rows: &[usize], n: usize, k: usize) -> Problem {
    problem(&Operation::GroupedGemm(GroupedGemm::new(
        Form::Plain,
        rows.iter().map(|&m| [m, n, k]),
    )))
}

fn attention(queries: usize, keys: usize, causal: bool) -> Problem {
    problem(&Operation::Attention(Attention {
        causal,
        ..Attention::new(AttentionFormat::E4m3, [[queries, keys]; 2], [4, 2], 64)
    }))
}

fn kept(tile: [usize; 3]) -> Schedule {
    Schedule {
        tile: Tile::from(tile),
        setup: Setup::Once,
        order: Order::Static,
        ..Schedule::baseline()
    }
}

fn seconds(problem: &Problem, schedule: &Schedule, device: &Device) -> f64 {
    simulate(problem, schedule, device, NO_HOST).unwrap().seconds
}

/// One thread, one tile of whole register blocks, one step: every cost can be added up.
#[test]
fn a_lone_tile_by_hand() {
    let device = with(1, |parameters| {
        for (name, value) in parameters.iter_mut() {
            let distance = name.starts_with("dots.rows") || name.starts_with("dots.columns");
            if distance || name.starts_with("pack.far") || name.starts_with("lookup") {
                *value = 0.0;
            }
        }
    });
    let found = seconds(&gemm(&[16], 60, 256), &kept([16, 60, 256]), &device);
    // Packing 16 rows of A and 60 of B, each a run of one chunk.
    let pack = (16.0 + 60.0) * (6.0 + 6.0);
    // 8 × 10 blocks of 256 steps.
    let multiply = 80.0 * (5.0 + 256.0 * 0.05);
    // 16 rows of two runs; a run was measured in rows of four.
    let write = 16.0 * (12.0 + 2.0 * (20.0 - 12.0 / 4.0));
    let by_hand = (pack + multiply + write) * 1e-9;
    assert!((found / by_hand - 1.0).abs() < 1e-9, "{found} {by_hand}");
}

/// Few tokens with swap-AB: no weight is packed.
#[test]
fn a_lone_tile_straight_from_codes_by_hand() {
    let device = with(1, |parameters| {
        for (name, value) in parameters.iter_mut() {
            if name.starts_with("pack.ahead") || name.starts_with("pack.far") {
                *value = 0.0;
            }
        }
    });
    let schedule = Schedule {
        swap_ab: true,
        ..kept([60, 8, 512])
    };
    let found = seconds(&gemm(&[3], 60, 512), &schedule, &device);
    // Three tokens of two chunks.
    let pack = 3.0 * (2.0 * 6.0 + 6.0);
    let multiply = 60.0 * 512.0 * (0.01 + 3.0 * 0.005);
    let write = 3.0 * (12.0 + 2.0 * (20.0 - 12.0 / 4.0));
    let by_hand = (pack + multiply + write) * 1e-9;
    assert!((found / by_hand - 1.0).abs() < 1e-9, "{found} {by_hand}");

    // A seventh token needs a second panel, and weights are packed.
    let six = seconds(&gemm(&[6], 60, 512), &schedule, &device);
    let seven = seconds(&gemm(&[7], 60, 512), &schedule, &device);
    assert!(seven - six > 60.0 * 6e-9, "{six} {seven}");
}

#[test]
fn each_word_has_its_effect() {
    let device = calibrated(2);
    let problem = gemm(&[128, 128], 512, 1024);
    let time = |schedule: &Schedule| seconds(&problem, schedule, &device);
    let base = kept([64, 64, 256]);
    let change = |schedule: Schedule| time(&schedule) - time(&base);

    // Before each of sixteen waves, all threads wait for the last one.
    let waves = change(Schedule {
        order: Order::PerTile,
        ..base.clone()
    });
    assert!((20e-6..120e-6).contains(&waves), "{waves}");
    // Buffers and plans made in the call cost 0.03 ns per byte and 15 ns per tile.
    let setup = change(Schedule {
        setup: Setup::PerCall,
        ..base.clone()
    });
    assert!((10e-6..20e-6).contains(&setup), "{setup}");
    // If one of two threads only prepares, multiplying takes nearly twice as long.
    let specialised = Schedule {
        roles: Roles::Specialised,
        stages: 4,
        ..base.clone()
    };
    assert!(time(&specialised) > 1.3 * time(&base));
    // Every part of a split sum is stored and loaded again.
    let split = change(Schedule {
        split_k: 2,
        ..base.clone()
    });
    let sums = 2.0 * (256.0 * 512.0) * (0.13 + 0.13) * 1e-9 / 2.0;
    assert!((0.8 * sums..1.6 * sums).contains(&split), "{split} {sums}");
    // With tokens split into 20 and 4, the weights are packed twice.
    let narrow = gemm(&[24; 8], 512, 1024);
    let padded = seconds(&narrow, &kept([20, 64, 256]), &device);
    assert!(padded > 1.2 * seconds(&narrow, &kept([24, 64, 256]), &device));
    // Staging has a cost, separate from that of direct stores.
    let dear = with(2, |parameters| {
        parameters.insert("epilogue.f16.staged.scale".to_owned(), 40.0);
    });
    let staged = Schedule {
        epilogue: Epilogue::Staged,
        ..base.clone()
    };
    assert!(seconds(&problem, &staged, &dear) > seconds(&problem, &base, &dear));
}

#[test]
fn orders_deal_out_as_the_executor_does() {
    // One long tile and six short ones: contiguous shares are 1 long + 2 short, against 4 short.
    let problem = gemm(&[128, 16, 16, 16, 16, 16, 16], 64, 2048);
    let device = with(2, |parameters| {
        parameters.insert("launch.wake".to_owned(), 0.0);
    });
    let time = |order| {
        seconds(
            &problem,
            &Schedule {
                order,
                ..kept([128, 64, 256])
            },
            &device,
        )
    };
    assert!(time(Order::Dynamic) < time(Order::Static));
    assert!(time(Order::Sorted) <= time(Order::Static));
}

#[test]
fn prefetched_codes_come_from_nearer() {
    let problem = gemm(&[64], 1024, 4096);
    let one = seconds(&problem, &kept([64, 64, 256]), &calibrated(1));
    let two = seconds(
        &problem,
        &Schedule {
            stages: 2,
            ..kept([64, 64, 256])
        },
        &calibrated(1),
    );
    // All but the first two of sixteen steps are prefetched: 0.03 ns less per value.
    let saved = (14.0 / 16.0) * (1024.0 * 4096.0) * 0.03e-9;
    assert!(((one - two) / saved - 1.0).abs() < 0.3, "{} {saved}", one - two);
}

#[test]
fn a_ring_with_more_slots_is_never_slower_and_one_side_is_the_bottleneck() {
    let problem = gemm(&[128], 512, 4096);
    let device = calibrated(2);
    let time = |stages| {
        let schedule = Schedule {
            roles: Roles::Specialised,
            stages,
            ..kept([128, 32, 256])
        };
        (
            seconds(&problem, &schedule, &device),
            cpu_phases(&problem, &schedule, &device).unwrap(),
        )
    };
    let (two, phases) = time(2);
    let (eight, _) = time(8);
    assert!(eight <= two * 1.02);
    assert!(eight >= phases.multiply);
}

#[test]
fn phases_are_what_the_threads_do() {
    let device = calibrated(2);
    for problem in [gemm(&[100, 30], 512, 1024), attention(200, 200, true)] {
        let schedule = Schedule {
            split_k: 2,
            ..kept([64, 64, 64])
        };
        let phases = cpu_phases(&problem, &schedule, &device).unwrap();
        let whole = seconds(&problem, &schedule, &device);
        let all = phases.load + phases.multiply + phases.epilogue + phases.wait;
        assert!((all / (2.0 * whole) - 1.0).abs() < 1e-9);
        assert!(phases.wait >= 0.0 && phases.setup == 0.0);
    }
}

#[test]
fn the_timeline_lasts_as_long_as_the_call_and_nobody_is_in_two_places() {
    let device = calibrated(3);
    let host = HostTerm {
        constant: 1e-5,
        per_group: 0.0,
    };
    for roles in [Roles::Unified, Roles::Specialised] {
        let schedule = Schedule {
            roles,
            stages: 2,
            order: Order::Dynamic,
            ..kept([32, 64, 256])
        };
        let problem = gemm(&[70, 9], 256, 640);
        let found = timeline(&problem, &schedule, &device, host).unwrap();
        assert_eq!(
            found.seconds,
            simulate(&problem, &schedule, &device, host).unwrap().seconds
        );
        assert_eq!(found.tracks.len(), 4);
        for track in &found.tracks {
            let order = track
                .spans
                .windows(2)
                .all(|pair| pair[0].end <= pair[1].start + 1e-12);
            assert!(
                order && track.spans.iter().all(|span| span.end <= found.seconds + 1e-12),
                "{}",
                track.name
            );
        }
        let multiplied = found.tracks.iter().flat_map(|track| &track.spans);
        let multiplied = multiplied
            .filter(|span| span.activity == Activity::Multiply)
            .count();
        // (3 + 1) blocks of tokens × 4 of weights × 3 steps.
        assert_eq!(multiplied, 48);
    }
}

#[test]
fn the_bar_says_what_it_rests_on() {
    let problem = gemm(&[128], 512, 1024);
    let schedule = kept([64, 64, 256]);
    let plain = uncalibrated(2);
    let mut device = calibrated(2);
    let published = estimate(&problem, &schedule, &plain).unwrap();
    let unvalidated = estimate(&problem, &schedule, &device).unwrap();
    assert_eq!(
        (published.basis, unvalidated.basis),
        (Basis::Published, Basis::Calibrated)
    );
    assert!(unvalidated.high / unvalidated.seconds < published.high / published.seconds);

    let mut calibration = *device.calibration.take().unwrap();
    calibration.quality = Some(Quality {
        date: calibration.date,
        points: 80,
        shapes: 8,
        mean_error: 0.1,
        log_deviation: 0.2,
        log_deviation_in_shape: 0.05,
        rank_correlation: 0.9,
        regret_of_first: 0.02,
        regret_of_eight: 0.0,
    });
    let device = device.calibrated(&calibration).unwrap();
    let validated = estimate(&problem, &schedule, &device).unwrap();
    assert_eq!(validated.basis, Basis::Validated);
    let bar = (validated.high / validated.seconds).ln();
    assert!((bar - 1.645 * 0.2).abs() < 1e-9);
    let shares: f64 = validated.shares.iter().map(|share| share.seconds).sum();
    assert!((shares / validated.seconds - 1.0).abs() < 1e-9);

    // Costs that two schedules of one shape share cancel in their ratio.
    let speedup = predicted_speedup(&[problem], &schedule, &kept([32, 32, 256]), &device).unwrap();
    assert_eq!(speedup.basis, Basis::Validated);
    let bar = (speedup.high / speedup.middle).ln();
    assert!((bar - 1.645 * 2.0_f64.sqrt() * 0.05).abs() < 1e-9);
}

#[test]
fn a_calibration_with_a_gap_is_refused_with_the_remedy() {
    let device = with(2, |parameters| {
        parameters.remove("launch.wake");
    });
    let error = simulate(&gemm(&[8], 32, 64), &kept([8, 32, 64]), &device, NO_HOST).unwrap_err();
    assert!(error.to_string().contains("gauntlet calibrate"), "{error}");
}
