//! Weights for products with tokens of 16 bits as they lie in memory.
//!
//! The matrix unit takes K in steps of 16, and lane q of four has values 2q, 2q + 1, 2q + 8 and 2q + 9 of each. So of a chunk of 128
//! values lane q has eight steps of four. Sixteen bytes hold them, and eight bytes a row's eight scales, in a form that takes few
//! instructions to become numbers of the tokens' format.

use std::thread::available_parallelism;

use gauntlet_nvfp4::BLOCK;
use gauntlet_problems::TokenFormat;

use super::{CHUNK, Packed, PackingError, Padded, ROWS, SCALE_BYTES, VALUE_BYTES, check, pad};
use crate::plan::DEPTH_STEP;

/// Pairs of a lane that share two words: those of four steps.
const PAIRS: usize = 8;
/// Values from one pair of a lane to the next: 16 bytes of a token.
const PIECE: usize = 8;
/// Matrices with fewer bytes of values are repacked by one thread: starting others takes longer.
const BYTES_A_THREAD: usize = 1 << 20;
/// The bits of NaN in e4m3 without its sign, and the code of a scale that is NaN.
const NAN: u8 = 0x7F;
const CODED_NAN: u8 = 0xFF;
/// What turns the bits of a normal e4m3 magnitude into a code: fifteen in its exponent, which has one more bit.
const CODED_BIAS: u8 = 15 << 3;
/// The sign of an e4m3 scale, and those of eight e2m1 values.
const SCALE_SIGN: u8 = 0x80;
const VALUE_SIGNS: u32 = 0x8888_8888;

/// Repacks a matrix of `rows` rows of `depth` values in the layout of NVFP4 tensors, see [`pad`], as schedules with
/// `packing = "steps"` take it for tokens of `tokens`: rows are padded with zeros to a multiple of [`ROWS`], and K to one of
/// [`DEPTH_STEP`]. Products are those of the matrix itself.
///
/// - values `[depth / 128, rows, 4, 2, 8]`: of each row and lane, eight bytes for each half of the chunk, in which four steps have
///   eight pairs of neighbouring values. For f16, value j of pair i is nibble 8 (i / 4) + i % 4 + 4 j. For bf16 a pair's bits lie as the
///   number format has them, in two halves of a word, rotated up by 2 i: pairs 0, 2 and 5 in the first word, 1, 4 and 7 in the second, and
///   of 3 and 6 bits 4, 5, 13 and 14 of either half in the first and all others in the second.
/// - scales `[depth / 128, rows / 16, 8, 2, 8]`: for rows g and g + 8 of sixteen, eight bytes for the eight scales. A scale is a byte of
///   five bits of exponent and three of significand, without a sign: that of a negative scale is its values'. A word holds four, in
///   pairs whose two lie 16 bits apart: the first pair's from bit 4 for bf16 and from bit 7 for f16, the second's 8 bits further, around
///   the word's end.
///
/// # Errors
/// If tokens have no 16 bits, `depth` is not a multiple of 16, or the number of bytes is wrong.
pub fn pack_steps(
    tokens: TokenFormat,
    rows: usize,
    depth: usize,
    values: &[u8],
    scales: &[u8],
) -> Result<Packed, PackingError> {
    let places = match tokens {
        TokenFormat::Bf16 => Places::Brain,
        TokenFormat::F16 => Places::Half,
        format => return Err(PackingError::Tokens { format }),
    };
    if !depth.is_multiple_of(DEPTH_STEP) {
        let Padded { values, scales } = pad(rows, depth, values, scales)?;
        return pack_steps(tokens, rows, depth.next_multiple_of(DEPTH_STEP), &values, &scales);
    }
    check(rows, depth, values, scales)?;
    let (chunks, filled) = (depth / CHUNK, rows.next_multiple_of(ROWS));
    let mut packed = Packed {
        values: vec![0; filled * chunks * VALUE_BYTES],
        scales: vec![0; filled * chunks * SCALE_BYTES],
    };
    if rows == 0 || chunks == 0 {
        return Ok(packed);
    }
    let mut slices: Vec<_> = packed
        .values
        .chunks_exact_mut(filled * VALUE_BYTES)
        .zip(packed.scales.chunks_exact_mut(filled * SCALE_BYTES))
        .enumerate()
        .collect();
    let pack_slice = |(at, (packed_values, packed_scales)): &mut (usize, (&mut [u8], &mut [u8]))| {
        for row in 0..rows {
            let index = row * chunks + *at;
            let (of_values, of_scales) = places.chunk(
                &values[index * VALUE_BYTES..][..VALUE_BYTES],
                &scales[index * SCALE_BYTES..][..SCALE_BYTES],
            );
            packed_values[row * VALUE_BYTES..][..VALUE_BYTES].copy_from_slice(&of_values);
            let place = row / ROWS * ROWS * SCALE_BYTES + row % 8 * 16 + row / 8 % 2 * SCALE_BYTES;
            packed_scales[place..][..SCALE_BYTES].copy_from_slice(&of_scales);
        }
    };
    let threads = match values.len() < BYTES_A_THREAD {
        true => 1,
        false => available_parallelism().map_or(1, usize::from),
    };
    std::thread::scope(|scope| {
        let mut parts = slices.chunks_mut(chunks.div_ceil(threads));
        let own = parts.next();
        for part in parts {
            scope.spawn(|| part.iter_mut().for_each(&pack_slice));
        }
        own.into_iter().flatten().for_each(&pack_slice);
    });
    Ok(packed)
}

