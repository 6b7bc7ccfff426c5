//! Problems small enough to be interpreted, like those that variants are shipped for.

use gauntlet_problems::{Attention, GemmShape, GroupedGemm, Operation, Packing, Sequence};

use crate::shipped::Shipped;

/// The depth of groups that have the same.
const ONE_DEPTH: usize = 784;

/// A problem like the one that a variant is shipped for, but small enough to be interpreted.
pub(super) fn small(one: &Shipped) -> Operation {
    match &one.problem {
        Operation::GroupedGemm(gemm) => {
            let mut small = small_gemm(gemm);
            if one.schedule.packing == Packing::Steps {
                // One depth for all is what these weights are for.
                small.groups.iter_mut().for_each(|shape| shape.k = ONE_DEPTH);
            }
            Operation::GroupedGemm(small)
        }
        Operation::Attention(attention) => Operation::Attention(small_attention(attention)),
    }
}

/// Groups: one whose results can be stored in whole lines, an empty one, and one with odd sizes. No chunk divides the
/// depths. They are deep enough to use all buffers more than once; with few tokens, every warp of a block gets its own
/// chunks.
fn small_gemm(of: &GroupedGemm) -> GroupedGemm {
    let most = of.groups.iter().map(|group| group.m).max().unwrap_or(0);
    let (tokens, depths) = match most {
        ..=16 => ([13, 0, 1], [2320, 256, 6160]),
        _ => ([67, 0, 21], [784, 256, 1296]),
    };
    let rows = [136, 16, 75];
    let groups = tokens.into_iter().zip(rows.into_iter().zip(depths));
    GroupedGemm {
        groups: groups.map(|(m, (n, k))| GemmShape { m, n, k }).collect(),
        form: of.form,
        output: of.output,
        tokens: of.tokens,
    }
}

/// Sequences that no tile divides; the first leaves most of a block without queries. They are equal if those of the
/// variant are, because its kernel may rely on it, and have few queries if those do.
pub(super) fn small_attention(of: &Attention) -> Attention {
    let alike = of.sequences.iter().all(|one| *one == of.sequences[0]);
    let few = of.sequences.iter().all(|one| one.queries < 16);
    let lengths = match (alike, few) {
        (true, _) => [(256, 256), (256, 256)],
        (false, true) => [(1, 500), (6, 131)],
        (false, false) => [(1, 500), (77, 131)],
    };
    Attention {
        sequences: sequences(lengths),
        heads: 2,
        kv_heads: 1,
        ..of.clone()
    }
}

/// Sequences of these numbers of queries and keys.
pub(super) fn sequences(lengths: [(usize, usize); 2]) -> Vec<Sequence> {
    lengths.map(|(queries, keys)| Sequence { queries, keys }).to_vec()
}
