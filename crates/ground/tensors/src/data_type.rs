//! Element types of tensors.

use std::fmt;

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use safetensors::Dtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rounding::to_odd;

/// The type of a tensor's elements, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum DataType {
    F64,
    F32,
    F16,
    Bf16,
    F8e4m3,
    F8e5m2,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

impl DataType {
    /// All types.
    pub const ALL: [Self; 15] = [
        Self::F64,
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::F8e4m3,
        Self::F8e5m2,
        Self::I64,
        Self::I32,
        Self::I16,
        Self::I8,
        Self::U64,
        Self::U32,
        Self::U16,
        Self::U8,
        Self::Bool,
    ];

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F8e4m3 | Self::F8e5m2 | Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether 0xFF in every byte is a NaN, so that an element that was never written can be detected.
    pub fn has_nan(self) -> bool {
        match self {
            Self::F64 | Self::F32 | Self::F16 | Self::Bf16 | Self::F8e4m3 | Self::F8e5m2 => true,
            Self::I64 | Self::I32 | Self::I16 | Self::I8 => false,
            Self::U64 | Self::U32 | Self::U16 | Self::U8 | Self::Bool => false,
        }
    }

    /// The element at the start of `bytes` as f64: exact except for 64-bit integers beyond 2⁵³.
    ///
    /// # Panics
    /// When there are fewer bytes than an element takes.
    pub fn read(self, bytes: &[u8]) -> f64 {
        let mut value = [0.0];
        self.read_all(&bytes[..self.bytes()], &mut value);
        value[0]
    }

    /// The elements that fill `bytes`, each as [`read`](Self::read) gives it. A loop for each type takes a tenth of the time that
    /// finding out the type of each element would.
    pub fn read_all(self, bytes: &[u8], values: &mut [f64]) {
        fn each<const BYTES: usize>(bytes: &[u8], values: &mut [f64], number: impl Fn([u8; BYTES]) -> f64) {
            for (value, element) in values.iter_mut().zip(bytes.as_chunks::<BYTES>().0) {
                *value = number(*element);
            }
        }
        match self {
            Self::F64 => each(bytes, values, f64::from_le_bytes),
            Self::F32 => each(bytes, values, |element| f32::from_le_bytes(element).into()),
            Self::F16 => each(bytes, values, |element| f16::from_le_bytes(element).into()),
            Self::Bf16 => each(bytes, values, |element| bf16::from_le_bytes(element).into()),
            Self::F8e4m3 => each(bytes, values, |[element]| F8E4M3::from_bits(element).to_f64()),
            Self::F8e5m2 => each(bytes, values, |[element]| F8E5M2::from_bits(element).to_f64()),
            Self::I64 => each(bytes, values, |element| i64::from_le_bytes(element) as f64),
            Self::I32 => each(bytes, values, |element| i32::from_le_bytes(element).into()),
            Self::I16 => each(bytes, values, |element| i16::from_le_bytes(element).into()),
            Self::I8 => each(bytes, values, |element| i8::from_le_bytes(element).into()),
            Self::U64 => each(bytes, values, |element| u64::from_le_bytes(element) as f64),
            Self::U32 => each(bytes, values, |element| u32::from_le_bytes(element).into()),
            Self::U16 => each(bytes, values, |element| u16::from_le_bytes(element).into()),
            Self::U8 => each(bytes, values, |[element]| element.into()),
            Self::Bool => each(bytes, values, |[element]| u8::from(element != 0).into()),
        }
    }

    /// The value of the type nearest to `value`, ties to even. Beyond the range of a float with infinities it is
    /// infinite; integers and e4m3 saturate.
    pub fn round(self, value: f64) -> f64 {
        let integer = |least: f64, most: f64| value.round_ties_even().clamp(least, most);
        match self {
            Self::F64 => value,
            Self::F32 => f64::from(value as f32),
            // `half` 2.7 drops the low 32 bits of an f64 before it rounds to f16, and rounding to the nearest f32 first
            // rounds twice: both mistake a value just over a tie for the tie.
            Self::F16 => f16::from_f32(to_odd(value)).into(),
            Self::Bf16 => bf16::from_f32(to_odd(value)).into(),
            Self::F8e4m3 => F8E4M3::from_f32(to_odd(value)).to_f64(),
            Self::F8e5m2 => F8E5M2::from_f32(to_odd(value)).to_f64(),
            Self::I64 => integer(i64::MIN as f64, i64::MAX as f64),
            Self::I32 => integer(i32::MIN.into(), i32::MAX.into()),
            Self::I16 => integer(i16::MIN.into(), i16::MAX.into()),
            Self::I8 => integer(i8::MIN.into(), i8::MAX.into()),
            Self::U64 => integer(0.0, u64::MAX as f64),
            Self::U32 => integer(0.0, u32::MAX.into()),
            Self::U16 => integer(0.0, u16::MAX.into()),
            Self::U8 => integer(0.0, u8::MAX.into()),
            Self::Bool => f64::from(u8::from(value != 0.0)),
        }
    }

