//! Weights for products with tokens of 16 bits as they lie in memory.
//!
//! The matrix unit takes K in steps of 16, and lane q of four has values 2q, 2q + 1, 2q + 8 and 2q + 9 of each. So of a chunk of 128
//! values lane q has eight steps of four. Sixteen bytes hold them, and eight bytes a row's eight scales, in a form that takes few
//! instructions to become numbers of the tokens' format.

use gauntlet_formats::BLOCK;
use gauntlet_operations::TokenFormat;

use super::{CHUNK, Packed, PackingError, ROWS, SCALE_BYTES, VALUE_BYTES, check, pad};
use crate::plan::DEPTH_STEP;

/// Steps whose values share two words, and the pairs that a lane has of them.
const STEPS: usize = 4;
const PAIRS: usize = 8;
/// Values from one pair of a lane to the next: 16 bytes of a token.
const PIECE: usize = 8;
/// The bits of NaN in e4m3 without its sign, and the code of a scale that is NaN.
const NAN: u8 = 0x7F;
const CODED_NAN: u8 = 0xFF;
/// What turns the bits of a normal e4m3 magnitude into a code: fifteen in its exponent, which has one more bit.
const CODED_BIAS: u8 = 15 << 3;
/// The sign of an e4m3 scale, and of an e2m1 value.
const SCALE_SIGN: u8 = 0x80;
const VALUE_SIGN: u8 = 8;

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
    check(rows, depth, values, scales)?;
    let padded = pad(rows, depth, values, scales)?;
    let depth = depth.next_multiple_of(DEPTH_STEP);
    let (chunks, filled) = (depth / CHUNK, rows.next_multiple_of(ROWS));
    let mut packed = Packed {
        values: vec![0; filled * chunks * VALUE_BYTES],
        scales: vec![0; filled * chunks * SCALE_BYTES],
    };
    let of_chunks = padded
        .values
        .chunks_exact(VALUE_BYTES)
        .zip(padded.scales.chunks_exact(SCALE_BYTES));
    for (index, (values, scales)) in of_chunks.enumerate() {
        let (row, at) = (index / chunks, index % chunks);
        let (values, scales) = places.chunk(values, scales);
        packed.values[(at * filled + row) * VALUE_BYTES..][..VALUE_BYTES].copy_from_slice(&values);
        let sixteen = (at * filled + row / ROWS * ROWS) * SCALE_BYTES;
        let place = sixteen + row % 8 * 16 + row / 8 % 2 * SCALE_BYTES;
        packed.scales[place..][..SCALE_BYTES].copy_from_slice(&scales);
    }
    Ok(packed)
}

/// Where bits lie, by the number format in which weights are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    Half,
    Brain,
}

impl Places {
    /// A chunk of a row: its values and its scales.
    fn chunk(self, values: &[u8], scales: &[u8]) -> ([u8; VALUE_BYTES], [u8; SCALE_BYTES]) {
        let (mut packed, mut coded) = ([0; VALUE_BYTES], [0; SCALE_BYTES]);
        let value = |at: usize| {
            let code = values[at / 2] >> (at % 2 * 4) & 0xF;
            match scales[at / BLOCK] {
                // A zero has no code; its values vanish instead.
                0 | SCALE_SIGN => 0,
                scale if scale & SCALE_SIGN != 0 => code ^ VALUE_SIGN,
                _ => code,
            }
        };
        for (place, words) in packed.chunks_exact_mut(8).enumerate() {
            let (lane, first_step) = (place / 2, place % 2 * STEPS);
            let pairs = std::array::from_fn(|pair| {
                let first = (first_step * 2 + pair) * PIECE + 2 * lane;
                [value(first), value(first + 1)]
            });
            words.copy_from_slice(&bytes(self.values(pairs)));
        }
        coded.copy_from_slice(&bytes(self.scales(scales)));
        (packed, coded)
    }

    /// The two words of eight pairs.
    fn values(self, pairs: [[u8; 2]; PAIRS]) -> [u32; 2] {
        let mut words = [0; 2];
        for (pair, codes) in pairs.into_iter().enumerate() {
            for (half, code) in codes.into_iter().enumerate() {
                match self {
                    Self::Half => words[pair / 4] |= u32::from(code) << (pair % 4 * 4 + half * 16),
                    Self::Brain => {
                        for (bit, place) in [6, 7, 8, 15].into_iter().enumerate() {
                            let place = (place + 16 * half + 2 * pair) % 32;
                            words[word_of(pair, place)] |= u32::from(code >> bit & 1) << place;
                        }
                    }
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

/// The word that has bit `place` of a pair for bf16.
fn word_of(pair: usize, place: usize) -> usize {
    match pair {
        0 | 2 | 5 => 0,
        1 | 4 | 7 => 1,
        _ => usize::from(![4, 5, 13, 14].contains(&(place % 16))),
    }
}

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
    use gauntlet_formats::{e2m1, e4m3};

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

    /// Each bit of two words belongs to one pair.
    #[test]
    fn pairs_share_the_bits_of_two_words() {
        for places in [Places::Half, Places::Brain] {
            let mut taken = [0_u32; 2];
            for bit in 0..PAIRS * 8 {
                let mut pairs = [[0; 2]; PAIRS];
                pairs[bit / 8][bit / 4 % 2] = 1 << (bit % 4);
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
