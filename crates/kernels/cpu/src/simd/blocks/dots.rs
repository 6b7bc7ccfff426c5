//! Dots of rows, as many blocks at a time as a vector has lanes: of NVFP4 tokens as exact integers, of others in floating
//! point.
//!
//! Chunks of one depth are stored together. Each chunk of codes has separate vectors for values, scales and (for a column)
//! the start of its dots. A chunk has as many blocks as there are lanes; blocks beyond the end of K are zero. Of floats,
//! vectors of one depth are stored together.

use std::ops::Range;

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::{OutputFormat, TokenFormat};

use super::floats::{Elements, Layout};
use super::kernel::{Block, Codes};
use super::{BLOCK_BYTES, Operand, Panels, loops};
use crate::simd::SimdPath;

/// The most lanes, and the most rows of a register block, of any instruction set.
const MAX_LANES: usize = 16;
const MAX_ROWS: usize = 4;

/// Packs chunks to a target; the last argument is the distance between chunks in words, of all rows of the panel.
type Pack = unsafe fn(Codes, *mut f32, usize);
/// Multiplies panels of rows by one panel of columns, and adds the products to the sums or overwrites them. The array
/// holds the distances between rows and between columns of the sums.
type Multiply = unsafe fn(&Block, *mut f32, [usize; 2], bool);
/// Like [`Multiply`], for one panel of rows straight from their codes; all rows have the same number of chunks.
type MultiplyCodes = unsafe fn(*const Codes, *const f32, *mut f32, [usize; 2], bool);

/// How many blocks ahead codes are prefetched.
const AHEAD: usize = 512;

/// Some columns, multiples of 16, of some rows of a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Rows<'t> {
    pub tensor: &'t Nvfp4Tensor,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
}

/// Some columns of a row of a tensor.
#[derive(Debug, Clone, Copy)]
struct Row<'t> {
    packed: &'t [u8],
    scales: &'t [u8],
}

impl<'t> Row<'t> {
    /// `columns`, which are multiples of 16, of row `row`.
    fn of(tensor: &'t Nvfp4Tensor, row: usize, columns: &Range<usize>) -> Self {
        let first = row * tensor.columns();
        let (start, end) = ((first + columns.start) / BLOCK, (first + columns.end) / BLOCK);
        Self {
            packed: &tensor.packed()[start * BLOCK_BYTES..end * BLOCK_BYTES],
            scales: &tensor.scales()[start..end],
        }
    }
}

/// The last blocks of a row, padded to a whole chunk of any instruction set.
struct Rest {
    packed: [u8; MAX_LANES * BLOCK_BYTES],
    scales: [u8; MAX_LANES],
}

impl Rest {
    fn of(packed: &[u8], scales: &[u8]) -> Self {
        let mut rest = Self {
            packed: [0; MAX_LANES * BLOCK_BYTES],
            scales: [0; MAX_LANES],
        };
        rest.packed[..packed.len()].copy_from_slice(packed);
        rest.scales[..scales.len()].copy_from_slice(scales);
        rest
    }

    fn codes(&self) -> Codes {
        Codes {
            packed: self.packed.as_ptr(),
            scales: self.scales.as_ptr(),
            chunks: 1,
            ahead: 0,
        }
    }
}

/// The loops of one instruction set, behind methods that check lengths.
#[derive(Debug)]
pub(crate) struct Dots {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Blocks of a chunk.
    pub(super) lanes: usize,
    pub(super) alignment: usize,
    pub(super) row: Side,
    pub(super) column: Side,
    /// How tokens lie in the vectors of a chunk, if these are floats.
    pub(super) layout: Option<Layout>,
    /// `[rows − 1][columns − 1]`.
    pub(super) multiply: &'static [&'static [Multiply]],
    /// The same.
    pub(super) multiply_codes: &'static [&'static [MultiplyCodes]],
}

/// The distance in blocks from a part of a row to the same part of the later row to prefetch, since hardware does not
/// predict this access. At least `rows` rows, and far enough to cover a memory latency.
fn ahead(tensor: &Nvfp4Tensor, part: usize, rows: usize) -> usize {
    AHEAD.div_ceil((part / BLOCK).max(1)).max(rows) * (tensor.columns() / BLOCK)
}

/// How one side of a register block is packed.
#[derive(Debug)]
pub(super) struct Side {
    /// Words of a chunk.
    pub(super) words: usize,
    pub(super) pack: Pack,
}

