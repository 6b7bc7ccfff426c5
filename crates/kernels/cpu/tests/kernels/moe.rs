//! A layer of a mixture of experts against its definition in f64.

use gauntlet_kernels_cpu::{Expert, FloatRows, MoeError, NO_EXPERT, SimdPath, TopExperts};
use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{FloatTensor, OutputFormat};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::engine;

const HIDDEN: usize = 80;
const INTERMEDIATE: usize = 48;

struct Layer {
    experts: Vec<[Nvfp4Tensor; 3]>,
    tokens: FloatTensor,
    ids: Vec<i64>,
    weights: Vec<f32>,
    count: usize,
}

impl Layer {
    fn drawn(format: OutputFormat, tokens: usize, experts: usize, count: usize, seed: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut matrix = |rows: usize, columns: usize| {
            let values: Vec<f32> = (0..rows * columns)
                .map(|_| generator.random_range(-0.5..0.5))
                .collect();
            Nvfp4Tensor::quantise(rows, columns, &values).unwrap()
        };
        let experts = (0..experts).map(|_| {
            [
                matrix(INTERMEDIATE, HIDDEN),
                matrix(INTERMEDIATE, HIDDEN),
                matrix(HIDDEN, INTERMEDIATE),
            ]
        });
        let experts: Vec<_> = experts.collect();
        let values: Vec<f32> = (0..tokens * HIDDEN)
            .map(|_| generator.random_range(-2.0..2.0))
            .collect();
        // Few experts are busy: the product of two draws prefers low numbers.
        let ids = (0..tokens * count).map(|_| {
            let draw: f64 = generator.random::<f64>() * generator.random::<f64>();
            (draw * experts.len() as f64) as i64
        });
        Self {
            ids: ids.collect(),
            weights: (0..tokens * count)
                .map(|_| generator.random_range(-1.0..1.0))
                .collect(),
            tokens: FloatTensor::round(format, tokens, HIDDEN, &values),
            experts,
            count,
        }
    }

    fn run(&self, simd: SimdPath, threads: usize, output: OutputFormat) -> Vec<u8> {
        self.run_mapped(simd, threads, output, None).unwrap()
    }

    fn run_mapped(
        &self,
        simd: SimdPath,
        threads: usize,
        output: OutputFormat,
        map: Option<&[i64]>,
    ) -> Result<Vec<u8>, MoeError> {
        let given = map.map_or(self.experts.len(), |map| {
            map.iter().filter(|place| **place >= 0).count()
        });
        let experts: Vec<_> = self.experts[..given]
            .iter()
            .map(|[gate, up, down]| Expert { gate, up, down })
            .collect();
        let shape = [self.tokens.rows, HIDDEN];
        let tokens = FloatRows::new(self.tokens.format, shape, &self.tokens.bytes).unwrap();
        let top = TopExperts {
            count: self.count,
            ids: &self.ids,
            weights: &self.weights,
            map,
        };
        engine(simd, threads).moe(&tokens, &top, &experts, output)
    }

    /// By the definition; results between the products are rounded to the tokens' type, as the layer says.
    fn expected(&self, place: impl Fn(i64) -> Option<usize>) -> Vec<f64> {
        let product = |weights: &Nvfp4Tensor, x: &[f64]| -> Vec<f64> {
            let values = weights.dequantise_scaled();
            let rows = values.chunks_exact(weights.columns());
            rows.map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum())
                .collect()
        };
        let mut result = vec![0.0; self.tokens.rows * HIDDEN];
        for (at, (id, weight)) in self.ids.iter().zip(&self.weights).enumerate() {
            let Some(expert) = place(*id) else { continue };
            let token = at / self.count;
            let x: Vec<f64> = (token * HIDDEN..(token + 1) * HIDDEN)
                .map(|index| f64::from(self.tokens.get(index)))
                .collect();
            let [gate, up, down] = &self.experts[expert];
            let between: Vec<f64> = product(gate, &x)
                .into_iter()
                .zip(product(up, &x))
                .map(|(gate, up)| f64::from(self.tokens.format.round(gate / (1.0 + (-gate).exp()) * up)))
                .collect();
            let sums = &mut result[token * HIDDEN..(token + 1) * HIDDEN];
            for (sum, value) in sums.iter_mut().zip(product(down, &between)) {
                *sum += f64::from(*weight) * value;
            }
        }
        result
    }
}

/// The relative norm of the error.
fn error(bytes: &[u8], expected: &[f64]) -> f64 {
    let found: Vec<f64> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
        .collect();
    assert_eq!(found.len(), expected.len());
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let difference = norm(
        &mut found
            .iter()
            .zip(expected)
            .map(|(found, expected)| found - expected),
    );
    difference / norm(&mut expected.iter().copied()).max(f64::MIN_POSITIVE)
}

