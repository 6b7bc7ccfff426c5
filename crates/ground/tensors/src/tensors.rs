//! Named tensors. All are row-major and little-endian.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DataType;

/// A tensor's name, element type and shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// Its shape, the slowest dimension first; a scalar has none.
    pub shape: Vec<usize>,
}

impl TensorSpec {
    /// A tensor of this name, type and shape.
    pub fn new(name: impl Into<String>, data_type: DataType, shape: impl Into<Vec<usize>>) -> Self {
        Self {
            name: name.into(),
            data_type,
            shape: shape.into(),
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.elements() * self.data_type.bytes()
    }

    /// Elements of the fastest dimension; 1 for a scalar.
    pub fn columns(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// The product of the other dimensions.
    pub fn rows(&self) -> usize {
        self.shape
            .split_last()
            .map_or(1, |(_, others)| others.iter().product())
    }
}

/// Type and shape: `f16 [128, 64]`.
impl fmt::Display for TensorSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.data_type, self.shape)
    }
}

/// A tensor with its elements.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its name, type and shape.
    pub spec: TensorSpec,
    /// Its elements.
    pub bytes: Vec<u8>,
}

impl Tensor {
    /// A tensor with the same value in all bytes; 0xFF makes every element of a float type NaN.
    pub fn filled(spec: TensorSpec, byte: u8) -> Self {
        let bytes = vec![byte; spec.bytes()];
        Self { spec, bytes }
    }

    /// A tensor with these elements, in memory order, each rounded to the tensor's type. Missing elements are 0.
    pub fn of(spec: TensorSpec, values: impl IntoIterator<Item = f64>) -> Self {
        let mut tensor = Self::filled(spec, 0);
        let elements = tensor.bytes.chunks_exact_mut(tensor.spec.data_type.bytes());
        for (element, value) in elements.zip(values) {
            tensor.spec.data_type.write(value, element);
        }
        tensor
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.spec.elements()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// An element, by its index in memory order.
    ///
    /// # Panics
    /// When `index` is out of bounds.
    pub fn get(&self, index: usize) -> f64 {
        self.spec
            .data_type
            .read(&self.bytes[index * self.spec.data_type.bytes()..])
    }

    /// Elements in memory order, as many as `values` has, from this index on.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn get_all(&self, index: usize, values: &mut [f64]) {
        let bytes = self.spec.data_type.bytes();
        let end = index + values.len();
        self.spec
            .data_type
            .read_all(&self.bytes[index * bytes..end * bytes], values);
    }

    /// Rounds a value to the tensor's type and writes it to the element at this index in memory order.
    ///
    /// # Panics
    /// When `index` is out of bounds.
    pub fn set(&mut self, index: usize, value: f64) {
        let at = index * self.spec.data_type.bytes();
        self.spec.data_type.write(value, &mut self.bytes[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_they_are_written() {
        for data_type in DataType::ALL {
            let mut tensor = Tensor::filled(TensorSpec::new("x", data_type, [2, 3]), 0xFF);
            assert_eq!((tensor.len(), tensor.is_empty()), (6, false));
            assert_eq!(tensor.get(4).is_nan(), data_type.has_nan(), "{data_type}");
            tensor.set(4, 1.0);
            tensor.set(5, 0.0);
            assert_eq!((tensor.get(4), tensor.get(5)), (1.0, 0.0), "{data_type}");
            assert_eq!(
                tensor.get(3).is_nan(),
                data_type.has_nan(),
                "{data_type}: the element before"
            );
        }
    }

    #[test]
    fn a_tensor_is_a_matrix_of_its_fastest_dimension() {
        let sizes = |shape: &[usize]| {
            let spec = TensorSpec::new("x", DataType::F16, shape);
            assert_eq!(spec.elements(), spec.rows() * spec.columns(), "{shape:?}");
            (spec.rows(), spec.columns(), spec.bytes())
        };
        assert_eq!(sizes(&[]), (1, 1, 2));
        assert_eq!(sizes(&[7]), (1, 7, 14));
        assert_eq!(sizes(&[2, 3, 5]), (6, 5, 60));
        assert_eq!(sizes(&[0, 5]), (0, 5, 0));
        assert_eq!(sizes(&[5, 0]), (5, 0, 0));
        assert_eq!(
            TensorSpec::new("x", DataType::F8e4m3, [2, 3]).to_string(),
            "f8e4m3 [2, 3]"
        );
    }

    #[test]
    fn a_specification_survives_json() {
        let spec = TensorSpec::new("0.a.scales", DataType::F8e4m3, [2, 3]);
        let json = serde_json::to_value(&spec).unwrap();
        let expected = serde_json::json!({ "name": "0.a.scales", "data_type": "f8e4m3", "shape": [2, 3] });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<TensorSpec>(json).unwrap(), spec);
    }
}
