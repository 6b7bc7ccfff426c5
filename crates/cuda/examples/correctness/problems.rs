//! What has to be right: the suites' cases, and problems drawn at random.

use std::error::Error;

use gauntlet_problem::{Form, GemmShape, GroupedGemm, OutputFormat, Problem, Suite};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The formats of results.
pub const OUTPUTS: [OutputFormat; 3] = [OutputFormat::F16, OutputFormat::Bf16, OutputFormat::F32];

/// Most floating-point operations of a drawn problem: few enough for the oracle to compute all of it.
const MOST_FLOPS: u64 = 4_000_000_000;

/// A GEMM with a name, and the formats that its results are asked for in.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    pub name: String,
    pub gemm: GroupedGemm,
    pub outputs: Vec<OutputFormat>,
}

/// All cases of both suites, each in every format.
pub fn of_suites() -> Result<Vec<Named>, Box<dyn Error>> {
    let mut named = Vec::new();
    for name in ["group-gemm", "dual-gemm"] {
        let suite = Suite::builtin(name)?;
        for case in suite.correctness.into_iter().chain(suite.benchmark) {
            if let Problem::GroupedGemm(gemm) = case.problem {
                named.push(Named {
                    name: format!("{name}/{}", case.name),
                    gemm,
                    outputs: OUTPUTS.into(),
                });
            }
        }
    }
    Ok(named)
}

/// So many drawn problems; the same for the same seed, and the first of many are the few. Forms and formats take turns.
pub fn drawn(seed: u64, count: usize) -> impl Iterator<Item = Named> {
    (0..count).map(move |index| {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(index as u64);
        let output = OUTPUTS[index / 2 % OUTPUTS.len()];
        let form = [Form::Plain, Form::Swiglu][index % 2];
        Named {
            name: format!("drawn/{index}"),
            gemm: draw(form, output, &mut generator),
            outputs: vec![output],
        }
    })
}

fn draw(form: Form, output: OutputFormat, generator: &mut ChaCha8Rng) -> GroupedGemm {
    loop {
        let groups = generator.random_range(1..=9);
        let (n, k) = (columns(generator), depth(generator));
        // Experts of a mixture are alike; the format of the problem lets every group have sizes of its own.
        let alike = generator.random_bool(0.5);
        let groups = (0..groups)
            .map(|_| match alike {
                true => (tokens(generator), n, k),
                false => (tokens(generator), columns(generator), depth(generator)),
            })
            .map(|(m, n, k)| GemmShape { m, n, k })
            .collect();
        let gemm = GroupedGemm { groups, form, output };
        if Problem::GroupedGemm(gemm.clone()).flops() <= MOST_FLOPS {
            return gemm;
        }
    }
}

/// None, a few, up to 300, and sometimes thousands.
fn tokens(generator: &mut ChaCha8Rng) -> usize {
    match generator.random_range(0..20) {
        0..2 => 0,
        2..6 => generator.random_range(1..=16),
        6..19 => generator.random_range(0..=300),
        _ => generator.random_range(301..=4000),
    }
}

/// Few or many, odd or a multiple of 8.
fn columns(generator: &mut ChaCha8Rng) -> usize {
    match generator.random_range(0..6) {
        0 => generator.random_range(1..=64),
        1..3 => generator.random_range(1..=700),
        3 => 2 * generator.random_range(0..1500) + 1,
        _ => 8 * generator.random_range(1..=256),
    }
}

/// Multiples of 16, mostly shallow.
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

    #[test]
    fn suites_have_the_ten_and_eight_small_cases_and_the_eight_large_ones() {
        let cases = of_suites().unwrap();
        let count = |begin: &str| cases.iter().filter(|case| case.name.starts_with(begin)).count();
        assert_eq!(count("group-gemm/small"), 10);
        assert_eq!(count("dual-gemm/small"), 8);
        assert_eq!(count("group-gemm/case"), 4);
        assert_eq!(count("dual-gemm/case"), 4);
    }

    #[test]
    fn drawn_problems_are_valid_and_of_every_sort() {
        let problems: Vec<_> = drawn(1, 200).collect();
        let mut shapes = Vec::new();
        for Named { gemm, name, .. } in &problems {
            Problem::GroupedGemm(gemm.clone())
                .validate()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            shapes.extend(gemm.groups.iter().map(|shape| (shape.m, shape.n, shape.k)));
        }
        for output in OUTPUTS {
            for form in [Form::Plain, Form::Swiglu] {
                let of = |one: &&Named| one.gemm.form == form && one.gemm.output == output;
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
            assert!(
                problems.iter().any(|one| one.gemm.groups.len() == groups),
                "{groups}"
            );
        }
    }

    #[test]
    fn a_seed_says_the_problems() {
        let few: Vec<_> = drawn(7, 5).collect();
        assert_eq!(drawn(7, 9).take(5).collect::<Vec<_>>(), few);
        assert_ne!(drawn(8, 5).collect::<Vec<_>>(), few);
    }
}