    /// Rounds `value` and writes it to the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer bytes than an element takes.
    pub fn write(self, value: f64, bytes: &mut [u8]) {
        let rounded = self.round(value);
        let mut put = |element: &[u8]| bytes[..element.len()].copy_from_slice(element);
        match self {
            Self::F64 => put(&rounded.to_le_bytes()),
            Self::F32 => put(&(rounded as f32).to_le_bytes()),
            Self::F16 => put(&f16::from_f64(rounded).to_le_bytes()),
            Self::Bf16 => put(&bf16::from_f64(rounded).to_le_bytes()),
            Self::F8e4m3 => put(&[F8E4M3::from_f64(rounded).to_bits()]),
            Self::F8e5m2 => put(&[F8E5M2::from_f64(rounded).to_bits()]),
            Self::I64 => put(&(rounded as i64).to_le_bytes()),
            Self::I32 => put(&(rounded as i32).to_le_bytes()),
            Self::I16 => put(&(rounded as i16).to_le_bytes()),
            Self::I8 => put(&(rounded as i8).to_le_bytes()),
            Self::U64 => put(&(rounded as u64).to_le_bytes()),
            Self::U32 => put(&(rounded as u32).to_le_bytes()),
            Self::U16 => put(&(rounded as u16).to_le_bytes()),
            Self::U8 | Self::Bool => put(&[rounded as u8]),
        }
    }

    /// The name of the type in safetensors files.
    pub fn stored(self) -> Dtype {
        match self {
            Self::F64 => Dtype::F64,
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::BF16,
            Self::F8e4m3 => Dtype::F8_E4M3,
            Self::F8e5m2 => Dtype::F8_E5M2,
            Self::I64 => Dtype::I64,
            Self::I32 => Dtype::I32,
            Self::I16 => Dtype::I16,
            Self::I8 => Dtype::I8,
            Self::U64 => Dtype::U64,
            Self::U32 => Dtype::U32,
            Self::U16 => Dtype::U16,
            Self::U8 => Dtype::U8,
            Self::Bool => Dtype::BOOL,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F8e4m3 => "f8e4m3",
            Self::F8e5m2 => "f8e5m2",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U64 => "u64",
            Self::U32 => "u32",
            Self::U16 => "u16",
            Self::U8 => "u8",
            Self::Bool => "bool",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_just_over_a_tie_rounds_up() {
        // 1 + 2⁻¹¹ is halfway between 1 and the next f16; an additional 2⁻⁵⁰ decides.
        let tie = 1.0 + 2f64.powi(-11);
        let next = 1.0 + 2f64.powi(-10);
        assert_eq!(DataType::F16.round(tie), 1.0);
        assert_eq!(DataType::F16.round(tie + 2f64.powi(-50)), next);
        assert_eq!(DataType::F16.round(-tie - 2f64.powi(-50)), -next);
        let tie = 1.0 + 2f64.powi(-8);
        assert_eq!(DataType::Bf16.round(tie), 1.0);
        assert_eq!(DataType::Bf16.round(tie + 2f64.powi(-50)), 1.0 + 2f64.powi(-7));
    }

    #[test]
    fn the_ends_of_the_range_are_ieee_s() {
        assert_eq!(DataType::F16.round(65519.99), 65504.0);
        assert_eq!(DataType::F16.round(65520.0), f64::INFINITY);
        assert_eq!(DataType::F16.round(-1e300), f64::NEG_INFINITY);
        assert_eq!(DataType::Bf16.round(1e300), f64::INFINITY);
        assert_eq!(DataType::F16.round(2f64.powi(-25)), 0.0);
        assert_eq!(DataType::F16.round(2f64.powi(-25) * 1.000001), 2f64.powi(-24));
        assert_eq!(DataType::F16.round(1e-300), 0.0);
        assert_eq!(DataType::F16.round(-0.0).to_bits(), (-0.0f64).to_bits());
        assert!(DataType::F16.round(f64::NAN).is_nan());
        assert_eq!(DataType::I8.round(1e9), 127.0);
        assert_eq!(DataType::U8.round(-3.0), 0.0);
    }

    #[test]
    fn bytes_of_ones_are_nan_where_the_type_has_one() {
        for data_type in DataType::ALL {
            assert_eq!(
                data_type.read(&[0xFF; 8]).is_nan(),
                data_type.has_nan(),
                "{data_type}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_f16_is_nearer(value in -70000.0f64..70000.0) {
            let rounded = DataType::F16.round(value);
            prop_assume!(rounded.is_finite());
            let bits = f16::from_f64(rounded).to_bits();
            let error = (rounded - value).abs();
            for neighbour in [bits.wrapping_sub(1), bits + 1].map(f16::from_bits) {
                prop_assert!(!neighbour.is_finite() || error <= (neighbour.to_f64() - value).abs());
            }
        }

        #[test]
        fn what_is_written_is_read(value in -1000.0f64..1000.0) {
            for data_type in DataType::ALL {
                let mut bytes = [0; 8];
                data_type.write(value, &mut bytes);
                prop_assert_eq!(data_type.read(&bytes), data_type.round(value), "{}", data_type);
            }
        }
    }
}
