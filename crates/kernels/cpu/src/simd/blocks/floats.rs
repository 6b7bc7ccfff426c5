//! Products of decoded weights and tokens in floating point, written once over vectors of [`FloatLanes`].
//!
//! A weight times its block's scale has at most six significant bits, a bf16 has eight and an f16 eleven, so their products
//! are exact in f32 and only sums round. The tensor scale is applied to the sums.
//!
//! A chunk is as many blocks of 16 values as a vector has lanes; lane i of all vectors of a chunk belongs to the same
//! block. So the scales of a chunk are one vector, and one shift of all codes brings the next value of each block into
//! place.

use gauntlet_nvfp4::BLOCK;
use gauntlet_problems::OutputFormat;
#[cfg(target_arch = "x86_64")]
use gauntlet_tensors::e2m1;
use half::f16;
use half::slice::HalfFloatSliceExt;

use super::kernel::{Block, Codes, Sums, totals};
use crate::simd::LANES;

/// The most values of a chunk of any instruction set.
const MAX_VALUES: usize = LANES / 2 * BLOCK;

/// Vectors of one instruction set, a 32-bit lane for each block of 16 values.
///
/// # Safety
///
/// Methods may be called only if the instruction set is available. Those that take a pointer read it unaligned.
pub(super) trait FloatLanes: Sums {
    /// The block in each lane.
    const ORDER: &'static [u8];
    /// Whether a lane holds two neighbouring values as bf16; otherwise one as f32.
    const PAIRED: bool;
    /// Blocks of a chunk.
    const BLOCKS: usize = Self::ORDER.len();
    /// Vectors of half a block, and of a chunk.
    const STEPS: usize = BLOCK / 2 / (1 + Self::PAIRED as usize);
    const VECTORS: usize = 2 * Self::STEPS;
    /// One value, or two, of each block.
    type Vector: Copy;
    /// Four bytes of codes of each block.
    type Codes: Copy;
    /// A scale for each block.
    type Scales: Copy;

    /// Loads the first and the last four bytes of each block of a chunk (8 bytes per block).
    unsafe fn codes(packed: *const u8) -> [Self::Codes; 2];
    /// Loads the scales of a chunk (a byte per block).
    unsafe fn scales(scales: *const u8) -> Self::Scales;
    /// The next vector of values times scales, exact; `codes` moves on to the one after.
    unsafe fn next(codes: &mut Self::Codes, scales: Self::Scales) -> Self::Vector;
    /// `sums + row · column`.
    unsafe fn multiply_add(sums: Self::Floats, row: Self::Vector, column: Self::Vector) -> Self::Floats;
}

/// The values of e2m1 times `factor`, a power of two.
#[cfg(target_arch = "x86_64")]
pub(super) const fn scaled_values(factor: f32) -> [f32; 16] {
    let mut values = e2m1::VALUES;
    let mut at = 0;
    while at < values.len() {
        values[at] *= factor;
        at += 1;
    }
    values
}

/// Decodes chunks of a row to `target`, `stride` words from one chunk to the next and a [`VECTORS`](FloatLanes::VECTORS)th
/// of that from one vector to the next.
///
/// # Safety
///
/// The instruction set is available. The codes and scales are readable, and there is an aligned place for each vector.
#[inline(always)]
pub(super) unsafe fn pack<L: FloatLanes>(codes: Codes, target: *mut f32, stride: usize) {
    let step = stride / L::VECTORS;
    for chunk in 0..codes.chunks {
        // SAFETY: the caller promises all of it.
        unsafe {
            let (packed, scales) = codes.chunk(chunk, L::BLOCKS);
            let (halves, scales) = (L::codes(packed), L::scales(scales));
            let mut target = target.add(chunk * stride);
            for mut codes in halves {
                for _ in 0..L::STEPS {
                    target.cast::<L::Vector>().write(L::next(&mut codes, scales));
                    target = target.wrapping_add(step);
                }
            }
        }
    }
}

/// Multiplies register blocks of `M` rows by `N` columns, one below the other; see [`put`](super::kernel::put) for the
/// target.
///
/// # Safety
///
/// The conditions of [`multiply`] and of `put` hold for each block.
#[inline(always)]
pub(super) unsafe fn multiply_panels<L: FloatLanes, const M: usize, const N: usize>(
    block: &Block,
    sums: *mut f32,
    strides: [usize; 2],
    accumulate: bool,
) {
    for panel in 0..block.panels {
        for row in panel * M..(panel + 1) * M {
            block.ahead.ask(row);
        }
        // SAFETY: the caller promises all of it.
        unsafe {
            let rows = block.rows.add(panel * block.apart).cast();
            let totals = multiply::<L, M, N>(block.chunks * L::VECTORS, rows, block.columns.cast());
            super::kernel::put(&totals, sums.add(panel * M * strides[0]), strides, accumulate);
        }
    }
}

