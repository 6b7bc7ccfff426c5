//! The effect of each of attention's words on a prediction for an H200.

use gauntlet_families::operations::{accepts, problem};
use gauntlet_problems::{
    Arithmetic, AttentionFormat, Cluster, Exponential, Layout, Operation, Roles, Schedule, Scores, Values,
};
use gauntlet_simulate::count::Traffic;
use gauntlet_simulate::{HostTerm, Part, Problem, break_down};

use crate::support::{attention, device, microseconds, prepared};

/// 8 heads of 2048 queries and keys: enough for every multiprocessor.
fn long() -> Problem {
    attention(2048, false, AttentionFormat::E4m3)
}

/// Unified roles, with `mma.sync`.
fn unified() -> Schedule {
    Schedule {
        roles: Roles::Unified,
        ..prepared([64, 64, 64], 2)
    }
}

fn roles() -> Schedule {
    prepared([128, 128, 64], 3)
}

fn time(problem: &Problem, schedule: &Schedule) -> f64 {
    let h200 = device("h200");
    assert!(accepts(schedule, problem.operation(), &h200), "{schedule}");
    microseconds(problem, schedule, &h200)
}

fn part(schedule: &Schedule, part: Part) -> f64 {
    break_down(&long(), schedule, &device("h200"), HostTerm::default())
        .unwrap()
        .part(part)
}

#[test]
fn scores_in_shared_memory_take_time_and_traffic() {
    let with = |scores| Schedule { scores, ..unified() };
    let (kept, in_place) = (with(Scores::Registers), with(Scores::InPlace));
    assert!(time(&long(), &in_place) > 1.02 * time(&long(), &kept));
    let shared = |schedule: &Schedule| {
        let traffic = Traffic::of(&long(), schedule, &device("h200")).unwrap();
        traffic.shared
    };
    assert!(shared(&in_place) > 1.2 * shared(&kept));
    assert_eq!(shared(&in_place), shared(&with(Scores::Separate)));
}

#[test]
fn scalar_products_take_the_lanes() {
    let with = |values| Schedule {
        scores: Scores::InPlace,
        values,
        ..unified()
    };
    assert!(time(&long(), &with(Values::Scalar)) > 1.5 * time(&long(), &with(Values::Matrix)));
}

#[test]
fn plain_rows_make_reads_wait_for_banks() {
    let plain = Schedule {
        layout: Layout::Plain,
        ..unified()
    };
    assert!(time(&long(), &plain) > 1.1 * time(&long(), &unified()));
    // Rows of 128 bytes all begin in the same bank, rows of 64 in two.
    let fp16 = attention(2048, false, AttentionFormat::F16);
    let longer = |problem: &Problem| time(problem, &plain) / time(problem, &unified());
    assert!(longer(&fp16) > longer(&long()));
}

#[test]
fn a_table_is_slower_than_the_unit_and_a_polynomial_about_as_fast() {
    for base in [unified(), roles()] {
        let with = |exponential| Schedule {
            exponential,
            ..base.clone()
        };
        let conversion = |exponential| part(&with(exponential), Part::Conversion);
        let hardware = conversion(Exponential::Hardware);
        assert!(conversion(Exponential::Table) > 1.2 * hardware);
        let polynomial = time(&long(), &with(Exponential::Polynomial)) / time(&long(), &base);
        assert!((0.8..1.05).contains(&polynomial), "{polynomial}");
        assert!(time(&long(), &with(Exponential::Table)) > time(&long(), &base));
    }
}

#[test]
fn fp8_multiplies_faster_and_has_less_to_make_ready() {
    let fp8 = Schedule {
        arithmetic: Arithmetic::Fp8,
        ..roles()
    };
    assert!(time(&long(), &fp8) < 0.95 * time(&long(), &roles()));
    let shared = |schedule: &Schedule| Traffic::of(&long(), schedule, &device("h200")).unwrap().shared;
    // Written, read, written as fp16 and multiplied, a value takes six bytes of shared memory; a value of K that is not
    // converted takes two.
    let share = shared(&fp8) / shared(&roles());
    assert!((share - 8.0 / 12.0).abs() < 0.01, "{share}");
    let bf16 = attention(2048, false, AttentionFormat::Bf16);
    assert!(
        time(&bf16, &roles()) < time(&long(), &roles()),
        "what is there is not converted"
    );
}

#[test]
fn roles_multiply_at_the_full_rate() {
    let without = Schedule {
        roles: Roles::Unified,
        ..roles()
    };
    // Operands that need no conversion allow either.
    let bf16 = attention(8192, false, AttentionFormat::Bf16);
    assert!(time(&bf16, &roles()) < 0.9 * time(&bf16, &without));
}

#[test]
fn keys_split_over_a_cluster_fill_idle_processors() {
    // 8 heads of 256 queries are 32 tiles, whose keys a block holds, or two, or four.
    let split = |parts| Schedule {
        split_k: parts,
        cluster: Cluster { m: 1, n: parts },
        arithmetic: Arithmetic::Fp8,
        ..prepared([64, 256 / parts, 64], 1)
    };
    let mut operation = attention(256, false, AttentionFormat::E4m3).operation().clone();
    if let Operation::Attention(attention) = &mut operation {
        attention.sequences[0].keys = 512;
    }
    let few = problem(&operation);
    assert!(time(&few, &split(2)) < 0.9 * time(&few, &split(1)));
}
