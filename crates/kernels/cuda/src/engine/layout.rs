//! The layout of operands in device memory. It is computed on the host, so it is tested without a device.
//!
//! Rows are padded with zeros to a depth that bulk copies support (a zero scale makes the padding vanish); the GPU's architecture
//! says in which [layout](ScaleLayout) scales lie. The tokens
//! of all groups are contiguous, and so are their scales, as the [table of groups](plan::Group) describes. The owner
//! decides where a group's weights lie; here they share one buffer, each matrix at an address that tensor maps accept.

use std::borrow::Cow;

use gauntlet_nvfp4::{Nvfp4Tensor, swizzle};
use gauntlet_problems::{GroupInputs, GroupedGemm, Tokens};

use crate::plan::{self, ScaleLayout, Weights};

/// Matrices of weights begin at multiples of this many bytes: what an allocation of their own would give them.
const ALIGNMENT: usize = 256;

/// Values in a byte, and values that share a scale.
const PACKED: usize = 2;
const BLOCK: usize = gauntlet_nvfp4::BLOCK;
/// The sign of an e4m3 scale, and of the two e2m1 values in a byte.
const SIGN: u8 = 0x80;
const SIGNS_OF_A_PAIR: u8 = 0x88;

/// The offset of each operand of a problem in its buffer, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    groups: Vec<Place>,
    scales: ScaleLayout,
    /// Bytes of all tokens.
    pub token_bytes: usize,
    /// Bytes of all their scales.
    pub token_scale_bytes: usize,
    /// Bytes of all weights with their scales.
    pub weight_bytes: usize,
}

/// The offsets of one group's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    depth: usize,
    tokens: usize,
    token_scales: usize,
    /// Packed values and scales of the first and the second weights, in the buffer of weights.
    weights: [[usize; 2]; 2],
}

/// A matrix in its buffer: its offset, and its bytes, which are the tensor's own unless its rows are padded.
pub(super) type Piece<'a> = (usize, Cow<'a, [u8]>);

/// The matrices of all operands, by the buffer they lie in. What lies between them is zero.
#[derive(Debug, Default)]
pub(super) struct Pieces<'a> {
    pub tokens: Vec<Piece<'a>>,
    pub token_scales: Vec<Piece<'a>>,
    pub weights: Vec<Piece<'a>>,
}

impl Layout {
    pub fn new(gemm: &GroupedGemm, scales: ScaleLayout) -> Self {
        let matrices = plan::matrices(gemm);
        let table = plan::table(gemm, scales, &[], |_| 0);
        let (mut token_bytes, mut token_scale_bytes, mut weight_bytes) = (0, 0, 0);
        let mut groups = Vec::with_capacity(table.len());
        for (group, shape) in table.iter().zip(&gemm.groups) {
            let depth = plan::depth(shape.k);
            let (tokens, token_scales) = (group.tokens as usize, group.token_scales as usize);
            let columns = plan::token_columns(gemm, shape);
            token_bytes = token_bytes.max(tokens + shape.m * gemm.tokens.row_bytes(columns));
            token_scale_bytes = token_scale_bytes.max(token_scales + scales.bytes(shape.m, depth));
            let mut weights = [[0; 2]; 2];
            for matrix in &mut weights[..matrices] {
                let bytes = [shape.n * depth / PACKED, scales.bytes(shape.n, depth)];
                for (begin, bytes) in matrix.iter_mut().zip(bytes) {
                    *begin = weight_bytes;
                    weight_bytes += bytes.next_multiple_of(ALIGNMENT);
                }
            }
            groups.push(Place {
                depth,
                tokens,
                token_scales,
                weights,
            });
        }
        Self {
            groups,
            scales,
            token_bytes,
            token_scale_bytes,
            weight_bytes,
        }
    }

    /// Bytes of one copy of all operands.
    pub fn bytes(&self) -> usize {
        self.token_bytes + self.token_scale_bytes + self.weight_bytes
    }

