//! Grouped GEMM on the CPU.

use gauntlet_kernels_cpu::{Expert, FloatRows, GemmOperands, TokenRows, TopExperts, Weights, output_for};
use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::{Form, GemmShape, GroupedGemm, Operation, OutputFormat, TokenFormat};
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
    let output = format(output)?;
    let bytes = error::detached(py, || {
        let rows: Vec<_> = tokens.0.iter().map(Nvfp4Tensor::rows).collect();
        let tokens: Vec<_> = tokens.0.iter().map(TokenRows::Nvfp4).collect();
        product(TokenFormat::Nvfp4, &tokens, &rows, weights, second, output)
    })?;
    Ok(bytes.into_pyarray(py))
}

/// The same for tokens without scales: the little-endian elements of all groups one after another, `sizes` rows of each.
#[pyfunction]
#[pyo3(signature = (elements, dtype, sizes, weights, second, output))]
pub fn grouped_mm_of_floats<'py>(
    py: Python<'py>,
    elements: PyReadonlyArray1<'_, u8>,
    dtype: &str,
    sizes: Vec<usize>,
    weights: &Matrices,
    second: Option<&Matrices>,
    output: &str,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let (dtype, output) = (float("tokens", dtype)?, format(output)?);
    let mut elements = elements.as_slice()?;
    let columns = weights.0.first().map_or(0, Nvfp4Tensor::columns);
    let bytes = error::detached(py, || {
        let tokens = sizes.iter().map(|&rows| {
            let own = take(&mut elements, rows, columns * dtype.bytes())?;
            let rows = FloatRows::new(dtype, [rows, columns], own).map_err(error::run)?;
            Ok(TokenRows::Floats(rows))
        });
        let tokens = tokens.collect::<PyResult<Vec<_>>>()?;
        product(dtype.into(), &tokens, &sizes, weights, second, output)
    })?;
    Ok(bytes.into_pyarray(py))
}

/// Computes the products of tokens that have `rows` in each group.
fn product(
    format: TokenFormat,
    tokens: &[TokenRows<'_>],
    rows: &[usize],
    weights: &Matrices,
    second: Option<&Matrices>,
    output: OutputFormat,
) -> PyResult<Vec<u8>> {
    let groups = [Some(weights), second].into_iter().flatten();
    if let Some(other) = groups
        .map(|other| other.0.len())
        .find(|count| *count != tokens.len())
    {
        return Err(error::value(format!(
            "tokens of {} groups for the weights of {other}; give one list of tokens for each",
            tokens.len()
        )));
    }
    let shape = |(&m, weights): (&usize, &Nvfp4Tensor)| GemmShape {
        m,
        n: weights.rows(),
        k: weights.columns(),
    };
    let gemm = GroupedGemm {
        groups: rows.iter().zip(&weights.0).map(shape).collect(),
        form: if second.is_some() {
            Form::Swiglu
        } else {
            Form::Plain
        },
        output,
        tokens: format,
    };
    let operands = tokens.iter().enumerate().map(|(group, a)| GemmOperands {
        a: *a,
        b: Weights::Tensor(&weights.0[group]),
        b2: second.map(|second| Weights::Tensor(&second.0[group])),
    });
    let operands: Vec<_> = operands.collect();
    let operation = Operation::GroupedGemm(gemm.clone());
    engine::with_kernel(
        operation.clone(),
        |engine| engine.recommend(&gemm),
        |kernel| {
            let mut output = output_for(&operation).map_err(error::run)?;
            kernel.run_gemm(&operands, &mut output).map_err(error::run)?;
            Ok(output.bytes)
        },
    )
}

/// A mixture of experts: tokens of `sizes = (tokens, hidden, experts of a token)` as little-endian elements, `dtypes` of the
/// tokens and the result, and the matrices gate, up and down of each expert.
#[pyfunction]
#[pyo3(signature = (elements, dtypes, sizes, ids, weights, experts, expert_map))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are the arguments of the package's function"
)]
pub fn moe<'py>(
    py: Python<'py>,
    elements: PyReadonlyArray1<'_, u8>,
    dtypes: (&str, &str),
    sizes: (usize, usize, usize),
    ids: PyReadonlyArray1<'_, i64>,
    weights: PyReadonlyArray1<'_, f32>,
    experts: (PyRef<'_, Matrices>, PyRef<'_, Matrices>, PyRef<'_, Matrices>),
    expert_map: Option<PyReadonlyArray1<'_, i64>>,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let (format, output) = (float("hidden", dtypes.0)?, float("out_dtype", dtypes.1)?);
    let (elements, weights) = (elements.as_slice()?, weights.as_slice()?);
    let ids = ids.as_slice()?;
    let map = expert_map.as_ref().map(|map| map.as_slice()).transpose()?;
    let experts = [&*experts.0, &*experts.1, &*experts.2].map(|matrices| matrices.0.as_slice());
    let bytes = error::detached(py, || {
        let [gate, up, down] = experts;
        let experts: Vec<_> = gate
            .iter()
            .zip(up)
            .zip(down)
            .map(|((gate, up), down)| Expert { gate, up, down })
            .collect();
        let tokens = FloatRows::new(format, [sizes.0, sizes.1], elements).map_err(error::run)?;
        let top = TopExperts {
            count: sizes.2,
            ids,
            weights,
            map,
        };
        engine::with_engine(|engine| engine.moe(&tokens, &top, &experts, output).map_err(error::moe))
    })?;
    Ok(bytes.into_pyarray(py))
}

/// The format of a result by the name of its type.
pub fn format(dtype: &str) -> PyResult<OutputFormat> {
    float("out_dtype", dtype)
}

/// A type of floats by its name.
pub fn float(argument: &str, dtype: &str) -> PyResult<OutputFormat> {
    match dtype {
        "float16" => Ok(OutputFormat::F16),
        "bfloat16" => Ok(OutputFormat::Bf16),
        "float32" => Ok(OutputFormat::F32),
        other => Err(error::value(format!(
            "{argument}: {other} is not supported; use float16, bfloat16 or float32"
        ))),
    }
}
