//! The loops of each instruction set: the generic ones of [`kernel`] and [`floats`], compiled with its features for every size
//! of register block, in one [`Dots`] each.

use super::dots::{Dots, Side};
use super::floats::{self, FloatLanes, Layout};
use super::kernel::{self, Block, Codes};
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// The loops of an instruction set for register blocks of up to the given numbers of rows and columns: `codes` for tokens that
/// are codes with scales, `floats` for tokens that are floats. The vectors are those of `$lanes`.
macro_rules! dots {
    (codes $name:literal, $lanes:ty, [$($row:literal)*] by $columns:tt $(, $features:literal)?) => {{
        dots!(@pack pack_row, kernel::pack_row::<$lanes> $(, $features)?);
        dots!(@pack pack_column, kernel::pack_column::<$lanes> $(, $features)?);
        dots!(@multiply kernel, $lanes $(, $features)?);
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
    (floats $name:literal, $lanes:ty, [$($row:literal)*] by $columns:tt $(, $features:literal)?) => {{
        dots!(@pack pack, floats::pack::<$lanes> $(, $features)?);
        dots!(@multiply floats, $lanes $(, $features)?);
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
    (@pack $pack:ident, $loops:expr $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn $pack(codes: Codes, target: *mut f32, stride: usize) {
            // SAFETY: the caller's promise is the same.
            unsafe { $loops(codes, target, stride) }
        }
    };
    (@multiply $module:ident, $lanes:ty $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn multiply<const M: usize, const N: usize>(
            block: &Block,
            sums: *mut f32,
            strides: [usize; 2],
            accumulate: bool,
        ) {
            // SAFETY: the caller's promise is the same.
            unsafe { $module::multiply_panels::<$lanes, M, N>(block, sums, strides, accumulate) }
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
                let totals = $module::multiply_codes::<$lanes, M, N>(rows, columns);
                kernel::put(&totals, sums, strides, accumulate);
            }
        }
    };
    (@row $loops:ident $row:literal [$($column:literal)*]) => { &[$($loops::<$row, $column>),*] };
    (@last [$($column:literal)*]) => { *[$($column),*].last().unwrap() };
}

/// 4 × 6: twenty-four sums, four rows' vectors and a column's are 29 of the 32 registers.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_F32: Dots = dots!(
    floats "avx512-f32", avx512::Avx512F32, [1 2 3 4] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
);
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_BF16: Dots = dots!(
    floats "avx512-bf16", avx512::Avx512Bf16, [1 2 3 4] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma"
);
/// 3 × 4: twelve sums, three rows' vectors and a column's fill the 16 registers.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX2_F32: Dots =
    dots!(floats "avx2-f32", avx2::Avx2F32, [1 2 3] by [1 2 3 4], "avx2,fma,f16c");
pub(super) static PORTABLE_F32: Dots =
    dots!(floats "portable-f32", portable::PortableF32, [1 2] by [1 2 3 4]);

/// 2 × 6: twelve sums, two rows' vectors and a column's fill the 32 registers.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_VNNI: Dots = dots!(
    codes "avx512vnni", avx512::Avx512Vnni<false>, [1 2] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma"
);
/// The same with VBMI, which all processors with AVX-512 VNNI except the first ones have.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_VBMI: Dots = dots!(
    codes "avx512vnni", avx512::Avx512Vnni<true>, [1 2] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma"
);
/// The same, for processors whose multiplying units are the bottleneck.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX512_SUMS: Dots = dots!(
    codes "avx512vnni-sums", avx512::Avx512Sums, [1 2] by [1 2 3 4 5 6],
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi,avx2,fma"
);
/// 1 × 6: six sums, a row's five vectors and the temporaries of a dot fit into 16 registers; a column's vectors are
/// memory operands. Blocks of two rows spill: 1 × 6 is 1.7 times as fast as 2 × 3.
#[cfg(target_arch = "x86_64")]
pub(super) static AVX_VNNI: Dots =
    dots!(codes "avxvnni", avx2::AvxVnni, [1] by [1 2 3 4 5 6], "avx2,fma,f16c,avxvnni");
#[cfg(target_arch = "x86_64")]
pub(super) static AVX2: Dots = dots!(codes "avx2", avx2::Avx2, [1] by [1 2 3 4 5 6], "avx2,fma,f16c");
/// As for AVX-512, which has the same number of registers.
#[cfg(target_arch = "aarch64")]
pub(super) static NEON: Dots = dots!(codes "neon", neon::Neon, [1 2] by [1 2 3 4 5 6], "neon,dotprod");
pub(super) static PORTABLE: Dots = dots!(codes "portable", portable::Portable, [1] by [1 2 3 4]);
