//! The layout of block scales that Blackwell's matrix unit requires: tiles of 128 rows × 4 blocks, 512 bytes each,
//! ordered along a row of tiles first; in a tile, row `r` and block `c` are at `(r % 32) · 16 + (r / 32) · 4 + c`
//! (cuBLAS documentation, "1D Block Scaling Factors Layout"; PTX ISA, `tcgen05.mma` scale factors).

/// Rows of a tile.
pub const TILE_ROWS: usize = 128;

/// Blocks, columns of scales, of a tile.
pub const TILE_BLOCKS: usize = 4;

const TILE_BYTES: usize = TILE_ROWS * TILE_BLOCKS;

/// Bytes of the swizzled scales of `rows × blocks`, padding included.
pub fn length(rows: usize, blocks: usize) -> usize {
    rows.div_ceil(TILE_ROWS) * blocks.div_ceil(TILE_BLOCKS) * TILE_BYTES
}

/// The offset of the scale of `row` and `block`, where a row has `blocks` blocks.
pub fn offset(row: usize, block: usize, blocks: usize) -> usize {
    let tile = (row / TILE_ROWS) * blocks.div_ceil(TILE_BLOCKS) + block / TILE_BLOCKS;
    let row_in_tile = row % TILE_ROWS;
    tile * TILE_BYTES + (row_in_tile % 32) * 16 + (row_in_tile / 32) * 4 + block % TILE_BLOCKS
}

/// Swizzles row-major `[rows, blocks]` scales; the padding is zeros.
///
/// # Panics
/// When `scales` has another length than `rows × blocks`.
pub fn swizzle(scales: &[u8], rows: usize, blocks: usize) -> Vec<u8> {
    assert_eq!(scales.len(), rows * blocks, "one scale a row and block");
    let mut swizzled = vec![0; length(rows, blocks)];
    for row in 0..rows {
        for block in 0..blocks {
            swizzled[offset(row, block, blocks)] = scales[row * blocks + block];
        }
    }
    swizzled
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_corners_lie_where_the_hardware_reads_them() {
        // Rows 1, 32, 128 and blocks 1, 4 start the next step of each level of the layout.
        assert_eq!(offset(0, 1, 8), 1);
        assert_eq!(offset(32, 0, 8), 4);
        assert_eq!(offset(1, 0, 8), 16);
        assert_eq!(offset(127, 3, 8), 511);
        assert_eq!(offset(0, 4, 8), 512);
        assert_eq!(offset(128, 0, 8), 1024);
        assert_eq!(offset(128, 0, 5), 1024);
        assert_eq!(length(129, 5), 4 * 512);
        assert_eq!(length(0, 5), 0);
    }

    proptest! {
        #[test]
        fn every_scale_lies_at_its_offset_and_padding_is_zero(rows in 0usize..300, blocks in 0usize..20) {
            let scales: Vec<u8> = (0..rows * blocks).map(|at| (at % 255) as u8 + 1).collect();
            let swizzled = swizzle(&scales, rows, blocks);
            let zeros = swizzled.iter().filter(|&&byte| byte == 0).count();
            prop_assert_eq!(zeros, swizzled.len() - scales.len());
            let places = (0..rows).flat_map(|row| (0..blocks).map(move |block| offset(row, block, blocks)));
            prop_assert_eq!(places.map(|place| swizzled[place]).collect::<Vec<_>>(), scales);
        }
    }
}