/// Where bits lie, by the number format in which weights are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    Half,
    Brain,
}

impl Places {
    /// A chunk of a row: its values and its scales. `kernels/repack.cu` does the same.
    fn chunk(self, values: &[u8], scales: &[u8]) -> ([u8; VALUE_BYTES], [u8; SCALE_BYTES]) {
        let (mut packed, mut coded) = ([0; VALUE_BYTES], [0; SCALE_BYTES]);
        // A word is a piece of eight values, of which byte q is the pair of lane q.
        let mut pieces = [0_u32; CHUNK / PIECE];
        for ((piece, bytes), at) in pieces.iter_mut().zip(values.chunks_exact(4)).zip(0..) {
            let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            *piece = match scales[at * PIECE / BLOCK] {
                // A zero has no code; its values vanish instead.
                0 | SCALE_SIGN => 0,
                scale if scale & SCALE_SIGN != 0 => word ^ VALUE_SIGNS,
                _ => word,
            };
        }
        for (place, words) in packed.chunks_exact_mut(8).enumerate() {
            let (lane, half) = (place / 2, place % 2);
            let pairs = std::array::from_fn(|pair| (pieces[half * PAIRS + pair] >> (8 * lane)) as u8);
            words.copy_from_slice(&bytes(self.values(pairs)));
        }
        coded.copy_from_slice(&bytes(self.scales(scales)));
        (packed, coded)
    }

    /// The two words of eight pairs; the first value of a pair is its low nibble.
    fn values(self, pairs: [u8; PAIRS]) -> [u32; 2] {
        let mut words = [0; 2];
        for (pair, codes) in pairs.into_iter().enumerate() {
            let both = u32::from(codes & 0xF) | u32::from(codes >> 4) << 16;
            match self {
                Self::Half => words[pair / 4] |= both << (pair % 4 * 4),
                Self::Brain => {
                    let placed =
                        ((both & 0x0007_0007) << 6 | (both & 0x0008_0008) << 12).rotate_left(2 * pair as u32);
                    words[0] |= placed & IN_FIRST[pair];
                    words[1] |= placed & !IN_FIRST[pair];
                }
            }
        }
        words
    }

    /// The two words of eight scales.
    fn scales(self, scales: &[u8]) -> [u32; 2] {
        let first = match self {
            Self::Half => 7,
            Self::Brain => 4,
        };
        let mut words = [0_u32; 2];
        for (step, scale) in scales.iter().enumerate() {
            let place = first + step % 2 * 16 + step / 2 % 2 * 8;
            words[step / 4] |= u32::from(coded(*scale)).rotate_left(place as u32);
        }
        words
    }
}

