//! Properties of quantising.

use gauntlet_nvfp4::{FormatError, Nvfp4Tensor};
use gauntlet_tensors::{e2m1, e4m3};
use proptest::prelude::*;

/// Matrices of 1 to 4 rows and blocks, magnitudes over many orders.
fn matrices() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
    let value = (-1.0f32..1.0, -12i32..12).prop_map(|(value, exponent)| value * 2.0f32.powi(exponent));
    (1usize..4, 1usize..4).prop_flat_map(move |(rows, blocks)| {
        let columns = blocks * 16;
        (
            Just(rows),
            Just(columns),
            prop::collection::vec(value.clone(), rows * columns),
        )
    })
}

proptest! {
    #[test]
    fn every_value_gets_the_nearest_code(matrix in matrices()) {
        let (rows, columns, values) = matrix;
        let tensor = Nvfp4Tensor::quantise(rows, columns, &values).unwrap();
        let quantised = tensor.dequantise_scaled();
        for (at, (&value, &found)) in values.iter().zip(&quantised).enumerate() {
            let scale = f64::from(e4m3::decode(tensor.scales()[at / 16])) * f64::from(tensor.tensor_scale());
            let error = (f64::from(value) - found).abs();
            for code in 0..16 {
                let other = (f64::from(value) - f64::from(e2m1::decode(code)) * scale).abs();
                prop_assert!(error <= other, "{value} became {found}, code {code} is nearer");
            }
        }
    }

    #[test]
    fn block_scales_and_tensor_scale_follow_the_largest_magnitudes(matrix in matrices()) {
        let (rows, columns, values) = matrix;
        let tensor = Nvfp4Tensor::quantise(rows, columns, &values).unwrap();
        let largest = |values: &[f32]| values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        prop_assert_eq!(tensor.tensor_scale(), largest(&values) / 2688.0);
        for (block, &code) in values.chunks(16).zip(tensor.scales()) {
            let exact = f64::from(largest(block)) / 6.0 / f64::from(tensor.tensor_scale());
            let scale = f64::from(e4m3::decode(code));
            prop_assert!((scale - exact).abs() <= (exact / 16.0).max(2.0f64.powi(-10)), "{scale} for {exact}");
        }
    }

    #[test]
    fn a_matrix_of_the_format_survives(
        codes in prop::collection::vec(0u8..16, 4 * 32),
        scales in prop::collection::vec(0x08u8..0x7F, 8),
    ) {
        // Each block holds a 6, and the tensor a 6 × 448, so that quantising finds the same scales.
        let mut packed: Vec<u8> = codes.chunks(2).map(|pair| pair[0] | (pair[1] << 4)).collect();
        for block in packed.chunks_mut(8) {
            block[0] = 0x70 | (block[0] & 0xF);
        }
        let mut scales = scales;
        scales[3] = 0x7E;
        let tensor = Nvfp4Tensor::new(4, 32, packed, scales, 0.5).unwrap();
        let values: Vec<f32> = tensor.dequantise_scaled().into_iter().map(|value| value as f32).collect();
        prop_assert_eq!(Nvfp4Tensor::quantise(4, 32, &values).unwrap(), tensor);
    }

    #[test]
    fn quantising_is_monotone_in_a_block(mut values in prop::collection::vec(-10.0f32..10.0, 16)) {
        values.sort_by(f32::total_cmp);
        let quantised = Nvfp4Tensor::quantise(1, 16, &values).unwrap().dequantise_scaled();
        prop_assert!(quantised.is_sorted(), "{quantised:?}");
    }
}

#[test]
fn zeros_stay_zeros_with_their_signs() {
    let mut values = [0.0f32; 32];
    values[17] = -0.0;
    let tensor = Nvfp4Tensor::quantise(1, 32, &values).unwrap();
    assert_eq!(tensor.tensor_scale(), 1.0);
    assert_eq!(tensor.scales(), [0, 0]);
    let bits: Vec<u32> = tensor.dequantise::<f32>().into_iter().map(f32::to_bits).collect();
    assert_eq!(bits, values.map(f32::to_bits));
}

#[test]
fn a_block_too_small_for_a_scale_becomes_zeros() {
    let mut values = [0.0f32; 32];
    values[0] = 1.0;
    values[16..].fill(-1e-12);
    let tensor = Nvfp4Tensor::quantise(1, 32, &values).unwrap();
    assert_eq!(tensor.scales()[1], 0);
    assert!(tensor.packed()[8..].iter().all(|&byte| byte == 0x88));
}

#[test]
fn extreme_magnitudes_neither_overflow_nor_vanish() {
    // 3900 steps of the subnormals divided by 2688 are 1.45 steps; rounding to nearest makes the scale too small.
    for magnitude in [
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::from_bits(3900),
        f32::from_bits(1),
    ] {
        let tensor = Nvfp4Tensor::quantise(1, 16, &[magnitude; 16]).unwrap();
        for value in tensor.dequantise_scaled() {
            let error = (value / f64::from(magnitude) - 1.0).abs();
            assert!(error < 0.04, "{magnitude:e} became {value:e}");
        }
    }
}

#[test]
fn ties_go_to_the_even_code() {
    // The block's 6 × 448 makes both scales exact: 448 and 1.
    let mut values = [0.0f32; 16];
    values[0] = 2688.0;
    let ties = [0.25f32, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
    for (value, tie) in values[1..].iter_mut().zip(ties) {
        *value = -tie * 448.0;
    }
    let tensor = Nvfp4Tensor::quantise(1, 16, &values).unwrap();
    assert_eq!((tensor.tensor_scale(), tensor.scales()), (1.0, &[0x7E][..]));
    let quantised: Vec<f32> = tensor.dequantise::<f32>()[1..8]
        .iter()
        .map(|value| -value / 448.0)
        .collect();
    assert_eq!(quantised, [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
}

#[test]
fn a_value_that_is_not_finite_is_refused_with_its_place() {
    for value in [f32::NAN, f32::NEG_INFINITY] {
        let mut values = vec![1.0; 64];
        values[32 + 5] = value;
        let error = Nvfp4Tensor::quantise(2, 32, &values).unwrap_err();
        assert!(
            matches!(
                error,
                FormatError::NonFinite {
                    row: 1,
                    column: 5,
                    ..
                }
            ),
            "{error}"
        );
    }
    assert!(matches!(
        Nvfp4Tensor::quantise(2, 31, &[0.0; 62]),
        Err(FormatError::Columns { columns: 31 })
    ));
    assert!(matches!(
        Nvfp4Tensor::quantise(2, 32, &[0.0; 62]),
        Err(FormatError::Length { .. })
    ));
}
