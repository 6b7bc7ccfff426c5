//! The algorithm, written once over vectors of [`Lanes`] and compiled for each instruction set.
//!
//! Twice an e2m1 value is an integer in {0, ±1, ±2, ±3, ±4, ±6, ±8, ±12}, so the product of two blocks of 16 values is
//! an integer below 2304 in magnitude. Times both block scales (four significant bits each) it is a number of 20 bits,
//! exact in f32. Only the addition of blocks rounds.

use super::BLOCK_BYTES;
use crate::simd::stream::prefetch_at;

/// Vectors of one instruction set, a 32-bit lane for each block of 16 values.
///
/// Lane i of all vectors made from the same blocks belongs to the same block. Each instruction set chooses the order of
/// blocks in lanes and the order of the 16 values, as long as both operands use the same.
///
/// # Safety
///
/// Methods may be called only if the instruction set is available. Those that take a pointer access one vector there,
/// aligned to its size unless stated otherwise.
pub(super) trait Lanes: Sums {
    /// Lanes of a vector, and so blocks of a chunk.
    const BLOCKS: usize;
    /// Four values per lane, doubled.
    type Values: Copy;
    /// An i32 per lane.
    type Integers: Copy;
    /// A block's scale times a power of two per lane, in the form that [`accumulate`](Self::accumulate) takes.
    type Scales: Copy;

    /// Loads a chunk of a row from its codes (8 bytes per block) and scales (a byte per block), all unaligned.
    unsafe fn row(packed: *const u8, scales: *const u8) -> RowChunk<Self>;
    /// Loads a chunk of a column, like [`row`](Self::row).
    unsafe fn column(packed: *const u8, scales: *const u8) -> ColumnChunk<Self>;
    /// Four times the products of each block's values, if `start` is the column's start.
    unsafe fn dot(
        start: Self::Integers,
        row: &[Self::Values; 4],
        column: &[Self::Values; 4],
    ) -> Self::Integers;
    /// `sums + dots · (row · column)`, rounded once.
    unsafe fn accumulate(
        sums: Self::Floats,
        dots: Self::Integers,
        row: Self::Scales,
        column: Self::Scales,
    ) -> Self::Floats;
}

/// The sums of an instruction set, an f32 per lane.
///
/// # Safety
///
/// Methods may be called only if the instruction set is available.
pub(super) trait Sums: Copy {
    /// An f32 per lane.
    type Floats: Copy;

    /// Zeros.
    unsafe fn no_floats() -> Self::Floats;
    /// The sum of all lanes of each, without the powers of two in which products differ from the true ones.
    unsafe fn totals(sums: [Self::Floats; 4]) -> [f32; 4];
}

/// One row and chunk in a panel of rows.
#[repr(C)]
pub(super) struct RowChunk<L: Lanes> {
    pub(super) values: [L::Values; 4],
    pub(super) scales: L::Scales,
}

/// One column and chunk in a panel of columns.
#[repr(C)]
pub(super) struct ColumnChunk<L: Lanes> {
    pub(super) values: [L::Values; 4],
    pub(super) scales: L::Scales,
    /// The initial value of its dots.
    pub(super) start: L::Integers,
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Codes and scales of whole chunks of one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Codes {
    pub(super) packed: *const u8,
    pub(super) scales: *const u8,
    pub(super) chunks: usize,
    /// The distance in blocks to those that are needed soon; these may be outside of all memory.
    pub(super) ahead: usize,
}

impl Codes {
    /// No codes.
    pub(super) const NONE: Self = Self {
        packed: std::ptr::null(),
        scales: std::ptr::null(),
        chunks: 0,
        ahead: 0,
    };

