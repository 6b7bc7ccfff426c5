//! Checks that sizes form a valid problem.

use gauntlet_nvfp4::BLOCK;
use thiserror::Error;

use crate::{Attention, AttentionFormat, GemmShape, GroupedGemm, Operation, Scaling};

/// The largest head size that the kernels' register and shared-memory budgets are made for.
pub const MAX_HEAD_SIZE: usize = 256;

/// Most elements or FLOPs of a problem: sums over groups stay within 64 bits.
const MAX_COUNT: f64 = (1u64 << 60) as f64;

/// Most matrices of attention's output, sequences × heads. Two short numbers can request very many, and each matrix has
/// entries of its own in lists even if it has few elements.
const MAX_HEADS: usize = 1 << 20;

/// Why sizes do not form a valid problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OperationError {
    /// A grouped GEMM of no groups.
    #[error("there are no groups; give at least one (a group may have M = 0)")]
    NoGroups,
    /// The dimension summed over is not whole blocks.
    #[error("group {group}: K = {k} is not a multiple of {BLOCK}, the values that share a scale; try {}", nearest(*k))]
    Depth {
        /// The group, counted from 0.
        group: usize,
        /// Its K.
        k: usize,
    },
    /// A product without columns.
    #[error("group {group}: N = 0; give at least 1, or leave the group out")]
    NoColumns {
        /// The group, counted from 0.
        group: usize,
    },
    /// Attention over nothing.
    #[error("there are no sequences; give at least one")]
    NoSequences,
    /// A sequence without keys.
    #[error("sequence {sequence}: no keys, so that no weight can be 1; give at least one, or leave it out")]
    NoKeys {
        /// The sequence, counted from 0.
        sequence: usize,
    },
    /// Query heads that cannot share the key heads evenly.
    #[error(
        "{heads} query heads over {kv_heads} key heads; both must be at least 1, and the first a multiple of the second"
    )]
    Heads {
        /// Query heads.
        heads: usize,
        /// Key and value heads.
        kv_heads: usize,
    },
    /// More heads than lists should hold.
    #[error(
        "{sequences} sequences of {heads} heads are more than {MAX_HEADS} heads in all; split the problem"
    )]
    TooManyHeads {
        /// Sequences.
        sequences: usize,
        /// Query heads of each.
        heads: usize,
    },
    /// A head too small or too large.
    #[error("head size {head_size}; it must be 1 to {MAX_HEAD_SIZE}")]
    HeadSize {
        /// Values a head and position.
        head_size: usize,
    },
    /// A choice of scales for a format without any.
    #[error("{format} has no scales, so none is {scaling}; leave `scaling` out, or take e4m3 or int8")]
    Scaling {
        /// The format.
        format: AttentionFormat,
        /// Which values were to share a scale.
        scaling: Scaling,
    },
    /// More elements or operations than can be counted.
    #[error("{place}: the sizes multiply to more than 2⁶⁰; use smaller ones")]
    TooLarge {
        /// The group or the sequence, or all together.
        place: String,
    },
}

impl Operation {
    /// Whether the sizes form a valid problem. M = 0, and a sequence without queries, are legal.
    ///
    /// # Errors
    /// Names the first group or sequence that is wrong, and a valid value.
    pub fn validate(&self) -> Result<(), OperationError> {
        match self {
            Self::GroupedGemm(gemm) => validate_gemm(gemm),
            Self::Attention(attention) => validate_attention(attention),
        }
    }
}

/// Whether attention may have so many sequences of so many query heads: to be asked before a list of them is made.
///
/// # Errors
/// If they are too many.
pub fn check_heads(sequences: usize, heads: usize) -> Result<(), OperationError> {
    match sequences.saturating_mul(heads.max(1)) {
        0..=MAX_HEADS => Ok(()),
        _ => Err(OperationError::TooManyHeads { sequences, heads }),
    }
}

fn validate_gemm(gemm: &GroupedGemm) -> Result<(), OperationError> {
    if gemm.groups.is_empty() {
        return Err(OperationError::NoGroups);
    }
    let mut total = 0.0;
    for (group, &GemmShape { m, n, k }) in gemm.groups.iter().enumerate() {
        if k == 0 || !k.is_multiple_of(BLOCK) {
            return Err(OperationError::Depth { group, k });
        }
        if n == 0 {
            return Err(OperationError::NoColumns { group });
        }
        // One row at least, so that B alone is counted where there are none.
        total += count(|| format!("group {group}"), &[m.max(1), n, k, 4])?;
    }
    within(|| "all groups together".into(), total).map(drop)
}

fn validate_attention(attention: &Attention) -> Result<(), OperationError> {
    let &Attention {
        heads,
        kv_heads,
        head_size,
        format,
        scaling,
        ..
    } = attention;
    if attention.sequences.is_empty() {
        return Err(OperationError::NoSequences);
    }
    if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        return Err(OperationError::Heads { heads, kv_heads });
    }
    check_heads(attention.sequences.len(), heads)?;
    if head_size == 0 || head_size > MAX_HEAD_SIZE {
        return Err(OperationError::HeadSize { head_size });
    }
    if scaling != Scaling::default() && !format.has_scales() {
        return Err(OperationError::Scaling { format, scaling });
    }
    let mut total = 0.0;
    for (sequence, lengths) in attention.sequences.iter().enumerate() {
        if lengths.keys == 0 {
            return Err(OperationError::NoKeys { sequence });
        }
        let factors = [lengths.queries.max(1), lengths.keys, heads, head_size, 4];
        total += count(|| format!("sequence {sequence}"), &factors)?;
    }
    within(|| "all sequences together".into(), total).map(drop)
}

