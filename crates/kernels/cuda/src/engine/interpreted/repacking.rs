//! Weights that are repacked on a GPU, byte for byte as on the host.

use gauntlet_problems::TokenFormat;

use super::mixture::Read;
use super::*;
use crate::packing::pack_steps;
use crate::plan::repacking::{RepackBuffers, RepackShape, repack};

fn shape(matrices: usize, rows: usize, depth: usize, tokens: TokenFormat) -> RepackShape {
    RepackShape {
        matrices,
        rows,
        depth,
        tokens,
    }
}

/// All pairs of values and all scales, negative ones, zeros and NaN among them; blocks that have rows and chunks too many, and
/// blocks that have rows of two matrices.
#[test]
fn bytes_are_those_of_the_host() {
    let Some(compiler) = compiler() else { return };
    for tokens in [TokenFormat::F16, TokenFormat::Bf16] {
        let kernel = Read::new(&compiler, repack(tokens));
        for (matrices, rows, depth) in [(1, 16, 256), (3, 48, 768), (2, 80, 512)] {
            let shape = shape(matrices, rows, depth, tokens);
            shape.check().unwrap();
            let elements = matrices * rows * depth;
            let values: Vec<u8> = (0..elements / 2).map(|at| (at * 7 + at / 251) as u8).collect();
            let scales: Vec<u8> = (0..elements / 16).map(|at| (at * 3 + at / 256) as u8).collect();
            let mut memory = Memory::new();
            let buffers = RepackBuffers {
                values: memory.allocate(values.clone()),
                scales: memory.allocate(scales.clone()),
                packed_values: memory.allocate_unwritten(values.len()),
                packed_scales: memory.allocate_unwritten(scales.len()),
            };
            let launch = shape.launch(&buffers).unwrap();
            gauntlet_ptx::run(&[kernel.launch(&launch)], &mut memory, 1).unwrap();
            let (mut expected_values, mut expected_scales) = (Vec::new(), Vec::new());
            let of_matrices = values
                .chunks_exact(rows * depth / 2)
                .zip(scales.chunks_exact(rows * depth / 16));
            for (values, scales) in of_matrices {
                let packed = pack_steps(tokens, rows, depth, values, scales).unwrap();
                expected_values.extend(packed.values);
                expected_scales.extend(packed.scales);
            }
            assert!(
                memory.contents(buffers.packed_values).unwrap() == expected_values,
                "{shape:?}"
            );
            assert!(
                memory.contents(buffers.packed_scales).unwrap() == expected_scales,
                "{shape:?}"
            );
        }
    }
}

#[test]
fn weights_that_would_have_to_be_filled_up_are_refused() {
    let refused = |shape: RepackShape| shape.check().unwrap_err().to_string();
    assert_eq!(
        refused(shape(1, 24, 256, TokenFormat::Bf16)),
        "weights of 24 rows: a GPU repacks multiples of 16; fill them up with zeros first"
    );
    assert_eq!(
        refused(shape(1, 16, 272, TokenFormat::Bf16)),
        "weights of 272 values of a row: a GPU repacks multiples of 256; fill them up with zeros first"
    );
    assert!(refused(shape(1, 16, 256, TokenFormat::Nvfp4)).contains("they are for tokens of 16 bits"));
    let buffers = RepackBuffers {
        values: 16,
        scales: 16,
        packed_values: 16,
        packed_scales: 16,
    };
    assert!(shape(0, 16, 256, TokenFormat::Bf16).launch(&buffers).is_none());
}
