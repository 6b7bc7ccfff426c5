use gauntlet_problems::{FloatTensor, TokenFormat};
use gauntlet_tensors::{e2m1, e4m3};

use super::*;
use crate::memory::AlignedBuffer;
use crate::simd::{Instructions, SimdPath};

/// All loops that this processor can run.
fn available() -> Vec<Blocks> {
    let mut all = vec![Blocks::Dots(&loops::PORTABLE)];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("fma") && has!("f16c") {
            all.push(Blocks::Dots(&loops::AVX2));
            if has!("avxvnni") {
                all.push(Blocks::Dots(&loops::AVX_VNNI));
            }
        }
        if SimdPath::Avx512.missing_features().is_empty() && has!("avx512vnni") {
            all.push(Blocks::Dots(&loops::AVX512_VNNI));
            if has!("avx512vbmi") {
                all.push(Blocks::Dots(&loops::AVX512_VBMI));
                all.push(Blocks::Dots(&loops::AVX512_SUMS));
            }
        }
        if let Ok(instructions) = Instructions::detect(SimdPath::Amx) {
            all.push(instructions.blocks(usize::MAX, TokenFormat::Nvfp4));
        }
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("dotprod") {
        all.push(Blocks::Dots(&loops::NEON));
    }
    all
}

/// All codes and all finite scales, including negative and subnormal ones, in every lane.
fn tensor(rows: usize, columns: usize, seed: usize) -> Nvfp4Tensor {
    let mixed = |at: usize| ((at + seed) * 2_654_435_761) >> 7;
    let packed = (0..rows * columns / 2).map(|at| mixed(at) as u8).collect();
    let scale = |at: usize| match mixed(at * 31) as u8 {
        nan if nan & 0x7F == 0x7F => 0x38,
        scale => scale,
    };
    let scales = (0..rows * columns / BLOCK).map(scale).collect();
    Nvfp4Tensor::new(rows, columns, packed, scales, 1.0).unwrap()
}

/// One panel of each.
fn panels<'p>(chunks: usize, counts: [usize; 2], a: &'p AlignedBuffer, b: &'p AlignedBuffer) -> Panels<'p> {
    Panels {
        chunks,
        counts,
        rows: a.values(),
        apart: a.values().len(),
        columns: b.values(),
        ahead: Ahead::NONE,
    }
}

/// The product of two rows over some columns, and the sum of its blocks' magnitudes.
fn by_hand(left: &Nvfp4Tensor, right: &Nvfp4Tensor, rows: [usize; 2], columns: Range<usize>) -> (f64, f64) {
    let value = |tensor: &Nvfp4Tensor, row: usize, column: usize| {
        let at = row * tensor.columns() + column;
        let code = tensor.packed()[at / 2] >> (4 * (at % 2)) & 15;
        let scale = e4m3::decode(tensor.scales()[at / BLOCK]);
        f64::from(e2m1::VALUES[usize::from(code)]) * f64::from(scale)
    };
    let blocks = columns.step_by(BLOCK).map(|first| {
        (first..first + BLOCK)
            .map(|column| value(left, rows[0], column) * value(right, rows[1], column))
            .sum::<f64>()
    });
    blocks.fold((0.0, 0.0), |(sum, magnitude), block| {
        (sum + block, magnitude + block.abs())
    })
}

