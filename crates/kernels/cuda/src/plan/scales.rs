//! How the scales of NVFP4 operands lie in device memory.

use gauntlet_device::Arch;
use gauntlet_nvfp4::{BLOCK, swizzle};

/// How the scales of a matrix lie in device memory. Rows are padded to a multiple of [`DEPTH_STEP`](super::DEPTH_STEP)
/// values with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleLayout {
    /// Row by row, `[rows, depth / 16]`.
    Rows,
    /// Blocks of 128 rows and 64 values in the [order](swizzle) in which Blackwell's matrix unit takes them; rows are
    /// padded with zeros to a multiple of 128. The unit ignores the sign of a scale (PTX ISA, `.ue4m3`), so that a scale
    /// must not be negative: where one is, its values have their signs changed instead, which is exact.
    Blocks,
}

impl ScaleLayout {
    /// The layout that the kernels of an architecture read.
    pub fn of(arch: Arch) -> Self {
        match arch {
            Arch::Sm100a => Self::Blocks,
            Arch::Cpu | Arch::Sm80 | Arch::Sm89 | Arch::Sm90a => Self::Rows,
        }
    }

    /// Bytes of the scales of a matrix whose rows have `depth` values in memory.
    pub fn bytes(self, rows: usize, depth: usize) -> usize {
        match self {
            Self::Rows => rows * depth / BLOCK,
            Self::Blocks => swizzle::length(rows, depth / BLOCK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blackwell_reads_blocks_which_are_whole() {
        assert_eq!(ScaleLayout::of(Arch::Sm90a), ScaleLayout::Rows);
        assert_eq!(ScaleLayout::of(Arch::Sm100a), ScaleLayout::Blocks);
        assert_eq!(ScaleLayout::Rows.bytes(129, 256), 129 * 16);
        assert_eq!(ScaleLayout::Blocks.bytes(129, 256), 2 * 4 * 512);
        assert_eq!(ScaleLayout::Blocks.bytes(0, 256), 0);
    }
}
