//! AMX: products of bf16 tiles with f32 sums, in a separate unit beside AVX-512.
//!
//! A *block* is 32 × 32 results, over a depth of *chunks* of 32. Operands are stored as pairs of bf16 in words, the
//! earlier value in the low half, in tiles of 16 rows of 16 words. A chunk of a left operand is two tiles, with its
//! rows 0…15 and 16…31; each tile row holds a row's 16 pairs along the depth. A chunk of a right operand is two tiles,
//! with its columns 0…15 and 16…31; each tile row holds 16 columns of one depth pair.

mod nvfp4;
mod pack;
mod product;
mod softmax;

use std::arch::asm;
use std::arch::{is_x86_feature_detected, x86_64::*};
use std::marker::PhantomData;
use std::sync::OnceLock;

use gauntlet_problems::AttentionFormat;

use self::pack::{pack_columns, pack_depths, pack_rows, widen_e4m3, widen_int8};
pub(crate) use self::product::Product;
pub(crate) use self::softmax::Exponents;
use super::{LANES, SoftmaxLanes};

/// Rows and columns of a block, and the depth of a chunk.
pub(crate) const SIDE: usize = 32;
/// Words of a chunk of one operand.
pub(crate) const CHUNK: usize = SIDE * SIDE / 2;
/// Rows of a tile, and words per row.
const TILE: usize = 16;

/// The features that this module needs besides AVX-512, and whether the processor and the system provide each.
pub(super) fn features() -> Vec<(&'static str, bool)> {
    static USABLE: OnceLock<(bool, bool)> = OnceLock::new();
    let &(present, permitted) = USABLE.get_or_init(|| {
        // Miri does not support this query.
        let present = !cfg!(miri) && __cpuid(0).eax >= 7 && {
            // AMX-BF16 and AMX-TILE.
            const NEEDED: u32 = 1 << 22 | 1 << 24;
            __cpuid_count(7, 0).edx & NEEDED == NEEDED
        };
        (present, present && request())
    });
    vec![
        // All processors with the unit have it.
        ("avx512vbmi", is_x86_feature_detected!("avx512vbmi")),
        ("amx-bf16", present),
        ("the system's leave to use amx", permitted),
    ]
}

/// Requests permission for this process to use tiles; the kernel grants it on request only, because their state is
/// large.
#[cfg(target_os = "linux")]
fn request() -> bool {
    use nix::libc;
    // From the kernel's asm/prctl.h and asm/fpu/types.h.
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILE_DATA: libc::c_ulong = 18;
    // SAFETY: both arguments are numbers; the call accesses none of our memory.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn request() -> bool {
    false
}

/// The tile unit; a value exists only if its features were detected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiles(());