    /// The operands as they are to lie in device memory; they must be of the problem that this is the layout of.
    pub fn pieces<'a>(&self, inputs: &'a [GroupInputs]) -> Pieces<'a> {
        let mut pieces = Pieces::default();
        for (place, GroupInputs { a, b, b2 }) in self.groups.iter().zip(inputs) {
            match a {
                Tokens::Nvfp4(a) => {
                    let (values, scales) = self.matrix(a, place.depth);
                    pieces.tokens.push((place.tokens, values));
                    pieces.token_scales.push((place.token_scales, scales));
                }
                Tokens::Floats(a) => pieces.tokens.push((place.tokens, Cow::Borrowed(&a.bytes))),
            }
            for (tensor, [begin, begin_of_scales]) in [Some(b), b2.as_ref()].into_iter().zip(place.weights) {
                let Some(tensor) = tensor else { continue };
                let (values, scales) = self.matrix(tensor, place.depth);
                pieces.weights.push((begin, values));
                pieces.weights.push((begin_of_scales, scales));
            }
        }
        pieces
    }

    /// The values and the scales of a matrix whose rows have `depth` values in memory.
    fn matrix<'a>(&self, tensor: &'a Nvfp4Tensor, depth: usize) -> (Cow<'a, [u8]>, Cow<'a, [u8]>) {
        let mut values = padded(tensor, tensor.packed(), depth / PACKED);
        let mut scales = padded(tensor, tensor.scales(), depth / BLOCK);
        if self.scales == ScaleLayout::Blocks {
            if scales.iter().any(|scale| scale & SIGN != 0) {
                move_signs(values.to_mut(), scales.to_mut());
            }
            scales = Cow::Owned(swizzle::swizzle(&scales, tensor.rows(), depth / BLOCK));
        }
        (values, scales)
    }

    /// The addresses of each group's weights in a buffer at `address`, and the factor of its sums.
    pub fn weights(&self, inputs: &[GroupInputs], address: u64) -> Vec<Weights> {
        let place = |(place, GroupInputs { a, b, b2 }): (&Place, &GroupInputs)| {
            let mut weights = Weights::default();
            for (index, tensor) in [Some(b), b2.as_ref()].into_iter().enumerate() {
                let Some(tensor) = tensor else { continue };
                let [values, scales] = place.weights[index];
                weights.packed[index] = address + values as u64;
                weights.scales[index] = address + scales as u64;
                weights.scale[index] = a.tensor_scale() * tensor.tensor_scale();
            }
            weights
        };
        self.groups.iter().zip(inputs).map(place).collect()
    }
}

/// Makes all scales positive, and changes the signs of the values of those that were not.
fn move_signs(values: &mut [u8], scales: &mut [u8]) {
    for (values, scale) in values.chunks_exact_mut(BLOCK / PACKED).zip(scales) {
        if *scale & SIGN != 0 {
            *scale &= !SIGN;
            values.iter_mut().for_each(|pair| *pair ^= SIGNS_OF_A_PAIR);
        }
    }
}

/// The rows of a tensor, each filled up with zeros to `stride` bytes.
fn padded<'a>(tensor: &Nvfp4Tensor, bytes: &'a [u8], stride: usize) -> Cow<'a, [u8]> {
    let row_bytes = bytes.len() / tensor.rows().max(1);
    if row_bytes == stride || row_bytes == 0 {
        return Cow::Borrowed(bytes);
    }
    let mut rows = vec![0; tensor.rows() * stride];
    for (row, padded) in bytes.chunks_exact(row_bytes).zip(rows.chunks_exact_mut(stride)) {
        padded[..row_bytes].copy_from_slice(row);
    }
    Cow::Owned(rows)
}

/// A buffer with these pieces in it.
#[cfg(test)]
pub(super) fn assembled(bytes: usize, pieces: &[Piece<'_>]) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    for (begin, piece) in pieces {
        buffer[*begin..][..piece.len()].copy_from_slice(piece);
    }
    buffer
}

#[cfg(test)]
mod tests {
    use gauntlet_families::operations;
    use gauntlet_problems::{Form, Inputs, Operation};
    use gauntlet_task::InputKind;
    use proptest::prelude::*;

