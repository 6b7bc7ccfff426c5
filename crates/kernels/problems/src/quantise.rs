//! Quantising attention's operands: the one place where scales are chosen and elements encoded.

use gauntlet_nvfp4::int8;
use gauntlet_tensors::e4m3;
use half::{bf16, f16};
use rayon::prelude::*;

use crate::{AttentionFormat, HeadTensor, SCALE_BLOCK, Scaling};

impl HeadTensor {
    /// Quantises heads, one entry a sequence and head, sequences slowest, each `[positions, head_size]`.
    ///
    /// The largest magnitude among the values that share a scale becomes the largest of the format: the scale is
    /// amax / 448 for e4m3, amax / 127 for int8; of zeros, and in a format without scales, it is 1. Values are divided
    /// by the scale as it is stored, in `f64`, and rounded to nearest, ties to even.
    pub fn quantise(format: AttentionFormat, scaling: Scaling, head_size: usize, heads: &[Vec<f32>]) -> Self {
        let shared = match scaling {
            Scaling::PerTensor => Some(
                heads
                    .iter()
                    .map(|head| largest_magnitude(head))
                    .fold(0.0, f32::max),
            ),
            Scaling::PerHead | Scaling::PerBlock => None,
        };
        let quantised: Vec<(Vec<u8>, Vec<f32>)> = heads
            .par_iter()
            .map(|head| {
                let groups: Vec<&[f32]> = match scaling {
                    Scaling::PerTensor | Scaling::PerHead => vec![head],
                    Scaling::PerBlock => head.chunks(SCALE_BLOCK * head_size).collect(),
                };
                let mut bytes = Vec::with_capacity(head.len() * format.bytes());
                let scale = |group: &[f32]| {
                    let scale = scale(format, shared.unwrap_or_else(|| largest_magnitude(group)));
                    encode(format, group, scale, &mut bytes);
                    scale
                };
                let scales = groups.into_iter().map(scale).collect();
                (bytes, scales)
            })
            .collect();
        Self {
            format,
            scales: quantised
                .iter()
                .flat_map(|(_, scales)| scales.iter().copied())
                .collect(),
            bytes: quantised.into_iter().flat_map(|(bytes, _)| bytes).collect(),
        }
    }
}

fn largest_magnitude(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// The scale of values up to `largest`. It is never subnormal: rounded down it could be 0, and nothing divides by that.
fn scale(format: AttentionFormat, largest: f32) -> f32 {
    let scale = match format {
        _ if largest == 0.0 => return 1.0,
        AttentionFormat::E4m3 => largest / e4m3::MAX,
        AttentionFormat::Int8 => int8::step(largest, int8::STEPS),
        AttentionFormat::F16 | AttentionFormat::Bf16 => return 1.0,
    };
    scale.max(f32::MIN_POSITIVE)
}

/// Appends the elements of values that share a scale.
fn encode(format: AttentionFormat, values: &[f32], scale: f32, bytes: &mut Vec<u8>) {
    match format {
        AttentionFormat::E4m3 => {
            let encode = |&value: &f32| e4m3::encode(f64::from(value) / f64::from(scale));
            bytes.extend(values.iter().map(encode));
        }
        AttentionFormat::Int8 => {
            // One step is worth the scale.
            let encode = |&value: &f32| int8::encode(value, scale, 1.0).cast_unsigned();
            bytes.extend(values.iter().map(encode));
        }
        AttentionFormat::F16 => bytes.extend(
            values
                .iter()
                .flat_map(|&value| f16::from_f32(value).to_le_bytes()),
        ),
        AttentionFormat::Bf16 => bytes.extend(
            values
                .iter()
                .flat_map(|&value| bf16::from_f32(value).to_le_bytes()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two heads of 100 positions of 4 values, the second a hundred times larger, with a larger value in each block.
    fn heads() -> Vec<Vec<f32>> {
        let head = |magnitude: f32| -> Vec<f32> {
            (0..400)
                .map(|at| magnitude * if at >= 256 { 3.0 } else { 1.0 } * (at as f32).sin())
                .collect()
        };
        vec![head(0.01), head(1.0)]
    }

    fn value(tensor: &HeadTensor, scaling: Scaling, head: usize, at: usize) -> f64 {
        let scale = tensor.scales[head * scaling.count(100) + scaling.place(at / 4)];
        f64::from(tensor.get(head * 400 + at)) * f64::from(scale)
    }

    #[test]
    fn scales_lie_by_head_and_block() {
        for (scaling, equal, count) in [
            (Scaling::PerTensor, true, 2),
            (Scaling::PerHead, false, 2),
            (Scaling::PerBlock, false, 4),
        ] {
            let tensor = HeadTensor::quantise(AttentionFormat::E4m3, scaling, 4, &heads());
            assert_eq!(tensor.scales.len(), count, "{scaling}");
            assert_eq!(tensor.scales[0] == tensor.scales[count - 1], equal, "{scaling}");
        }
        let blocks = HeadTensor::quantise(AttentionFormat::E4m3, Scaling::PerBlock, 4, &heads()).scales;
        assert!(
            blocks[1] > 2.9 * blocks[0] && blocks[2] > 99.0 * blocks[0],
            "{blocks:?}"
        );
    }

    #[test]
    fn finer_scales_come_nearer() {
        for (format, step) in [(AttentionFormat::E4m3, 1.0 / 16.0), (AttentionFormat::Int8, 0.0)] {
            let squares = Scaling::ALL.map(|scaling| {
                let tensor = HeadTensor::quantise(format, scaling, 4, &heads());
                let errors = (0..2).flat_map(|head| (0..400).map(move |at| (head, at)));
                errors
                    .map(|(head, at)| {
                        let (wanted, found) =
                            (f64::from(heads()[head][at]), value(&tensor, scaling, head, at));
                        let scale = tensor.scales[head * scaling.count(100) + scaling.place(at / 4)];
                        // Half a step of an e4m3 value, or of int8, or of e4m3's subnormals.
                        let bound = (step * wanted.abs()).max(0.5 * f64::from(scale));
                        assert!(
                            (wanted - found).abs() <= bound * 1.001,
                            "{format} {scaling} {wanted} {found}"
                        );
                        ((wanted - found) / wanted.abs().max(1e-3)).powi(2)
                    })
                    .sum::<f64>()
            });
            assert!(
                squares[0] > squares[1] && squares[1] >= squares[2],
                "{format} {squares:?}"
            );
        }
    }

    #[test]
    fn zeros_and_the_smallest_values_have_scales_too() {
        for format in [AttentionFormat::E4m3, AttentionFormat::Int8] {
            let tensor = HeadTensor::quantise(format, Scaling::PerHead, 1, &[vec![0.0; 3], vec![1e-45]]);
            assert_eq!(tensor.scales, [1.0, f32::MIN_POSITIVE]);
            assert!((0..4).all(|index| tensor.get(index) == 0.0), "{format}");
        }
    }
}