/// The approximate product of sizes, if it is within the limit.
fn count(place: impl Fn() -> String, factors: &[usize]) -> Result<f64, OperationError> {
    within(place, factors.iter().map(|&factor| factor as f64).product())
}

fn within(place: impl Fn() -> String, count: f64) -> Result<f64, OperationError> {
    if count <= MAX_COUNT {
        Ok(count)
    } else {
        Err(OperationError::TooLarge { place: place() })
    }
}

/// The multiples of the block around a K.
fn nearest(k: usize) -> String {
    let below = k / BLOCK * BLOCK;
    let above = below.saturating_add(BLOCK);
    if below == 0 {
        above.to_string()
    } else {
        format!("{below} or {above}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, Sequence};

    fn gemm(groups: &[[usize; 3]]) -> Result<(), OperationError> {
        Operation::GroupedGemm(GroupedGemm::new(Form::Plain, groups.iter().copied())).validate()
    }

    fn attention(
        lengths: &[[usize; 2]],
        heads: usize,
        kv_heads: usize,
        size: usize,
    ) -> Result<(), OperationError> {
        let lengths = lengths.iter().copied();
        Operation::Attention(Attention::new(
            AttentionFormat::F16,
            lengths,
            [heads, kv_heads],
            size,
        ))
        .validate()
    }

    #[test]
    fn depth_is_whole_blocks_and_the_message_says_which_would_be() {
        let error = gemm(&[[8, 8, 32], [8, 8, 100]]).unwrap_err();
        assert_eq!(error, OperationError::Depth { group: 1, k: 100 });
        assert!(error.to_string().starts_with("group 1: K = 100"), "{error}");
        assert!(error.to_string().ends_with("try 96 or 112"), "{error}");
        assert!(gemm(&[[8, 8, 0]]).unwrap_err().to_string().ends_with("try 16"));
    }

    #[test]
    fn empty_rows_are_legal_and_empty_lists_and_columns_are_not() {
        assert_eq!(gemm(&[[0, 8, 16]]), Ok(()));
        assert_eq!(gemm(&[]), Err(OperationError::NoGroups));
        assert_eq!(gemm(&[[1, 0, 16]]), Err(OperationError::NoColumns { group: 0 }));
        assert_eq!(attention(&[[0, 1]], 1, 1, 64), Ok(()));
        assert_eq!(attention(&[], 1, 1, 64), Err(OperationError::NoSequences));
        assert_eq!(
            attention(&[[4, 4], [4, 0]], 1, 1, 64),
            Err(OperationError::NoKeys { sequence: 1 })
        );
    }

    #[test]
    fn heads_divide_and_their_size_is_limited() {
        assert_eq!(attention(&[[4, 4]], 8, 2, 256), Ok(()));
        for (heads, kv_heads) in [(8, 3), (0, 1), (8, 0), (2, 4)] {
            assert_eq!(
                attention(&[[4, 4]], heads, kv_heads, 64),
                Err(OperationError::Heads { heads, kv_heads })
            );
        }
        // No elements at all, but still a list with this many parts.
        let heads = 1 << 31;
        assert_eq!(
            attention(&[[0, 1]], heads, heads, 64),
            Err(OperationError::TooManyHeads { sequences: 1, heads })
        );
        for head_size in [0, 257] {
            assert_eq!(
                attention(&[[4, 4]], 1, 1, head_size),
                Err(OperationError::HeadSize { head_size })
            );
        }
    }

    #[test]
    fn formats_without_scales_take_no_choice_of_them() {
        let problem = |format, scaling| {
            Operation::Attention(Attention {
                sequences: vec![Sequence { queries: 1, keys: 1 }],
                heads: 1,
                kv_heads: 1,
                head_size: 8,
                causal: false,
                format,
                scaling,
                output: Default::default(),
            })
        };
        assert_eq!(
            problem(AttentionFormat::Int8, Scaling::PerBlock).validate(),
            Ok(())
        );
        let error = problem(AttentionFormat::F16, Scaling::PerTensor)
            .validate()
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("f16 has no scales, so none is per tensor"),
            "{error}"
        );
    }

    #[test]
    fn sizes_that_cannot_be_counted_are_refused() {
        let huge = 1 << 40;
        assert!(matches!(
            gemm(&[[0, huge, huge]]),
            Err(OperationError::TooLarge { .. })
        ));
        assert!(matches!(
            gemm(&[[usize::MAX, usize::MAX, 16]]),
            Err(OperationError::TooLarge { .. })
        ));
        assert!(matches!(
            gemm(&[[1 << 18, 1 << 18, 1 << 22]; 2]),
            Err(OperationError::TooLarge { .. })
        ));
        assert!(matches!(
            attention(&[[huge, huge]], 1, 1, 1),
            Err(OperationError::TooLarge { .. })
        ));
    }
}
