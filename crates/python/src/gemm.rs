//! Grouped GEMM on the CPU.

use gauntlet_formats::{BLOCK, Nvfp4Tensor};
use gauntlet_kernels_cpu::{GemmOperands, Weights};
use gauntlet_operations::{Form, GemmShape, GroupedGemm, Operation, Output, OutputFormat, TokenFormat};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::{engine, error, tensor};

/// NVFP4 matrices of equal width that the native part owns: the weights of a layer, or the tokens of each of its groups.
#[pyclass(frozen)]
pub struct Matrices(Vec<Nvfp4Tensor>);

#[pymethods]
impl Matrices {
    /// Copies matrices of `rows[i]` rows and `scales[i]` as tensor scale that lie one after another.
    #[new]
    fn new(
        py: Python<'_>,
        packed: PyReadonlyArray1<'_, u8>,
        block_scales: PyReadonlyArray1<'_, u8>,
        rows: Vec<usize>,
        columns: usize,
        scales: Vec<f32>,
    ) -> PyResult<Self> {
        let (mut packed, mut block_scales) = (packed.as_slice()?, block_scales.as_slice()?);
        if scales.len() != rows.len() {
            return Err(error::value(format!(
                "{} tensor scales for {} groups; give one for each",
                scales.len(),
                rows.len()
            )));
        }
        error::detached(py, || {
            let matrices = rows.iter().zip(&scales).map(|(&rows, &scale)| {
                let own = take(&mut packed, rows, columns / 2)?;
                let own_scales = take(&mut block_scales, rows, columns / BLOCK)?;
                tensor::tensor(rows, columns, own, own_scales, scale)
            });
            matrices.collect::<PyResult<_>>().map(Self)
        })
    }
}

/// Cuts the next `rows` of `width` bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], rows: usize, width: usize) -> PyResult<&'a [u8]> {
    let cut = rows
        .checked_mul(width)
        .and_then(|length| bytes.split_at_checked(length));
    let (own, others) = cut.ok_or_else(|| error::value("the arrays are shorter than the groups' rows"))?;
    *bytes = others;
    Ok(own)
}

/// Computes the products of each group, or `silu` of the first times the second; returns bytes of `output`.
#[pyfunction]
#[pyo3(signature = (tokens, weights, second, output))]
pub fn grouped_mm<'py>(
    py: Python<'py>,
    tokens: &Matrices,
    weights: &Matrices,
    second: Option<&Matrices>,
    output: &str,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let gemm = GroupedGemm {
        groups: tokens.0.iter().zip(&weights.0).map(shape).collect(),
        form: if second.is_some() {
            Form::Swiglu
        } else {
            Form::Plain
        },
        output: format(output)?,
        tokens: TokenFormat::Nvfp4,
    };
    let bytes = error::detached(py, || {
        let operands = operands(&tokens.0, &weights.0, second.map(|second| second.0.as_slice()))?;
        let operation = Operation::GroupedGemm(gemm.clone());
        engine::with_kernel(
            operation.clone(),
            |engine| engine.recommend(&gemm),
            |kernel| {
                let mut output = Output::poisoned(&operation);
                kernel.run_gemm(&operands, &mut output).map_err(error::run)?;
                Ok(output.bytes)
            },
        )
    })?;
    Ok(bytes.into_pyarray(py))
}

fn shape((tokens, weights): (&Nvfp4Tensor, &Nvfp4Tensor)) -> GemmShape {
    GemmShape {
        m: tokens.rows(),
        n: weights.rows(),
        k: weights.columns(),
    }
}

fn operands<'a>(
    tokens: &'a [Nvfp4Tensor],
    weights: &'a [Nvfp4Tensor],
    second: Option<&'a [Nvfp4Tensor]>,
) -> PyResult<Vec<GemmOperands<'a>>> {
    let groups = [Some(weights.len()), second.map(<[_]>::len)];
    if let Some(other) = groups.into_iter().flatten().find(|count| *count != tokens.len()) {
        return Err(error::value(format!(
            "tokens of {} groups for the weights of {other}; give one list of tokens for each",
            tokens.len()
        )));
    }
    let operands = tokens.iter().enumerate().map(|(group, a)| GemmOperands {
        a,
        b: Weights::Tensor(&weights[group]),
        b2: second.map(|second| Weights::Tensor(&second[group])),
    });
    Ok(operands.collect())
}

/// The format of a result by the name of its type.
pub fn format(dtype: &str) -> PyResult<OutputFormat> {
    match dtype {
        "float16" => Ok(OutputFormat::F16),
        "bfloat16" => Ok(OutputFormat::Bf16),
        "float32" => Ok(OutputFormat::F32),
        other => Err(error::value(format!(
            "out_dtype: {other} is not supported; use float16, bfloat16 or float32"
        ))),
    }
}
