#![expect(clippy::unwrap_used, reason = "tests")]
//! The oracle on cases that can be checked by hand, and against a slow second computation.

use gauntlet_gemm::{GEMM, generate, grids};
use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{Form, GroupInputs, GroupedGemm, Inputs, Operation};
use gauntlet_task::{Coverage, Expected, InputKind, Sizes};
use proptest::prelude::*;

fn gemm(groups: &[[usize; 3]], form: Form) -> GroupedGemm {
    GroupedGemm::new(form, groups.iter().copied())
}

/// What the judge knows of these sizes.
fn sizes(gemm: &GroupedGemm) -> Sizes {
    GEMM.open(&serde_json::to_value(gemm).unwrap()).unwrap()
}

fn expected(gemm: &GroupedGemm, groups: &[GroupInputs], coverage: Coverage) -> Expected {
    let operation = Operation::GroupedGemm(gemm.clone());
    let inputs = Inputs::GroupedGemm(groups.to_vec());
    inputs.validate(&operation).unwrap();
    Expected::new(coverage, &operation.outputs(), grids(gemm, groups, coverage))
}

/// The values of the outputs, all computed, by group and place.
fn full(gemm: &GroupedGemm, groups: &[GroupInputs]) -> Vec<f64> {
    let expected = expected(gemm, groups, Coverage::Full);
    let mut values: Vec<(usize, usize, f64)> = expected.values().collect();
    values.sort_by_key(|&(group, index, _)| (group, index));
    let places: Vec<(usize, usize)> = values.iter().map(|&(group, index, _)| (group, index)).collect();
    let all = gemm.groups.iter().enumerate();
    let all: Vec<(usize, usize)> = all
        .flat_map(|(group, shape)| (0..shape.m * shape.n).map(move |index| (group, index)))
        .collect();
    assert_eq!(places, all, "each element is computed once");
    values.into_iter().map(|(_, _, value)| value).collect()
}

fn one_product(a: Nvfp4Tensor, b: Nvfp4Tensor, b2: Option<Nvfp4Tensor>) -> Vec<f64> {
    let form = if b2.is_some() { Form::Swiglu } else { Form::Plain };
    let problem = gemm(&[[a.rows(), b.rows(), a.columns()]], form);
    let a = a.into();
    full(&problem, &[GroupInputs { a, b, b2 }])
}

#[test]
fn one_element_is_the_sum_of_its_products() {
    // Values 1, 2 and 3 under scale 2 and tensor scale .5, times 6, −4 and .5 under scale 1: 6 − 8 + 1.5.
    let a = Nvfp4Tensor::new(1, 16, vec![0x42, 0x05, 0, 0, 0, 0, 0, 0], vec![0x40], 0.5).unwrap();
    let b = Nvfp4Tensor::new(1, 16, vec![0xE7, 0x01, 0, 0, 0, 0, 0, 0], vec![0x38], 1.0).unwrap();
    assert_eq!(one_product(a, b, None), [6.0 - 8.0 + 1.5 + 0.0]);
}

#[test]
fn the_identity_gives_back_the_tokens() {
    let mut identity = vec![0u8; 16 * 8];
    for row in 0..16 {
        identity[row * 8 + row / 2] = if row % 2 == 0 { 0x02 } else { 0x20 };
    }
    let identity = Nvfp4Tensor::new(16, 16, identity, vec![0x38; 16], 1.0).unwrap();
    let row = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
    let tokens = Nvfp4Tensor::new(3, 16, row.repeat(3), vec![0x38, 0x40, 0x01], -0.75).unwrap();
    assert_eq!(
        one_product(tokens.clone(), identity, None),
        tokens.dequantise_scaled()
    );
}

#[test]
fn the_dual_form_is_silu_of_the_first_times_the_second() {
    let row = |code: u8| Nvfp4Tensor::new(1, 16, vec![code, 0, 0, 0, 0, 0, 0, 0], vec![0x38], 1.0).unwrap();
    // 2 · 1 = 2 and 2 · −1.5 = −3.
    let value = one_product(row(0x04), row(0x02), Some(row(0x0B)))[0];
    assert!(
        (value - 2.0 / (1.0 + (-2.0f64).exp()) * -3.0).abs() < 1e-15,
        "{value}"
    );
    // silu(x) is not symmetric: exchanging the weights shows.
    let exchanged = one_product(row(0x04), row(0x0B), Some(row(0x02)))[0];
    assert!(
        (exchanged - -3.0 / (1.0 + 3.0f64.exp()) * 2.0).abs() < 1e-15,
        "{exchanged}"
    );
}

