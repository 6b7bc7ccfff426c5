//! Operands of a grouped GEMM: tokens, and weights that are quantised tensors or were packed beforehand.

use std::ops::Range;

use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{FloatTensor, OutputFormat, TokenFormat, Tokens};

use super::plan::GemmPlan;
use crate::error::{RunError, expect_equal};
use crate::memory::{AlignedBuffer, OutOfMemory};
use crate::simd::Operand;

/// The operands of one group.
#[derive(Debug, Clone, Copy)]
pub struct GemmOperands<'a> {
    /// Tokens, `[m, k]`.
    pub a: TokenRows<'a>,
    /// Weights, `[n, k]`.
    pub b: Weights<'a>,
    /// The second weights of the dual form, `[n, k]`.
    pub b2: Option<Weights<'a>>,
}

/// Tokens, `[m, k]`, row-major.
#[derive(Debug, Clone, Copy)]
pub enum TokenRows<'a> {
    /// NVFP4.
    Nvfp4(&'a Nvfp4Tensor),
    /// Floats without scales.
    Floats(FloatRows<'a>),
}

/// A row-major matrix of floats.
#[derive(Debug, Clone, Copy)]
pub struct FloatRows<'a> {
    format: OutputFormat,
    shape: [usize; 2],
    bytes: &'a [u8],
}

impl<'a> FloatRows<'a> {
    /// `shape[0]` rows of `shape[1]` little-endian elements, one after another.
    ///
    /// # Errors
    ///
    /// If `bytes` has another length.
    pub fn new(format: OutputFormat, shape: [usize; 2], bytes: &'a [u8]) -> Result<Self, RunError> {
        let expected = shape[0].saturating_mul(shape[1]).saturating_mul(format.bytes());
        expect_equal(|| "bytes of the tokens".into(), bytes.len(), expected)?;
        Ok(Self { format, shape, bytes })
    }

    /// Rows and columns.
    pub(crate) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The bytes of some columns of a row.
    pub(crate) fn row(&self, row: usize, columns: &Range<usize>) -> &'a [u8] {
        let at = |column: usize| (row * self.shape[1] + column) * self.format.bytes();
        &self.bytes[at(columns.start)..at(columns.end)]
    }

    pub(crate) fn format(&self) -> OutputFormat {
        self.format
    }
}

impl<'a> From<&'a Nvfp4Tensor> for TokenRows<'a> {
    fn from(tensor: &'a Nvfp4Tensor) -> Self {
        Self::Nvfp4(tensor)
    }
}

impl<'a> From<&'a Tokens> for TokenRows<'a> {
    fn from(tokens: &'a Tokens) -> Self {
        match tokens {
            Tokens::Nvfp4(tensor) => Self::Nvfp4(tensor),
            Tokens::Floats(FloatTensor {
                format,
                rows,
                columns,
                bytes,
            }) => Self::Floats(FloatRows {
                format: *format,
                shape: [*rows, *columns],
                bytes,
            }),
        }
    }
}

impl TokenRows<'_> {
    pub(super) fn shape(&self) -> [usize; 2] {
        match self {
            Self::Nvfp4(tensor) => [tensor.rows(), tensor.columns()],
            Self::Floats(floats) => floats.shape,
        }
    }

    pub(super) fn format(&self) -> TokenFormat {
        match self {
            Self::Nvfp4(_) => TokenFormat::Nvfp4,
            Self::Floats(floats) => floats.format.into(),
        }
    }

    /// The factor of all values that is not part of their blocks.
    pub(super) fn tensor_scale(&self) -> f32 {
        match self {
            Self::Nvfp4(tensor) => tensor.tensor_scale(),
            Self::Floats(_) => 1.0,
        }
    }
}

/// Weights, `[n, k]`.
#[derive(Debug, Clone, Copy)]
pub enum Weights<'a> {
    /// Packed in each call.
    Tensor(&'a Nvfp4Tensor),
    /// Packed once.
    Packed(&'a PackedWeights),
}

impl Weights<'_> {
    pub(super) fn shape(&self) -> [usize; 2] {
        match self {
            Self::Tensor(tensor) => [tensor.rows(), tensor.columns()],
            Self::Packed(packed) => packed.packing.shape,
        }
    }

    pub(super) fn tensor_scale(&self) -> f32 {
        match self {
            Self::Tensor(tensor) => tensor.tensor_scale(),
            Self::Packed(packed) => packed.tensor_scale,
        }
    }
}

/// Weights in the layout that a kernel multiplies: about 2.7 times the size of the tensor (see [`bytes`](Self::bytes)).
/// This saves calls with many tokens the packing. Calls with few tokens are bound by memory and take about 2.7 times as
/// long.
#[derive(Debug)]
pub struct PackedWeights {
    packing: Packing,
    tensor_scale: f32,
    /// `[block of weights][step][panel]`.
    words: AlignedBuffer,
}

/// The layout of packed weights; a kernel accepts only its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packing {
    shape: [usize; 2],
    instructions: &'static str,
    operand: Operand,
    block: usize,
    depth: usize,
}

impl Packing {
    fn of(plan: &GemmPlan, shape: [usize; 2]) -> Self {
        Self {
            shape,
            instructions: plan.blocks.name(),
            operand: plan.weights.operand,
            block: plan.weights.extent,
            depth: plan.depth,
        }
    }

    fn steps(&self) -> usize {
        self.shape[1].div_ceil(self.depth)
    }
}

impl PackedWeights {
    pub(crate) fn pack(plan: &GemmPlan, tensor: &Nvfp4Tensor) -> Result<Self, OutOfMemory> {
        let packing = Packing::of(plan, [tensor.rows(), tensor.columns()]);
        let (blocks, steps) = (packing.shape[0].div_ceil(packing.block), packing.steps());
        let size = plan.product_panels();
        let mut words = AlignedBuffer::zeroed(size.saturating_mul(steps).saturating_mul(blocks))?;
        let places = (0..blocks).flat_map(|block| (0..steps).map(move |step| (block, step)));
        for ((block, step), panels) in places.zip(words.values_mut().chunks_exact_mut(size)) {
            let rows = plan.weights.block(block, packing.shape[0]);
            plan.pack_weights(tensor, &rows, plan.depth_within(packing.shape[1], step), panels);
        }
        Ok(Self {
            packing,
            tensor_scale: tensor.tensor_scale(),
            words,
        })
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.words.values())
    }

    /// The panels of one step of a block of weights, `size` words.
    pub(super) fn panels(&self, block: usize, step: usize, size: usize) -> &[f32] {
        let at = (block * self.packing.steps() + step) * size;
        &self.words.values()[at..at + size]
    }

    /// Checks that the weights have the layout that a plan expects.
    pub(super) fn check(&self, plan: &GemmPlan, what: impl FnOnce() -> String) -> Result<(), RunError> {
        let expected = Packing::of(plan, self.packing.shape);
        expect_equal(
            || format!("{}: packing of weights", what()),
            self.packing,
            expected,
        )
    }
}
