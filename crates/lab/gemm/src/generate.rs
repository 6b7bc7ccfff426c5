//! Operands of grouped GEMM.

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::{FloatTensor, Form, GemmShape, GroupInputs, GroupedGemm, Tokens};
use gauntlet_task::{InputKind, outliers, stream};
use gauntlet_tensors::e4m3;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// e4m3 codes.
const ONE: u8 = 0x38;
const LARGEST: u8 = 0x7E;
const SMALLEST_SUBNORMAL: u8 = 0x01;

/// The largest magnitude without a tensor scale, 6 × 448.
const MAX_ELEMENT: f64 = 2688.0;

/// Draws the operands of each group.
pub fn generate(gemm: &GroupedGemm, kind: InputKind, seed: u64) -> Vec<GroupInputs> {
    let operands = |(group, shape): (usize, &GemmShape)| {
        let draw = |operand: usize, rows: usize| {
            let mut generator = stream(seed, 3 * group + operand);
            draw(kind, gemm.form, rows, shape.k, &mut generator)
        };
        let (a, (b, b2)) = rayon::join(
            || tokens(gemm, kind, shape, draw(0, shape.m), &mut stream(seed, 3 * group)),
            || {
                rayon::join(
                    || draw(1, shape.n),
                    || (gemm.form == Form::Swiglu).then(|| draw(2, shape.n)),
                )
            },
        );
        GroupInputs { a, b, b2 }
    };
    gemm.groups.par_iter().enumerate().map(operands).collect()
}

/// The tokens of a group. Float tokens take the values drawn for NVFP4, rounded to their format. Outliers are drawn a second
/// time instead: values already rounded to NVFP4 would leave most of a float's bits unused.
fn tokens(
    gemm: &GroupedGemm,
    kind: InputKind,
    shape: &GemmShape,
    drawn: Nvfp4Tensor,
    generator: &mut ChaCha8Rng,
) -> Tokens {
    let Some(float) = gemm.tokens.float() else {
        return Tokens::Nvfp4(drawn);
    };
    let values = if kind == InputKind::Outliers {
        outliers(shape.m * shape.k, outlier_size(gemm.form, shape.k), generator)
    } else {
        drawn
            .dequantise_scaled()
            .iter()
            .map(|value| *value as f32)
            .collect()
    };
    Tokens::Floats(FloatTensor::round(float, shape.m, shape.k, &values))
}

/// The root mean square of a value is √(1 + 0.001 · 100) times this.
fn outlier_size(form: Form, depth: usize) -> f32 {
    let product = range(form, 16.0) / 1.1 / (depth as f64).sqrt();
    product.sqrt() as f32
}

/// One operand.
#[expect(
    clippy::expect_used,
    reason = "lengths follow from the sizes, and no kind of input draws a NaN scale or a value that is not finite"
)]
fn draw(kind: InputKind, form: Form, rows: usize, columns: usize, generator: &mut ChaCha8Rng) -> Nvfp4Tensor {
    let tensor = if kind == InputKind::Outliers {
        let values = outliers(rows * columns, outlier_size(form, columns), generator);
        Nvfp4Tensor::quantise(rows, columns, &values)
    } else {
        let tensor_scale = tensor_scale(kind, form, columns, generator);
        let (packed, scales) = codes(kind, form, rows, columns, generator);
        Nvfp4Tensor::new(rows, columns, packed, scales, tensor_scale)
    };
    tensor.expect("generated operands are valid")
}

/// The allowed magnitude of results: silu(x)·y is at most |x|·|y|, so each of the two products of the dual form gets
/// the square root of the plain form's range.
fn range(form: Form, plain: f64) -> f64 {
    match form {
        Form::Plain => plain,
        Form::Swiglu => plain.sqrt(),
    }
}

/// The scale of A or of B, where codes are drawn; their product brings results into range.
fn tensor_scale(kind: InputKind, form: Form, depth: usize, generator: &mut ChaCha8Rng) -> f32 {
    let depth = depth as f64;
    let product = match kind {
        InputKind::Competition | InputKind::Outliers => return 1.0,
        // Root mean squares: 2.93 of the value codes, 99 of the scale codes. An f32 sum of results near 16 keeps
        // an absolute error well under the 1e-3 that the competition tolerates.
        InputKind::Wide => range(form, 16.0) / (2.93f64 * 99.0).powi(2) / depth.sqrt(),
        // A bound, not an expectation: no sum exceeds 2¹⁴.
        InputKind::Adversarial => range(form, 16384.0) / MAX_ELEMENT.powi(2) / depth,
    };
    // Not a power of two, so that omitting it or applying it twice is detected; never above the bound.
    (product.sqrt() * generator.random_range(0.5..1.0)) as f32
}

