//! NVFP4 weights in safetensors files.

use gauntlet_nvfp4::checkpoint::{self, Allowances};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use safetensors::SafeTensors;

use crate::error;
use crate::tensor::parts;

/// The layout of a layer, its rows and columns, its parts, and what no element's magnitude exceeds.
type Layer<'py> = (
    String,
    (usize, usize),
    (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u8>>, f32),
    f64,
);

/// The layers with block scales of a file's bytes.
#[pyfunction]
pub fn layers(file: PyReadonlyArray1<'_, u8>) -> PyResult<Vec<String>> {
    let file = opened(file.as_slice()?)?;
    Ok(checkpoint::layers(&file))
}

/// Reads a layer whose tensors are spread over these files' bytes.
#[pyfunction]
pub fn read_layer<'py>(
    py: Python<'py>,
    files: Vec<PyReadonlyArray1<'py, u8>>,
    layer: &str,
    nan_scales_of_zeros: bool,
) -> PyResult<Layer<'py>> {
    let allowances = Allowances { nan_scales_of_zeros };
    let slices: Vec<&[u8]> = files
        .iter()
        .map(|file| file.as_slice())
        .collect::<Result<_, _>>()?;
    let read = error::detached(py, || match slices[..] {
        [file] => checkpoint::read_with(&opened(file)?, layer, allowances).map_err(error::value),
        _ => {
            let joined = joined(&slices, layer)?;
            checkpoint::read_with(&opened(&joined)?, layer, allowances).map_err(error::value)
        }
    })?;
    let shape = (read.weight.rows(), read.weight.columns());
    let bound = read.weight.magnitude_bound();
    Ok((read.layout.to_string(), shape, parts(py, &read.weight), bound))
}

fn opened(file: &[u8]) -> PyResult<SafeTensors<'_>> {
    SafeTensors::deserialize(file).map_err(|source| {
        error::value(format!(
            "it is not a safetensors file: {source}; it may be cut short, fetch it again"
        ))
    })
}

/// One file with the layer's tensors of all files.
fn joined(files: &[&[u8]], layer: &str) -> PyResult<Vec<u8>> {
    let files: Vec<_> = files.iter().map(|file| opened(file)).collect::<PyResult<_>>()?;
    let prefix = format!("{layer}.");
    let tensors = files
        .iter()
        .flat_map(SafeTensors::tensors)
        .filter(|(name, _)| name.starts_with(&prefix));
    safetensors::serialize(tensors, None).map_err(error::value)
}
