use gauntlet_problems::AttentionFormat;

use super::*;

/// Miri, which is slow, tries one value in `SPARSE`.
const SPARSE: usize = if cfg!(miri) { 1009 } else { 1 };

#[test]
fn portable_is_always_there_and_names_round_trip() {
    let available = SimdPath::available();
    assert_eq!(available.last(), Some(&SimdPath::Portable));
    assert_eq!(available[0], SimdPath::best());
    for path in SimdPath::ALL {
        assert_eq!(path.to_string().parse(), Ok(path));
    }
    let error = "sse9".parse::<SimdPath>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "simd: unknown path `sse9`; one of amx, avx512, avx2, neon, portable"
    );
}

#[test]
fn a_missing_path_says_what_is_missing_and_what_is_there() {
    let error = SimdError::Unavailable {
        path: SimdPath::Avx512,
        missing: vec!["avx512f", "fma"],
        available: vec![SimdPath::Portable],
    };
    assert_eq!(
        error.to_string(),
        "simd: avx512 needs avx512f, fma, which this processor lacks; use one of portable"
    );
}

#[test]
fn the_exponential_is_accurate() {
    let check = |exponential: fn(f32) -> f32| {
        let mut worst = 0.0_f64;
        for step in (0..870_000).step_by(SPARSE) {
            let x = -1e-4 * step as f32;
            let exact = f64::from(x).exp();
            worst = worst.max((f64::from(exponential(x)) - exact).abs() / exact);
        }
        assert!(worst < 3e-7, "{worst}");
        assert_eq!(exponential(0.0), 1.0);
        assert_eq!(exponential(-88.0), 0.0);
        assert_eq!(exponential(f32::NEG_INFINITY), 0.0);
        assert!(exponential(f32::NAN).is_nan());
    };
    check(vector::exp_nonpositive::<false>);
    check(vector::exp_nonpositive::<true>);
}

#[test]
fn register_blocks_multiply_and_accumulate() {
    for path in SimdPath::available() {
        let instructions = Instructions::detect(path).unwrap();
        let (rows, columns) = (instructions.rows(), instructions.columns());
        for depth in [0, 1, 7, 64] {
            let a: Vec<f32> = (0..depth * rows).map(|i| (i % 11) as f32 - 5.0).collect();
            let b: Vec<f32> = (0..depth * columns).map(|i| (i % 7) as f32 - 3.0).collect();
            let mut c = vec![f32::NAN; rows * columns];
            instructions.multiply(depth, &a, &b, &mut c, false);
            instructions.multiply(depth, &a, &b, &mut c, true);
            for row in 0..rows {
                for column in 0..columns {
                    let sum: f32 = (0..depth)
                        .map(|k| a[k * rows + row] * b[k * columns + column])
                        .sum();
                    assert_eq!(
                        c[row * columns + column],
                        2.0 * sum,
                        "{path} {depth} {row} {column}"
                    );
                }
            }
        }
    }
}

#[test]
fn softmax_steps_agree_with_one_softmax() {
    for path in SimdPath::available() {
        let instructions = Instructions::detect(path).unwrap();
        for width in [instructions.rows(), instructions.columns()] {
            let scores: Vec<f32> = (0..96 * width)
                .map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.3)
                .collect();
            let mut lanes = SoftmaxLanes::EMPTY;
            let mut hidden = vec![f32::NEG_INFINITY; 2 * width];
            instructions.softmax(&mut hidden, width, 0.5, &mut lanes);
            assert!(
                hidden
                    .iter()
                    .chain(&lanes.sum[..width])
                    .all(|value| *value == 0.0)
            );
            for step in scores.chunks(32 * width) {
                instructions.softmax(&mut step.to_vec(), width, 0.5, &mut lanes);
            }
            for lane in 0..width {
                let column = || {
                    scores
                        .iter()
                        .skip(lane)
                        .step_by(width)
                        .map(|score| f64::from(*score))
                };
                let maximum = column().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = column().map(|score| ((score - maximum) * 0.5).exp()).sum();
                assert_eq!(f64::from(lanes.maximum[lane]), maximum);
                assert!(
                    (f64::from(lanes.sum[lane]) / sum - 1.0).abs() < 1e-6,
                    "{path} {width} {lane}"
                );
            }
        }
    }
}

