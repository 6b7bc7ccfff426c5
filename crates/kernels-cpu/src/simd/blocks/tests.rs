use gauntlet_formats::{e2m1, e4m3};

use super::*;
use crate::memory::AlignedBuffer;
use crate::simd::{Instructions, SimdPath};

/// All loops that this processor can run.
fn available() -> Vec<Blocks> {
    let mut all = vec![Blocks::Dots(&dots::PORTABLE)];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("fma") && has!("f16c") {
            all.push(Blocks::Dots(&dots::AVX2));
            if has!("avxvnni") {
                all.push(Blocks::Dots(&dots::AVX_VNNI));
            }
        }
        if SimdPath::Avx512.missing_features().is_empty() && has!("avx512vnni") {
            all.push(Blocks::Dots(&dots::AVX512_VNNI));
            if has!("avx512vbmi") {
                all.push(Blocks::Dots(&dots::AVX512_VBMI));
                all.push(Blocks::Dots(&dots::AVX512_SUMS));
            }
        }
        if let Ok(instructions) = Instructions::detect(SimdPath::Amx) {
            all.push(instructions.blocks(usize::MAX));
        }
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("dotprod") {
        all.push(Blocks::Dots(&dots::NEON));
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
