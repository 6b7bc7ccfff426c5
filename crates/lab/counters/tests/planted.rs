//! Kernels that are slow for a planted reason: the reason is what the explanation begins with.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use gauntlet_counters::{Explanation, Kind, explain};

type Kernels = BTreeMap<String, BTreeMap<String, f64>>;

fn kernels() -> Kernels {
    let recorded: serde_json::Value = serde_json::from_str(include_str!("h200.json")).unwrap();
    serde_json::from_value(recorded["kernels"].clone()).unwrap()
}

/// What is said of a kernel of examples/explain on its large case, or the tiny one of `row_sums`.
fn explained(kernel: &str) -> Explanation {
    let square = |n: u64| n * n * 4;
    let rows = |rows: u64, cols: u64| rows * cols * 4;
    let bytes = match kernel {
        "softmax_once" => 2 * rows(16384, 4096),
        "product_spilled" => 3 * square(2048),
        "row_sums" => rows(4, 256) + 16,
        "transpose_conflicts" => 2 * square(8192),
        "product_by_torch" => 3 * square(4096) / 2,
        _ => rows(16384, 4096) + 4 * 16384,
    };
    explain(&kernels()[kernel], bytes)
}

#[test]
fn the_planted_cause_comes_first() {
    for (kernel, kind) in [
        ("product_spilled", Kind::Spills),
        ("row_sums", Kind::FewBlocks),
        ("transpose_conflicts", Kind::BankConflicts),
        ("sums_of_few_warps", Kind::LowOccupancy),
        ("sums_by_row_per_thread", Kind::ScatteredAccess),
    ] {
        let explanation = explained(kernel);
        let first = &explanation.causes[0];
        assert_eq!(first.kind, kind, "{kernel}: {:#?}", explanation.causes);
        assert_eq!(explanation.bound, kind.sentence(), "{kernel}");
        assert!((0.4..=1.0).contains(&first.share), "{kernel}: {}", first.share);
    }
}

#[test]
fn a_kernel_at_a_roof_is_bound_by_it() {
    for (kernel, part) in [
        ("softmax_once", "device memory: 83 %"),
        ("product_by_torch", "the matrix units: 9"),
    ] {
        let explanation = explained(kernel);
        assert!(explanation.bound.contains(part), "{}", explanation.bound);
        assert!(
            explanation.causes.iter().all(|cause| cause.share < 0.25),
            "{kernel}: {:#?}",
            explanation.causes
        );
    }
}

/// 537 MB at the 4.81 TB/s that the counters imply.
#[test]
fn the_roof_of_memory_follows_from_the_counters() {
    let explanation = explained("softmax_once");
    let [roof] = &explanation.roofs[..] else {
        panic!("{:?}", explanation.roofs);
    };
    assert!((roof.seconds * 1e6 - 111.6).abs() < 1.0, "{roof:?}");
    assert!(roof.seconds < explanation.seconds);
}

#[test]
fn waits_are_shares_of_the_time_of_warps() {
    let waits = explained("transpose_conflicts").waits;
    assert_eq!(waits[0].name, "short-scoreboard");
    assert!(waits.iter().map(|wait| wait.share).sum::<f64>() <= 1.0);
}

/// A version of the tool that reads less still gets an answer, and is told what is missing.
#[test]
fn counters_that_are_missing_are_named() {
    let explanation = explain(&BTreeMap::new(), 0);
    assert_eq!(explanation.bound, "The counters do not tell what bounds it.");
    assert!(explanation.unknown.iter().any(|one| one.contains("coalesced")));
    assert!(explanation.causes.is_empty() && explanation.roofs.is_empty());
}

/// One block more than two for each of 132 multiprocessors.
#[test]
fn one_block_beyond_a_full_wave_is_seen_though_the_tool_rounds_it_away() {
    let counters = [
        ("launch__grid_size", 265.0),
        ("launch__sm_count", 132.0),
        ("launch__occupancy_limit_warps", 2.0),
        ("launch__waves_per_multiprocessor", 1.0),
    ];
    let counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
    let explanation = explain(&counters, 0);
    let last = explanation
        .causes
        .iter()
        .find(|cause| cause.kind == Kind::LastWave);
    assert!(
        last.is_some_and(|last| (last.share - 0.498).abs() < 0.001),
        "{explanation:#?}"
    );
}