#[test]
fn streams_copy_from_any_alignment() {
    let source: Vec<u8> = (0..=255).collect();
    for offset in 0..20 {
        for length in [0, 1, 15, 16, 17, 100] {
            let mut target = [0; 200];
            let rows = [(&mut target[offset..offset + length], &source[3..3 + length])];
            stream_rows(rows.into_iter());
            assert_eq!(target[offset..offset + length], source[3..3 + length]);
            assert!(
                target[..offset]
                    .iter()
                    .chain(&target[offset + length..])
                    .all(|byte| *byte == 0)
            );
        }
    }
}

/// Reference sums in f64, from the operands' words.
fn by_hand(chunks: usize, parts: usize, a: &[u32], b: &[u32]) -> Vec<f64> {
    let value = |word: u32, half: usize| {
        let bits = if half == 0 { word << 16 } else { word & 0xFFFF_0000 };
        f64::from(f32::from_bits(bits))
    };
    let mut sums = vec![0.0; SIDE * SIDE];
    for (row, column, chunk, part, pair, half) in (0..SIDE)
        .flat_map(|row| (0..SIDE).map(move |column| (row, column)))
        .flat_map(|(row, column)| (0..chunks).map(move |chunk| (row, column, chunk)))
        .flat_map(|(row, column, chunk)| (0..parts).map(move |part| (row, column, chunk, part)))
        .flat_map(|(row, column, chunk, part)| (0..32).map(move |k| (row, column, chunk, part, k / 2, k % 2)))
    {
        let left = a[chunk * CHUNK + row * 16 + pair];
        let right = b[(chunk * parts + part) * CHUNK + column / 16 * 256 + pair * 16 + column % 16];
        sums[row * SIDE + column] += value(left, half) * value(right, half);
    }
    sums
}

#[test]
fn tiles_multiply_what_was_packed() {
    let Ok(instructions) = Instructions::detect(SimdPath::Amx) else {
        return;
    };
    let tiles = instructions.tiles().unwrap();
    // Small integers are exact in bf16, and so are their sums in f32.
    let values = |seed: usize| -> Vec<i8> {
        (0..SIDE * 64)
            .map(|at| ((at * 37 + at / 64 * 11 + seed) % 19) as i8 - 9)
            .collect()
    };
    let (left, right) = (values(1), values(5));
    let halves = |values: &[i8]| {
        let mut words = vec![0; SIDE * 32];
        tiles.widen(AttentionFormat::Int8, bytemuck::cast_slice(values), &mut words);
        words
    };
    let (mut a, mut b) = (vec![0; 2 * CHUNK], vec![0; 2 * CHUNK]);
    tiles.pack_rows(&halves(&left), 64, &mut a);
    tiles.pack_columns(&halves(&right), 64, &mut b);
    let configured = tiles.configure();
    let mut c = vec![1.0; SIDE * SIDE];
    configured.product((2, 1), &a, &b, &mut c, true).finish();
    let (left, right) = (|at: usize| f32::from(left[at]), |at: usize| f32::from(right[at]));
    for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column))) {
        let dot: f32 = (0..64).map(|k| left(row * 64 + k) * right(column * 64 + k)).sum();
        assert_eq!(c[row * SIDE + column], 1.0 + dot, "{row} {column}");
    }
    let expected = by_hand(2, 1, &a, &b);
    assert!(
        c.iter()
            .zip(expected)
            .all(|(found, sum)| f64::from(*found) == sum + 1.0)
    );

    // The same values as 32 depths of 64 rows: chunk 1 of two panels.
    let words: Vec<i8> = (0..SIDE * 64).map(|at| left(at) as i8).collect();
    let mut panels = vec![0; 2 * 2 * CHUNK];
    tiles.pack_depths(&halves(&words), 64, 1, 2 * CHUNK, &mut panels);
    configured
        .product((1, 1), &panels[3 * CHUNK..], &b, &mut c, false)
        .finish();
    for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column))) {
        let dot: f32 = (0..SIDE)
            .map(|k| left(k * 64 + 32 + row) * right(column * 64 + k))
            .sum();
        assert_eq!(c[row * SIDE + column], dot, "{row} {column}");
    }
}

/// Every code of both formats, as the oracle decodes it.
#[test]
fn eight_bits_widen_to_their_values() {
    let Ok(instructions) = Instructions::detect(SimdPath::Amx) else {
        return;
    };
    let tiles = instructions.tiles().unwrap();
    let codes: Vec<u8> = (0..=255).collect();
    for format in [AttentionFormat::E4m3, AttentionFormat::Int8] {
        let mut words = vec![0; 128];
        tiles.widen(format, &codes, &mut words);
        for (code, half) in codes.iter().zip(bytemuck::cast_slice::<u32, half::bf16>(&words)) {
            let (is_number, value) = if format == AttentionFormat::E4m3 {
                (code & 0x7F != 0x7F, gauntlet_tensors::e4m3::decode(*code))
            } else {
                (true, f32::from(code.cast_signed()))
            };
            assert!(!is_number || half.to_f32() == value, "{format} {code}");
        }
    }
}

