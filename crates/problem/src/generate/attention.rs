//! Operands of attention.

use gauntlet_formats::e4m3;
use half::{bf16, f16};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use rayon::prelude::*;

use super::{InputKind, stream};
use crate::{Attention, AttentionFormat, AttentionInputs, HeadTensor};

/// The largest magnitude of adversarial operands: scores stay under 8² · √256 = 1024, where an f32 sum is still
/// exact to 2⁻¹³, and results within every format.
const LARGEST: f32 = 8.0;

/// Q, K or V.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
    Query,
    Key,
    Value,
}

pub(super) fn generate(attention: &Attention, kind: InputKind, seed: u64) -> AttentionInputs {
    let draw = |operand| {
        let heads: Vec<(usize, usize)> = attention
            .sequences
            .iter()
            .flat_map(|sequence| match operand {
                Operand::Query => std::iter::repeat_n(sequence.queries, attention.heads).enumerate(),
                Operand::Key | Operand::Value => {
                    std::iter::repeat_n(sequence.keys, attention.kv_heads).enumerate()
                }
            })
            .collect();
        let quantised: Vec<(Vec<u8>, f32)> = heads
            .par_iter()
            .enumerate()
            .map(|(place, &(head, positions))| {
                let mut generator = stream(seed, 3 * place + operand as usize);
                let size = attention.head_size;
                let values = match kind {
                    InputKind::Competition => normal(positions * size, &mut generator),
                    InputKind::Wide => wide(operand, positions * size, &mut generator),
                    // With V = 1 every result is 1, whatever the weights.
                    InputKind::Adversarial if operand == Operand::Value && head == 0 => {
                        vec![1.0; positions * size]
                    }
                    InputKind::Adversarial => adversarial(attention.format, positions, size, &mut generator),
                };
                quantise(attention.format, &values)
            })
            .collect();
        HeadTensor {
            format: attention.format,
            scales: quantised.iter().map(|(_, scale)| *scale).collect(),
            bytes: quantised.into_iter().flat_map(|(bytes, _)| bytes).collect(),
        }
    };
    AttentionInputs {
        query: draw(Operand::Query),
        key: draw(Operand::Key),
        value: draw(Operand::Value),
    }
}

fn normal(count: usize, generator: &mut ChaCha8Rng) -> Vec<f32> {
    generator.sample_iter(StandardNormal).take(count).collect()
}

/// One in 64 values is eight times as large; heads differ in magnitude, those of Q and K less, so that the weights of
/// some heads are nearly even and those of others nearly one-hot.
fn wide(operand: Operand, count: usize, generator: &mut ChaCha8Rng) -> Vec<f32> {
    let exponents = if operand == Operand::Value {
        -4.0..4.0
    } else {
        -2.0..1.0
    };
    let magnitude = generator.random_range::<f32, _>(exponents).exp2();
    let mut values = normal(count, generator);
    for value in &mut values {
        *value *= if generator.random_ratio(1, 64) {
            8.0 * magnitude
        } else {
            magnitude
        };
    }
    values
}

/// Each position gets a pattern of its own.
fn adversarial(
    format: AttentionFormat,
    positions: usize,
    size: usize,
    generator: &mut ChaCha8Rng,
) -> Vec<f32> {
    let mut values = normal(positions * size, generator);
    let smallest = match format {
        AttentionFormat::E4m3 => e4m3::MIN_SUBNORMAL * LARGEST / e4m3::MAX,
        AttentionFormat::F16 => f16::from_bits(1).to_f32(),
        AttentionFormat::Bf16 => bf16::from_bits(1).to_f32(),
    };
    for row in values.chunks_exact_mut(size) {
        row.iter_mut()
            .for_each(|value| *value = value.clamp(-LARGEST, LARGEST));
        match generator.next_u32() % 8 {
            0 => row.fill(0.0),
            1 => row.fill(-0.0),
            2 => row.fill(LARGEST),
            3 => row.iter_mut().enumerate().for_each(|(at, value)| {
                *value = if at.is_multiple_of(2) { LARGEST } else { -LARGEST };
            }),
            4 => {
                let at = generator.random_range(0..size);
                row.fill(0.0);
                row[at] = LARGEST;
            }
            5 => row.fill(smallest),
            _ => {}
        }
    }
    values
}

/// The bytes of one head and its scale: amax / 448 for e4m3, else 1.
fn quantise(format: AttentionFormat, values: &[f32]) -> (Vec<u8>, f32) {
    match format {
        AttentionFormat::E4m3 => {
            let largest = values
                .iter()
                .fold(0.0f32, |largest, value| largest.max(value.abs()));
            let scale = if largest == 0.0 { 1.0 } else { largest / e4m3::MAX };
            let encode = |&value: &f32| e4m3::encode(f64::from(value) / f64::from(scale));
            (values.iter().map(encode).collect(), scale)
        }
        AttentionFormat::F16 => (
            values
                .iter()
                .flat_map(|&value| f16::from_f32(value).to_le_bytes())
                .collect(),
            1.0,
        ),
        AttentionFormat::Bf16 => (
            values
                .iter()
                .flat_map(|&value| bf16::from_f32(value).to_le_bytes())
                .collect(),
            1.0,
        ),
    }
}
