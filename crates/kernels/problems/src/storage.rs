//! Operands and results as files of tensors.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `{group}.a.values` | `U8` | `[m, k / 2]`, e2m1 codes two a byte, low nibble first |
//! | `{group}.a.scales` | `F8_E4M3` | `[m, k / 16]` |
//! | `{group}.a.tensor_scale` | `F32` | `[1]` |
//! | `{group}.a.values`, of tokens without scales | `F16`, `BF16` or `F32` | `[m, k]` |
//! | `{group}.b.…`, of the dual form `{group}.b2.…` | the same | with n rows |
//! | `query.values` | `F8_E4M3`, `I8`, `F16` or `BF16` | flat: by sequence, head, position, index in the head |
//! | `query.scales` | `F32` | flat: by sequence, head and block, as [`HeadTensor`] says |
//! | `key.…`, `value.…` | the same | of the key heads |
//! | `{part}.c`, of an output | `F16`, `BF16` or `F32` | a [part](Operation::parts)'s rows and columns |
//!
//! Groups and parts are counted from 0. Other tensors in a file are ignored.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_tensors::{DataType, Tensor, TensorFile, TensorFileError, TensorSpec, save_tensors};
use rayon::prelude::*;
use thiserror::Error;

use crate::{
    Attention, AttentionFormat, AttentionInputs, FloatTensor, Form, GemmShape, GroupInputs, GroupedGemm,
    HeadTensor, Inputs, InputsError, Operation, Output, OutputFormat, TokenFormat, Tokens,
};

/// Why a file of operands or results cannot be read or written.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The file, or a tensor in it, cannot be used.
    #[error(transparent)]
    File(#[from] TensorFileError),
    /// Operands that do not fit the operation.
    #[error("{path}: {source}")]
    Inputs {
        /// The file.
        path: PathBuf,
        /// Which do not, and why.
        source: InputsError,
    },
}

/// Files from this size on are read by several threads. Below it there is little gain, and a worker's threads that have
/// just been woken would disturb the call that follows.
const READ_AT_ONCE: usize = 8 << 20;

impl Operation {
    /// The tensors of its operands.
    pub fn inputs(&self) -> Vec<TensorSpec> {
        match self {
            Self::GroupedGemm(gemm) => {
                let groups = gemm.groups.iter().enumerate();
                groups
                    .flat_map(|(group, shape)| group_specs(group, shape, gemm))
                    .collect()
            }
            Self::Attention(attention) => {
                let keys = (attention.key_rows(), attention.key_scales());
                let [query, key, value] = [
                    ("query", (attention.query_rows(), attention.query_scales())),
                    ("key", keys),
                    ("value", keys),
                ]
                .map(|(name, (rows, scales))| head_specs(name, attention, rows, scales));
                [query, key, value].concat()
            }
        }
    }

    /// The tensors of its result: one a [part](Self::parts), `[rows, columns]`.
    pub fn outputs(&self) -> Vec<TensorSpec> {
        let data_type = self.output_format().data_type();
        let parts = self.parts().into_iter().enumerate();
        parts
            .map(|(number, part)| {
                TensorSpec::new(format!("{number}.c"), data_type, [part.rows, part.columns])
            })
            .collect()
    }
}

impl OutputFormat {
    /// The element type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::F16 => DataType::F16,
            Self::Bf16 => DataType::Bf16,
            Self::F32 => DataType::F32,
        }
    }
}

impl AttentionFormat {
    /// The element type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::E4m3 => DataType::F8e4m3,
            Self::Int8 => DataType::I8,
            Self::F16 => DataType::F16,
            Self::Bf16 => DataType::Bf16,
        }
    }
}

impl Inputs {
    /// Writes the operands as a file of tensors.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TensorFileError> {
        match self {
            Self::GroupedGemm(groups) => save_groups(groups, path),
            Self::Attention(inputs) => save_heads(inputs, path),
        }
    }

    /// Reads the operands of `operation` from a file of tensors.
    ///
    /// # Errors
    /// When the file cannot be read, a tensor is missing or of another type or shape, a block scale is NaN, or an
    /// operand is not finite.
    pub fn load(path: &Path, operation: &Operation) -> Result<Self, StorageError> {
        let file = TensorFile::open(path)?;
        let inputs = match operation {
            Operation::GroupedGemm(gemm) => Self::GroupedGemm(load_groups(&file, gemm)?),
            Operation::Attention(attention) => Self::Attention(load_heads(&file, attention)?),
        };
        inputs
            .validate(operation)
            .map_err(|source| StorageError::Inputs {
                path: path.into(),
                source,
            })?;
        Ok(inputs)
    }
}

