//! Attention on the CPU.

use gauntlet_kernels_cpu::output_for;
use gauntlet_problems::{
    Attention, AttentionFormat, AttentionInputs, HeadTensor, Inputs, Operation, Scaling, Sequence,
    check_heads,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::{engine, error, gemm};

/// Elements and scales of Q, K or V.
type Heads<'py> = (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, f32>);

/// Computes attention over a batch of sequences of equal lengths, `sizes = (batch, heads, kv_heads, queries, keys,
/// head_size)`, `words = (format of the operands, scaling, format of the result)`; returns bytes.
#[pyfunction]
pub fn attention<'py>(
    py: Python<'py>,
    query: Heads<'py>,
    key: Heads<'py>,
    value: Heads<'py>,
    sizes: (usize, usize, usize, usize, usize, usize),
    words: (String, String, String),
    causal: bool,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let (batch, heads, kv_heads, queries, keys, head_size) = sizes;
    check_heads(batch, heads).map_err(error::value)?;
    let format = operand_format(&words.0)?;
    let attention = Attention {
        sequences: vec![Sequence { queries, keys }; batch],
        heads,
        kv_heads,
        head_size,
        causal,
        format,
        scaling: scaling(&words.1)?,
        output: gemm::format(&words.2)?,
    };
    let tensor = |(bytes, scales): &Heads<'py>| -> PyResult<HeadTensor> {
        Ok(HeadTensor {
            format,
            bytes: bytes.as_slice()?.to_vec(),
            scales: scales.as_slice()?.to_vec(),
        })
    };
    let inputs = Inputs::Attention(AttentionInputs {
        query: tensor(&query)?,
        key: tensor(&key)?,
        value: tensor(&value)?,
    });
    let bytes = error::detached(py, || {
        let operation = Operation::Attention(attention.clone());
        operation.validate().map_err(error::value)?;
        inputs.validate(&operation).map_err(error::value)?;
        engine::with_kernel(
            operation.clone(),
            |engine| engine.recommend_attention(&attention),
            |kernel| {
                let mut output = output_for(&operation).map_err(error::run)?;
                kernel.run(&inputs, &mut output).map_err(error::run)?;
                Ok(output.bytes)
            },
        )
    })?;
    Ok(bytes.into_pyarray(py))
}

/// The format of Q, K and V by the name of their type.
pub fn operand_format(dtype: &str) -> PyResult<AttentionFormat> {
    match dtype {
        "float8_e4m3fn" => Ok(AttentionFormat::E4m3),
        "int8" => Ok(AttentionFormat::Int8),
        "float16" => Ok(AttentionFormat::F16),
        "bfloat16" => Ok(AttentionFormat::Bf16),
        other => Err(error::value(format!(
            "query: {other} is not supported; use float16, bfloat16, float8_e4m3fn or int8"
        ))),
    }
}

/// Which values share a scale, by name.
pub fn scaling(word: &str) -> PyResult<Scaling> {
    match word {
        "per-tensor" => Ok(Scaling::PerTensor),
        "per-head" => Ok(Scaling::PerHead),
        "per-block" => Ok(Scaling::PerBlock),
        other => Err(error::value(format!(
            "scaling: {other} is unknown; use per-tensor, per-head or per-block"
        ))),
    }
}