#[test]
fn a_sample_agrees_with_the_whole_and_covers_ends() {
    let problem = gemm(&[[300, 270, 96], [0, 16, 32], [1, 1, 16]], Form::Swiglu);
    let inputs = generate(&problem, InputKind::Wide, 4);
    let whole = full(&problem, &inputs);
    let coverage = Coverage::Sampled {
        rows: 7,
        columns: 5,
        seed: 3,
    };
    let sample = expected(&problem, &inputs, coverage);
    assert_eq!(sample.elements(), 7 * 270 + 293 * 5 + 1);
    // Where each group begins in `whole`.
    let begins = [0, 300 * 270, 300 * 270];
    let mut indices: Vec<usize> = Vec::new();
    for (group, index, value) in sample.values() {
        let index = begins[group] + index;
        // Sums of other lengths may be taken in another order.
        assert!(
            (value - whole[index]).abs() <= 1e-11 * (1.0 + whole[index].abs()),
            "{index}"
        );
        indices.push(index);
    }
    assert!(indices.contains(&0) && indices.contains(&(300 * 270 - 1)) && indices.contains(&(300 * 270)));
    let count = indices.len();
    indices.sort_unstable();
    indices.dedup();
    assert_eq!(indices.len(), count, "an element was computed twice");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_agree_with_a_slow_second_computation(
        shapes in prop::collection::vec((0usize..7, 1usize..7, 1usize..4), 1..4),
        form in prop::sample::select(vec![Form::Plain, Form::Swiglu]),
        kind in prop::sample::select(InputKind::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let shapes: Vec<[usize; 3]> = shapes.into_iter().map(|(m, n, blocks)| [m, n, 16 * blocks]).collect();
        let problem = gemm(&shapes, form);
        let inputs = generate(&problem, kind, seed);
        let mut values = full(&problem, &inputs).into_iter();
        for (group, [m, n, k]) in inputs.iter().zip(shapes) {
            let a = group.a.dequantise_scaled();
            let dot = |weights: &[f64], row: usize, column: usize| -> f64 {
                (0..k).map(|at| a[row * k + at] * weights[column * k + at]).sum()
            };
            let (b, b2) = (group.b.dequantise_scaled(), group.b2.as_ref().map(Nvfp4Tensor::dequantise_scaled));
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let first = dot(&b, row, column);
                let expected = match &b2 {
                    None => first,
                    Some(b2) => first / (1.0 + (-first).exp()) * dot(b2, row, column),
                };
                let found = values.next().unwrap();
                prop_assert!((found - expected).abs() <= 1e-10 * (1.0 + expected.abs()), "{found} {expected}");
                prop_assert!(found.abs() < 65504.0, "{found} is over the range of f16");
            }
        }
    }
}

#[test]
fn depth_over_one_panel_is_summed_whole() {
    let problem = gemm(&[[2, 3, 8240]], Form::Plain);
    let inputs = generate(&problem, InputKind::Competition, 6);
    let (a, b) = (inputs[0].a.dequantise_scaled(), inputs[0].b.dequantise_scaled());
    let dot = |row: &[f64], column: &[f64]| row.iter().zip(column).map(|(a, b)| a * b).sum::<f64>();
    let expected: Vec<f64> = a
        .chunks(8240)
        .flat_map(|row| b.chunks(8240).map(move |column| dot(row, column)))
        .collect();
    // Every sum of competition data is exact.
    assert_eq!(full(&problem, &inputs), expected);
}

#[test]
fn operands_of_other_sizes_are_refused() {
    let four = gemm(&[[4, 4, 32]], Form::Plain);
    let five = sizes(&gemm(&[[4, 5, 32]], Form::Plain))
        .generate(InputKind::Wide, 1)
        .unwrap();
    let error = sizes(&four).expected(&*five, Coverage::Full).unwrap_err();
    assert_eq!(error, "0.b is 5 × 32, but the problem takes 4 × 32");
    let dual = sizes(&gemm(&[[4, 4, 32]], Form::Swiglu))
        .generate(InputKind::Wide, 1)
        .unwrap();
    let error = sizes(&four).expected(&*dual, Coverage::Full).unwrap_err();
    assert_eq!(
        error,
        "group 0: second weights belong to the dual form, and to it alone"
    );
}

#[test]
fn small_results_are_computed_whole_and_large_ones_sampled() {
    let gemm = |m| sizes(&gemm(&[[m, 1000, 1024]], Form::Plain));
    assert_eq!(gemm(1000).coverage(1), Coverage::Full);
    assert_eq!(
        gemm(4000).coverage(1),
        Coverage::Sampled {
            rows: 8,
            columns: 32,
            seed: 1
        }
    );
    assert_eq!(gemm(20).spot(1), Coverage::Full);
    assert_eq!(
        gemm(1000).spot(1),
        Coverage::Sampled {
            rows: 2,
            columns: 8,
            seed: 1
        }
    );
}
