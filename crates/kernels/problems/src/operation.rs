//! The two kernel families and their sizes.

use gauntlet_parameters::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation to compute: a kernel family with its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum Operation {
    /// `C = A·Bᵀ` per group, or `C = silu(A·B1ᵀ) ∘ (A·B2ᵀ)`, on NVFP4 operands.
    GroupedGemm(GroupedGemm),
    /// `softmax(Q·Kᵀ / √d)·V`.
    Attention(Attention),
}

/// A list of independent products computed in one call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupedGemm {
    /// One product a group; a group may have M = 0.
    pub groups: Vec<GemmShape>,
    /// Plain or fused dual.
    #[serde(default)]
    pub form: Form,
    /// The format that the result is rounded to.
    #[serde(default)]
    pub output: OutputFormat,
    /// The number format of A. The default is omitted when serialised, so that problems read and hash as they did
    /// before this field existed.
    #[serde(default, skip_serializing_if = "TokenFormat::is_default")]
    pub tokens: TokenFormat,
}

impl GroupedGemm {
    /// Groups of these M, N and K, with NVFP4 tokens and a result in f16.
    pub fn new(form: Form, groups: impl IntoIterator<Item = [usize; 3]>) -> Self {
        let shape = |[m, n, k]: [usize; 3]| GemmShape { m, n, k };
        Self {
            groups: groups.into_iter().map(shape).collect(),
            form,
            output: OutputFormat::default(),
            tokens: TokenFormat::default(),
        }
    }
}

named! {
    /// The number format of a grouped GEMM's tokens; weights are always NVFP4.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum TokenFormat {
        /// NVFP4: e2m1 values with e4m3 block scales and one tensor scale.
        #[default]
        Nvfp4 = "nvfp4",
        /// IEEE binary16 (W4A16).
        F16 = "f16",
        /// bfloat16 (W4A16), as serving engines pass activations.
        Bf16 = "bf16",
        /// IEEE binary32; on the CPU only.
        F32 = "f32",
    }
}

impl TokenFormat {
    /// Bytes of a row of `depth` values without its scales.
    pub fn row_bytes(self, depth: usize) -> usize {
        match self {
            Self::Nvfp4 => depth / 2,
            Self::F16 | Self::Bf16 => 2 * depth,
            Self::F32 => 4 * depth,
        }
    }

    /// Whether values are 16-bit floats, which have no scales.
    pub fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }

    /// The type of the elements, if they are plain floats without scales.
    pub fn float(self) -> Option<OutputFormat> {
        match self {
            Self::Nvfp4 => None,
            Self::F16 => Some(OutputFormat::F16),
            Self::Bf16 => Some(OutputFormat::Bf16),
            Self::F32 => Some(OutputFormat::F32),
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The sizes of one product: A is `[m, k]`, B is `[n, k]`, C is `[m, n]`, all row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GemmShape {
    /// Rows of A and C (tokens).
    pub m: usize,
    /// Rows of B, columns of C (weights).
    pub n: usize,
    /// The dimension summed over; a multiple of 16.
    pub k: usize,
}

named! {
    /// How a grouped GEMM combines its products.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Form {
        /// `C = A·Bᵀ`.
        #[default]
        Plain = "plain",
        /// `C = silu(A·B1ᵀ) ∘ (A·B2ᵀ)`, with `silu(x) = x / (1 + e⁻ˣ)`.
        Swiglu = "swiglu",
    }
}

named! {
    /// The number format of the result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum OutputFormat {
        /// IEEE binary16, the default of both families.
        #[default]
        F16 = "f16",
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE binary32.
        F32 = "f32",
    }
}

impl From<OutputFormat> for TokenFormat {
    fn from(float: OutputFormat) -> Self {
        match float {
            OutputFormat::F16 => Self::F16,
            OutputFormat::Bf16 => Self::Bf16,
            OutputFormat::F32 => Self::F32,
        }
    }
}