    use super::*;

    fn gemm(shapes: Vec<(usize, usize, usize)>, form: Form) -> GroupedGemm {
        GroupedGemm::new(form, shapes.into_iter().map(|(m, n, k)| [m, n, k]))
    }

    fn inputs(gemm: &GroupedGemm, seed: u64) -> Vec<GroupInputs> {
        match operations::generate(&Operation::GroupedGemm(gemm.clone()), InputKind::default(), seed) {
            Inputs::GroupedGemm(groups) => groups,
            Inputs::Attention(_) => panic!("not a GEMM's"),
        }
    }

    fn problems() -> impl Strategy<Value = GroupedGemm> {
        let shape = (0_usize..5, 1_usize..5, 1_usize..40).prop_map(|(m, n, blocks)| (m, n, 16 * blocks));
        let form = prop_oneof![Just(Form::Plain), Just(Form::Swiglu)];
        (prop::collection::vec(shape, 1..4), form).prop_map(|(shapes, form)| gemm(shapes, form))
    }

    fn scale_layouts() -> impl Strategy<Value = ScaleLayout> {
        prop_oneof![Just(ScaleLayout::Rows), Just(ScaleLayout::Blocks)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Read back through the table of groups and the addresses of the weights, as a kernel does, every value is the
        /// tensor's, and zero past the end of its row.
        #[test]
        fn a_kernel_finds_every_value(gemm in problems(), seed in 0_u64..1000) {
            let inputs = inputs(&gemm, seed);
            let layout = Layout::new(&gemm, ScaleLayout::Rows);
            let pieces = layout.pieces(&inputs);
            let tokens = assembled(layout.token_bytes, &pieces.tokens);
            let token_scales = assembled(layout.token_scale_bytes, &pieces.token_scales);
            let packed = assembled(layout.weight_bytes, &pieces.weights);
            let base = 1 << 20;
            let weights = layout.weights(&inputs, base);
            for (group, inputs) in plan::table(&gemm, ScaleLayout::Rows, &weights, |_| 0).iter().zip(&inputs) {
                let depth = group.k as usize;
                let at = |address: u64| (address - base) as usize;
                let second = inputs.b2.as_ref();
                let operands = [
                    (inputs.a.nvfp4(), &tokens, group.tokens as usize, &token_scales, group.token_scales as usize),
                    (Some(&inputs.b), &packed, at(group.weights[0]), &packed, at(group.weight_scales[0])),
                    (
                        second, &packed, second.map_or(0, |_| at(group.weights[1])),
                        &packed, second.map_or(0, |_| at(group.weight_scales[1])),
                    ),
                ];
                for (tensor, values, values_at, scales, scales_at) in operands {
                    let Some(tensor) = tensor else { continue };
                    for row in 0..tensor.rows() {
                        let columns = tensor.columns();
                        let pairs = &values[values_at + row * depth / 2..][..depth / 2];
                        prop_assert_eq!(&pairs[..columns / 2], &tensor.packed()[row * columns / 2..][..columns / 2]);
                        prop_assert!(pairs[columns / 2..].iter().all(|byte| *byte == 0));
                        let blocks = &scales[scales_at + row * depth / 16..][..depth / 16];
                        prop_assert_eq!(&blocks[..columns / 16], &tensor.scales()[row * columns / 16..][..columns / 16]);
                        prop_assert!(blocks[columns / 16..].iter().all(|byte| *byte == 0));
                    }
                }
            }
        }

        /// No two matrices share a byte, and each begins where tensor maps and bulk copies can take it.
        #[test]
        fn matrices_lie_apart_and_aligned(gemm in problems(), arranged in scale_layouts()) {
            let layout = Layout::new(&gemm, arranged);
            let matrices = plan::matrices(&gemm);
            let mut spans = Vec::new();
            for (place, shape) in layout.groups.iter().zip(&gemm.groups) {
                prop_assert_eq!(place.depth % plan::DEPTH_STEP, 0);
                prop_assert_eq!((place.tokens % 16, place.token_scales % 16), (0, 0));
                for [values, scales] in &place.weights[..matrices] {
                    prop_assert_eq!((values % ALIGNMENT, scales % ALIGNMENT), (0, 0));
                    spans.push((*values, values + shape.n * place.depth / 2));
                    spans.push((*scales, scales + arranged.bytes(shape.n, place.depth)));
                }
            }
            spans.sort_unstable();
            for pair in spans.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0, "{pair:?}");
            }
            prop_assert!(spans.iter().all(|(_, end)| *end <= layout.weight_bytes));
        }
    }

    /// In blocks, a value times its scale is what it was, and no scale is negative.
    #[test]
    fn signs_of_scales_move_to_their_values() {
        let (rows, columns) = (130, 272);
        let packed: Vec<u8> = (0..rows * columns / 2).map(|index| (index * 7) as u8).collect();
        // All but the two codes of NaN.
        let scales: Vec<u8> = (0..rows * columns / 16)
            .map(|index| (index % 127) as u8 | (index as u8 & 0x80))
            .collect();
        let tensor = Nvfp4Tensor::new(rows, columns, packed, scales, 1.0).unwrap();
        let layout = Layout::new(&gemm(vec![(rows, 1, columns)], Form::Plain), ScaleLayout::Blocks);
        let depth = plan::depth(columns);
        let (values, scales) = layout.matrix(&tensor, depth);
        assert!(scales.iter().all(|scale| scale & SIGN == 0));
        let blocks = depth / BLOCK;
        let unswizzled =
            (0..rows * blocks).map(|at| scales[swizzle::offset(at / blocks, at % blocks, blocks)]);
        let moved = Nvfp4Tensor::new(rows, depth, values.into_owned(), unswizzled.collect(), 1.0).unwrap();
        let [before, after] = [&tensor, &moved].map(Nvfp4Tensor::dequantise_scaled);
        for row in 0..rows {
            let (own, padding) = after[row * depth..][..depth].split_at(columns);
            assert_eq!(own, &before[row * columns..][..columns]);
            assert!(padding.iter().all(|value| *value == 0.0));
        }
    }

    #[test]
    fn rows_that_need_no_padding_are_not_copied() {
        let gemm = gemm(vec![(2, 3, plan::DEPTH_STEP), (2, 3, 16)], Form::Plain);
        let inputs = inputs(&gemm, 1);
        let pieces = Layout::new(&gemm, ScaleLayout::Rows).pieces(&inputs);
        let own = |piece: &Piece| matches!(piece.1, Cow::Borrowed(_));
        let found: Vec<bool> = pieces.weights.iter().map(own).collect();
        assert_eq!(found, [true, true, false, false]);
    }

    #[test]
    fn scales_of_tensors_are_multiplied() {
        let gemm = gemm(vec![(2, 3, 16)], Form::Swiglu);
        let tensor = |rows: usize, scale: f32| {
            Nvfp4Tensor::new(rows, 16, vec![0; rows * 8], vec![0x38; rows], scale).unwrap()
        };
        let inputs = [GroupInputs {
            a: Tokens::Nvfp4(tensor(2, 0.5)),
            b: tensor(3, -3.0),
            b2: Some(tensor(3, 8.0)),
        }];
        let weights = Layout::new(&gemm, ScaleLayout::Rows).weights(&inputs, 4096);
        assert_eq!(weights[0].scale, [-1.5, 4.0]);
        assert_eq!(weights[0].packed[0], 4096);
    }

    #[test]
    fn plain_weights_have_no_second_address() {
        let gemm = gemm(vec![(1, 1, 16), (1, 1, 16)], Form::Plain);
        let weights = Layout::new(&gemm, ScaleLayout::Rows).weights(&inputs(&gemm, 1), 4096);
        assert!(
            weights
                .iter()
                .all(|one| (one.packed[1], one.scales[1], one.scale[1]) == (0, 0, 0.0))
        );
    }
}
