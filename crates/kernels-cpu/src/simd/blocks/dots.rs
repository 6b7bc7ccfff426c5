//! Dots of rows, as many blocks at a time as a vector has lanes: of NVFP4 tokens as exact integers, of others in floating
//! point.
//!
//! Chunks of one depth are stored together. Each chunk of codes has separate vectors for values, scales and (for a column)
//! the start of its dots. A chunk has as many blocks as there are lanes; blocks beyond the end of K are zero. Of floats,
//! vectors of one depth are stored together.

use std::ops::Range;

use gauntlet_formats::{BLOCK, Nvfp4Tensor};
use gauntlet_operations::{OutputFormat, TokenFormat};

use super::floats::{self, Elements, FloatLanes, Layout};
use super::kernel::{Block, Codes};
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::{BLOCK_BYTES, Operand, Panels, kernel, portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::simd::SimdPath;

/// The most lanes, and the most rows of a register block, of any instruction set.
const MOST_LANES: usize = 16;
const MOST_ROWS: usize = 4;

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
    packed: [u8; MOST_LANES * BLOCK_BYTES],
    scales: [u8; MOST_LANES],
}

impl Rest {
    fn of(packed: &[u8], scales: &[u8]) -> Self {
        let mut rest = Self {
            packed: [0; MOST_LANES * BLOCK_BYTES],
            scales: [0; MOST_LANES],
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
    lanes: usize,
    alignment: usize,
    row: Side,
    column: Side,
    /// How tokens lie in the vectors of a chunk, if these are floats.
    layout: Option<Layout>,
    /// `[rows − 1][columns − 1]`.
    multiply: &'static [&'static [Multiply]],
    /// The same.
    multiply_codes: &'static [&'static [MultiplyCodes]],
}

/// The distance in blocks from a part of a row to the same part of the later row to prefetch, since hardware does not
/// predict this access. At least `rows` rows, and far enough to cover a memory latency.
fn ahead(tensor: &Nvfp4Tensor, part: usize, rows: usize) -> usize {
    AHEAD.div_ceil((part / BLOCK).max(1)).max(rows) * (tensor.columns() / BLOCK)
}

/// How one side of a register block is packed.
#[derive(Debug)]
struct Side {
    /// Words of a chunk.
    words: usize,
    pack: Pack,
}