impl Dots {
    /// The best loops of a path for NVFP4 tokens.
    ///
    /// # Safety
    ///
    /// The processor has the path's features.
    unsafe fn of(path: SimdPath) -> &'static Self {
        match path {
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 if std::arch::is_x86_feature_detected!("avx512vnni") => {
                if !std::arch::is_x86_feature_detected!("avx512vbmi") {
                    &loops::AVX512_VNNI
                } else if is_zen_4() {
                    &loops::AVX512_SUMS
                } else {
                    &loops::AVX512_VBMI
                }
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2
                if std::arch::is_x86_feature_detected!("avxvnni") =>
            {
                &loops::AVX_VNNI
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2 => &loops::AVX2,
            #[cfg(target_arch = "aarch64")]
            SimdPath::Neon => &loops::NEON,
            _ => &loops::PORTABLE,
        }
    }

    /// The best loops of a path for tokens of a format.
    ///
    /// # Safety
    ///
    /// The processor has the path's features.
    pub unsafe fn of_format(path: SimdPath, tokens: TokenFormat) -> &'static Self {
        if tokens == TokenFormat::Nvfp4 {
            // SAFETY: the caller's promise is the same.
            return unsafe { Self::of(path) };
        }
        match path {
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512
                if tokens == TokenFormat::Bf16 && std::arch::is_x86_feature_detected!("avx512bf16") =>
            {
                &loops::AVX512_BF16
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 => &loops::AVX512_F32,
            #[cfg(target_arch = "x86_64")]
            SimdPath::Avx2 => &loops::AVX2_F32,
            _ => &loops::PORTABLE_F32,
        }
    }

    /// The best loops for this number of tokens. If a row meets few columns, packing its scales for addition costs more
    /// than multiplying them.
    pub fn for_tokens(&'static self, tokens: usize) -> &'static Self {
        #[cfg(target_arch = "x86_64")]
        if std::ptr::eq(self, &raw const loops::AVX512_SUMS) && tokens <= self.columns {
            return &loops::AVX512_VBMI;
        }
        let _ = tokens;
        self
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

    /// The number of chunks that hold a depth.
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
        let ahead = ahead(tensor, columns.len(), self.width(operand));
        let stride = count * side.words;
        for (lane, row) in rows.enumerate() {
            let row = Row::of(tensor, row, &columns);
            let place = |chunk: usize| chunk * stride + lane * side.words / self.vectors();
            let (whole, rest) = self.cut(row, ahead);
            // SAFETY: CPU features were checked before `self` was obtained. Codes and scales have this many chunks. The
            // checks above ensure that the panel has room for them and is aligned, and so are its chunks.
            unsafe { (side.pack)(whole, panel[place(0)..].as_mut_ptr(), stride) };
            if let Some(rest) = &rest {
                // SAFETY: as above, for the last chunk.
                unsafe { (side.pack)(rest.codes(), panel[place(whole.chunks)..].as_mut_ptr(), stride) };
            }
        }
    }

    /// Vectors of a chunk between which other rows' vectors lie.
    fn vectors(&self) -> usize {
        self.layout.as_ref().map_or(1, Layout::vectors)
    }

    /// Packs tokens of a format without scales, at most one panel of rows, into the start of `panel`. Each row has the
    /// little-endian elements of the same depth; the loops are those of this format.
    pub fn pack_floats<'t>(
        &self,
        operand: Operand,
        format: OutputFormat,
        rows: impl ExactSizeIterator<Item = &'t [u8]>,
        panel: &mut [f32],
    ) {
        let Some(layout) = &self.layout else {
            unreachable!("only loops on floats get tokens that are floats");
        };
        let (count, side) = (rows.len(), self.side(operand));
        assert!(count <= self.width(operand));
        let vector = side.words / layout.vectors();
        for (lane, bytes) in rows.enumerate() {
            let elements = Elements { format, bytes };
            if elements.count() == 0 {
                return;
            }
            assert!(panel.len() >= self.chunks(elements.count()) * count * side.words);
            layout.pack(elements, &mut panel[lane * vector..], count * vector);
        }
    }

    /// A row's whole chunks, and the rest padded with zeros to one more chunk.
    fn cut(&self, row: Row<'_>, ahead: usize) -> (Codes, Option<Rest>) {
        let chunks = row.scales.len() / self.lanes;
        let (_, packed) = row.packed.split_at(chunks * self.lanes * BLOCK_BYTES);
        let (_, scales) = row.scales.split_at(chunks * self.lanes);
        let whole = Codes {
            packed: row.packed.as_ptr(),
            scales: row.scales.as_ptr(),
            chunks,
            ahead,
        };
        (whole, (!scales.is_empty()).then(|| Rest::of(packed, scales)))
    }

    /// Multiplies `rows` straight from their codes by a panel of `columns` over their depth, and adds the products to
    /// `sums` or overwrites them, as [`Blocks::multiply`](super::Blocks::multiply) does. This pays if a row meets a
    /// panel of columns only once.
    pub fn multiply_codes(
        &self,
        rows: &Rows<'_>,
        columns: usize,
        panel: &[f32],
        sums: &mut [f32],
        strides: [usize; 2],
        accumulate: bool,
    ) {
        let (count, blocks) = (rows.rows.len(), rows.columns.len() / BLOCK);
        if count == 0 {
            return;
        }
        let chunk = columns * self.column.words;
        assert!(panel.len() >= blocks.div_ceil(self.lanes) * chunk);
        assert!(panel.as_ptr().addr().is_multiple_of(self.alignment));
        assert!(sums.len() > (count - 1) * strides[0] + (columns - 1) * strides[1]);
        let ahead = ahead(rows.tensor, rows.columns.len(), self.rows);
        let (target, past) = (sums.as_mut_ptr(), &panel[blocks / self.lanes * chunk..]);
        for first in (0..count).step_by(self.rows) {
            let block = self.rows.min(count - first);
            let mut whole = [Codes::NONE; MAX_ROWS];
            let mut rests = [const { None }; MAX_ROWS];
            for row in 0..block {
                let codes = Row::of(rows.tensor, rows.rows.start + first + row, &rows.columns);
                (whole[row], rests[row]) = self.cut(codes, ahead);
            }
            let multiply = self.multiply_codes[block - 1][columns - 1];
            // SAFETY: CPU features were checked before `self` was obtained; codes and scales match the numbers of rows
            // and chunks; lengths and alignment are checked above.
            unsafe {
                let target = target.add(first * strides[0]);
                multiply(whole.as_ptr(), panel.as_ptr(), target, strides, accumulate);
            }
            for (row, rest) in rests.iter().flatten().enumerate() {
                let (codes, multiply) = (rest.codes(), self.multiply_codes[0][columns - 1]);
                // SAFETY: as above, for the last chunk of a row.
                unsafe {
                    let target = target.add((first + row) * strides[0]);
                    multiply(&raw const codes, past.as_ptr(), target, strides, true);
                }
            }
        }
    }

    /// See [`Blocks::multiply`](super::Blocks::multiply).
    pub fn multiply(&self, panels: &Panels<'_>, sums: &mut [f32], strides: [usize; 2], accumulate: bool) {
        let (chunks, apart, [count, columns]) = (panels.chunks, panels.apart, panels.counts);
        let (full, rest) = (count / self.rows, count % self.rows);
        assert!(panels.columns.len() >= chunks * columns * self.column.words);
        assert!((apart * size_of::<f32>()).is_multiple_of(self.alignment));
        for panel in [panels.rows, panels.columns] {
            assert!(panel.as_ptr().addr().is_multiple_of(self.alignment));
        }
        for (first, count, height) in [(0, full, self.rows), (full, 1, rest)] {
            if count * height == 0 {
                continue;
            }
            let rows = &panels.rows[first * apart..];
            let sums = &mut sums[first * self.rows * strides[0]..];
            assert!(rows.len() >= (count - 1) * apart + chunks * height * self.row.words);
            assert!(sums.len() > (count * height - 1) * strides[0] + (columns - 1) * strides[1]);
            let block = Block {
                chunks,
                panels: count,
                apart,
                rows: rows.as_ptr(),
                columns: panels.columns.as_ptr(),
                ahead: panels.ahead.from(first * self.rows),
            };
            let multiply = self.multiply[height - 1][columns - 1];
            // SAFETY: CPU features were checked before `self` was obtained, and lengths and alignment are checked
            // above.
            unsafe { multiply(&block, sums.as_mut_ptr(), strides, accumulate) };
        }
    }
}

/// Whether this is an AMD processor of family 25, which executes 512-bit instructions as two passes through 256-bit
/// units.
#[cfg(target_arch = "x86_64")]
fn is_zen_4() -> bool {
    use std::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    let signature = __cpuid(1).eax;
    let family = (signature >> 8 & 0xF) + (signature >> 20 & 0xFF);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"AuthenticAMD" && family == 25
}