#[test]
fn register_blocks_of_every_size_and_depth_multiply_and_accumulate() {
    const K: usize = 47 * BLOCK;
    let (left, right) = (tensor(34, K, 1), tensor(35, K, 5));
    // For a large block, not all sizes.
    let sizes = |blocks: Blocks| -> Vec<(usize, usize)> {
        let some = |operand| {
            let width = blocks.width(operand);
            (1..=width).filter(move |at| width <= 8 || [1, 9, 17, 32].contains(at))
        };
        some(Operand::Rows)
            .flat_map(|rows| some(Operand::Columns).map(move |columns| (rows, columns)))
            .collect()
    };
    for blocks in available() {
        for (rows, columns) in sizes(blocks) {
            for depth in [0..0, 0..BLOCK, 3 * BLOCK..20 * BLOCK, 15 * BLOCK..K] {
                let chunks = blocks.chunks(depth.len());
                let panel = |operand, tensor, rows| {
                    let mut panel = AlignedBuffer::zeroed(blocks.panel_words(operand, chunks)).unwrap();
                    // The previous content must not affect the result.
                    panel.values_mut().fill(f32::NAN);
                    blocks.pack(operand, tensor, rows, depth.clone(), panel.values_mut());
                    panel
                };
                let a = panel(Operand::Rows, &left, 2..2 + rows);
                let b = panel(Operand::Columns, &right, 3..3 + columns);
                for strides in [[33, 1], [1, 33]] {
                    let mut sums = [f32::NAN; 33 * 33];
                    for accumulate in [false, true] {
                        let panels = panels(chunks, [rows, columns], &a, &b);
                        blocks.multiply(&panels, &mut sums, strides, accumulate);
                    }
                    for (row, column) in
                        (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
                    {
                        let (sum, magnitude) = by_hand(&left, &right, [2 + row, 3 + column], depth.clone());
                        let found = f64::from(sums[row * strides[0] + column * strides[1]]);
                        let error = (found - 2.0 * sum).abs();
                        assert!(
                            error <= 1e-6 * magnitude,
                            "{} {rows}×{columns} over {depth:?} at {row}, {column}: {found} for {}",
                            blocks.name(),
                            2.0 * sum
                        );
                    }
                    let touched = sums.iter().filter(|sum| !sum.is_nan()).count();
                    assert_eq!(touched, rows * columns);
                }
            }
        }
    }
}

#[test]
fn rows_multiply_straight_from_their_codes() {
    const K: usize = 47 * BLOCK;
    let (left, right) = (tensor(5, K, 1), tensor(9, K, 5));
    for blocks in available() {
        let Blocks::Dots(dots) = blocks else { continue };
        let counts = (0..=3)
            .flat_map(|count| (1..=blocks.width(Operand::Columns)).map(move |columns| (count, columns)));
        for (count, columns) in counts {
            for depth in [
                0..0,
                0..BLOCK,
                3 * BLOCK..20 * BLOCK,
                0..32 * BLOCK,
                15 * BLOCK..K,
            ] {
                let words = blocks.panel_words(Operand::Columns, blocks.chunks(depth.len()));
                let mut panel = AlignedBuffer::zeroed(words).unwrap();
                panel.values_mut().fill(f32::NAN);
                let rows = 3..3 + columns;
                blocks.pack(Operand::Columns, &right, rows, depth.clone(), panel.values_mut());
                let mut sums = [f32::NAN; 64];
                let rows = Rows {
                    tensor: &left,
                    rows: 2..2 + count,
                    columns: depth.clone(),
                };
                for accumulate in [false, true] {
                    dots.multiply_codes(&rows, columns, panel.values(), &mut sums, [1, 9], accumulate);
                }
                for (row, column) in (0..count).flat_map(|row| (0..columns).map(move |column| (row, column)))
                {
                    let (sum, magnitude) = by_hand(&left, &right, [2 + row, 3 + column], depth.clone());
                    let found = f64::from(sums[row + 9 * column]);
                    assert!(
                        (found - 2.0 * sum).abs() <= 1e-6 * magnitude,
                        "{} {count}×{columns} over {depth:?} at {row}, {column}: {found} for {}",
                        blocks.name(),
                        2.0 * sum
                    );
                }
                assert_eq!(sums.iter().filter(|sum| !sum.is_nan()).count(), count * columns);
            }
        }
    }
}

/// The largest and the smallest product of two blocks, alone in every lane, are exact.
#[test]
fn a_block_is_exact() {
    // Those of the widest vector.
    const LANES: usize = 16;
    for blocks in available() {
        for (code, scale) in [
            (0x77, 0x7E),
            (0xFF, 0x7E),
            (0x11, 0x01),
            (0x99, 0x81),
            (0x7F, 0x08),
        ] {
            for block in 0..LANES {
                let k = LANES * BLOCK;
                let (mut packed, mut scales) = (vec![0; k / 2], vec![0; LANES]);
                packed[block * BLOCK_BYTES..(block + 1) * BLOCK_BYTES].fill(code);
                scales[block] = scale;
                let chunks = blocks.chunks(k);
                let operand = Nvfp4Tensor::new(1, k, packed, scales, 1.0).unwrap();
                let panel = |operand_of, rows| {
                    let mut panel = AlignedBuffer::zeroed(blocks.panel_words(operand_of, chunks)).unwrap();
                    blocks.pack(operand_of, &operand, rows, 0..k, panel.values_mut());
                    panel
                };
                let (a, b) = (panel(Operand::Rows, 0..1), panel(Operand::Columns, 0..1));
                let mut sums = [0.0];
                blocks.multiply(&panels(chunks, [1, 1], &a, &b), &mut sums, [1, 1], false);
                let (sum, _) = by_hand(&operand, &operand, [0, 0], 0..k);
                assert_eq!(
                    f64::from(sums[0]),
                    sum,
                    "{} {code:x} {scale:x} {block}",
                    blocks.name()
                );
            }
        }
    }
}

/// All loops on floats that this processor can run, each with the formats that it multiplies.
fn available_on_floats() -> Vec<(&'static Dots, OutputFormat)> {
    let mut found: Vec<(&'static Dots, OutputFormat)> = Vec::new();
    for path in SimdPath::available() {
        for format in [OutputFormat::F16, OutputFormat::Bf16, OutputFormat::F32] {
            // SAFETY: the path is available.
            let dots = unsafe { Dots::of_format(path, format.into()) };
            found.push((dots, format));
        }
    }
    #[cfg(target_arch = "x86_64")]
    if SimdPath::Avx512.missing_features().is_empty() {
        found.push((&loops::AVX512_F32, OutputFormat::Bf16));
    }
    found
}

/// Finite values of many magnitudes, rounded to a format.
fn floats(format: OutputFormat, rows: usize, columns: usize) -> FloatTensor {
    let value = |at: usize| {
        let bits = (at.wrapping_mul(2_654_435_761) >> 5) as u32;
        let magnitude = f32::from_bits((bits % (12 << 23)) + (121 << 23));
        if bits & 1 << 30 == 0 {
            magnitude
        } else {
            -magnitude
        }
    };
    let values: Vec<f32> = (0..rows * columns).map(value).collect();
    FloatTensor::round(format, rows, columns, &values)
}

/// The exact product of a row of weights and one of tokens over some columns, and the sum of the magnitudes.
fn exact(weights: &Nvfp4Tensor, tokens: &FloatTensor, rows: [usize; 2], columns: Range<usize>) -> (f64, f64) {
    let products = columns.map(|column| {
        let at = rows[0] * weights.columns() + column;
        let code = weights.packed()[at / 2] >> (4 * (at % 2)) & 15;
        let weight = e2m1::VALUES[usize::from(code)] * e4m3::decode(weights.scales()[at / BLOCK]);
        f64::from(weight) * f64::from(tokens.get(rows[1] * tokens.columns + column))
    });
    products.fold((0.0, 0.0), |(sum, magnitude), product| {
        (sum + product, magnitude + product.abs())
    })
}

/// The packed tokens of some rows and columns; what the panel held before must not matter.
fn token_panel(
    dots: &Dots,
    operand: Operand,
    tokens: &FloatTensor,
    rows: Range<usize>,
    columns: &Range<usize>,
) -> AlignedBuffer {
    let words = dots.width(operand) * dots.words(operand) * dots.chunks(columns.len());
    let mut panel = AlignedBuffer::zeroed(words).unwrap();
    panel.values_mut().fill(f32::NAN);
    let size = tokens.format.bytes();
    let rows = rows.map(|row| {
        let first = row * tokens.columns;
        &tokens.bytes[(first + columns.start) * size..(first + columns.end) * size]
    });
    dots.pack_floats(operand, tokens.format, rows, panel.values_mut());
    panel
}

const FLOAT_DEPTHS: [Range<usize>; 5] = [
    0..0,
    0..BLOCK,
    3 * BLOCK..20 * BLOCK,
    0..32 * BLOCK,
    15 * BLOCK..47 * BLOCK,
];

#[test]
fn blocks_of_floats_of_every_size_and_depth_multiply_and_accumulate() {
    let weights = tensor(8, 47 * BLOCK, 1);
    for (dots, format) in available_on_floats() {
        let tokens = floats(format, 10, 47 * BLOCK);
        let sizes = (1..=dots.rows).flat_map(|rows| (1..=dots.columns).map(move |columns| [rows, columns]));
        for (counts, depth) in sizes.flat_map(|counts| FLOAT_DEPTHS.map(|depth| (counts, depth))) {
            let chunks = dots.chunks(depth.len());
            // Weights as rows, and as columns.
            for (own, other) in [
                (Operand::Rows, Operand::Columns),
                (Operand::Columns, Operand::Rows),
            ] {
                let of = |operand| counts[usize::from(operand == Operand::Columns)];
                let mut own_panel =
                    AlignedBuffer::zeroed(dots.width(own) * dots.words(own) * chunks).unwrap();
                own_panel.values_mut().fill(f32::NAN);
                dots.pack(
                    own,
                    &weights,
                    2..2 + of(own),
                    depth.clone(),
                    own_panel.values_mut(),
                );
                let other_panel = token_panel(dots, other, &tokens, 3..3 + of(other), &depth);
                let (a, b) = match own {
                    Operand::Rows => (&own_panel, &other_panel),
                    Operand::Columns => (&other_panel, &own_panel),
                };
                for strides in [[7, 1], [1, 7]] {
                    let mut sums = [f32::NAN; 49];
                    for accumulate in [false, true] {
                        dots.multiply(&panels(chunks, counts, a, b), &mut sums, strides, accumulate);
                    }
                    for (row, column) in
                        (0..counts[0]).flat_map(|row| (0..counts[1]).map(move |at| (row, at)))
                    {
                        let rows = match own {
                            Operand::Rows => [2 + row, 3 + column],
                            Operand::Columns => [2 + column, 3 + row],
                        };
                        let (sum, magnitude) = exact(&weights, &tokens, rows, depth.clone());
                        let found = f64::from(sums[row * strides[0] + column * strides[1]]);
                        assert!(
                            (found - 2.0 * sum).abs() <= 1e-6 * magnitude,
                            "{} {format} {counts:?} over {depth:?} at {row}, {column}: {found} for {}",
                            dots.name,
                            2.0 * sum
                        );
                    }
                    assert_eq!(
                        sums.iter().filter(|sum| !sum.is_nan()).count(),
                        counts[0] * counts[1]
                    );
                }
            }
        }
    }
}

#[test]
fn rows_multiply_floats_straight_from_their_codes() {
    let weights = tensor(12, 47 * BLOCK, 1);
    for (dots, format) in available_on_floats() {
        let tokens = floats(format, 10, 47 * BLOCK);
        let counts = (0..=9).flat_map(|count| (1..=dots.columns).map(move |columns| (count, columns)));
        for ((count, columns), depth) in counts.flat_map(|counts| FLOAT_DEPTHS.map(|depth| (counts, depth))) {
            let panel = token_panel(dots, Operand::Columns, &tokens, 3..3 + columns, &depth);
            let mut sums = [f32::NAN; 64];
            let rows = Rows {
                tensor: &weights,
                rows: 2..2 + count,
                columns: depth.clone(),
            };
            for accumulate in [false, true] {
                dots.multiply_codes(&rows, columns, panel.values(), &mut sums, [1, 9], accumulate);
            }
            for (row, column) in (0..count).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let (sum, magnitude) = exact(&weights, &tokens, [2 + row, 3 + column], depth.clone());
                let found = f64::from(sums[row + 9 * column]);
                assert!(
                    (found - 2.0 * sum).abs() <= 1e-6 * magnitude,
                    "{} {format} {count}×{columns} over {depth:?} at {row}, {column}: {found} for {}",
                    dots.name,
                    2.0 * sum
                );
            }
            assert_eq!(sums.iter().filter(|sum| !sum.is_nan()).count(), count * columns);
        }
    }
}

/// Every code times every scale, alone in its block, times a token with all bits of its format, is exact.
#[test]
fn a_product_of_floats_is_exact() {
    for (dots, format) in available_on_floats() {
        if format == OutputFormat::F32 {
            continue;
        }
        let tokens = FloatTensor::round(format, 1, BLOCK, &[1.999; BLOCK]);
        for scale in (0..=255).filter(|scale| scale & 0x7F != 0x7F) {
            for code in 0..16 {
                let at = usize::from(code);
                let mut packed = [0; BLOCK_BYTES];
                packed[at / 2] = code << (4 * (at % 2));
                let weights = Nvfp4Tensor::new(1, BLOCK, packed.to_vec(), vec![scale], 1.0).unwrap();
                let panel = token_panel(dots, Operand::Columns, &tokens, 0..1, &(0..BLOCK));
                let rows = Rows {
                    tensor: &weights,
                    rows: 0..1,
                    columns: 0..BLOCK,
                };
                let mut sums = [0.0];
                dots.multiply_codes(&rows, 1, panel.values(), &mut sums, [1, 1], false);
                let (product, _) = exact(&weights, &tokens, [0, 0], 0..BLOCK);
                assert_eq!(
                    f64::from(sums[0]),
                    product,
                    "{} {format} {code:x} {scale:x}",
                    dots.name
                );
            }
        }
    }
}
