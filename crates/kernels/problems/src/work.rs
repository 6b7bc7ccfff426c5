//! The computation and memory traffic of a problem, independent of the schedule.

use gauntlet_nvfp4::BLOCK;

use crate::{Attention, Form, GroupedGemm, Operation};

impl Operation {
    /// Floating-point operations: two a multiply-add of the matrix products that contribute to the result. Keys that
    /// a causal mask hides do not count, nor do exponentials and scales.
    pub fn flops(&self) -> u64 {
        match self {
            Self::GroupedGemm(gemm) => gemm_flops(gemm),
            Self::Attention(attention) => attention_flops(attention),
        }
    }

    /// Bytes of compulsory traffic: each operand with its scales read once, the result written once. A group without
    /// rows needs none.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::GroupedGemm(gemm) => gemm_bytes(gemm),
            Self::Attention(attention) => attention_bytes(attention),
        }
    }
}

/// Products a group: one, or two of the dual form.
fn products(form: Form) -> u64 {
    match form {
        Form::Plain => 1,
        Form::Swiglu => 2,
    }
}

fn gemm_flops(gemm: &GroupedGemm) -> u64 {
    gemm.groups
        .iter()
        .map(|shape| 2 * products(gemm.form) * (shape.m * shape.n * shape.k) as u64)
        .sum()
}

fn gemm_bytes(gemm: &GroupedGemm) -> u64 {
    let operand = |rows: usize, depth: usize| (rows * depth / 2 + rows * depth / BLOCK) as u64;
    let tokens = |rows: usize, depth: usize| match gemm.tokens.float() {
        Some(float) => (float.bytes() * rows * depth) as u64,
        None => operand(rows, depth),
    };
    let output = gemm.output.bytes() as u64;
    let groups = gemm.groups.iter().filter(|shape| shape.m > 0);
    groups
        .map(|shape| {
            tokens(shape.m, shape.k)
                + products(gemm.form) * operand(shape.n, shape.k)
                + output * (shape.m * shape.n) as u64
        })
        .sum()
}

fn attention_flops(attention: &Attention) -> u64 {
    let pairs: u64 = attention
        .sequences
        .iter()
        .map(|&sequence| attention.visible_pairs(sequence))
        .sum();
    4 * pairs * (attention.heads * attention.head_size) as u64
}

fn attention_bytes(attention: &Attention) -> u64 {
    let rows = attention.query_rows() + 2 * attention.key_rows();
    let elements = rows * attention.head_size * attention.format.bytes();
    let scales = if attention.format.has_scales() {
        (attention.query_scales() + 2 * attention.key_scales()) * size_of::<f32>()
    } else {
        0
    };
    let output = attention.query_rows() * attention.head_size * attention.output.bytes();
    (elements + scales + output) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttentionFormat, OutputFormat};

    #[test]
    fn traffic_of_the_competition_s_third_case_is_its_speed_of_light() {
        // 2.406 µs at 7.68 TB/s, the bandwidth behind the published figures.
        let groups = [192, 320].map(|m| [m, 3072, 4096]);
        let problem = Operation::GroupedGemm(GroupedGemm::new(Form::Plain, groups));
        let microseconds = problem.bytes() as f64 / 7.68e6;
        assert!((microseconds - 2.406).abs() < 0.005, "{microseconds}");
        assert_eq!(problem.flops(), 2 * 512 * 3072 * 4096);
    }

    #[test]
    fn a_group_without_rows_costs_nothing_and_a_dual_one_twice_the_products() {
        let gemm = |m, form| {
            Operation::GroupedGemm(GroupedGemm {
                output: OutputFormat::F32,
                ..GroupedGemm::new(form, [[m, 32, 64]])
            })
        };
        assert_eq!(
            (gemm(0, Form::Plain).bytes(), gemm(0, Form::Plain).flops()),
            (0, 0)
        );
        assert_eq!(gemm(2, Form::Swiglu).flops(), 2 * gemm(2, Form::Plain).flops());
        assert_eq!(gemm(2, Form::Plain).bytes(), (2 + 32) * (32 + 4) + 2 * 32 * 4);
        assert_eq!(gemm(2, Form::Swiglu).bytes(), (2 + 64) * (32 + 4) + 2 * 32 * 4);
    }

    fn attention(queries: usize, keys: usize, causal: bool) -> Attention {
        Attention {
            causal,
            ..Attention::new(AttentionFormat::E4m3, [[queries, keys]], [2, 1], 8)
        }
    }

    #[test]
    fn a_causal_mask_hides_half_of_the_pairs() {
        let problem = |causal| Operation::Attention(attention(4, 4, causal));
        assert_eq!(problem(false).flops(), 4 * 16 * 2 * 8);
        assert_eq!(problem(true).flops(), 4 * 10 * 2 * 8);
        assert_eq!(problem(true).bytes(), 8 * 8 + 2 * 4 * 8 + 4 * 4 + 8 * 8 * 2);
    }

    #[test]
    fn the_flops_of_attention_are_those_of_the_keys_that_its_queries_see() {
        for (queries, keys) in (0..9).flat_map(|queries| (1..9).map(move |keys| (queries, keys))) {
            for causal in [false, true] {
                let attention = attention(queries, keys, causal);
                let seen = |query| attention.visible_keys(attention.sequences[0], query) as u64;
                let pairs: u64 = (0..queries).map(seen).sum();
                let flops = Operation::Attention(attention.clone()).flops();
                assert_eq!(
                    flops,
                    4 * pairs * 2 * 8,
                    "{queries} queries, {keys} keys, {causal}"
                );
            }
        }
    }

    #[test]
    fn the_longest_sequences_are_counted_at_once() {
        let problem = Operation::Attention(attention(1 << 50, 8, true));
        assert_eq!(problem.validate(), Ok(()));
        assert_eq!(problem.flops(), 4 * 36 * 2 * 8);
    }
}