impl OutputFormat {
    /// Bytes an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// Attention over a batch of sequences of possibly unequal lengths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attention {
    /// One entry a batch element.
    pub sequences: Vec<Sequence>,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`. Query head `h` reads key head `h / (heads / kv_heads)`.
    pub kv_heads: usize,
    /// Values a head and position.
    pub head_size: usize,
    /// Query `i` sees keys `j ≤ i + keys − queries` (aligned at the end); a query that sees none yields 0.
    #[serde(default)]
    pub causal: bool,
    /// The number format of Q, K and V.
    pub format: AttentionFormat,
    /// Which values share a scale, in a format that has scales. The default (per head) is omitted when serialised, so
    /// that such problems read and hash as they did before this field existed.
    #[serde(default, skip_serializing_if = "Scaling::is_default")]
    pub scaling: Scaling,
    /// The format that the result is rounded to.
    #[serde(default)]
    pub output: OutputFormat,
}

/// The lengths of one batch element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// Query positions.
    pub queries: usize,
    /// Key and value positions.
    pub keys: usize,
}

named! {
    /// The number format of attention's operands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum AttentionFormat {
        /// e4m3 with `f32` scales.
        E4m3 = "e4m3",
        /// Linear int8 with `f32` scales.
        Int8 = "int8",
        /// IEEE binary16, scales all 1.
        F16 = "f16",
        /// bfloat16, scales all 1.
        Bf16 = "bf16",
    }
}

impl AttentionFormat {
    /// Bytes an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::E4m3 | Self::Int8 => 1,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Whether elements are multiplied by scales; those of a format without are all 1.
    pub fn has_scales(self) -> bool {
        match self {
            Self::E4m3 | Self::Int8 => true,
            Self::F16 | Self::Bf16 => false,
        }
    }
}

/// Positions, of one head, that share a scale under [`Scaling::PerBlock`]; the last block of a head may be shorter.
pub const SCALE_BLOCK: usize = 64;

named! {
    /// Which of attention's values share a scale. How scales lie in memory: [`HeadTensor`](crate::HeadTensor).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Scaling {
        /// All of Q, all of K, all of V.
        PerTensor = "per tensor",
        /// Those of one sequence and head.
        #[default]
        PerHead = "per head",
        /// Those of [`SCALE_BLOCK`] neighbouring positions of one sequence and head.
        PerBlock = "per block",
    }
}

impl Scaling {
    /// How many scales lie in memory for one head of `positions` positions.
    pub fn count(self, positions: usize) -> usize {
        match self {
            Self::PerTensor | Self::PerHead => 1,
            Self::PerBlock => positions.div_ceil(SCALE_BLOCK),
        }
    }

    /// Which of its head's scales belongs to a position.
    pub fn place(self, position: usize) -> usize {
        match self {
            Self::PerTensor | Self::PerHead => 0,
            Self::PerBlock => position / SCALE_BLOCK,
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One matrix of a problem's output: a group's C, or one sequence and head of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

impl Operation {
    /// The matrices of the output, in the order in which they lie in memory, each row-major:
    /// a GEMM's groups; attention's sequences, and in each its heads.
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::GroupedGemm(gemm) => gemm
                .groups
                .iter()
                .map(|shape| Part {
                    rows: shape.m,
                    columns: shape.n,
                })
                .collect(),
            Self::Attention(attention) => attention
                .sequences
                .iter()
                .flat_map(|sequence| {
                    std::iter::repeat_n(
                        Part {
                            rows: sequence.queries,
                            columns: attention.head_size,
                        },
                        attention.heads,
                    )
                })
                .collect(),
        }
    }

    /// Bytes of the output: each element of each part.
    pub fn output_bytes(&self) -> usize {
        let elements: usize = self.parts().iter().map(|part| part.rows * part.columns).sum();
        elements * self.output_format().bytes()
    }

    /// The format that the result is rounded to.
    pub fn output_format(&self) -> OutputFormat {
        match self {
            Self::GroupedGemm(gemm) => gemm.output,
            Self::Attention(attention) => attention.output,
        }
    }
}