impl Output {
    /// Writes the result as a file of tensors.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TensorFileError> {
        let data_type = self.format.data_type();
        let parts = self.parts.iter().enumerate();
        let specs: Vec<TensorSpec> = parts
            .map(|(number, part)| {
                TensorSpec::new(format!("{number}.c"), data_type, [part.rows, part.columns])
            })
            .collect();
        let mut rest = self.bytes.as_slice();
        let tensors = specs.iter().map(|spec| {
            let (bytes, after) = rest.split_at(spec.bytes().min(rest.len()));
            rest = after;
            (spec, bytes)
        });
        save_tensors(tensors, path)
    }

    /// Reads the result of `operation` from a file of tensors.
    ///
    /// # Errors
    /// When the file cannot be read, or a part is missing or of another type or shape.
    pub fn load(path: &Path, operation: &Operation) -> Result<Self, TensorFileError> {
        let tensors = TensorFile::open(path)?.tensors(&operation.outputs())?;
        Ok(Self {
            format: operation.output_format(),
            parts: operation.parts(),
            bytes: tensors.into_iter().flat_map(|tensor| tensor.bytes).collect(),
        })
    }
}

/// The tensors of one group.
fn group_specs(group: usize, shape: &GemmShape, gemm: &GroupedGemm) -> Vec<TensorSpec> {
    let mut specs = token_specs(group, shape.m, shape.k, gemm.tokens);
    let second = (gemm.form == Form::Swiglu).then_some("b2");
    for operand in std::iter::once("b").chain(second) {
        specs.extend(nvfp4_specs(&format!("{group}.{operand}"), shape.n, shape.k));
    }
    specs
}

/// The tensors of one group's tokens.
fn token_specs(group: usize, rows: usize, columns: usize, format: TokenFormat) -> Vec<TensorSpec> {
    let name = format!("{group}.a");
    match format.float() {
        None => nvfp4_specs(&name, rows, columns).into(),
        Some(float) => vec![TensorSpec::new(
            format!("{name}.values"),
            float.data_type(),
            [rows, columns],
        )],
    }
}

/// Values, block scales and tensor scale of an NVFP4 tensor.
fn nvfp4_specs(name: &str, rows: usize, columns: usize) -> [TensorSpec; 3] {
    [
        TensorSpec::new(format!("{name}.values"), DataType::U8, [rows, columns / 2]),
        TensorSpec::new(
            format!("{name}.scales"),
            DataType::F8e4m3,
            [rows, columns / BLOCK],
        ),
        TensorSpec::new(format!("{name}.tensor_scale"), DataType::F32, [1]),
    ]
}

/// Values and scales of Q, K or V.
fn head_specs(name: &str, attention: &Attention, rows: usize, scales: usize) -> [TensorSpec; 2] {
    let elements = rows * attention.head_size;
    [
        TensorSpec::new(format!("{name}.values"), attention.format.data_type(), [elements]),
        TensorSpec::new(format!("{name}.scales"), DataType::F32, [scales]),
    ]
}

fn nvfp4(file: &TensorFile, name: &str, rows: usize, columns: usize) -> Result<Nvfp4Tensor, TensorFileError> {
    let [values, scales, tensor_scale] = nvfp4_specs(name, rows, columns).map(|spec| file.tensor(&spec));
    let (values, scales, tensor_scale) = (values?, scales?, tensor_scale?);
    Nvfp4Tensor::new(
        rows,
        columns,
        values.bytes,
        scales.bytes,
        floats(&tensor_scale)[0],
    )
    .map_err(|source| TensorFileError::Contents {
        path: file.path().into(),
        tensor: name.into(),
        source: Box::new(source),
    })
}