/// Packed values and block scales, drawn as codes.
fn codes(
    kind: InputKind,
    form: Form,
    rows: usize,
    columns: usize,
    generator: &mut ChaCha8Rng,
) -> (Vec<u8>, Vec<u8>) {
    let mut packed = vec![0; rows * columns / 2];
    let mut scales = vec![0; rows * columns / BLOCK];
    generator.fill_bytes(&mut packed);
    generator.fill_bytes(&mut scales);
    match kind {
        InputKind::Competition => {
            // Clears the high exponent bit of both codes: magnitudes 0, .5, 1 and 1.5 are left.
            packed.iter_mut().for_each(|byte| *byte &= 0b1011_1011);
            match form {
                Form::Plain => scales
                    .iter_mut()
                    .for_each(|byte| *byte = ONE + ((*byte & 1) << 3)),
                Form::Swiglu => {
                    scales
                        .iter_mut()
                        .for_each(|byte| *byte = e4m3::encode(generator.random::<f32>()));
                }
            }
        }
        InputKind::Wide | InputKind::Outliers => scales.iter_mut().for_each(|byte| *byte = number(*byte)),
        InputKind::Adversarial => {
            scales.iter_mut().for_each(|byte| *byte = number(*byte));
            let rows = packed
                .chunks_exact_mut(columns / 2)
                .zip(scales.chunks_exact_mut(columns / BLOCK));
            for (row, (packed, scales)) in rows.enumerate() {
                // Every pattern occurs in the first rows; later ones are drawn.
                let pattern = if row < PATTERNS.len() {
                    row
                } else {
                    generator.random_range(0..PATTERNS.len())
                };
                PATTERNS[pattern](packed, scales, generator);
            }
        }
    }
    (packed, scales)
}

/// A scale code with NaN replaced by its neighbour.
fn number(code: u8) -> u8 {
    if e4m3::is_nan(code) { code - 1 } else { code }
}

/// Fills one row, which already holds random codes and scales.
type Pattern = fn(&mut [u8], &mut [u8], &mut ChaCha8Rng);

