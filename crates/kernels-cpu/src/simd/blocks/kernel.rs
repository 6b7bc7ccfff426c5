//! The algorithm, written once over vectors of [`Lanes`] and compiled for each instruction set.
//!
//! Twice an e2m1 value is an integer in {0, ±1, ±2, ±3, ±4, ±6, ±8, ±12}, so the product of two blocks of 16 values is an
//! integer under 2304 in magnitude, and with both block scales (two times four significant bits) a number of 20 bits,
//! exact in f32. Only adding blocks up rounds.

use super::BLOCK_BYTES;
use crate::simd::stream::prefetch_at;

/// Vectors of one instruction set, a 32-bit lane for each block of 16 values.
///
/// Lane i of all vectors made from the same blocks belongs to the same block; which one is the instruction set's affair, and
/// so is the order of the 16 values, as long as both operands have the same.
///
/// # Safety
///
/// Methods may only be called where the instruction set is there. Those that take a pointer read or write one vector
/// there, aligned to its size unless they say otherwise.
pub(super) trait Lanes: Copy {
    /// Lanes of a vector: blocks of a chunk.
    const BLOCKS: usize;
    /// What a sum of one stands for: the powers of two in scales and in [`dot`](Self::dot), undone.
    const UNIT: f32;
    /// Four values a lane, doubled.
    type Values: Copy;
    /// An i32 a lane.
    type Integers: Copy;
    /// An f32 a lane.
    type Floats: Copy;
    /// A block's scale times a power of two a lane, in whatever form [`accumulate`](Self::accumulate) takes it.
    type Scales: Copy;

    /// A chunk of a row, from its codes, 8 bytes a block, and scales, a byte a block, all unaligned.
    unsafe fn row(packed: *const u8, scales: *const u8) -> RowChunk<Self>;
    /// A chunk of a column, as [`row`](Self::row).
    unsafe fn column(packed: *const u8, scales: *const u8) -> ColumnChunk<Self>;
    /// Four times the products of each block's values, if `start` is the column's.
    unsafe fn dot(
        start: Self::Integers,
        row: &[Self::Values; 4],
        column: &[Self::Values; 4],
    ) -> Self::Integers;
    /// Zeros.
    unsafe fn no_floats() -> Self::Floats;
    /// `sums + dots · (row · column)`, rounded once.
    unsafe fn accumulate(
        sums: Self::Floats,
        dots: Self::Integers,
        row: Self::Scales,
        column: Self::Scales,
    ) -> Self::Floats;
    /// The sum of all lanes of each, times [`UNIT`](Self::UNIT).
    unsafe fn totals(sums: [Self::Floats; 4]) -> [f32; 4];
}

/// What a panel of rows holds of one row and chunk.
#[repr(C)]
pub(super) struct RowChunk<L: Lanes> {
    pub(super) values: [L::Values; 4],
    pub(super) scales: L::Scales,
}

/// What a panel of columns holds of one column and chunk.
#[repr(C)]
pub(super) struct ColumnChunk<L: Lanes> {
    pub(super) values: [L::Values; 4],
    pub(super) scales: L::Scales,
    /// Where its dots begin.
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
    /// Blocks from these to those that are wanted soon, which may lie outside of all memory.
    pub(super) ahead: usize,
}

impl Codes {
    /// None at all.
    pub(super) const NONE: Self = Self {
        packed: std::ptr::null(),
        scales: std::ptr::null(),
        chunks: 0,
        ahead: 0,
    };

