//! Random attention problems: ragged batches, shared key heads, masks, lengths close to multiples of the tile sizes.

use gauntlet_problems::{Attention, AttentionFormat, Operation, OutputFormat, Scaling, Sequence};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Format of the operands, granularity of their scales, and format of the results: each combination needs its own
/// kernels, so there are few.
const FORMATS: [(AttentionFormat, Scaling, OutputFormat); 8] = [
    (AttentionFormat::F16, Scaling::PerHead, OutputFormat::F16),
    (AttentionFormat::E4m3, Scaling::PerHead, OutputFormat::F16),
    (AttentionFormat::Bf16, Scaling::PerHead, OutputFormat::Bf16),
    (AttentionFormat::E4m3, Scaling::PerBlock, OutputFormat::F16),
    (AttentionFormat::Int8, Scaling::PerHead, OutputFormat::F16),
    (AttentionFormat::F16, Scaling::PerHead, OutputFormat::F32),
    (AttentionFormat::Int8, Scaling::PerBlock, OutputFormat::F16),
    (AttentionFormat::E4m3, Scaling::PerTensor, OutputFormat::F16),
];

/// The most floating-point operations of a random problem: few enough for the oracle to compute all of it.
const MAX_FLOPS: u64 = 1_000_000_000;

/// The random problem with this index in a run; formats, head sizes and masks alternate.
pub(super) fn draw(index: usize, generator: &mut ChaCha8Rng) -> (Operation, OutputFormat) {
    let (format, scaling, output) = FORMATS[index % FORMATS.len()];
    let turn = index / FORMATS.len();
    loop {
        let kv_heads = generator.random_range(1..=3);
        let batch = generator.random_range(1..=4);
        // Equal lengths take another path through the kernels than unequal ones.
        let alike = generator.random_bool(0.5);
        let first = sequence(generator);
        let sequences = (0..batch)
            .map(|_| if alike { first } else { sequence(generator) })
            .collect();
        let problem = Operation::Attention(Attention {
            sequences,
            heads: kv_heads * generator.random_range(1..=3),
            kv_heads,
            head_size: [64, 128][turn % 2],
            causal: turn / 2 % 2 == 1,
            format,
            scaling,
            output,
        });
        if problem.flops() <= MAX_FLOPS {
            return (problem, output);
        }
    }
}

/// A sequence with one query and many keys, as many queries as keys, or any numbers of both.
fn sequence(generator: &mut ChaCha8Rng) -> Sequence {
    let keys = length(generator);
    let queries = match generator.random_range(0..4) {
        0 => 1,
        1 | 2 => keys,
        _ => length(generator),
    };
    Sequence { queries, keys }
}

/// A length: small, close to a multiple of 64, or up to a thousand.
fn length(generator: &mut ChaCha8Rng) -> usize {
    match generator.random_range(0..4) {
        0 => generator.random_range(1..=40),
        1 => 64 * generator.random_range(1..=8) + generator.random_range(0..=2) - 1,
        2 => 64 * generator.random_range(1..=8),
        _ => generator.random_range(1..=1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::{Family, drawn};

    #[test]
    fn drawn_problems_are_valid_and_of_every_sort() {
        let mut sorts = std::collections::BTreeSet::new();
        let mut operands = std::collections::HashSet::new();
        for one in drawn(Family::Attention, 1, 200) {
            one.problem.validate().unwrap();
            let Operation::Attention(attention) = one.problem else {
                panic!("{}", one.name);
            };
            let alike = attention.sequences.windows(2).all(|pair| pair[0] == pair[1]);
            let shared = attention.heads > attention.kv_heads;
            sorts.insert((attention.head_size, attention.causal, alike, shared));
            operands.insert((attention.format, attention.scaling));
            assert_eq!(attention.output, one.outputs[0]);
        }
        assert_eq!(sorts.len(), 16);
        assert_eq!(operands.len(), 7);
    }
}
