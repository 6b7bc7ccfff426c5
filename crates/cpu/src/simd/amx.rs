//! AMX: products of bf16 tiles with f32 sums, in a unit of their own beside AVX-512.
//!
//! A *block* is 32 × 32 results, over a depth of *chunks* of 32. Operands lie as pairs of bf16 in words, the earlier in
//! the low half, in tiles of 16 rows of 16 words. A chunk of a left operand is two tiles, of its rows 0…15 and 16…31, in
//! each a row's 16 pairs along the depth; a chunk of a right operand is two tiles, of its columns 0…15 and 16…31, in each
//! a depth pair's 16 columns.

mod softmax;

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::sync::OnceLock;

use self::softmax::softmax;
use super::SoftmaxLanes;

/// Rows and columns of a block, and the depth of a chunk.
pub(crate) const SIDE: usize = 32;
/// Words of a chunk of one operand.
pub(crate) const CHUNK: usize = SIDE * SIDE / 2;
/// Rows of a tile, and words of its rows.
const TILE: usize = 16;

/// What the processor lacks, or the system withholds, of what this module needs beside AVX-512.
pub(super) fn features() -> Vec<(&'static str, bool)> {
    static USABLE: OnceLock<(bool, bool)> = OnceLock::new();
    let &(present, permitted) = USABLE.get_or_init(|| {
        let present = __cpuid(0).eax >= 7 && {
            // AMX-BF16 and AMX-TILE.
            const NEEDED: u32 = 1 << 22 | 1 << 24;
            __cpuid_count(7, 0).edx & NEEDED == NEEDED
        };
        (present, present && request())
    });
    vec![
        ("amx-bf16", present),
        ("the system's leave to use amx", permitted),
    ]
}

/// Asks for this process's leave to use tiles, whose state is too large to be saved for everybody.
#[cfg(target_os = "linux")]
fn request() -> bool {
    use nix::libc;
    // From the kernel's asm/prctl.h and asm/fpu/types.h.
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILE_DATA: libc::c_ulong = 18;
    // SAFETY: both arguments are numbers; the call touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn request() -> bool {
    false
}

/// The tile unit; a value exists only where its features were found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiles(());

impl Tiles {
    /// # Safety
    ///
    /// The features of AVX-512 and of [`features`] are all there.
    pub(super) unsafe fn found() -> Self {
        Self(())
    }

    /// Configures the unit for this thread until the guard is dropped.
    pub fn configure(&self) -> Configured {
        #[repr(C, align(64))]
        struct Configuration([u8; 64]);
        const EIGHT_FULL_TILES: Configuration = {
            let mut bytes = [0; 64];
            bytes[0] = 1;
            let mut tile = 0;
            while tile < 8 {
                bytes[16 + 2 * tile] = 64;
                bytes[48 + tile] = TILE as u8;
                tile += 1;
            }
            Configuration(bytes)
        };
        // SAFETY: the unit was found, and the configuration is 64 bytes of palette 1.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) EIGHT_FULL_TILES.0.as_ptr(), options(nostack, readonly, preserves_flags));
        }
        Configured(PhantomData)
    }

    /// Packs 32 rows of `size` values, row-major and exact in bf16, as a left operand: `size / 32` chunks.
    pub fn pack_rows(&self, values: &[f32], size: usize, panel: &mut [u32]) {
        assert!(size.is_multiple_of(SIDE) && values.len() >= SIDE * size && panel.len() >= SIDE * size / 2);
        // SAFETY: the features were found when `self` was made; the function itself only uses slices.
        unsafe { pack_rows(values, size, panel) }
    }

    /// Packs 32 rows of `size` values, row-major and exact in bf16, as the columns of a right operand: `size / 32` chunks.
    pub fn pack_columns(&self, values: &[f32], size: usize, panel: &mut [u32]) {
        assert!(size.is_multiple_of(SIDE) && values.len() >= SIDE * size && panel.len() >= SIDE * size / 2);
        // SAFETY: the features were found when `self` was made, and the lengths are checked above.
        unsafe { pack_columns(values, size, panel) }
    }

    /// Packs 32 depths of `size` values, row-major and exact in bf16, as chunk `chunk` of `size / 32` left operands, which
    /// begin `stride` words apart.
    pub fn pack_depths(&self, values: &[f32], size: usize, chunk: usize, stride: usize, panels: &mut [u32]) {
        assert!(size.is_multiple_of(SIDE) && values.len() >= SIDE * size && (chunk + 1) * CHUNK <= stride);
        assert!(panels.len() >= size / SIDE * stride);
        // SAFETY: the features were found when `self` was made, and the lengths are checked above.
        unsafe { pack_depths(values, size, chunk, stride, panels) }
    }

    /// As [`Instructions::softmax`](super::Instructions::softmax) on 32 queries, but the exponentials of each chunk of 32
    /// keys become a right operand in `parts` parts, two or three, each of which holds what rounding to bf16 leaves of those
    /// before it. Two parts hold sixteen bits, to which exponentials are rounded before they are added up, so that the
    /// weights that are multiplied are those of the sum; three hold them whole. Keys that the last chunk lacks get zeros.
    pub fn softmax(
        &self,
        scores: &[f32],
        scale: f32,
        lanes: &mut SoftmaxLanes,
        parts: usize,
        weights: &mut [u32],
    ) {
        assert!(scores.len().is_multiple_of(SIDE) && (2..=3).contains(&parts));
        assert!(weights.len() >= scores.len().div_ceil(SIDE * SIDE) * parts * CHUNK);
        // SAFETY: the features were found when `self` was made, and the lengths are checked above.
        unsafe {
            if parts == 2 {
                softmax::<2>(scores, scale, lanes, weights);
            } else {
                softmax::<3>(scores, scale, lanes, weights);
            }
        }
    }
}

