//! The kernel that repacks weights in device memory, as [`pack_steps`](crate::packing::pack_steps) does on the host.

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::TokenFormat;

use super::variant::{format_define, most_registers};
use super::{DEPTH_STEP, Launch, Pass, PlanError, Source, Variant};
use crate::packing::{CHUNK, PackingError, ROWS};

const THREADS: usize = 256;
/// Neighbouring chunks of a row that a block has, and the rows of which it has them.
const CHUNKS: usize = 4;
const BLOCK_ROWS: usize = THREADS / CHUNKS;

/// Matrices of weights of one size, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RepackShape {
    /// Matrices.
    pub matrices: usize,
    /// Rows of each, a multiple of [`ROWS`].
    pub rows: usize,
    /// Values of a row, a multiple of [`DEPTH_STEP`].
    pub depth: usize,
    /// The tokens for which they are repacked, of 16 bits.
    pub tokens: TokenFormat,
}

/// Addresses of weights, all in multiples of 16. Results do not overlap operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepackBuffers {
    /// Values, `[matrices, rows, depth / 2]` bytes.
    pub values: u64,
    /// Scales, `[matrices, rows, depth / 16]` bytes.
    pub scales: u64,
    /// Result: as many bytes of values.
    pub packed_values: u64,
    /// Result: as many bytes of scales.
    pub packed_scales: u64,
}

/// The parameter of the kernel; the other half is in `kernels/repack.cu`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RepackParameter {
    buffers: [u64; 4],
    all_rows: u64,
    rows: u32,
    chunks: u32,
    blocks_a_row: u32,
    unused: u32,
}

impl RepackShape {
    /// Whether the kernel takes these weights.
    ///
    /// # Errors
    /// If tokens have no 16 bits, rows or values would have to be filled up, or there are more than a launch takes.
    pub fn check(&self) -> Result<(), PlanError> {
        if !matches!(self.tokens, TokenFormat::F16 | TokenFormat::Bf16) {
            return Err(PackingError::Tokens { format: self.tokens }.into());
        }
        for (size, step, what) in [
            (self.rows, ROWS, "rows"),
            (self.depth, DEPTH_STEP, "values of a row"),
        ] {
            if !size.is_multiple_of(step) {
                return Err(PackingError::Multiple { what, size, step }.into());
            }
        }
        super::groups::within("the number of blocks", self.blocks(), i32::MAX as usize)
    }

    fn blocks_a_row(&self) -> usize {
        (self.depth / CHUNK).div_ceil(CHUNKS)
    }

    fn blocks(&self) -> usize {
        let rows = self.matrices.saturating_mul(self.rows);
        rows.div_ceil(BLOCK_ROWS).saturating_mul(self.blocks_a_row())
    }

    /// The launch that repacks; none if there is nothing to repack.
    pub fn launch(&self, buffers: &RepackBuffers) -> Option<Launch> {
        let parameter = RepackParameter {
            buffers: [
                buffers.values,
                buffers.scales,
                buffers.packed_values,
                buffers.packed_scales,
            ],
            all_rows: (self.matrices * self.rows) as u64,
            rows: self.rows as u32,
            chunks: (self.depth / CHUNK) as u32,
            blocks_a_row: self.blocks_a_row() as u32,
            unused: 0,
        };
        let blocks = self.blocks();
        (blocks > 0).then(|| Launch {
            pass: Pass::Main,
            grid: blocks as u32,
            cluster: 1,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
            mapped: None,
        })
    }
}

/// The kernel for these tokens. It does not overlap with other launches, because products read weights without waiting for what
/// was queued before.
pub fn repack(tokens: TokenFormat) -> Variant {
    Variant {
        source: Source::Repack,
        defines: [("FORMAT", format_define(tokens).to_string())].into(),
        threads: THREADS as u32,
        shared_bytes: 0,
        registers: most_registers(THREADS),
    }
}
