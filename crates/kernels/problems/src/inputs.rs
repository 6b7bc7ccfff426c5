//! The operands of a problem.

use std::ops::Range;

use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_tensors::e4m3;
use half::{bf16, f16};
use thiserror::Error;

use crate::{Attention, AttentionFormat, Form, GroupedGemm, Operation, TokenFormat, Tokens};

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
    pub a: Tokens,
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
///
/// A value is its element times its scale. Scales lie by sequence, head and block, the last fastest, for every
/// [`Scaling`](crate::Scaling), and every implementation reads them in this order:
/// - per head: one scale a sequence and head;
/// - per tensor: the same, all equal;
/// - per block: a head of `p` positions has ⌈p / [`SCALE_BLOCK`](crate::SCALE_BLOCK)⌉ scales, of positions 0…63,
///   64…127 and so on. A sequence's heads all have as many, other sequences may have more or fewer;
///   [`Attention::first_query_scales`] and [`Attention::first_key_scales`] say where each sequence's begin.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadTensor {
    /// The number format of `bytes`.
    pub format: AttentionFormat,
    /// Little-endian elements.
    pub bytes: Vec<u8>,
    /// The factors of the elements; all 1 in a format without scales.
    pub scales: Vec<f32>,
}

impl HeadTensor {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.format.bytes()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Element `index` without its scale, exact.
    ///
    /// # Panics
    /// When `index` is out of bounds.
    pub fn get(&self, index: usize) -> f32 {
        let pair = || [self.bytes[2 * index], self.bytes[2 * index + 1]];
        match self.format {
            AttentionFormat::E4m3 => e4m3::decode(self.bytes[index]),
            AttentionFormat::Int8 => f32::from(self.bytes[index].cast_signed()),
            AttentionFormat::F16 => f16::from_le_bytes(pair()).to_f32(),
            AttentionFormat::Bf16 => bf16::from_le_bytes(pair()).to_f32(),
        }
    }

    /// Elements `range` without their scales, exact.
    ///
    /// # Panics
    /// When the range is out of bounds.
    pub fn dequantise(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = f32> + '_ {
        range.map(|index| self.get(index))
    }
}

/// Why operands do not fit a problem.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InputsError {
    /// Operands of another kernel family.
    #[error("the operands are of another kernel family than the problem")]
    Family,
    /// Another number of groups.
    #[error("operands of {found} groups for a problem of {expected}")]
    Groups {
        /// Groups of the problem.
        expected: usize,
        /// Groups of the operands.
        found: usize,
    },
    /// A plain problem with second weights, or a dual one without.
    #[error("group {group}: second weights belong to the dual form, and to it alone")]
    SecondWeights {
        /// The group.
        group: usize,
    },
    /// A tensor of other sizes.
    #[error("{tensor} is {} × {}, but the problem takes {} × {}", found.0, found.1, expected.0, expected.1)]
    Shape {
        /// Name of the tensor, as in a file of inputs.
        tensor: String,
        /// Rows and columns of the problem.
        expected: (usize, usize),
        /// Rows and columns found.
        found: (usize, usize),
    },
    /// A tensor of another number format.
    #[error("{tensor} is {found:?}, but the problem takes {expected:?}")]
    Format {
        /// Name of the tensor.
        tensor: &'static str,
        /// Format of the problem.
        expected: AttentionFormat,
        /// Format found.
        found: AttentionFormat,
    },
    /// Tokens of another number format.
    #[error("{group}.a is {found:?}, but the problem takes {expected:?}")]
    TokenFormat {
        /// The group.
        group: usize,
        /// Format of the problem.
        expected: TokenFormat,
        /// Format found.
        found: TokenFormat,
    },
    /// Another number of elements or scales.
    #[error("{tensor} has {found} {what}, but the problem takes {expected}")]
    Length {
        /// Name of the tensor.
        tensor: &'static str,
        /// What was counted.
        what: &'static str,
        /// Number the problem takes.
        expected: usize,
        /// Number found.
        found: usize,
    },
    /// An element or a scale that is NaN or infinite.
    #[error("{tensor}: {what} {index} is {value}; operands must be finite")]
    NonFinite {
        /// Name of the tensor.
        tensor: &'static str,
        /// `element` or `scale`.
        what: &'static str,
        /// Its place.
        index: usize,
        /// What was found.
        value: f32,
    },
}

