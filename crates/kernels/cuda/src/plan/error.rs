//! Why a problem under a schedule cannot be planned.

use gauntlet_device::Arch;
use gauntlet_problems::{GroupedGemm, OperationError, TokenFormat};
use thiserror::Error;

use crate::packing::PackingError;

/// Why a problem under a schedule cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The kernel does not support a value of the schedule.
    #[error("{word} = {value}: {why}; {remedy}")]
    Word {
        /// The parameter at fault, down to the part (`tile.m`).
        word: &'static str,
        /// The value it has.
        value: String,
        /// The rule it breaks, with its figures.
        why: String,
        /// A change that would satisfy the rule.
        remedy: String,
    },
    /// The sizes are invalid.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// An architecture for which no kernel of the family is built.
    #[error(
        "the {kernel} kernel is not built for {arch}; GEMM and attention are built for sm_80, sm_89, sm_90a and sm_100a"
    )]
    Architecture {
        /// The architecture.
        arch: Arch,
        /// The kernel.
        kernel: &'static str,
    },
    /// A head size without a kernel.
    #[error(
        "heads of {size}: attention on CUDA takes head sizes that are multiples of 16, up to 256; pad Q, K and V with zeros \
         to the next one, here {next}, and multiply Q by sqrt({next} / {size}), or compute on the CPU", next = size.next_multiple_of(16)
    )]
    HeadSize {
        /// Values a head and position.
        size: usize,
    },
    /// A format of tokens that the kernel does not multiply.
    #[error(
        "{format} tokens: the {kernel} kernel multiplies nvfp4 tokens; choose swap-ab = true and tile = [128, 256, 128] \
         (dual: [64, 256, 128])"
    )]
    Tokens {
        /// Their format.
        format: TokenFormat,
        /// The kernel.
        kernel: &'static str,
    },
    /// Products of several sizes in a call that is planned on the device.
    #[error(
        "product {product} is {}×{}, and the first {}×{}: a call that is planned on the device has products of one size;          plan it on the host with its token counts", found[0], found[1], first[0], first[1]
    )]
    Unequal {
        /// The product.
        product: usize,
        /// Its N and K.
        found: [usize; 2],
        /// Those of the first product.
        first: [usize; 2],
    },
    /// Tokens of f32.
    #[error(
        "f32 tokens: the CUDA kernels multiply nvfp4, f16 and bf16 tokens; round them, or compute on the CPU"
    )]
    WideTokens,
    /// Tokens of a mixture of experts that are not copied in whole pieces of 16 bytes.
    #[error("tokens of {size} values: a mixture of experts on a GPU copies them in multiples of 8; pad them")]
    Pieces {
        /// Values of a token.
        size: usize,
    },
    /// Weights that cannot be repacked.
    #[error(transparent)]
    Packing(#[from] PackingError),
    /// Sizes beyond the integer ranges of the tables.
    #[error("{what} is {value}, and the kernels count to {most}; split the problem into several calls")]
    TooLarge {
        /// The quantity that is too large.
        what: String,
        /// Its value.
        value: usize,
        /// The largest value possible.
        most: usize,
    },
}

/// Returns an error unless each parameter has the one value that the kernel supports; a row is a parameter's name, its
/// value, the value needed, and why.
macro_rules! require {
    ($($word:literal: $value:expr, $needed:expr, $why:expr;)+) => {
        $($crate::plan::PlanError::unless($word, $value, $needed, $why)?;)+
    };
}
pub(super) use require;

impl PlanError {
    /// An error for a parameter whose value the kernel does not support.
    pub(super) fn word(
        word: &'static str,
        value: impl ToString,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Word {
            word,
            value: value.to_string(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }

    /// Checks that tokens are NVFP4, for a kernel that multiplies no others.
    ///
    /// # Errors
    /// If they are not.
    pub(super) fn unless_nvfp4(gemm: &GroupedGemm, kernel: &'static str) -> Result<(), Self> {
        match gemm.tokens {
            TokenFormat::Nvfp4 => Ok(()),
            format => Err(Self::Tokens { format, kernel }),
        }
    }

    /// Checks a parameter for which the kernel supports only one value.
    ///
    /// # Errors
    /// If it has another value.
    pub(crate) fn unless<T: PartialEq + ToString>(
        word: &'static str,
        value: T,
        needed: T,
        why: &str,
    ) -> Result<(), Self> {
        if value == needed {
            return Ok(());
        }
        Err(Self::word(
            word,
            value,
            why,
            format!("choose {}", needed.to_string()),
        ))
    }
}