/// Multiplies one register block: `M` rows by `N` columns over a number of vectors, to `totals[column][row]`.
///
/// # Safety
///
/// The instruction set is available; `rows` holds `vectors · M` vectors, those of one depth together, and `columns`
/// `vectors · N`, both aligned.
#[inline(always)]
unsafe fn multiply<L: FloatLanes, const M: usize, const N: usize>(
    vectors: usize,
    rows: *const L::Vector,
    columns: *const L::Vector,
) -> [[f32; M]; N] {
    // SAFETY: the caller promises all of it; row < M, column < N and vector < vectors.
    unsafe {
        let mut sums = [[L::no_floats(); N]; M];
        for vector in 0..vectors {
            let rows = rows.add(vector * M).cast::<[L::Vector; M]>().read();
            let columns = columns.add(vector * N);
            for at in 0..N {
                let column = columns.add(at).read();
                for (sums, row) in sums.iter_mut().zip(rows) {
                    sums[at] = L::multiply_add(sums[at], row, column);
                }
            }
        }
        totals::<L, M, N>(sums)
    }
}

/// Like [`multiply`], for rows straight from their codes, which pays if a row meets few columns.
///
/// # Safety
///
/// The instruction set is available. The rows' codes and scales are readable and have the same number of chunks;
/// `columns` holds as many chunks of `N`, aligned.
#[inline(always)]
pub(super) unsafe fn multiply_codes<L: FloatLanes, const M: usize, const N: usize>(
    rows: &[Codes; M],
    columns: *const f32,
) -> [[f32; M]; N] {
    // SAFETY: the caller promises all of it; chunk < chunks.
    unsafe {
        let mut columns = columns.cast::<L::Vector>();
        let mut sums = [[L::no_floats(); N]; M];
        for chunk in 0..rows[0].chunks {
            let places = rows.map(|row| row.chunk(chunk, L::BLOCKS));
            let scales = places.map(|(_, scales)| L::scales(scales));
            let halves = places.map(|(packed, _)| L::codes(packed));
            for half in 0..2 {
                let mut codes = halves.map(|halves| halves[half]);
                for _ in 0..L::STEPS {
                    let mut values = [columns.read(); M];
                    for row in 0..M {
                        values[row] = L::next(&mut codes[row], scales[row]);
                    }
                    for at in 0..N {
                        let column = columns.add(at).read();
                        for (sums, value) in sums.iter_mut().zip(values) {
                            sums[at] = L::multiply_add(sums[at], value, column);
                        }
                    }
                    columns = columns.wrapping_add(N);
                }
            }
        }
        totals::<L, M, N>(sums)
    }
}

/// How tokens lie in the vectors of an instruction set.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) order: &'static [u8],
    pub(super) paired: bool,
}

impl Layout {
    /// Vectors of a chunk.
    pub(super) fn vectors(&self) -> usize {
        BLOCK / (1 + usize::from(self.paired))
    }

    /// Writes the elements of a row, the last of which may be missing in the last chunk, to `target`, with `stride` words
    /// from one vector to the next.
    pub(super) fn pack(&self, elements: Elements<'_>, target: &mut [f32], stride: usize) {
        let chunk = self.order.len() * BLOCK;
        let mut targets = target.chunks_mut(stride.max(1));
        let mut words = [0; MAX_VALUES];
        for start in (0..elements.count()).step_by(chunk) {
            let part = elements.part(start, chunk);
            if self.paired {
                part.pairs(&mut words);
            } else {
                part.singles(&mut words);
            }
            let vectors = self.vectors();
            for (vector, target) in targets.by_ref().take(vectors).enumerate() {
                for (word, block) in target.iter_mut().zip(self.order) {
                    *word = f32::from_bits(words[usize::from(*block) * vectors + vector]);
                }
            }
        }
    }
}

/// Elements of a row of tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'t> {
    pub(super) format: OutputFormat,
    pub(super) bytes: &'t [u8],
}

impl<'t> Elements<'t> {
    pub(super) fn count(&self) -> usize {
        self.bytes.len() / self.format.bytes()
    }

    /// At most `count` elements from `start` on.
    fn part(&self, start: usize, count: usize) -> Self {
        let end = self.count().min(start + count);
        Self {
            bytes: &self.bytes[start * self.format.bytes()..end * self.format.bytes()],
            ..*self
        }
    }

    /// The elements as f32, then zeros.
    fn singles(&self, words: &mut [u32; MAX_VALUES]) {
        let (own, rest) = words.split_at_mut(self.count());
        rest.fill(0);
        match self.format {
            OutputFormat::F32 => {
                for (word, bytes) in own.iter_mut().zip(self.bytes.as_chunks().0) {
                    *word = u32::from_le_bytes(*bytes);
                }
            }
            OutputFormat::Bf16 => {
                for (word, bytes) in own.iter_mut().zip(self.bytes.as_chunks().0) {
                    *word = u32::from(u16::from_le_bytes(*bytes)) << 16;
                }
            }
            OutputFormat::F16 => {
                let mut halves = [f16::ZERO; MAX_VALUES];
                for (half, bytes) in halves.iter_mut().zip(self.bytes.as_chunks().0) {
                    *half = f16::from_le_bytes(*bytes);
                }
                let values: &mut [f32] = bytemuck::cast_slice_mut(own);
                halves[..values.len()].convert_to_f32_slice(values);
            }
        }
    }

    /// Pairs of neighbouring bf16 as words, the first in the lower half, then zeros.
    fn pairs(&self, words: &mut [u32; MAX_VALUES]) {
        debug_assert_eq!(self.format, OutputFormat::Bf16);
        let (own, rest) = words.split_at_mut(self.count() / 2);
        rest.fill(0);
        for (word, bytes) in own.iter_mut().zip(self.bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
}
