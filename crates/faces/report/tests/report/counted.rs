//! What a GPU's counters say of a kernel.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use anstream::adapter::strip_str;
use gauntlet_counters::explain;
use gauntlet_judge::instruments::KernelTimes;
use gauntlet_report::counted;
use insta::assert_snapshot;

/// The page at 80 columns of a kernel whose counters were read on an H200.
fn page(kernel: &str, least_bytes: u64, kernels: &[(&str, usize, f64)]) -> String {
    let recorded: serde_json::Value =
        serde_json::from_str(include_str!("../../../../lab/counters/tests/h200.json")).unwrap();
    let counters: BTreeMap<String, f64> =
        serde_json::from_value(recorded["kernels"][kernel].clone()).unwrap();
    let kernels: Vec<KernelTimes> = kernels
        .iter()
        .map(|(kernel, launches, seconds)| KernelTimes {
            kernel: (*kernel).to_owned(),
            launches: *launches,
            seconds: *seconds,
        })
        .collect();
    let page = counted(kernel, &kernels, &explain(&counters, least_bytes), 80);
    strip_str(&page).to_string()
}

#[test]
fn causes_are_told_with_their_figures_and_what_to_try() {
    assert_snapshot!(page(
        "product_spilled",
        50_331_648,
        &[("product_spilled", 1, 8.1e-3)]
    ));
}

#[test]
fn the_longest_kernel_stands_among_those_of_the_call() {
    let kernels = [("_Z12softmax_once", 2, 256e-6), ("_Z4copy", 1, 20e-6)];
    assert_snapshot!(page("softmax_once", 536_870_912, &kernels));
}

#[test]
fn a_call_whose_kernels_are_not_known_says_so() {
    assert_snapshot!(page("row_sums", 0, &[]));
}
