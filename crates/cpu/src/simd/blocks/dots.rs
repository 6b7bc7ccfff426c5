//! Exact integer dots of blocks, as many at a time as a vector has lanes.
//!
//! Chunks of one depth lie together; the values, scales and (of a column) the start of each are vectors of its own. A chunk
//! is as many blocks as there are lanes; what lies beyond the end of K is filled up with zeros.

use std::ops::Range;

use gauntlet_formats::{BLOCK, Nvfp4Tensor};

use super::kernel::Run;
use super::{BLOCK_BYTES, Operand, kernel, portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::simd::SimdPath;

/// The most lanes of any instruction set.
const MOST_LANES: usize = 16;

/// Packs a run of chunks.
type Pack = unsafe fn(Run);
/// Multiplies so many chunks of a panel of rows and one of columns, and adds the sums to those that are there or writes
/// over them; from row to row and from column to column of the sums it is so far.
type Multiply = unsafe fn(usize, *const f32, *const f32, *mut f32, [usize; 2], bool);

/// The loops of one instruction set, behind methods that check lengths.
#[derive(Debug)]
pub(crate) struct Dots {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Blocks of a chunk.
    lanes: usize,
    alignment: usize,
    row: Side,
    column: Side,
    /// `[rows − 1][columns − 1]`.
    multiply: &'static [&'static [Multiply]],
}

/// How one side of a register block is packed.
#[derive(Debug)]
struct Side {
    /// Words of a chunk.
    words: usize,
    pack: Pack,
}

