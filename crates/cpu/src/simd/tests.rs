use super::*;

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
        "simd: unknown path `sse9`; one of avx512, avx2, portable"
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
        for step in 0..870_000 {
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

/// All 16 codes under all finite scales, in every lane position.
#[test]
fn decoding_is_exact() {
    for path in SimdPath::available() {
        let instructions = Instructions::detect(path).unwrap();
        for width in [instructions.rows(), instructions.columns()] {
            for first_scale in (0..256).step_by(8) {
                let mut codes = Codes::new();
                let code = |k: usize, lane: usize| (k * 5 + lane * 3) % 16;
                let scale = |block: usize, lane: usize| {
                    let byte = (first_scale + block * 3 + lane) % 256;
                    if byte & 0x7F == 0x7F {
                        1.0
                    } else {
                        gauntlet_formats::e4m3::decode(byte as u8)
                    }
                };
                for lane in 0..width {
                    for (half, words) in codes.words.iter_mut().enumerate() {
                        words[lane] = (0..8).map(|k| (code(half * 8 + k, lane) as u32) << (4 * k)).sum();
                    }
                    for (block, scales) in codes.scales.iter_mut().enumerate() {
                        scales[lane] = scale(block, lane);
                    }
                }
                let mut panel = vec![f32::NAN; CHUNK_BLOCKS * 16 * width];
                instructions.decode(&codes, CHUNK_BLOCKS, width, &mut panel);
                for (index, value) in panel.iter().enumerate() {
                    let (k, lane) = (index / width, index % width);
                    let expected = gauntlet_formats::e2m1::VALUES[code(k, lane)] * scale(k / 16, lane);
                    assert_eq!(value.to_bits(), expected.to_bits(), "{path} {width} {k} {lane}");
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