fn tokens(
    file: &TensorFile,
    group: usize,
    shape: &GemmShape,
    format: TokenFormat,
) -> Result<Tokens, TensorFileError> {
    let Some(float) = format.float() else {
        return nvfp4(file, &format!("{group}.a"), shape.m, shape.k).map(Tokens::Nvfp4);
    };
    let values = file.tensor(&token_specs(group, shape.m, shape.k, format)[0])?;
    Ok(Tokens::Floats(FloatTensor {
        format: float,
        rows: shape.m,
        columns: shape.k,
        bytes: values.bytes,
    }))
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    let (floats, _) = tensor.bytes.as_chunks();
    floats.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

fn load_groups(file: &TensorFile, gemm: &GroupedGemm) -> Result<Vec<GroupInputs>, TensorFileError> {
    let load = |(group, shape): (usize, &GemmShape)| {
        let dual = gemm.form == Form::Swiglu;
        Ok(GroupInputs {
            a: tokens(file, group, shape, gemm.tokens)?,
            b: nvfp4(file, &format!("{group}.b"), shape.n, shape.k)?,
            b2: dual
                .then(|| nvfp4(file, &format!("{group}.b2"), shape.n, shape.k))
                .transpose()?,
        })
    };
    if file.bytes() < READ_AT_ONCE {
        return gemm.groups.iter().enumerate().map(load).collect();
    }
    let groups: Vec<_> = gemm.groups.par_iter().enumerate().map(load).collect();
    // Sequential, so that the first error is reported, whichever thread was quickest.
    groups.into_iter().collect()
}

fn load_heads(file: &TensorFile, attention: &Attention) -> Result<AttentionInputs, TensorFileError> {
    let load = |name: &str, rows: usize, scales: usize| {
        let [values, scales] = head_specs(name, attention, rows, scales).map(|spec| file.tensor(&spec));
        Ok(HeadTensor {
            format: attention.format,
            bytes: values?.bytes,
            scales: floats(&scales?),
        })
    };
    let (queries, keys) = (attention.query_rows(), attention.key_rows());
    let key_scales = attention.key_scales();
    Ok(AttentionInputs {
        query: load("query", queries, attention.query_scales())?,
        key: load("key", keys, key_scales)?,
        value: load("value", keys, key_scales)?,
    })
}

fn save_groups(groups: &[GroupInputs], path: &Path) -> Result<(), TensorFileError> {
    let mut tensors: Vec<(TensorSpec, Cow<'_, [u8]>)> = Vec::new();
    for (group, GroupInputs { a, b, b2 }) in groups.iter().enumerate() {
        let specs = token_specs(group, a.rows(), a.columns(), a.format());
        let scale = a.tensor_scale().to_le_bytes().to_vec();
        // Tokens without scales have a single tensor, so the scales are left over.
        let bytes = [a.values().into(), a.scales().into(), scale.into()];
        tensors.extend(specs.into_iter().zip(bytes));
        for (operand, tensor) in [("b", Some(b)), ("b2", b2.as_ref())] {
            let Some(tensor) = tensor else { continue };
            let specs = nvfp4_specs(&format!("{group}.{operand}"), tensor.rows(), tensor.columns());
            let scale = tensor.tensor_scale().to_le_bytes().to_vec();
            tensors.extend(specs.into_iter().zip([
                tensor.packed().into(),
                tensor.scales().into(),
                scale.into(),
            ]));
        }
    }
    save_tensors(tensors.iter().map(|(spec, bytes)| (spec, &**bytes)), path)
}

fn save_heads(inputs: &AttentionInputs, path: &Path) -> Result<(), TensorFileError> {
    let tensors = [
        ("query", &inputs.query),
        ("key", &inputs.key),
        ("value", &inputs.value),
    ];
    let stored = tensors.map(|(name, tensor)| {
        let values = TensorSpec::new(
            format!("{name}.values"),
            tensor.format.data_type(),
            [tensor.len()],
        );
        let scales = TensorSpec::new(format!("{name}.scales"), DataType::F32, [tensor.scales.len()]);
        let bytes: Vec<u8> = tensor
            .scales
            .iter()
            .flat_map(|scale| scale.to_le_bytes())
            .collect();
        (values, tensor.bytes.as_slice(), scales, bytes)
    });
    let views = stored.iter().flat_map(|(values, bytes, scales, scale_bytes)| {
        [(values, *bytes), (scales, scale_bytes.as_slice())]
    });
    save_tensors(views, path)
}