/// The loops of an instruction set for register blocks of up to so many rows and columns.
macro_rules! dots {
    ($name:literal, $lanes:ty, [$($row:literal)*] by $columns:tt $(, $features:literal)?) => {{
        $(#[target_feature(enable = $features)])?
        unsafe fn pack_row(run: Run) {
            // SAFETY: the caller's promise is the same.
            unsafe { kernel::pack_row::<$lanes>(run) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn pack_column(run: Run) {
            // SAFETY: the caller's promise is the same.
            unsafe { kernel::pack_column::<$lanes>(run) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn multiply<const M: usize, const N: usize>(
            chunks: usize,
            rows: *const f32,
            columns: *const f32,
            sums: *mut f32,
            strides: [usize; 2],
            accumulate: bool,
        ) {
            // SAFETY: the caller's promise is the same.
            unsafe {
                let totals = kernel::multiply::<$lanes, M, N>(chunks, rows.cast(), columns.cast());
                kernel::put(&totals, sums, strides, accumulate);
            }
        }
        Dots {
            name: $name,
            rows: *[$($row),*].last().unwrap(),
            columns: dots!(@last $columns),
            lanes: <$lanes as kernel::Lanes>::BLOCKS,
            alignment: align_of::<kernel::RowChunk<$lanes>>(),
            row: Side {
                words: size_of::<kernel::RowChunk<$lanes>>() / size_of::<f32>(),
                pack: pack_row,
            },
            column: Side {
                words: size_of::<kernel::ColumnChunk<$lanes>>() / size_of::<f32>(),
                pack: pack_column,
            },
            multiply: &[$(dots!(@row $row $columns)),*],
        }
    }};
    (@row $row:literal [$($column:literal)*]) => { &[$(multiply::<$row, $column>),*] };
    (@last [$($column:literal)*]) => { *[$($column),*].last().unwrap() };
}

/// 2 × 6: twelve sums, two rows' vectors and a column's fill the 32 registers.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_VNNI: Dots = dots!(
    "avx512vnni", avx512::Avx512Vnni, [1 2] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"
);
/// 1 × 6: six sums, a row's five vectors and what a dot takes fit into 16 registers, and a column's vectors are operands in
/// memory. Blocks of two rows spill: 1 × 6 is 1.7 times as fast as 2 × 3.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX_VNNI: Dots = dots!("avxvnni", avx2::AvxVnni, [1] by [1 2 3 4 5 6], "avx2,fma,avxvnni");
#[cfg(target_arch = "x86_64")]
pub(super) static AVX2: Dots = dots!("avx2", avx2::Avx2, [1] by [1 2 3 4 5 6], "avx2,fma");
pub(super) static PORTABLE: Dots = dots!("portable", portable::Portable, [1] by [1 2 3 4]);

impl Dots {
    /// The best loops of a path.
    ///
    /// # Safety
    ///
    /// The processor has the path's features.
    pub unsafe fn of(path: SimdPath) -> &'static Self {
        match path {
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 if std::arch::is_x86_feature_detected!("avx512vnni") => {
                &AVX512_VNNI
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2
                if std::arch::is_x86_feature_detected!("avxvnni") =>
            {
                &AVX_VNNI
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2 => &AVX2,
            _ => &PORTABLE,
        }
    }

    /// Rows or columns of a register block.
    pub fn width(&self, operand: Operand) -> usize {
        match operand {
            Operand::Rows => self.rows,
            Operand::Columns => self.columns,
        }
    }

    /// Words of a chunk of a row or a column.
    pub fn words(&self, operand: Operand) -> usize {
        self.side(operand).words
    }

    /// Chunks that hold a depth.
    pub fn chunks(&self, depth: usize) -> usize {
        depth.div_ceil(BLOCK).div_ceil(self.lanes)
    }

    fn side(&self, operand: Operand) -> &Side {
        match operand {
            Operand::Rows => &self.row,
            Operand::Columns => &self.column,
        }
    }

    /// See [`Blocks::pack`](super::Blocks::pack).
    pub fn pack(
        &self,
        operand: Operand,
        tensor: &Nvfp4Tensor,
        rows: Range<usize>,
        columns: Range<usize>,
        panel: &mut [f32],
    ) {
        let side = self.side(operand);
        let (count, chunks) = (rows.len(), self.chunks(columns.len()));
        assert!(count <= self.width(operand) && panel.len() >= chunks * count * side.words);
        assert!(panel.as_ptr().addr().is_multiple_of(self.alignment));
        if chunks == 0 {
            return;
        }
        let blocks_in_row = tensor.columns() / BLOCK;
        let blocks = columns.start / BLOCK..columns.end / BLOCK;
        // The next panel's rows are wanted next, and hardware does not see them coming.
        let ahead = self.width(operand) * blocks_in_row * BLOCK_BYTES;
        let whole = blocks.len() / self.lanes;
        for (lane, row) in rows.enumerate() {
            let blocks = row * blocks_in_row + blocks.start..row * blocks_in_row + blocks.end;
            let packed = &tensor.packed()[blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES];
            let scales = &tensor.scales()[blocks];
            let run = Run {
                packed: packed.as_ptr(),
                scales: scales.as_ptr(),
                chunks: whole,
                target: panel[lane * side.words..].as_mut_ptr(),
                stride: count * side.words,
                ahead,
            };
            // SAFETY: the features were found when `self` was had; codes and scales are so many chunks', and the panel has
            // been seen to have room for them and to be aligned, as its chunks therefore are.
            unsafe { (side.pack)(run) };
            let (packed, scales) = (
                &packed[whole * self.lanes * BLOCK_BYTES..],
                &scales[whole * self.lanes..],
            );
            if !scales.is_empty() {
                let (mut packed_whole, mut scales_whole) = ([0; MOST_LANES * BLOCK_BYTES], [0; MOST_LANES]);
                packed_whole[..packed.len()].copy_from_slice(packed);
                scales_whole[..scales.len()].copy_from_slice(scales);
                let run = Run {
                    packed: packed_whole.as_ptr(),
                    scales: scales_whole.as_ptr(),
                    chunks: 1,
                    target: panel[(whole * count + lane) * side.words..].as_mut_ptr(),
                    ..run
                };
                // SAFETY: as above, for the last chunk.
                unsafe { (side.pack)(run) };
            }
        }
    }

    /// See [`Blocks::multiply`](super::Blocks::multiply).
    #[inline]
    pub fn multiply(
        &self,
        chunks: usize,
        counts: [usize; 2],
        panels: [&[f32]; 2],
        sums: &mut [f32],
        strides: [usize; 2],
        accumulate: bool,
    ) {
        let [rows, columns] = counts;
        assert!(panels[0].len() >= chunks * rows * self.row.words);
        assert!(panels[1].len() >= chunks * columns * self.column.words);
        for panel in panels {
            assert!(panel.as_ptr().addr().is_multiple_of(self.alignment));
        }
        assert!(sums.len() > (rows - 1) * strides[0] + (columns - 1) * strides[1]);
        let multiply = self.multiply[rows - 1][columns - 1];
        // SAFETY: the features were found when `self` was had, and lengths and alignment are checked above.
        unsafe {
            multiply(
                chunks,
                panels[0].as_ptr(),
                panels[1].as_ptr(),
                sums.as_mut_ptr(),
                strides,
                accumulate,
            );
        }
    }
}
