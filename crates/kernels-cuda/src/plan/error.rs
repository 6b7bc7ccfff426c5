//! Why a problem under a schedule cannot be planned.

use gauntlet_operations::OperationError;
use thiserror::Error;

/// Why a problem under a schedule cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The kernel cannot do what a word of the schedule says.
    #[error("{word} = {value}: {why}; {remedy}")]
    Word {
        /// The word at fault, down to the part (`tile.m`).
        word: &'static str,
        /// The value it has.
        value: String,
        /// The rule it breaks, with its figures.
        why: String,
        /// What would keep the rule.
        remedy: String,
    },
    /// The sizes make no problem.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A head size that no kernel is for.
    #[error(
        "attention on CUDA has kernels for head sizes 64 and 128, not {size}; run it with `--executor cpu`"
    )]
    HeadSize {
        /// Values a head and position.
        size: usize,
    },
    /// Sizes beyond what the tables can count.
    #[error("{what} is {value}, and the kernels count to {most}; split the problem into several calls")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its value.
        value: usize,
        /// The largest value possible.
        most: usize,
    },
}

impl PlanError {
    /// A word of the schedule that the kernel cannot do.
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

    /// A word that has one value which the kernel can do.
    ///
    /// # Errors
    /// If it has another.
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
