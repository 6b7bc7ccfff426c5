//! The operands of a problem.

use gauntlet_formats::Nvfp4Tensor;

use crate::AttentionFormat;

/// The operands of a problem.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// One set of operands a group.
    GroupedGemm(Vec<GroupInputs>),
    /// Q, K and V.
    Attention(AttentionInputs),
}

/// The operands of one product.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupInputs {
    /// Tokens, `[m, k]`.
    pub a: Nvfp4Tensor,
    /// Weights, `[n, k]`.
    pub b: Nvfp4Tensor,
    /// The second weights of the dual form, `[n, k]`.
    pub b2: Option<Nvfp4Tensor>,
}

/// Q, K and V of a whole batch.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionInputs {
    /// Of `heads` heads and each sequence's `queries` positions.
    pub query: HeadTensor,
    /// Of `kv_heads` heads and each sequence's `keys` positions.
    pub key: HeadTensor,
    /// As `key`.
    pub value: HeadTensor,
}

/// Values by sequence, head, position, and index in the head, the last fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadTensor {
    /// The number format of `bytes`.
    pub format: AttentionFormat,
    /// Little-endian elements.
    pub bytes: Vec<u8>,
    /// One scale a sequence and head, sequences slowest; all 1 unless the format is e4m3.
    pub scales: Vec<f32>,
}