impl Inputs {
    /// Bytes of memory that one copy of the operands takes up.
    pub fn memory_bytes(&self) -> usize {
        let nvfp4 = |tensor: &Nvfp4Tensor| tensor.packed().len() + tensor.scales().len();
        let heads = |tensor: &HeadTensor| tensor.bytes.len() + size_of_val(tensor.scales.as_slice());
        let pieces = match self {
            Self::GroupedGemm(groups) => groups
                .iter()
                .map(|GroupInputs { a, b, b2 }| {
                    size_of::<GroupInputs>()
                        + a.values().len()
                        + a.scales().len()
                        + nvfp4(b)
                        + b2.as_ref().map_or(0, nvfp4)
                })
                .sum(),
            Self::Attention(AttentionInputs { query, key, value }) => {
                heads(query) + heads(key) + heads(value)
            }
        };
        size_of::<Self>() + pieces
    }

    /// Whether these are operands of `problem`: its family, sizes and formats, every element finite.
    ///
    /// # Errors
    /// Names the first tensor that does not fit.
    pub fn validate(&self, problem: &Operation) -> Result<(), InputsError> {
        match (self, problem) {
            (Self::GroupedGemm(groups), Operation::GroupedGemm(gemm)) => validate_groups(groups, gemm),
            (Self::Attention(inputs), Operation::Attention(attention)) => {
                let (queries, keys) = (attention.query_rows(), attention.key_rows());
                let (query_scales, key_scales) = (attention.query_scales(), attention.key_scales());
                validate_heads("query", &inputs.query, attention, queries, query_scales)?;
                validate_heads("key", &inputs.key, attention, keys, key_scales)?;
                validate_heads("value", &inputs.value, attention, keys, key_scales)
            }
            _ => Err(InputsError::Family),
        }
    }
}

fn validate_groups(groups: &[GroupInputs], gemm: &GroupedGemm) -> Result<(), InputsError> {
    if groups.len() != gemm.groups.len() {
        return Err(InputsError::Groups {
            expected: gemm.groups.len(),
            found: groups.len(),
        });
    }
    for (group, (inputs, shape)) in groups.iter().zip(&gemm.groups).enumerate() {
        if inputs.b2.is_some() != (gemm.form == Form::Swiglu) {
            return Err(InputsError::SecondWeights { group });
        }
        if inputs.a.format() != gemm.tokens {
            return Err(InputsError::TokenFormat {
                group,
                expected: gemm.tokens,
                found: inputs.a.format(),
            });
        }
        let weights = [("b", Some(&inputs.b)), ("b2", inputs.b2.as_ref())];
        let weights = weights
            .into_iter()
            .filter_map(|(name, tensor)| Some((name, (tensor?.rows(), tensor?.columns()), shape.n)));
        let tokens = ("a", (inputs.a.rows(), inputs.a.columns()), shape.m);
        for (name, found, rows) in std::iter::once(tokens).chain(weights) {
            let expected = (rows, shape.k);
            if expected != found {
                return Err(InputsError::Shape {
                    tensor: format!("{group}.{name}"),
                    expected,
                    found,
                });
            }
        }
    }
    Ok(())
}

fn validate_heads(
    tensor: &'static str,
    heads: &HeadTensor,
    attention: &Attention,
    rows: usize,
    scales: usize,
) -> Result<(), InputsError> {
    if heads.format != attention.format {
        return Err(InputsError::Format {
            tensor,
            expected: attention.format,
            found: heads.format,
        });
    }
    let length = |what, expected, found| match expected == found {
        true => Ok(()),
        false => Err(InputsError::Length {
            tensor,
            what,
            expected,
            found,
        }),
    };
    length(
        "bytes",
        rows * attention.head_size * attention.format.bytes(),
        heads.bytes.len(),
    )?;
    length("scales", scales, heads.scales.len())?;
    let non_finite = |what, mut values: Box<dyn Iterator<Item = f32> + '_>| {
        let found = values.by_ref().enumerate().find(|(_, value)| !value.is_finite());
        found.map_or(Ok(()), |(index, value)| {
            Err(InputsError::NonFinite {
                tensor,
                what,
                index,
                value,
            })
        })
    };
    non_finite("scale", Box::new(heads.scales.iter().copied()))?;
    non_finite("element", Box::new(heads.dequantise(0..heads.len())))
}
