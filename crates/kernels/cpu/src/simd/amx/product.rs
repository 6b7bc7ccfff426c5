//! Products of the tile unit, in small steps that can be interleaved with other work.

use std::arch::asm;
use std::marker::PhantomData;

use super::CHUNK;

/// A block's product in progress.
///
/// Sums and operands stay in tile registers from one step to the next: only this module uses those registers.
#[derive(Debug)]
pub(crate) struct Product<'a> {
    a: *const u32,
    b: *const u32,
    c: *mut f32,
    parts: usize,
    /// Remaining steps.
    left: usize,
    /// The part of the right operand that comes next.
    part: usize,
    accumulate: bool,
    is_begun: bool,
    operands: PhantomData<(&'a [u32], &'a mut [f32])>,
}

impl<'a> Product<'a> {
    /// The number of steps of a product: one per part of a chunk.
    pub fn steps(chunks: usize, parts: usize) -> usize {
        chunks * parts
    }

    /// A product over `chunks` chunks.
    ///
    /// # Safety
    ///
    /// The unit stays configured while the product lives; `a` holds `chunks` chunks, `b` `parts` times as many, and `c`
    /// a block.
    pub(super) unsafe fn new(
        (chunks, parts): (usize, usize),
        a: &'a [u32],
        b: &'a [u32],
        c: &'a mut [f32],
        accumulate: bool,
    ) -> Self {
        Self {
            a: a.as_ptr(),
            b: b.as_ptr(),
            c: c.as_mut_ptr(),
            parts,
            left: Self::steps(chunks, parts),
            part: 0,
            accumulate,
            is_begun: false,
            operands: PhantomData,
        }
    }

    /// Computes the remaining steps.
    pub fn finish(mut self) {
        while !self.is_done() {
            self.advance();
        }
    }

    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Computes one step. No other product may be in progress.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        assert!(!self.is_done());
        // SAFETY: this thread's tiles are 16 rows of 64 bytes, and all reads and writes are within the operands.
        // Compilers do not use tile registers unless asked to, so each block finds what the previous one left there.
        unsafe {
            if !self.is_begun {
                self.begin();
                self.is_begun = true;
            }
            self.step();
            self.b = self.b.add(CHUNK);
            self.part += 1;
            if self.part == self.parts {
                self.part = 0;
                self.a = self.a.add(CHUNK);
            }
            self.left -= 1;
            if self.is_done() {
                self.end();
            }
        }
    }

    /// # Safety
    ///
    /// As [`advance`](Self::advance).
    #[inline(always)]
    unsafe fn begin(&self) {
        if !self.accumulate {
            // SAFETY: as the caller promises.
            unsafe {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        // SAFETY: as the caller promises.
        unsafe {
            asm!(
                "tileloadd tmm0, [{c} + {row}]",
                "tileloadd tmm1, [{c} + {row} + 64]",
                "tileloadd tmm2, [{c} + {row} + 2048]",
                "tileloadd tmm3, [{c} + {row} + 2112]",
                c = in(reg) self.c,
                row = in(reg) BLOCK_ROW,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// # Safety
    ///
    /// As [`advance`](Self::advance).
    #[inline(always)]
    unsafe fn step(&self) {
        // SAFETY: as the caller promises.
        unsafe {
            if self.part == 0 {
                asm!(
                    "tileloadd tmm4, [{a} + {row}]",
                    "tileloadd tmm5, [{a} + {row} + 1024]",
                    a = in(reg) self.a,
                    row = in(reg) TILE_ROW,
                    out("tmm4") _, out("tmm5") _,
                    options(nostack, preserves_flags),
                );
            }
            asm!(
                "tileloadd tmm6, [{b} + {row}]",
                "tileloadd tmm7, [{b} + {row} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                b = in(reg) self.b,
                row = in(reg) TILE_ROW,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// # Safety
    ///
    /// As [`advance`](Self::advance).
    #[inline(always)]
    unsafe fn end(&self) {
        // SAFETY: as the caller promises.
        unsafe {
            asm!(
                "tilestored [{c} + {row}], tmm0",
                "tilestored [{c} + {row} + 64], tmm1",
                "tilestored [{c} + {row} + 2048], tmm2",
                "tilestored [{c} + {row} + 2112], tmm3",
                c = in(reg) self.c,
                row = in(reg) BLOCK_ROW,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Bytes from row to row of an operand's tile.
const TILE_ROW: usize = 64;
/// Bytes from row to row of a block.
const BLOCK_ROW: usize = 128;