impl Tiles {
    /// # Safety
    ///
    /// The features of AVX-512 and all of [`features`] are present.
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
        // SAFETY: the unit was detected, and the configuration is 64 bytes of palette 1.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) EIGHT_FULL_TILES.0.as_ptr(), options(nostack, readonly, preserves_flags));
        }
        Configured(PhantomData)
    }

    /// Converts `bytes` to bf16, which represents every value of e4m3 and int8 exactly; each fills half a word.
    ///
    /// # Panics
    ///
    /// If the format is neither of the two.
    pub fn widen(&self, format: AttentionFormat, bytes: &[u8], words: &mut [u32]) {
        assert!(bytes.len().is_multiple_of(SIDE) && 2 * words.len() == bytes.len());
        // SAFETY: CPU features were checked before `self` was made; the functions themselves only use slices.
        unsafe {
            match format {
                AttentionFormat::E4m3 => widen_e4m3(bytes, words),
                AttentionFormat::Int8 => widen_int8(bytes, words),
                AttentionFormat::F16 | AttentionFormat::Bf16 => unreachable!("`suit` refuses {format}"),
            }
        }
    }

    /// Converts NVFP4 codes times their blocks' scales to bf16, which represents each exactly: two blocks every
    /// `stride` words, with zeros in place of the second if it is beyond the last.
    pub fn widen_nvfp4(&self, codes: &[u8], scales: &[u8], words: &mut [u32], stride: usize) {
        assert!(codes.len() == 8 * scales.len() && stride >= TILE);
        // SAFETY: CPU features were checked before `self` was made; the function itself only uses slices.
        unsafe { nvfp4::widen(codes, scales, words, stride) }
    }

    /// Transposes a block.
    pub fn turn(&self, block: &mut [f32; SIDE * SIDE]) {
        // SAFETY: CPU features were checked before `self` was made.
        unsafe { pack::turn(block) }
    }

    /// Packs 32 rows of `size` values of bf16, row-major, as a left operand: `size / 32` chunks.
    pub fn pack_rows(&self, rows: &[u32], size: usize, panel: &mut [u32]) {
        check_rows(rows, size, panel);
        // SAFETY: CPU features were checked before `self` was made; the function itself only uses slices.
        unsafe { pack_rows(rows, size, panel) }
    }

    /// Packs 32 rows of `size` values of bf16, row-major, as the columns of a right operand: `size / 32` chunks.
    pub fn pack_columns(&self, rows: &[u32], size: usize, panel: &mut [u32]) {
        check_rows(rows, size, panel);
        // SAFETY: CPU features were checked before `self` was made, and the lengths are checked above.
        unsafe { pack_columns(rows, size, panel) }
    }

    /// Packs 32 depths of `size` values of bf16, row-major, as chunk `chunk` of `size / 32` left operands; these begin
    /// `stride` words apart.
    pub fn pack_depths(&self, rows: &[u32], size: usize, chunk: usize, stride: usize, panels: &mut [u32]) {
        check_rows(rows, size, panels);
        assert!((chunk + 1) * CHUNK <= stride && panels.len() >= size / SIDE * stride);
        // SAFETY: CPU features were checked before `self` was made, and the lengths are checked above.
        unsafe { pack_depths(rows, size, chunk, stride, panels) }
    }

    /// Updates `maxima`, one lane per query, with a block of scores.
    pub fn raise(&self, scores: &[f32; SIDE * SIDE], maxima: &mut [f32; LANES]) {
        // SAFETY: CPU features were checked before `self` was made; the function itself only uses slices.
        unsafe { softmax::raise(scores, maxima) }
    }

    /// The parameters that turn scores with these `maxima` into weights. Updates `lanes`, except for the sums.
    pub fn exponents(&self, maxima: &[f32; LANES], scale: f32, lanes: &mut SoftmaxLanes) -> Exponents {
        // SAFETY: CPU features were checked before `self` was made; the function itself only uses slices.
        unsafe { softmax::exponents(maxima, scale, lanes) }
    }

    /// Turns a block of scores into weights, adds them to `sums`, and stores them as a chunk of a right operand in two
    /// or three `parts`. Each part is the remainder of the weight after the parts before it, cut to bf16. Two parts
    /// hold sixteen bits; weights are rounded to these before they are summed, so that the sum is of the weights that
    /// are multiplied. Three parts hold the weights exactly. Meanwhile it computes `products`, which take `steps`
    /// [steps](Product::steps).
    pub fn weigh<'a>(
        &self,
        scores: &[f32; SIDE * SIDE],
        exponents: &Exponents,
        sums: &mut [f32; LANES],
        (parts, weights): (usize, &mut [u32]),
        products: impl Iterator<Item = Product<'a>>,
        steps: usize,
    ) {
        assert!((2..=3).contains(&parts) && weights.len() >= parts * CHUNK);
        // SAFETY: CPU features were checked before `self` was made, and the lengths are checked above.
        unsafe {
            if parts == 2 {
                softmax::weigh::<2>(scores, exponents, sums, weights, products, steps);
            } else {
                softmax::weigh::<3>(scores, exponents, sums, weights, products, steps);
            }
        }
    }

    /// Adds a step's sums to those of `lanes`.
    pub fn add_sums(&self, sums: &[f32; LANES], lanes: &mut SoftmaxLanes) {
        // SAFETY: CPU features were checked before `self` was made; the function itself only uses slices.
        unsafe { softmax::add_sums(sums, lanes) }
    }
}

/// Checks that `rows` are 32 rows of `size` values, and that `panel` has room for as many.
fn check_rows(rows: &[u32], size: usize, panel: &[u32]) {
    let words = SIDE * size / 2;
    assert!(size > 0 && size.is_multiple_of(SIDE) && rows.len() >= words && panel.len() >= words);
}

/// The tile unit, configured for this thread.
#[derive(Debug)]
pub(crate) struct Configured(PhantomData<*const ()>);

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: the unit was detected.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }
}

impl Configured {
    /// `c = [c +] a·b` for one block over `chunks` chunks. Each chunk of the left operand is multiplied by all `parts`
    /// of the right operand's chunk, which are stored one after another.
    pub fn product<'a>(
        &'a self,
        (chunks, parts): (usize, usize),
        a: &'a [u32],
        b: &'a [u32],
        c: &'a mut [f32],
        accumulate: bool,
    ) -> Product<'a> {
        assert!(chunks > 0 && parts > 0);
        assert!(a.len() >= chunks * CHUNK && b.len() >= chunks * parts * CHUNK && c.len() >= SIDE * SIDE);
        // SAFETY: the unit stays configured while `self` lives, and the lengths are checked above.
        unsafe { Product::new((chunks, parts), a, b, c, accumulate) }
    }
}