/// The loops of an instruction set for register blocks of up to the given numbers of rows and columns.
macro_rules! dots {
    ($name:literal, $lanes:ty, [$($row:literal)*] by $columns:tt $(, $features:literal)?) => {{
        $(#[target_feature(enable = $features)])?
        unsafe fn pack_row(codes: Codes, target: *mut f32, stride: usize) {
            // SAFETY: the caller's promise is the same.
            unsafe { kernel::pack_row::<$lanes>(codes, target, stride) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn pack_column(codes: Codes, target: *mut f32, stride: usize) {
            // SAFETY: the caller's promise is the same.
            unsafe { kernel::pack_column::<$lanes>(codes, target, stride) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn multiply<const M: usize, const N: usize>(
            block: &Block,
            sums: *mut f32,
            strides: [usize; 2],
            accumulate: bool,
        ) {
            // SAFETY: the caller's promise is the same.
            unsafe { kernel::multiply_panels::<$lanes, M, N>(block, sums, strides, accumulate) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn multiply_codes<const M: usize, const N: usize>(
            rows: *const Codes,
            columns: *const f32,
            sums: *mut f32,
            strides: [usize; 2],
            accumulate: bool,
        ) {
            // SAFETY: the caller's promise is the same, and there are as many rows.
            unsafe {
                let rows = &*rows.cast::<[Codes; M]>();
                let totals = kernel::multiply_codes::<$lanes, M, N>(rows, columns.cast());
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
            layout: None,
            multiply: &[$(dots!(@row multiply $row $columns)),*],
            multiply_codes: &[$(dots!(@row multiply_codes $row $columns)),*],
        }
    }};
    (@row $loops:ident $row:literal [$($column:literal)*]) => { &[$($loops::<$row, $column>),*] };
    (@last [$($column:literal)*]) => { *[$($column),*].last().unwrap() };
}

/// The loops of an instruction set on floats, likewise.
macro_rules! float_dots {
    ($name:literal, $lanes:ty, [$($row:literal)*] by $columns:tt $(, $features:literal)?) => {{
        $(#[target_feature(enable = $features)])?
        unsafe fn pack(codes: Codes, target: *mut f32, stride: usize) {
            // SAFETY: the caller's promise is the same.
            unsafe { floats::pack::<$lanes>(codes, target, stride) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn multiply<const M: usize, const N: usize>(
            block: &Block,
            sums: *mut f32,
            strides: [usize; 2],
            accumulate: bool,
        ) {
            // SAFETY: the caller's promise is the same.
            unsafe { floats::multiply_panels::<$lanes, M, N>(block, sums, strides, accumulate) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn multiply_codes<const M: usize, const N: usize>(
            rows: *const Codes,
            columns: *const f32,
            sums: *mut f32,
            strides: [usize; 2],
            accumulate: bool,
        ) {
            // SAFETY: the caller's promise is the same, and there are as many rows.
            unsafe {
                let rows = &*rows.cast::<[Codes; M]>();
                let totals = floats::multiply_codes::<$lanes, M, N>(rows, columns);
                kernel::put(&totals, sums, strides, accumulate);
            }
        }
        const WORDS: usize =
            <$lanes as FloatLanes>::VECTORS * size_of::<<$lanes as FloatLanes>::Vector>() / size_of::<f32>();
        Dots {
            name: $name,
            rows: *[$($row),*].last().unwrap(),
            columns: dots!(@last $columns),
            lanes: <$lanes as FloatLanes>::BLOCKS,
            alignment: align_of::<<$lanes as FloatLanes>::Vector>(),
            row: Side { words: WORDS, pack },
            column: Side { words: WORDS, pack },
            layout: Some(Layout {
                order: <$lanes as FloatLanes>::ORDER,
                paired: <$lanes as FloatLanes>::PAIRED,
            }),
            multiply: &[$(dots!(@row multiply $row $columns)),*],
            multiply_codes: &[$(dots!(@row multiply_codes $row $columns)),*],
        }
    }};
}

/// 4 × 6: twenty-four sums, four rows' vectors and a column's are 29 of the 32 registers.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_F32: Dots = float_dots!(
    "avx512-f32", avx512::Avx512F32, [1 2 3 4] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
);
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_BF16: Dots = float_dots!(
    "avx512-bf16", avx512::Avx512Bf16, [1 2 3 4] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma"
);
/// 3 × 4: twelve sums, three rows' vectors and a column's fill the 16 registers.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX2_F32: Dots =
    float_dots!("avx2-f32", avx2::Avx2F32, [1 2 3] by [1 2 3 4], "avx2,fma,f16c");
pub(super) static PORTABLE_F32: Dots = float_dots!("portable-f32", portable::PortableF32, [1 2] by [1 2 3 4]);

/// 2 × 6: twelve sums, two rows' vectors and a column's fill the 32 registers.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_VNNI: Dots = dots!(
    "avx512vnni", avx512::Avx512Vnni<false>, [1 2] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"
);
/// The same with VBMI, which all processors with AVX-512 VNNI except the first ones have.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_VBMI: Dots = dots!(
    "avx512vnni", avx512::Avx512Vnni<true>, [1 2] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma"
);
/// The same, for processors whose multiplying units are the bottleneck.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_SUMS: Dots = dots!(
    "avx512vnni-sums", avx512::Avx512Sums, [1 2] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma"
);
/// 1 × 6: six sums, a row's five vectors and the temporaries of a dot fit into 16 registers; a column's vectors are
/// memory operands. Blocks of two rows spill: 1 × 6 is 1.7 times as fast as 2 × 3.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX_VNNI: Dots =
    dots!("avxvnni", avx2::AvxVnni, [1] by [1 2 3 4 5 6], "avx2,fma,f16c,avxvnni");
#[cfg(target_arch = "x86_64")]
pub(super) static AVX2: Dots = dots!("avx2", avx2::Avx2, [1] by [1 2 3 4 5 6], "avx2,fma,f16c");
/// As for AVX-512, which has the same number of registers.
#[cfg(target_arch = "aarch64")]
pub(super) static NEON: Dots = dots!("neon", neon::Neon, [1 2] by [1 2 3 4 5 6], "neon,dotprod");
pub(super) static PORTABLE: Dots = dots!("portable", portable::Portable, [1] by [1 2 3 4]);

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
                    &AVX512_VNNI
                } else if is_zen_4() {
                    &AVX512_SUMS
                } else {
                    &AVX512_VBMI
                }
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2
                if std::arch::is_x86_feature_detected!("avxvnni") =>
            {
                &AVX_VNNI
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 | SimdPath::Avx2 => &AVX2,
            #[cfg(target_arch = "aarch64")]
            SimdPath::Neon => &NEON,
            _ => &PORTABLE,
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
                &AVX512_BF16
            }
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 => &AVX512_F32,
            #[cfg(target_arch = "x86_64")]
            SimdPath::Avx2 => &AVX2_F32,
            _ => &PORTABLE_F32,
        }
    }

    /// The best loops for this number of tokens. If a row meets few columns, packing its scales for addition costs more
    /// than multiplying them.
    pub fn for_tokens(&'static self, tokens: usize) -> &'static Self {
        #[cfg(target_arch = "x86_64")]
        if std::ptr::eq(self, &raw const AVX512_SUMS) && tokens <= self.columns {
            return &AVX512_VBMI;
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
            let mut whole = [Codes::NONE; MOST_ROWS];
            let mut rests = [const { None }; MOST_ROWS];
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
