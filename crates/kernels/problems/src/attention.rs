//! Where attention's rows, heads and scales lie.

use crate::{Attention, AttentionFormat, OutputFormat, Scaling, Sequence};

impl Attention {
    /// Sequences of these numbers of queries and keys, without a mask, with query heads and key heads of one size, a scale
    /// per head and a result in f16.
    pub fn new(
        format: AttentionFormat,
        sequences: impl IntoIterator<Item = [usize; 2]>,
        [heads, kv_heads]: [usize; 2],
        head_size: usize,
    ) -> Self {
        let lengths = |[queries, keys]: [usize; 2]| Sequence { queries, keys };
        Self {
            sequences: sequences.into_iter().map(lengths).collect(),
            heads,
            kv_heads,
            head_size,
            causal: false,
            format,
            scaling: Scaling::default(),
            output: OutputFormat::default(),
        }
    }

    /// Rows of Q and of the output, each of `head_size` elements: query positions × heads, over all sequences.
    pub fn query_rows(&self) -> usize {
        self.sequences
            .iter()
            .map(|sequence| sequence.queries * self.heads)
            .sum()
    }

    /// Rows of K and of V: key positions × key heads, over all sequences.
    pub fn key_rows(&self) -> usize {
        self.sequences
            .iter()
            .map(|sequence| sequence.keys * self.kv_heads)
            .sum()
    }

    /// The key head that query head `head` reads.
    pub fn kv_head(&self, head: usize) -> usize {
        head / (self.heads / self.kv_heads)
    }

    /// The first row of Q, and of the output, of each sequence's first head.
    pub fn first_query_rows(&self) -> Vec<usize> {
        running_sum(
            self.sequences
                .iter()
                .map(|sequence| sequence.queries * self.heads),
        )
    }

    /// The first row of K, and of V, of each sequence's first head.
    pub fn first_key_rows(&self) -> Vec<usize> {
        running_sum(
            self.sequences
                .iter()
                .map(|sequence| sequence.keys * self.kv_heads),
        )
    }

    /// Whether values are multiplied by scales that differ between blocks of a head's positions.
    pub fn has_block_scales(&self) -> bool {
        self.format.has_scales() && self.scaling == Scaling::PerBlock
    }

    /// Scales of Q.
    pub fn query_scales(&self) -> usize {
        self.sequences
            .iter()
            .map(|sequence| self.sequence_scales(sequence.queries, self.heads))
            .sum()
    }

    /// Scales of K, and of V.
    pub fn key_scales(&self) -> usize {
        self.sequences
            .iter()
            .map(|sequence| self.sequence_scales(sequence.keys, self.kv_heads))
            .sum()
    }

    /// The first scale of Q of each sequence's first head.
    pub fn first_query_scales(&self) -> Vec<usize> {
        running_sum(
            self.sequences
                .iter()
                .map(|sequence| self.sequence_scales(sequence.queries, self.heads)),
        )
    }

    /// The first scale of K, and of V, of each sequence's first head.
    pub fn first_key_scales(&self) -> Vec<usize> {
        running_sum(
            self.sequences
                .iter()
                .map(|sequence| self.sequence_scales(sequence.keys, self.kv_heads)),
        )
    }

    fn sequence_scales(&self, positions: usize, heads: usize) -> usize {
        heads * self.scaling.count(positions)
    }

    /// How many keys, from the first, query `query` of `sequence` sees.
    pub fn visible_keys(&self, sequence: Sequence, query: usize) -> usize {
        if self.causal {
            (query + 1 + sequence.keys).saturating_sub(sequence.queries)
        } else {
            sequence.keys
        }
    }

    /// Pairs of a query and a key that it sees, of one head of `sequence`.
    pub(crate) fn visible_pairs(&self, sequence: Sequence) -> u64 {
        let (queries, keys) = (sequence.queries as u64, sequence.keys as u64);
        if self.causal {
            // Aligned at the end: the last query sees all keys, each one before it one key fewer, down to none.
            let seeing = queries.min(keys);
            seeing * (keys - seeing) + seeing * (seeing + 1) / 2
        } else {
            queries * keys
        }
    }
}

fn running_sum(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    lengths
        .scan(0, |end, length| {
            let start = *end;
            *end += length;
            Some(start)
        })
        .collect()
}