const PATTERNS: [Pattern; 9] = [
    // The largest values.
    |packed, scales, _| {
        packed.fill(0x77);
        scales.fill(LARGEST);
    },
    // One value of the largest, at a drawn column.
    |packed, scales, generator| {
        let column = generator.random_range(0..packed.len() * 2);
        packed.fill(0);
        packed[column / 2] = if column.is_multiple_of(2) { 0x07 } else { 0x70 };
        scales.fill(LARGEST);
    },
    // The largest values with alternating signs, which cancel.
    |packed, scales, _| {
        packed.fill(0xF7);
        scales.fill(LARGEST);
    },
    // Random values under the smallest subnormal scale.
    |_, scales, _| scales.fill(SMALLEST_SUBNORMAL),
    // Zeros.
    |packed, _, _| packed.fill(0x00),
    // Minus zeros.
    |packed, _, _| packed.fill(0x88),
    // Values that scales of zero of both signs make vanish.
    |_, scales, _| scales.iter_mut().for_each(|code| *code &= 0x80),
    // The largest and the smallest scale side by side.
    |_, scales, _| {
        scales.iter_mut().for_each(|code| {
            *code = if *code & 1 == 0 {
                LARGEST
            } else {
                SMALLEST_SUBNORMAL
            }
        });
    },
    // Random values and scales, as they are.
    |_, _, _| {},
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one_group(kind: InputKind, form: Form, shape: GemmShape, seed: u64) -> GroupInputs {
        let gemm = GroupedGemm::new(form, [[shape.m, shape.n, shape.k]]);
        generate(&gemm, kind, seed).remove(0)
    }

    fn nvfp4(group: &GroupInputs) -> &Nvfp4Tensor {
        group.a.nvfp4().unwrap()
    }

    const SHAPE: GemmShape = GemmShape { m: 40, n: 48, k: 512 };

    #[test]
    fn competition_values_and_scales_are_the_competition_s() {
        let plain = one_group(InputKind::Competition, Form::Plain, SHAPE, 1);
        let magnitudes = |tensor: &Nvfp4Tensor| {
            let mut codes: Vec<u8> = tensor
                .packed()
                .iter()
                .flat_map(|byte| [byte & 0xF, byte >> 4])
                .collect();
            codes.sort_unstable();
            codes.dedup();
            codes
        };
        assert_eq!(magnitudes(nvfp4(&plain)), [0, 1, 2, 3, 8, 9, 10, 11]);
        assert!(
            plain
                .b
                .scales()
                .iter()
                .all(|&code| [1.0, 2.0].contains(&e4m3::decode(code)))
        );
        assert_eq!(plain.a.tensor_scale(), 1.0);
        let twos = plain.b.scales().iter().filter(|&&code| code == 0x40).count();
        assert!((600..936).contains(&twos), "{twos} of 1536 scales are 2");

        let dual = one_group(InputKind::Competition, Form::Swiglu, SHAPE, 1);
        let scales: Vec<f32> = dual.b.scales().iter().map(|&code| e4m3::decode(code)).collect();
        assert!(scales.iter().all(|scale| (0.0..=1.0).contains(scale)));
        let mean = scales.iter().sum::<f32>() / scales.len() as f32;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
        assert_ne!(dual.b2.as_ref(), Some(&dual.b));
    }

    #[test]
    fn wide_operands_hold_every_code() {
        let shape = GemmShape {
            m: 64,
            n: 512,
            k: 1024,
        };
        let wide = one_group(InputKind::Wide, Form::Plain, shape, 3);
        let mut seen = [false; 256];
        wide.b
            .scales()
            .iter()
            .for_each(|&code| seen[usize::from(code)] = true);
        assert_eq!(seen.iter().filter(|&&seen| seen).count(), 254);
        assert!(nvfp4(&wide).packed().iter().any(|byte| byte >> 4 == 15));
    }

    #[test]
    fn adversarial_rows_hold_each_pattern() {
        let tensor = one_group(InputKind::Adversarial, Form::Plain, SHAPE, 5).a;
        let tensor = tensor.nvfp4().unwrap();
        let values = tensor.dequantise::<f32>();
        let row = |row: usize| &values[row * 512..][..512];
        assert!(row(0).iter().all(|&value| value == 2688.0));
        assert_eq!(row(1).iter().filter(|&&value| value != 0.0).count(), 1);
        assert_eq!(row(2).iter().sum::<f32>(), 0.0);
        assert!(row(3).iter().all(|&value| value.abs() <= 6.0 / 512.0));
        assert!(tensor.packed()[4 * 256..5 * 256].iter().all(|&byte| byte == 0));
        assert!(tensor.packed()[5 * 256..6 * 256].iter().all(|&byte| byte == 0x88));
        assert!(row(6).iter().all(|&value| value == 0.0));
    }

    #[test]
    fn a_seed_always_gives_the_same_bytes_and_another_seed_others() {
        for kind in InputKind::ALL {
            let first = one_group(kind, Form::Swiglu, SHAPE, 7);
            assert_eq!(first, one_group(kind, Form::Swiglu, SHAPE, 7));
            assert_ne!(first, one_group(kind, Form::Swiglu, SHAPE, 8));
        }
    }

    #[test]
    fn a_recorded_seed_gives_the_bytes_it_gave() {
        // Ledgers record seeds: a change here makes recorded results impossible to repeat.
        let group = one_group(InputKind::Competition, Form::Plain, SHAPE, 1);
        let found = [
            &nvfp4(&group).packed()[..4],
            &group.b.packed()[..4],
            &group.b.scales()[..4],
        ]
        .concat();
        assert_eq!(found, [177, 9, 160, 136, 163, 169, 177, 163, 64, 64, 64, 64]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn adversarial_sums_stay_in_range(blocks in 1usize..40, seed in any::<u64>()) {
            let shape = GemmShape { m: 12, n: 12, k: 16 * blocks };
            for (form, bound) in [(Form::Plain, 16384.0), (Form::Swiglu, 128.0)] {
                let group = one_group(InputKind::Adversarial, form, shape, seed);
                let largest = |tensor: &Nvfp4Tensor| 2688.0 * f64::from(tensor.tensor_scale());
                prop_assert!(largest(nvfp4(&group)) * largest(&group.b) * shape.k as f64 <= bound);
            }
        }
    }
}
