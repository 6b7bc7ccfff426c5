//! Operands of attention.

use gauntlet_nvfp4::int8;
use gauntlet_problems::{Attention, AttentionFormat, AttentionInputs, HeadTensor, Sequence};
use gauntlet_task::{InputKind, normal, outliers, stream};
use gauntlet_tensors::e4m3;
use half::{bf16, f16};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

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

/// The purpose of the adversarial operands of one key head and the query heads that read it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// With V = 1 every result is 1, whatever the weights.
    Ones,
    /// One key takes nearly all the weight and has value 0; the result comes from the small weights of the many other
    /// keys.
    Tail,
    /// Rows of patterns.
    Patterns,
}

impl Trial {
    /// Of the key head at `place` among all sequences' key heads.
    fn at(place: usize) -> Self {
        match place % 4 {
            0 => Self::Ones,
            1 => Self::Tail,
            _ => Self::Patterns,
        }
    }
}

/// One sequence and head of an operand.
struct Head {
    positions: usize,
    trial: Trial,
}

/// Draws Q, K and V.
pub fn generate(attention: &Attention, kind: InputKind, seed: u64) -> AttentionInputs {
    let draw = |operand| {
        let values: Vec<Vec<f32>> = heads(attention, operand)
            .par_iter()
            .enumerate()
            .map(|(place, head)| {
                let mut generator = stream(seed, 3 * place + operand as usize);
                let count = head.positions * attention.head_size;
                match kind {
                    InputKind::Competition => normal(count, &mut generator),
                    InputKind::Wide => wide(operand, count, &mut generator),
                    InputKind::Outliers => outliers(count, 1.0, &mut generator),
                    InputKind::Adversarial => adversarial(attention, operand, head, &mut generator),
                }
            })
            .collect();
        HeadTensor::quantise(attention.format, attention.scaling, attention.head_size, &values)
    };
    AttentionInputs {
        query: draw(Operand::Query),
        key: draw(Operand::Key),
        value: draw(Operand::Value),
    }
}

/// The heads of an operand, sequences slowest.
fn heads(attention: &Attention, operand: Operand) -> Vec<Head> {
    let of_sequence = |(number, sequence): (usize, &Sequence)| {
        let (heads, positions) = match operand {
            Operand::Query => (attention.heads, sequence.queries),
            Operand::Key | Operand::Value => (attention.kv_heads, sequence.keys),
        };
        let kv_heads = attention.kv_heads;
        (0..heads).map(move |head| Head {
            positions,
            trial: Trial::at(number * kv_heads + head * kv_heads / heads),
        })
    };
    attention
        .sequences
        .iter()
        .enumerate()
        .flat_map(of_sequence)
        .collect()
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

fn adversarial(attention: &Attention, operand: Operand, head: &Head, generator: &mut ChaCha8Rng) -> Vec<f32> {
    match (head.trial, operand) {
        (Trial::Ones, Operand::Value) => vec![1.0; head.positions * attention.head_size],
        (Trial::Tail, _) => tail(operand, head.positions, attention.head_size, generator),
        _ => patterns(attention.format, head.positions, attention.head_size, generator),
    }
}

/// The first key's score is near 4 and its value 0. All other scores are near −3.6 to −5.2, so that none weighs more
/// than 2⁻¹⁰ of the first however they are quantised, and their values are near 4. If weights between 0 and 1 are
/// rounded to e4m3 directly, they vanish; scaled by 2⁸ beforehand, none does.
fn tail(operand: Operand, positions: usize, size: usize, generator: &mut ChaCha8Rng) -> Vec<f32> {
    // The sum of this many products, over √size, is about as large as one product.
    let elements = (size as f64).sqrt().ceil() as usize;
    let mut values = vec![0.0; positions * size];
    for (position, row) in values.chunks_exact_mut(size).enumerate() {
        match operand {
            Operand::Query => row[..elements].fill(2.0),
            Operand::Key if position == 0 => row[..elements].fill(2.0),
            Operand::Key => row[..elements].fill(generator.random_range(-2.6..-1.8)),
            Operand::Value if position == 0 => {}
            Operand::Value => row
                .iter_mut()
                .for_each(|value| *value = generator.random_range(3.0..5.0)),
        }
    }
    values
}

/// Each position gets a pattern of its own.
fn patterns(format: AttentionFormat, positions: usize, size: usize, generator: &mut ChaCha8Rng) -> Vec<f32> {
    let mut values = normal(positions * size, generator);
    let smallest = match format {
        AttentionFormat::E4m3 => e4m3::MIN_SUBNORMAL * LARGEST / e4m3::MAX,
        AttentionFormat::Int8 => int8::step(LARGEST, int8::STEPS),
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