/// The tile unit as this thread has configured it.
#[derive(Debug)]
pub(crate) struct Configured(PhantomData<*const ()>);

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: the unit was found.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }
}

impl Configured {
    /// `c = [c +] a·b` for one block over `chunks` chunks, each of the left operand with all `parts` of the right one, which
    /// lie one after another chunk by chunk.
    pub fn multiply(
        &self,
        chunks: usize,
        parts: usize,
        a: &[u32],
        b: &[u32],
        c: &mut [f32],
        accumulate: bool,
    ) {
        assert!(a.len() >= chunks * CHUNK && b.len() >= chunks * parts * CHUNK && c.len() >= SIDE * SIDE);
        if chunks == 0 || parts == 0 {
            if !accumulate {
                c[..SIDE * SIDE].fill(0.0);
            }
            return;
        }
        // SAFETY: this thread's tiles are 16 rows of 64 bytes; all that is read and written lies within the slices.
        unsafe {
            asm!(
                "test {accumulate}, {accumulate}",
                "jnz 4f",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "jmp 2f",
                "4:",
                "tileloadd tmm0, [{c} + {block}]",
                "tileloadd tmm1, [{c} + {block} + 64]",
                "tileloadd tmm2, [{c} + {block} + 2048]",
                "tileloadd tmm3, [{c} + {block} + 2112]",
                "2:",
                "tileloadd tmm4, [{a} + {row}]",
                "tileloadd tmm5, [{a} + {row} + 1024]",
                "mov {part}, {parts}",
                "3:",
                "tileloadd tmm6, [{b} + {row}]",
                "tileloadd tmm7, [{b} + {row} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {b}, 2048",
                "dec {part}",
                "jnz 3b",
                "add {a}, 2048",
                "dec {chunks}",
                "jnz 2b",
                "tilestored [{c} + {block}], tmm0",
                "tilestored [{c} + {block} + 64], tmm1",
                "tilestored [{c} + {block} + 2048], tmm2",
                "tilestored [{c} + {block} + 2112], tmm3",
                a = inout(reg) a.as_ptr() => _,
                b = inout(reg) b.as_ptr() => _,
                c = in(reg) c.as_mut_ptr(),
                chunks = inout(reg) chunks => _,
                parts = in(reg) parts,
                part = out(reg) _,
                accumulate = in(reg) usize::from(accumulate),
                // Bytes from row to row of an operand's tile, and of a block.
                row = in(reg) 64_usize,
                block = in(reg) 128_usize,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

/// Two values that are exact in bf16, as a word.
#[inline(always)]
fn pair(first: f32, second: f32) -> u32 {
    first.to_bits() >> 16 | second.to_bits() & 0xFFFF_0000
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn pack_rows(values: &[f32], size: usize, panel: &mut [u32]) {
    for (row, values) in values.chunks_exact(size).take(SIDE).enumerate() {
        for (chunk, values) in values.chunks_exact(SIDE).enumerate() {
            let words = &mut panel[chunk * CHUNK + row * TILE..][..TILE];
            for (word, values) in words.iter_mut().zip(values.as_chunks::<2>().0) {
                *word = pair(values[0], values[1]);
            }
        }
    }
}

/// # Safety
///
/// `values` holds `SIDE · size` values, `panel` half as many words.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
unsafe fn pack_columns(values: &[f32], size: usize, panel: &mut [u32]) {
    let mut words = [0_u32; TILE * TILE];
    for (half, values) in values.chunks_exact(TILE * size).take(2).enumerate() {
        for chunk in 0..size / SIDE {
            for (words, row) in words
                .as_chunks_mut::<TILE>()
                .0
                .iter_mut()
                .zip(values.chunks_exact(size))
            {
                let row = &row[chunk * SIDE..][..SIDE];
                for (word, values) in words.iter_mut().zip(row.as_chunks::<2>().0) {
                    *word = pair(values[0], values[1]);
                }
            }
            let tile = &mut panel[chunk * CHUNK + half * TILE * TILE..][..TILE * TILE];
            // SAFETY: both are whole tiles.
            unsafe { transpose(words.as_ptr(), tile.as_mut_ptr()) }
        }
    }
}

/// # Safety
///
/// As [`Tiles::pack_depths`] checks.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
unsafe fn pack_depths(values: &[f32], size: usize, chunk: usize, stride: usize, panels: &mut [u32]) {
    let mut words = [0_u32; TILE * TILE];
    for first in (0..size).step_by(TILE) {
        for (words, rows) in words
            .as_chunks_mut::<TILE>()
            .0
            .iter_mut()
            .zip(values.chunks_exact(2 * size))
        {
            let (one, other) = (&rows[first..][..TILE], &rows[size + first..][..TILE]);
            for ((word, one), other) in words.iter_mut().zip(one).zip(other) {
                *word = pair(*one, *other);
            }
        }
        let start = first / SIDE * stride + chunk * CHUNK + first % SIDE * TILE;
        let tile = &mut panels[start..][..TILE * TILE];
        // SAFETY: both are whole tiles.
        unsafe { transpose(words.as_ptr(), tile.as_mut_ptr()) }
    }
}

/// Turns 16 × 16 words.
///
/// # Safety
///
/// Both places hold 256 words.
#[target_feature(enable = "avx512f")]
unsafe fn transpose(source: *const u32, target: *mut u32) {
    // SAFETY: row < 16.
    let rows: [__m512i; TILE] =
        std::array::from_fn(|row| unsafe { _mm512_loadu_si512(source.add(TILE * row).cast()) });
    // Words of two rows side by side, then of four: quarter l of `fours[4 * i + j]` is column 4l + j of rows 4i … 4i + 3.
    let twos: [__m512i; TILE] = std::array::from_fn(|at| {
        let (one, other) = (rows[at & !1], rows[at | 1]);
        if at & 1 == 0 {
            _mm512_unpacklo_epi32(one, other)
        } else {
            _mm512_unpackhi_epi32(one, other)
        }
    });
    let fours: [__m512i; TILE] = std::array::from_fn(|at| {
        let (first, j) = (at & !3, at & 3);
        let (one, other) = (twos[first + j / 2], twos[first + j / 2 + 2]);
        if j & 1 == 0 {
            _mm512_unpacklo_epi64(one, other)
        } else {
            _mm512_unpackhi_epi64(one, other)
        }
    });
    for j in 0..4 {
        let [a, b, c, d] = [fours[j], fours[4 + j], fours[8 + j], fours[12 + j]];
        let even = (
            _mm512_shuffle_i32x4::<0x88>(a, b),
            _mm512_shuffle_i32x4::<0x88>(c, d),
        );
        let odd = (
            _mm512_shuffle_i32x4::<0xDD>(a, b),
            _mm512_shuffle_i32x4::<0xDD>(c, d),
        );
        let columns = [
            _mm512_shuffle_i32x4::<0x88>(even.0, even.1),
            _mm512_shuffle_i32x4::<0x88>(odd.0, odd.1),
            _mm512_shuffle_i32x4::<0xDD>(even.0, even.1),
            _mm512_shuffle_i32x4::<0xDD>(odd.0, odd.1),
        ];
        for (quarter, column) in columns.into_iter().enumerate() {
            // SAFETY: the column's number is under 16.
            unsafe { _mm512_storeu_si512(target.add(TILE * (4 * quarter + j)).cast(), column) }
        }
    }
}