    /// The codes and scales of a chunk of `blocks` blocks. Prefetches as many that are needed soon.
    ///
    /// # Safety
    ///
    /// `chunk` is less than the number of chunks.
    #[inline(always)]
    pub(super) unsafe fn chunk(&self, chunk: usize, blocks: usize) -> (*const u8, *const u8) {
        let codes = blocks * BLOCK_BYTES;
        // SAFETY: the caller promises that the chunk exists.
        let (packed, scales) = unsafe { (self.packed.add(chunk * codes), self.scales.add(chunk * blocks)) };
        for line in (0..codes).step_by(LINE) {
            prefetch_at(packed.wrapping_add(self.ahead * BLOCK_BYTES + line));
        }
        prefetch_at(scales.wrapping_add(self.ahead));
        (packed, scales)
    }
}

/// Panels of rows and one of columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) chunks: usize,
    /// The number of full panels of rows, and the distance in words between them.
    pub(super) panels: usize,
    pub(super) apart: usize,
    pub(super) rows: *const f32,
    pub(super) columns: *const f32,
    pub(super) ahead: Ahead,
}

/// Codes that are needed soon: some lines of each row, which may be outside of all memory. They are prefetched row by
/// row while rows are multiplied, because the memory is otherwise idle then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    start: *const u8,
    /// Bytes from row to row.
    row: usize,
    lines: usize,
}

impl Ahead {
    /// No codes.
    pub(crate) const NONE: Self = Self {
        start: std::ptr::null(),
        row: 0,
        lines: 0,
    };

    /// The lines of `bytes`, and of the ranges of the same length that follow every `row` bytes.
    pub(crate) fn of(bytes: &[u8], row: usize) -> Self {
        Self {
            start: bytes.as_ptr(),
            row,
            lines: bytes.len().div_ceil(LINE),
        }
    }

    /// Part `part` of `parts` of the lines of each row.
    pub(crate) fn part(&self, part: usize, parts: usize) -> Self {
        let [first, end] = [part, part + 1].map(|part| self.lines * part / parts);
        Self {
            start: self.start.wrapping_add(first * LINE),
            row: self.row,
            lines: end - first,
        }
    }

    /// Starts at row `row`.
    pub(super) fn from(&self, row: usize) -> Self {
        Self {
            start: self.start.wrapping_add(row * self.row),
            ..*self
        }
    }

    /// Prefetches the lines of row `row`.
    #[inline(always)]
    pub(super) fn ask(&self, row: usize) {
        let start = self.start.wrapping_add(row * self.row);
        for line in 0..self.lines {
            prefetch_at(start.wrapping_add(line * LINE));
        }
    }
}

/// Packs chunks of a row to `target`, with `stride` words from one chunk to the next.
///
/// # Safety
///
/// The instruction set is available. The codes and scales are readable, and there is an aligned place for each chunk.
#[inline(always)]
pub(super) unsafe fn pack_row<L: Lanes>(codes: Codes, target: *mut f32, stride: usize) {
    // SAFETY: the caller promises all of it.
    unsafe {
        for chunk in 0..codes.chunks {
            let (packed, scales) = codes.chunk(chunk, L::BLOCKS);
            let target = target.add(chunk * stride).cast::<RowChunk<L>>();
            target.write(L::row(packed, scales));
        }
    }
}

/// Packs chunks of a column.
///
/// # Safety
///
/// As [`pack_row`].
#[inline(always)]
pub(super) unsafe fn pack_column<L: Lanes>(codes: Codes, target: *mut f32, stride: usize) {
    // SAFETY: the caller promises all of it.
    unsafe {
        for chunk in 0..codes.chunks {
            let (packed, scales) = codes.chunk(chunk, L::BLOCKS);
            let target = target.add(chunk * stride).cast::<ColumnChunk<L>>();
            target.write(L::column(packed, scales));
        }
    }
}

/// Multiplies register blocks of `M` rows by `N` columns, one below the other; see [`put`] for the target.
///
/// # Safety
///
/// The conditions of [`multiply`] and [`put`] hold for each block.
#[inline(always)]
pub(super) unsafe fn multiply_panels<L: Lanes, const M: usize, const N: usize>(
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
            let totals = multiply::<L, M, N>(block.chunks, rows, block.columns.cast());
            put(&totals, sums.add(panel * M * strides[0]), strides, accumulate);
        }
    }
}

