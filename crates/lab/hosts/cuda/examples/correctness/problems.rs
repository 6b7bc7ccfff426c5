//! The problems to check: the suites' cases and random problems.

mod attention;
mod gemm;

use std::error::Error;

use clap::ValueEnum;
use gauntlet_problems::{Operation, OutputFormat};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The formats of results.
pub const OUTPUTS: [OutputFormat; 3] = [OutputFormat::F16, OutputFormat::Bf16, OutputFormat::F32];

/// A kernel family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Family {
    Gemm,
    Attention,
}

impl Family {
    /// The family of a problem.
    pub fn of(problem: &Operation) -> Self {
        match problem {
            Operation::GroupedGemm(_) => Self::Gemm,
            Operation::Attention(_) => Self::Attention,
        }
    }
}

/// A problem with a name, and the result formats to check.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    pub name: String,
    pub problem: Operation,
    pub outputs: Vec<OutputFormat>,
}

/// The same problem with another result format.
pub fn with_output(problem: &Operation, output: OutputFormat) -> Operation {
    let mut problem = problem.clone();
    match &mut problem {
        Operation::GroupedGemm(gemm) => gemm.output = output,
        Operation::Attention(attention) => attention.output = output,
    }
    problem
}

/// All cases of a family's suites: GEMMs in every result format; attention, whose result format follows from its
/// operands, in its own.
pub fn of_suites(family: Family) -> Result<Vec<Named>, Box<dyn Error>> {
    let suites: &[&str] = match family {
        Family::Gemm => &["group-gemm", "dual-gemm"],
        Family::Attention => &["attention"],
    };
    let mut named = Vec::new();
    for name in suites {
        let suite = gauntlet_families::suite(name)?;
        for case in suite.correctness.into_iter().chain(suite.benchmark) {
            let problem = gauntlet_tiled_family::operation(&case.sizes).ok_or("a case of another family")?;
            let outputs = match family {
                Family::Gemm => OUTPUTS.into(),
                Family::Attention => vec![problem.output_format()],
            };
            named.push(Named {
                name: format!("{name}/{}", case.name),
                problem: problem.clone(),
                outputs,
            });
        }
    }
    Ok(named)
}

/// `count` random problems. The same seed gives the same problems, and a smaller `count` a prefix of them. Forms and
/// formats alternate.
pub fn drawn(family: Family, seed: u64, count: usize) -> impl Iterator<Item = Named> {
    (0..count).map(move |index| {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(index as u64);
        let (problem, output) = match family {
            Family::Gemm => gemm::draw(index, &mut generator),
            Family::Attention => attention::draw(index, &mut generator),
        };
        Named {
            name: format!("drawn/{index}"),
            problem,
            outputs: vec![output],
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_ten_and_eight_small_cases_and_the_eight_large_ones() {
        let cases = of_suites(Family::Gemm).unwrap();
        let count = |begin: &str| cases.iter().filter(|case| case.name.starts_with(begin)).count();
        assert_eq!(count("group-gemm/small"), 10);
        assert_eq!(count("dual-gemm/small"), 8);
        assert_eq!(count("group-gemm/case"), 4);
        assert_eq!(count("dual-gemm/case"), 4);
        assert!(of_suites(Family::Attention).unwrap().len() >= 12);
    }

    #[test]
    fn a_seed_says_the_problems() {
        for family in [Family::Gemm, Family::Attention] {
            let few: Vec<_> = drawn(family, 7, 5).collect();
            assert_eq!(drawn(family, 7, 9).take(5).collect::<Vec<_>>(), few);
            assert_ne!(drawn(family, 8, 5).collect::<Vec<_>>(), few);
        }
    }
}