#[test]
fn layers_follow_the_definition() {
    for simd in SimdPath::available() {
        for (format, most) in [
            // A sum that rounds the other way before a value is rounded to 16 bits costs a unit there.
            (OutputFormat::Bf16, 1e-4),
            (OutputFormat::F16, 2e-5),
            (OutputFormat::F32, 1e-6),
        ] {
            for (tokens, experts, count) in [(1, 8, 2), (33, 5, 3), (7, 64, 8), (4, 1, 1)] {
                let layer = Layer::drawn(format, tokens, experts, count, 3);
                let found = layer.run(simd, 2, OutputFormat::F32);
                let expected = layer.expected(|id| Some(id as usize));
                let error = error(&found, &expected);
                assert!(error < most, "{simd} {format} {tokens} of {experts}: {error:e}");
            }
        }
    }
}

#[test]
fn the_bits_depend_neither_on_threads_nor_on_other_tokens() {
    let layer = Layer::drawn(OutputFormat::Bf16, 19, 6, 2, 5);
    let whole = layer.run(SimdPath::best(), 3, OutputFormat::Bf16);
    assert!(whole == layer.run(SimdPath::best(), 1, OutputFormat::Bf16));
    let row = HIDDEN * 2;
    let last = Layer {
        tokens: FloatTensor {
            rows: 1,
            bytes: layer.tokens.bytes[18 * row..].to_vec(),
            ..layer.tokens.clone()
        },
        ids: layer.ids[18 * 2..].to_vec(),
        weights: layer.weights[18 * 2..].to_vec(),
        ..layer
    };
    assert!(whole[18 * row..] == last.run(SimdPath::best(), 2, OutputFormat::Bf16));
}

/// Two ranks, each with half of the experts, add up to the whole layer.
#[test]
fn experts_elsewhere_add_nothing() {
    let layer = Layer::drawn(OutputFormat::F32, 9, 6, 3, 7);
    let here = [2, -1, 0, -1, 1, -1];
    let found = layer
        .run_mapped(SimdPath::best(), 2, OutputFormat::F32, Some(&here))
        .unwrap();
    let expected = layer.expected(|id| usize::try_from(here[id as usize]).ok());
    let error = error(&found, &expected);
    assert!(error < 1e-6, "{error:e}");
    let nowhere = layer.run_mapped(SimdPath::best(), 2, OutputFormat::F32, Some(&[-1; 6]));
    assert!(nowhere.unwrap().iter().all(|byte| *byte == 0));
}

/// Engines pad a token's experts with −1.
#[test]
fn padding_adds_nothing() {
    let mut layer = Layer::drawn(OutputFormat::F32, 5, 6, 3, 9);
    for padded in [1, 6, 7, 8] {
        layer.ids[padded] = NO_EXPERT;
    }
    let own = |id: i64| usize::try_from(id).ok();
    for map in [None, Some(&[0, 1, 2, 3, 4, 5][..])] {
        let found = layer
            .run_mapped(SimdPath::best(), 2, OutputFormat::F32, map)
            .unwrap();
        let error = error(&found, &layer.expected(own));
        assert!(error < 1e-6, "{error:e}");
        assert!(
            found[2 * HIDDEN * 4..3 * HIDDEN * 4]
                .iter()
                .all(|byte| *byte == 0)
        );
    }
}

#[test]
fn layers_without_tokens_are_empty() {
    let layer = Layer::drawn(OutputFormat::Bf16, 0, 4, 2, 1);
    assert!(layer.run(SimdPath::best(), 1, OutputFormat::Bf16).is_empty());
}

#[test]
fn what_does_not_fit_is_named() {
    let mut layer = Layer::drawn(OutputFormat::Bf16, 2, 4, 2, 1);
    let run = |layer: &Layer, map| {
        let found = layer.run_mapped(SimdPath::Portable, 1, OutputFormat::F32, map);
        found.unwrap_err().to_string()
    };
    assert_eq!(
        run(&layer, Some(&[0, 1, 4, -1])),
        "expert 2 is mapped to 4, and 3 are given; give 0 to 2, or -1"
    );
    for wrong in [-2, 4, 1 << 32] {
        layer.ids[3] = wrong;
        let expected = format!("expert {wrong} of token 1: there are 4; give 0 to 3, or -1 for none");
        assert_eq!(run(&layer, None), expected);
        assert_eq!(run(&layer, Some(&[0, 1, 2, 3])), expected);
    }
    layer.weights.pop();
    assert_eq!(
        run(&layer, None),
        "weights: 3 for 2 tokens of 2 experts each; give 4"
    );
    layer.experts[1][2] = layer.experts[1][0].clone();
    assert_eq!(
        run(&layer, None),
        "expert 1: down is 48×80, and the layer takes 80×48"
    );
}
