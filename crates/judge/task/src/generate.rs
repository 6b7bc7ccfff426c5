//! Seeded inputs.
//!
//! Each tensor draws from a ChaCha stream of its own, so that tensors are made in parallel, and the same seed gives
//! the same bytes on any machine and any number of threads.

use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How operands are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// The competition's distribution. Plain GEMM: values ±{0, .5, 1, 1.5}, scales {1, 2}, so that every order of
    /// summation gives the same bits; dual: scales U[0, 1) rounded to e4m3. Attention: standard normal.
    #[default]
    Competition,
    /// GEMM: every value and scale code, including subnormal and negative scales, with tensor scales that bring results
    /// near 16. Attention: heads of different magnitudes, with outliers.
    Wide,
    /// N(0, 1) + N(0, 100)·Bernoulli(0.001): one value in a thousand is about ten times as large, similar to the
    /// activations of trained models that a quantiser sees (FlashAttention-3, arXiv 2407.08608, section 4.3). GEMM:
    /// scaled so that results are near 16, and quantised.
    Outliers,
    /// Rows of zeros, of −0, of the largest values, of alternating signs, with a single nonzero value, with the
    /// smallest subnormals; scales of 0, of 2⁻⁹ and of 448 side by side. Attention: also values of 1 throughout, and
    /// keys that give many small weights, which make up the whole result. No result exceeds the range of f16.
    Adversarial,
}

impl InputKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Competition, Self::Wide, Self::Outliers, Self::Adversarial];
}

impl fmt::Display for InputKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Competition => "competition",
            Self::Wide => "wide",
            Self::Outliers => "outliers",
            Self::Adversarial => "adversarial",
        })
    }
}

/// The generator of one tensor.
pub fn stream(seed: u64, tensor: usize) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(tensor as u64);
    generator
}

/// Standard normal values.
pub fn normal(count: usize, generator: &mut ChaCha8Rng) -> Vec<f32> {
    generator.sample_iter(StandardNormal).take(count).collect()
}

/// `magnitude` times N(0, 1) + N(0, 100)·Bernoulli(0.001).
pub fn outliers(count: usize, magnitude: f32, generator: &mut ChaCha8Rng) -> Vec<f32> {
    let mut values = normal(count, generator);
    for value in &mut values {
        if generator.random_ratio(1, 1000) {
            *value += 10.0 * generator.sample::<f32, _>(StandardNormal);
        }
        *value *= magnitude;
    }
    values
}