/// The bits of each pair for bf16 that lie in the first of the two words.
const IN_FIRST: [u32; PAIRS] = [u32::MAX, 0, u32::MAX, SHARED_BITS, 0, u32::MAX, SHARED_BITS, 0];
/// Those of the two pairs that both words share: 4, 5, 13 and 14 of either half.
const SHARED_BITS: u32 = 0x6030_6030;

/// The size of an e4m3 scale: five bits of exponent, whose bias is 22, and three of significand. Small numbers, which e4m3 has without
/// a leading one, get theirs; zero has no code, and gets one that does not matter.
fn coded(scale: u8) -> u8 {
    match scale & !SCALE_SIGN {
        0 => 0,
        NAN => CODED_NAN,
        size if size >= 8 => size + CODED_BIAS,
        size => {
            let shift = size.leading_zeros() as u8 - 4;
            // The leading one goes, to where it counts as the exponent's lowest bit.
            (size << shift) + CODED_BIAS - (shift << 3)
        }
    }
}

fn bytes(words: [u32; 2]) -> [u8; 8] {
    let [first, second] = words.map(u32::to_le_bytes);
    std::array::from_fn(|index| {
        if index < 4 {
            first[index]
        } else {
            second[index - 4]
        }
    })
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::{e2m1, e4m3};

    use super::*;

    /// The number of 16 bits that the kernel makes.
    fn number(tokens: TokenFormat, bits: u32) -> f64 {
        let bits = bits & 0xFFFF;
        match tokens {
            TokenFormat::Bf16 => f64::from(f32::from_bits(bits << 16)),
            _ => {
                let (size, sign) = (bits & 0x7FFF, if bits & 0x8000 == 0 { 1.0 } else { -1.0 });
                let (exponent, fraction) = (size >> 10, f64::from(size & 0x3FF) / 1024.0);
                sign * match exponent {
                    0 => fraction * 2f64.powi(-14),
                    31 => f64::NAN,
                    _ => (1.0 + fraction) * 2f64.powi(exponent as i32 - 15),
                }
            }
        }
    }

    fn word(bytes: &[u8]) -> u32 {
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    /// Half `half` of pair `pair`, without its scale, as `kernels/swapped_steps.cuh` finds it in two words.
    fn value(tokens: TokenFormat, [first, second]: [u32; 2], pair: usize, half: usize) -> f64 {
        let bits = match tokens {
            TokenFormat::Bf16 => {
                let both = first & 0x6030_6030 | second & !0x6030_6030;
                let word = [first, second, first, both, second, first, both, second][pair];
                word.rotate_right(2 * pair as u32) & 0x81C0_81C0
            }
            _ => {
                let nibble = |place: usize| [first, second][pair / 4] >> (4 * (pair % 4 + place)) & 0xF;
                let moved = |code: u32| (code & 8) << 12 | (code & 7) << 9;
                moved(nibble(0)) | moved(nibble(4)) << 16
            }
        };
        number(tokens, bits >> (16 * half))
    }

    fn scale(tokens: TokenFormat, words: [u32; 2], step: usize) -> f64 {
        let moved = words[step / 4].rotate_right(step as u32 / 2 % 2 * 8);
        let both = match tokens {
            TokenFormat::Bf16 => moved & 0x0FF0_0FF0 | 0x7000_7000,
            _ => moved & 0x7F80_7F80,
        };
        number(tokens, both >> (step % 2 * 16))
    }

    /// All products of values and scales, and a matrix whose sizes no tile divides.
    #[test]
    fn a_lane_finds_every_weight() {
        let (rows, depth) = (21, 400);
        let values: Vec<u8> = (0..rows * depth / 2)
            .map(|at| (at * 7 + at / 251) as u8)
            .collect();
        let scales: Vec<u8> = (0..rows * depth / BLOCK).map(|at| (at * 3) as u8).collect();
        assert!((0..=255).all(|scale| scales.contains(&scale)));
        for tokens in [TokenFormat::Bf16, TokenFormat::F16] {
            let packed = pack_steps(tokens, rows, depth, &values, &scales).unwrap();
            assert_eq!((packed.values.len(), packed.scales.len()), (32 * 256, 32 * 32));
            for row in 0..32 {
                for k in 0..512 {
                    let (chunk, step, lane) = (k / CHUNK, k / 16 % 8, k / 2 % 4);
                    let (pair, half) = (k / 8 % PAIRS, k % 2);
                    let place = (chunk * 32 + row) * 64 + lane * 16 + step / 4 * 8;
                    let words = [0, 4].map(|of| word(&packed.values[place + of..][..4]));
                    let of_scales = (chunk * 2 + row / 16) * 128 + row % 8 * 16 + row / 8 % 2 * 8;
                    let scales_of_row = [0, 4].map(|of| word(&packed.scales[of_scales + of..][..4]));
                    let found = value(tokens, words, pair, half) * scale(tokens, scales_of_row, step);
                    let expected = match row < rows && k < depth {
                        true => {
                            let code = values[(row * depth + k) / 2] >> (k % 2 * 4) & 0xF;
                            let scale = scales[row * depth / BLOCK + k / BLOCK];
                            f64::from(e2m1::decode(code)) * f64::from(e4m3::decode(scale))
                        }
                        false => 0.0,
                    };
                    let found = found * 128.0;
                    assert!(
                        found == expected || found.is_nan() && expected.is_nan(),
                        "{tokens}, row {row}, {k}: {found}, {expected}"
                    );
                }
            }
        }
    }

    /// Threads share the slices of a large matrix. The first sixteen rows of each slice are those of a matrix of sixteen rows.
    #[test]
    fn large_matrices_are_packed_as_small_ones() {
        let (rows, depth) = (2048, 1280);
        let values: Vec<u8> = (0..rows * depth / 2)
            .map(|at| (at * 7 + at / 251) as u8)
            .collect();
        let scales: Vec<u8> = (0..rows * depth / BLOCK)
            .map(|at| (at * 3 + at / 256) as u8)
            .collect();
        assert!(values.len() >= BYTES_A_THREAD);
        let whole = pack_steps(TokenFormat::Bf16, rows, depth, &values, &scales).unwrap();
        for first in [0, 1024, rows - ROWS] {
            let (own_values, own_scales) = (
                &values[first * depth / 2..][..ROWS * depth / 2],
                &scales[first * depth / BLOCK..][..ROWS * depth / BLOCK],
            );
            let own = pack_steps(TokenFormat::Bf16, ROWS, depth, own_values, own_scales).unwrap();
            for chunk in 0..depth / CHUNK {
                let slice = |bytes: &[u8], rows: usize, first: usize, size: usize| {
                    bytes[(chunk * rows + first) * size..][..ROWS * size].to_vec()
                };
                assert_eq!(
                    slice(&whole.values, rows, first, VALUE_BYTES),
                    slice(&own.values, ROWS, 0, VALUE_BYTES)
                );
                assert_eq!(
                    slice(&whole.scales, rows, first, SCALE_BYTES),
                    slice(&own.scales, ROWS, 0, SCALE_BYTES)
                );
            }
        }
    }

    /// Each bit of two words belongs to one pair.
    #[test]
    fn pairs_share_the_bits_of_two_words() {
        for places in [Places::Half, Places::Brain] {
            let mut taken = [0_u32; 2];
            for bit in 0..PAIRS * 8 {
                let mut pairs = [0; PAIRS];
                pairs[bit / 8] = 1 << (bit % 8);
                for (taken, word) in taken.iter_mut().zip(places.values(pairs)) {
                    assert_eq!(*taken & word, 0);
                    *taken |= word;
                }
            }
            assert_eq!(taken, [u32::MAX; 2]);
        }
    }

    #[test]
    fn other_tokens_are_refused() {
        let error = pack_steps(TokenFormat::Nvfp4, 0, 16, &[], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "weights in steps for nvfp4 tokens: they are for tokens of 16 bits; repack others with `pack`"
        );
    }
}
