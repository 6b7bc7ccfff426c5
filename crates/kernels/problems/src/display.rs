//! Problems in a few words, for tables and messages.

use std::fmt;

use crate::{Attention, GroupedGemm, Operation, OutputFormat, Scaling, TokenFormat};

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GroupedGemm(gemm) => gemm.fmt(formatter),
            Self::Attention(attention) => attention.fmt(formatter),
        }
    }
}

impl fmt::Display for GroupedGemm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.groups.len() != 1 {
            write!(formatter, "{} groups, ", self.groups.len())?;
        }
        let m = range(self.groups.iter().map(|shape| shape.m));
        let n = range(self.groups.iter().map(|shape| shape.n));
        let k = range(self.groups.iter().map(|shape| shape.k));
        write!(formatter, "M {m}, N {n}, K {k}, {}", self.form)?;
        if self.tokens != TokenFormat::Nvfp4 {
            write!(formatter, ", {} tokens", self.tokens)?;
        }
        write_output(formatter, self.output)
    }
}

impl fmt::Display for Attention {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queries = range(self.sequences.iter().map(|sequence| sequence.queries));
        let keys = range(self.sequences.iter().map(|sequence| sequence.keys));
        write!(formatter, "batch {}, {} heads", self.sequences.len(), self.heads)?;
        if self.kv_heads != self.heads {
            write!(formatter, " over {}", self.kv_heads)?;
        }
        write!(
            formatter,
            ", {queries} queries × {keys} keys, head size {}, {}",
            self.head_size, self.format
        )?;
        if self.scaling != Scaling::default() {
            write!(formatter, " scaled {}", self.scaling)?;
        }
        if self.causal {
            write!(formatter, ", causal")?;
        }
        write_output(formatter, self.output)
    }
}

/// f16, the default, goes without saying.
fn write_output(formatter: &mut fmt::Formatter<'_>, output: OutputFormat) -> fmt::Result {
    if output == OutputFormat::default() {
        Ok(())
    } else {
        write!(formatter, ", to {output}")
    }
}

/// `64…248`, or `64` where all are equal.
fn range(values: impl Iterator<Item = usize> + Clone) -> String {
    match (values.clone().min(), values.max()) {
        (Some(low), Some(high)) if low != high => format!("{low}…{high}"),
        (Some(value), _) => value.to_string(),
        (None, _) => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn a_problem_says_what_sets_it_apart() {
        let groups = [80, 64, 248].map(|m| GemmShape { m, n: 4096, k: 7168 }).to_vec();
        let mut gemm = GroupedGemm {
            groups,
            form: Form::Plain,
            output: OutputFormat::F16,
            tokens: Default::default(),
        };
        assert_eq!(gemm.to_string(), "3 groups, M 64…248, N 4096, K 7168, plain");
        gemm.groups.truncate(1);
        gemm.form = Form::Swiglu;
        gemm.output = OutputFormat::F32;
        assert_eq!(gemm.to_string(), "M 80, N 4096, K 7168, swiglu, to f32");

        let mut attention = Attention {
            causal: true,
            ..Attention::new(AttentionFormat::E4m3, [[1, 512], [7, 512]], [8, 2], 64)
        };
        assert_eq!(
            attention.to_string(),
            "batch 2, 8 heads over 2, 1…7 queries × 512 keys, head size 64, e4m3, causal"
        );
        attention.scaling = Scaling::PerBlock;
        attention.format = AttentionFormat::Int8;
        assert!(attention.to_string().ends_with("int8 scaled per block, causal"));
    }
}
