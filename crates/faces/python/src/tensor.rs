//! NVFP4 tensors: quantising and dequantising.

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_tensors::to_odd;
use half::{bf16, f16};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error;

/// Values and block scales as flat arrays, and the tensor scale.
type Parts<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u8>>, f32);

/// Quantises a row-major matrix.
#[pyfunction]
pub fn quantize<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f32>,
    rows: usize,
    columns: usize,
) -> PyResult<Parts<'py>> {
    let values = values.as_slice()?;
    let tensor = error::detached(py, || {
        Nvfp4Tensor::quantise(rows, columns, values).map_err(error::value)
    })?;
    Ok(parts(py, &tensor))
}

/// A tensor's parts as arrays.
pub fn parts<'py>(py: Python<'py>, tensor: &Nvfp4Tensor) -> Parts<'py> {
    (
        tensor.packed().to_vec().into_pyarray(py),
        tensor.scales().to_vec().into_pyarray(py),
        tensor.tensor_scale(),
    )
}

/// A matrix from its parts.
pub fn tensor(
    rows: usize,
    columns: usize,
    packed: &[u8],
    scales: &[u8],
    scale: f32,
) -> PyResult<Nvfp4Tensor> {
    Nvfp4Tensor::new(rows, columns, packed.to_vec(), scales.to_vec(), scale).map_err(error::value)
}

/// The elements of a matrix, each the exact product rounded once, as little-endian bytes of `dtype`.
#[pyfunction]
pub fn dequantize<'py>(
    py: Python<'py>,
    packed: PyReadonlyArray1<'py, u8>,
    scales: PyReadonlyArray1<'py, u8>,
    shape: (usize, usize),
    scale: f32,
    dtype: &str,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let encode: fn(f64, &mut Vec<u8>) = match dtype {
        "float64" => |value, bytes| bytes.extend(value.to_le_bytes()),
        "float32" => |value, bytes| bytes.extend((value as f32).to_le_bytes()),
        "float16" => |value, bytes| bytes.extend(f16::from_f32(to_odd(value)).to_le_bytes()),
        "bfloat16" => |value, bytes| bytes.extend(bf16::from_f32(to_odd(value)).to_le_bytes()),
        other => {
            return Err(error::value(format!(
                "dtype: {other} is not supported; use float64, float32, float16 or bfloat16"
            )));
        }
    };
    let (rows, columns) = shape;
    let (packed, scales) = (packed.as_slice()?, scales.as_slice()?);
    let bytes = error::detached(py, || {
        let tensor = tensor(rows, columns, packed, scales, scale)?;
        let (mut row, mut bytes) = (vec![0.0; columns], Vec::with_capacity(rows * columns * 2));
        for number in 0..rows {
            tensor.dequantise_blocks_scaled(number, 0..columns / BLOCK, &mut row);
            row.iter().for_each(|&value| encode(value, &mut bytes));
        }
        Ok(bytes)
    })?;
    Ok(bytes.into_pyarray(py))
}