#[test]
fn values_round_to_f16_as_the_format_says() {
    // Every f16 except NaN, the midpoint to the next f16 and the values next to that, in runs of many lengths.
    let values: Vec<f32> = (0..0x7C00_u16)
        .step_by(SPARSE)
        .flat_map(|bits| {
            let [value, next] = [bits, bits + 1].map(|bits| half::f16::from_bits(bits).to_f32());
            let halfway = if next.is_finite() {
                (value + next) / 2.0
            } else {
                65520.0
            };
            [value, halfway, -halfway.next_down(), halfway.next_up(), -value]
        })
        .chain([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-40])
        .collect();
    for path in SimdPath::available() {
        let instructions = Instructions::detect(path).unwrap();
        let mut at = 0;
        for length in (0..40).cycle() {
            let run = &values[at..values.len().min(at + length)];
            let mut bytes = vec![0xAA; 2 * run.len()];
            instructions.halve(run, &mut bytes);
            for (value, bytes) in run.iter().zip(bytes.as_chunks::<2>().0) {
                assert_eq!(
                    *bytes,
                    half::f16::from_f32(*value).to_le_bytes(),
                    "{path} {value:e}"
                );
            }
            at += run.len();
            if at == values.len() {
                break;
            }
        }
    }
}

#[test]
fn rows_of_blocks_turn() {
    for path in SimdPath::available() {
        let instructions = Instructions::detect(path).unwrap();
        let columns = instructions.columns();
        for rows in [1, 5, LANES] {
            let block: Vec<f32> = (0..rows * columns).map(|at| at as f32).collect();
            let mut turned = [f32::NAN; LANES * LANES];
            instructions.turn(&block, &mut turned);
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                assert_eq!(
                    turned[column * LANES + row],
                    block[row * columns + column],
                    "{path}"
                );
            }
        }
    }
}

#[test]
fn weights_in_parts_are_those_of_the_sum() {
    let Ok(instructions) = Instructions::detect(SimdPath::Amx) else {
        return;
    };
    let tiles = instructions.tiles().unwrap();
    // One key is hidden from every third query.
    let mut scores: [f32; SIDE * SIDE] = std::array::from_fn(|at| ((at * 7919) % 1000) as f32 / 40.0);
    (0..SIDE)
        .step_by(3)
        .for_each(|lane| scores[7 * SIDE + lane] = f32::NEG_INFINITY);
    let mut maxima = [f32::NEG_INFINITY; LANES];
    tiles.raise(&scores, &mut maxima);
    for (parts, error) in [(2, 4e-6), (3, 6e-7)] {
        let mut lanes = SoftmaxLanes::EMPTY;
        let mut weights = vec![u32::MAX; parts * CHUNK];
        let exponents = tiles.exponents(&maxima, 0.3, &mut lanes);
        let mut sums = [0.0; LANES];
        // A product that runs at the same time: ones times ones.
        let ones = vec![0x3F80_3F80; CHUNK];
        let mut block = vec![f32::NAN; SIDE * SIDE];
        let configured = tiles.configure();
        let product = configured.product((1, 1), &ones, &ones, &mut block, false);
        let weights_in_parts = (parts, weights.as_mut_slice());
        tiles.weigh(
            &scores,
            &exponents,
            &mut sums,
            weights_in_parts,
            [product].into_iter(),
            1,
        );
        tiles.add_sums(&sums, &mut lanes);
        assert!(block.iter().all(|sum| *sum == 32.0));
        // Ones as the left operand add the weights up.
        let sums = by_hand(1, parts, &ones, &weights);
        for lane in 0..SIDE {
            let largest = (0..SIDE)
                .map(|key| scores[key * SIDE + lane])
                .fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(lanes.maximum[lane], largest);
            let weight =
                |key: usize| (f64::from(scores[key * SIDE + lane]) - f64::from(largest)) * f64::from(0.3_f32);
            let exact: f64 = (0..SIDE).map(|key| weight(key).exp()).sum();
            assert!(
                (sums[lane] - f64::from(lanes.sum[lane])).abs() < 3e-7 * exact,
                "{lane}"
            );
            assert!(
                (sums[lane] - exact).abs() < error * exact,
                "{lane}: {} for {exact}",
                sums[lane]
            );
        }
    }
}