/// Multiplies one register block: `M` rows by `N` columns over `chunks` chunks, to `totals[column][row]`.
///
/// Each lane keeps its own sum until the end, so the loop moves nothing across lanes.
///
/// # Safety
///
/// The instruction set is available; `rows` holds `chunks · M` chunks, those of one depth together, and `columns`
/// `chunks · N`, both aligned.
#[inline(always)]
unsafe fn multiply<L: Lanes, const M: usize, const N: usize>(
    chunks: usize,
    rows: *const RowChunk<L>,
    columns: *const ColumnChunk<L>,
) -> [[f32; M]; N] {
    // SAFETY: the caller promises all of it; row < M, column < N and chunk < chunks.
    unsafe {
        let mut sums = [[L::no_floats(); N]; M];
        for chunk in 0..chunks {
            let rows = &*rows.add(chunk * M).cast::<[RowChunk<L>; M]>();
            let columns = &*columns.add(chunk * N).cast::<[ColumnChunk<L>; N]>();
            for (at, column) in columns.iter().enumerate() {
                for (sums, row) in sums.iter_mut().zip(rows) {
                    let dots = L::dot(column.start, &row.values, &column.values);
                    sums[at] = L::accumulate(sums[at], dots, row.scales, column.scales);
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
pub(super) unsafe fn multiply_codes<L: Lanes, const M: usize, const N: usize>(
    rows: &[Codes; M],
    columns: *const f32,
) -> [[f32; M]; N] {
    // SAFETY: the caller promises all of it; chunk < chunks.
    unsafe {
        let columns = columns.cast::<ColumnChunk<L>>();
        let mut sums = [[L::no_floats(); N]; M];
        for chunk in 0..rows[0].chunks {
            let columns = &*columns.add(chunk * N).cast::<[ColumnChunk<L>; N]>();
            for (sums, row) in sums.iter_mut().zip(rows) {
                let (packed, scales) = row.chunk(chunk, L::BLOCKS);
                let row = L::row(packed, scales);
                for (sum, column) in sums.iter_mut().zip(columns) {
                    let dots = L::dot(column.start, &row.values, &column.values);
                    *sum = L::accumulate(*sum, dots, row.scales, column.scales);
                }
            }
        }
        totals::<L, M, N>(sums)
    }
}

/// Sums over lanes, `[column][row]`.
///
/// # Safety
///
/// The instruction set is available.
#[inline(always)]
pub(super) unsafe fn totals<L: Sums, const M: usize, const N: usize>(
    sums: [[L::Floats; N]; M],
) -> [[f32; M]; N] {
    let mut totals = [[0.0; M]; N];
    for (four, totals) in totals.as_flattened_mut().chunks_mut(4).enumerate() {
        // SAFETY: the caller promises it.
        unsafe {
            let sum = |at: usize| match 4 * four + at {
                at if at < M * N => sums[at % M][at / M],
                _ => L::no_floats(),
            };
            totals.copy_from_slice(&L::totals([sum(0), sum(1), sum(2), sum(3)])[..totals.len()]);
        }
    }
    totals
}

/// Adds totals to sums, or overwrites them; see [`Blocks::multiply`](super::Blocks::multiply).
///
/// # Safety
///
/// All these places are valid for reads and writes.
#[inline(always)]
pub(super) unsafe fn put<const M: usize, const N: usize>(
    totals: &[[f32; M]; N],
    sums: *mut f32,
    strides: [usize; 2],
    accumulate: bool,
) {
    for (column, totals) in totals.iter().enumerate() {
        // SAFETY: the caller promises it.
        unsafe {
            let sums = sums.add(column * strides[1]);
            if strides[0] == 1 {
                // Written together, as one vector.
                let sums = sums.cast::<[f32; M]>();
                let before = if accumulate { sums.read() } else { [0.0; M] };
                sums.write(std::array::from_fn(|row| before[row] + totals[row]));
            } else {
                for (row, total) in totals.iter().enumerate() {
                    let sum = sums.add(row * strides[0]);
                    *sum = if accumulate { *sum + total } else { *total };
                }
            }
        }
    }
}