    /// The codes and scales of a chunk. Asks for as many that are wanted soon.
    ///
    /// # Safety
    ///
    /// There are more chunks than `chunk`.
    #[inline(always)]
    unsafe fn chunk<L: Lanes>(&self, chunk: usize) -> (*const u8, *const u8) {
        let codes = L::BLOCKS * BLOCK_BYTES;
        // SAFETY: the caller promises that they are there.
        let (packed, scales) =
            unsafe { (self.packed.add(chunk * codes), self.scales.add(chunk * L::BLOCKS)) };
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
    /// How many full panels of rows, and words from one to the next.
    pub(super) panels: usize,
    pub(super) apart: usize,
    pub(super) rows: *const f32,
    pub(super) columns: *const f32,
    pub(super) ahead: Ahead,
}

/// Codes that are wanted soon: of each row some lines, which may lie outside of all memory. They are asked for row by row, as rows
/// are multiplied, so that they come while nothing else is wanted of the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    start: *const u8,
    /// Bytes from row to row.
    row: usize,
    lines: usize,
}

impl Ahead {
    /// None at all.
    pub(crate) const NONE: Self = Self {
        start: std::ptr::null(),
        row: 0,
        lines: 0,
    };

    /// The lines of `bytes` and of what lies `row` bytes further on, and so on.
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

    /// From row `row` on.
    pub(super) fn from(&self, row: usize) -> Self {
        Self {
            start: self.start.wrapping_add(row * self.row),
            ..*self
        }
    }

    /// Asks for the lines of row `row`.
    #[inline(always)]
    fn ask(&self, row: usize) {
        let start = self.start.wrapping_add(row * self.row);
        for line in 0..self.lines {
            prefetch_at(start.wrapping_add(line * LINE));
        }
    }
}

/// Packs chunks of a row to `target`, from one chunk to the next so many words.
///
/// # Safety
///
/// The instruction set is there, codes and scales are there, and a place for each chunk, aligned.
#[inline(always)]
pub(super) unsafe fn pack_row<L: Lanes>(codes: Codes, target: *mut f32, stride: usize) {
    // SAFETY: the caller promises all of it.
    unsafe {
        for chunk in 0..codes.chunks {
            let (packed, scales) = codes.chunk::<L>(chunk);
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
            let (packed, scales) = codes.chunk::<L>(chunk);
            let target = target.add(chunk * stride).cast::<ColumnChunk<L>>();
            target.write(L::column(packed, scales));
        }
    }
}

/// Register blocks of `M` rows by `N` columns, one below the other; see [`put`] for where to.
///
/// # Safety
///
/// As [`multiply`] and [`put`], for each of them.
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

/// One register block: `M` rows by `N` columns over `chunks` chunks, to `totals[column][row]`.
///
/// Sums stay one to a lane until the end, so that nothing is moved across lanes in the loop.
///
/// # Safety
///
/// The instruction set is there; `rows` holds `chunks · M` chunks, those of one depth together, and `columns`
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

/// As [`multiply`], of rows straight from their codes, which pays where a row meets few columns.
///
/// # Safety
///
/// The instruction set is there; so are the rows' codes and scales, of one number of chunks; `columns` holds as many chunks of
/// `N`, aligned.
#[inline(always)]
pub(super) unsafe fn multiply_codes<L: Lanes, const M: usize, const N: usize>(
    rows: &[Codes; M],
    columns: *const ColumnChunk<L>,
) -> [[f32; M]; N] {
    // SAFETY: the caller promises all of it; chunk < chunks.
    unsafe {
        let mut sums = [[L::no_floats(); N]; M];
        for chunk in 0..rows[0].chunks {
            let columns = &*columns.add(chunk * N).cast::<[ColumnChunk<L>; N]>();
            for (sums, row) in sums.iter_mut().zip(rows) {
                let (packed, scales) = row.chunk::<L>(chunk);
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

/// What lanes add up to, `[column][row]`.
///
/// # Safety
///
/// The instruction set is there.
#[inline(always)]
unsafe fn totals<L: Lanes, const M: usize, const N: usize>(sums: [[L::Floats; N]; M]) -> [[f32; M]; N] {
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

/// Adds totals to sums, or writes them there; see [`Blocks::multiply`](super::Blocks::multiply).
///
/// # Safety
///
/// There are sums at all these places.
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
                // Together, as one vector.
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
