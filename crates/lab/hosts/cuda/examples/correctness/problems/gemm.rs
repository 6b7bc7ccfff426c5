//! GEMMs drawn at random: ragged groups, odd sizes, shallow and deep.

use gauntlet_problems::{Form, GemmShape, GroupedGemm, Operation, OutputFormat, TokenFormat};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::OUTPUTS;

/// The most floating-point operations of a random problem: few enough for the oracle to compute all of it.
const MAX_FLOPS: u64 = 4_000_000_000;

/// Formats of tokens; NVFP4 twice, because it has the most kernels.
const TOKENS: [TokenFormat; 4] = [
    TokenFormat::Nvfp4,
    TokenFormat::Bf16,
    TokenFormat::Nvfp4,
    TokenFormat::F16,
];

/// The random problem with this index in a run; forms and formats alternate.
pub(super) fn draw(index: usize, generator: &mut ChaCha8Rng) -> (Operation, OutputFormat) {
    let output = OUTPUTS[index / 2 % OUTPUTS.len()];
    let form = [Form::Plain, Form::Swiglu][index % 2];
    let gemm = GroupedGemm {
        tokens: TOKENS[index / 6 % TOKENS.len()],
        ..sizes(form, output, generator)
    };
    (Operation::GroupedGemm(gemm), output)
}

fn sizes(form: Form, output: OutputFormat, generator: &mut ChaCha8Rng) -> GroupedGemm {
    loop {
        let groups = generator.random_range(1..=9);
        let (n, k) = (columns(generator), depth(generator));
        // Experts of a mixture are alike; the format of problems allows different sizes for each group.
        let alike = generator.random_bool(0.5);
        let groups = (0..groups)
            .map(|_| match alike {
                true => (tokens(generator), n, k),
                false => (tokens(generator), columns(generator), depth(generator)),
            })
            .map(|(m, n, k)| GemmShape { m, n, k })
            .collect();
        let gemm = GroupedGemm {
            groups,
            form,
            output,
            tokens: Default::default(),
        };
        if Operation::GroupedGemm(gemm.clone()).flops() <= MAX_FLOPS {
            return gemm;
        }
    }
}

/// The token count of a group: zero, a few, up to 300, and sometimes thousands.
fn tokens(generator: &mut ChaCha8Rng) -> usize {
    match generator.random_range(0..20) {
        0..2 => 0,
        2..6 => generator.random_range(1..=16),
        6..19 => generator.random_range(0..=300),
        _ => generator.random_range(301..=4000),
    }
}

/// A column count: small or large, odd or a multiple of 8.
fn columns(generator: &mut ChaCha8Rng) -> usize {
    match generator.random_range(0..6) {
        0 => generator.random_range(1..=64),
        1..3 => generator.random_range(1..=700),
        3 => 2 * generator.random_range(0..1500) + 1,
        _ => 8 * generator.random_range(1..=256),
    }
}

/// A depth (K): multiples of 16, mostly small.
fn depth(generator: &mut ChaCha8Rng) -> usize {
    16 * match generator.random_range(0..8) {
        0..6 => generator.random_range(1..=64),
        6 => generator.random_range(1..=8),
        _ => generator.random_range(65..=448),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::{Family, Named, drawn};

    fn gemm(one: Named) -> GroupedGemm {
        match one.problem {
            Operation::GroupedGemm(gemm) => gemm,
            Operation::Attention(_) => panic!("{}", one.name),
        }
    }

    #[test]
    fn drawn_problems_are_valid_and_of_every_sort() {
        let problems: Vec<_> = drawn(Family::Gemm, 1, 200).map(gemm).collect();
        let mut shapes = Vec::new();
        for gemm in &problems {
            Operation::GroupedGemm(gemm.clone()).validate().unwrap();
            shapes.extend(gemm.groups.iter().map(|shape| (shape.m, shape.n, shape.k)));
        }
        for output in OUTPUTS {
            for form in [Form::Plain, Form::Swiglu] {
                let of = |one: &&GroupedGemm| one.form == form && one.output == output;
                assert!(problems.iter().filter(of).count() >= 33);
            }
        }
        let some = |sort: fn(&(usize, usize, usize)) -> bool| {
            shapes.iter().filter(|shape| sort(shape)).count() >= 10
        };
        assert!(some(|&(m, ..)| m == 0));
        assert!(some(|&(m, ..)| (1..=16).contains(&m)));
        assert!(some(|&(m, ..)| m > 1000));
        assert!(some(|&(_, n, _)| n % 2 == 1));
        assert!(some(|&(_, n, _)| n > 1000));
        assert!(some(|&(.., k)| k % 256 != 0));
        assert!(some(|&(.., k)| k > 2048));
        for groups in 1..=9 {
            assert!(problems.iter().any(|one| one.groups.len() == groups), "{groups}");
        }
    }
}
