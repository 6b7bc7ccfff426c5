//! Inputs and outputs as [safetensors](https://github.com/huggingface/safetensors) files, which workers in any
//! language can read and write. All tensors are row-major and little-endian.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `{group}.a.values` | `U8` | `[m, k / 2]`, e2m1 codes two a byte, low nibble first |
//! | `{group}.a.scales` | `F8_E4M3` | `[m, k / 16]` |
//! | `{group}.a.tensor_scale` | `F32` | `[1]` |
//! | `{group}.b.…`, of the dual form `{group}.b2.…` | the same | with n rows |
//! | `query.values` | `F8_E4M3`, `I8`, `F16` or `BF16` | flat: by sequence, head, position, index in the head |
//! | `query.scales` | `F32` | flat: by sequence, head and block, as [`HeadTensor`] says |
//! | `key.…`, `value.…` | the same | of the key heads |
//! | `{part}.c`, of an output | `F16`, `BF16` or `F32` | a [part](crate::Problem::parts)'s rows and columns |
//!
//! Groups and parts are counted from 0. Other tensors in a file are ignored.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gauntlet_formats::{BLOCK, FormatError, Nvfp4Tensor};
use rayon::prelude::*;
use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensorError};
use thiserror::Error;

use crate::{
    Attention, AttentionFormat, AttentionInputs, Form, GroupInputs, GroupedGemm, HeadTensor, Inputs,
    InputsError, Output, OutputError, OutputFormat, Part, Problem,
};

/// Why a file of inputs or outputs cannot be read or written.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: SafeTensorError,
    },
    /// The file is no safetensors file.
    #[error("{path} is not a whole safetensors file: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SafeTensorError,
    },
    /// A tensor that the problem takes is not in the file.
    #[error("{path} has no tensor `{tensor}`, which the problem takes")]
    Missing {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        tensor: String,
    },
    /// A tensor of another type or shape.
    #[error("{path}: tensor `{tensor}` is {found}, but the problem takes {expected}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        tensor: String,
        /// Type and shape the problem takes.
        expected: String,
        /// Type and shape found.
        found: String,
    },
    /// A tensor whose contents are no NVFP4.
    #[error("{path}: tensor `{tensor}`: {source}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        tensor: String,
        /// What is wrong with it, and where.
        source: FormatError,
    },
    /// Operands that do not fit the problem.
    #[error("{path}: {source}")]
    Inputs {
        /// The file.
        path: PathBuf,
        /// Which do not, and why.
        source: InputsError,
    },
    /// A result that does not fit the problem.
    #[error("{path}: {source}")]
    Output {
        /// The file.
        path: PathBuf,
        /// Why it does not.
        source: OutputError,
    },
}

impl Inputs {
    /// Writes the operands as a safetensors file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), StorageError> {
        let written = match self {
            Self::GroupedGemm(groups) => save_groups(groups, path),
            Self::Attention(inputs) => save_heads(inputs, path),
        };
        written.map_err(|source| StorageError::Write {
            path: path.into(),
            source,
        })
    }

    /// Reads the operands of `problem` from a safetensors file.
    ///
    /// # Errors
    /// When the file cannot be read, a tensor is missing or of another type or shape, a block scale is NaN, or an
    /// operand is not finite.
    pub fn load(path: &Path, problem: &Problem) -> Result<Self, StorageError> {
        let file = File::open(path)?;
        let inputs = match problem {
            Problem::GroupedGemm(gemm) => Self::GroupedGemm(load_groups(&file, gemm)?),
            Problem::Attention(attention) => Self::Attention(load_heads(&file, attention)?),
        };
        inputs.validate(problem).map_err(|source| StorageError::Inputs {
            path: path.into(),
            source,
        })?;
        Ok(inputs)
    }
}

impl Output {
    /// Writes the result as a safetensors file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), StorageError> {
        let write = || {
            let mut rest = self.bytes.as_slice();
            let mut views = Vec::with_capacity(self.parts.len());
            for (number, part) in self.parts.iter().enumerate() {
                let (bytes, after) = rest.split_at(part.rows * part.columns * self.format.bytes());
                let view = TensorView::new(output_type(self.format), vec![part.rows, part.columns], bytes)?;
                views.push((part_name(number), view));
                rest = after;
            }
            safetensors::serialize_to_file(views, None, path)
        };
        write().map_err(|source| StorageError::Write {
            path: path.into(),
            source,
        })
    }

    /// Reads the result of `problem` from a safetensors file.
    ///
    /// # Errors
    /// When the file cannot be read, or a part is missing or of another type or shape.
    pub fn load(path: &Path, problem: &Problem) -> Result<Self, StorageError> {
        let file = File::open(path)?;
        let kind = output_type(problem.output_format());
        let mut elements = Vec::with_capacity(problem.output_bytes());
        for (number, Part { rows, columns }) in problem.parts().into_iter().enumerate() {
            elements.extend(file.tensor(&part_name(number), kind, &[rows, columns])?);
        }
        Self::new(problem, elements).map_err(|source| StorageError::Output {
            path: path.into(),
            source,
        })
    }
}

fn cannot_read(path: &Path) -> impl Fn(std::io::Error) -> StorageError {
    move |source| StorageError::Read {
        path: path.into(),
        source,
    }
}

/// Bytes of the number that a file begins with: how long its header is.
const LENGTH_BYTES: u64 = 8;

/// Longest header, as safetensors itself has it: a file may be somebody else's, and claim what it likes.
const MOST_HEADER_BYTES: u64 = 100_000_000;

/// An open file, which names itself and the tensor in what it complains about. Tensors are read where they are asked for,
/// by several threads at once: operands may be gigabytes, and workers load them again and again.
struct File<'a> {
    path: &'a Path,
    file: fs::File,
    metadata: Metadata,
    /// Where the tensors begin.
    begin: u64,
}

impl<'a> File<'a> {
    fn open(path: &'a Path) -> Result<Self, StorageError> {
        let malformed = |source| StorageError::Malformed {
            path: path.into(),
            source,
        };
        let file = fs::File::open(path).map_err(cannot_read(path))?;
        let bytes = file.metadata().map_err(cannot_read(path))?.len();
        if bytes < LENGTH_BYTES {
            return Err(malformed(SafeTensorError::HeaderTooSmall));
        }
        let mut length = [0; LENGTH_BYTES as usize];
        file.read_exact_at(&mut length, 0).map_err(cannot_read(path))?;
        let length = u64::from_le_bytes(length);
        if length > MOST_HEADER_BYTES {
            return Err(malformed(SafeTensorError::HeaderTooLarge));
        }
        if length > bytes - LENGTH_BYTES {
            return Err(malformed(SafeTensorError::InvalidHeaderLength));
        }
        let mut header = vec![0; length as usize];
        file.read_exact_at(&mut header, LENGTH_BYTES)
            .map_err(cannot_read(path))?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| malformed(SafeTensorError::InvalidHeaderDeserialization(error)))?;
        let begin = LENGTH_BYTES + length;
        if metadata.data_len() as u64 != bytes - begin {
            return Err(malformed(SafeTensorError::MetadataIncompleteBuffer));
        }
        Ok(Self {
            path,
            file,
            metadata,
            begin,
        })
    }

    fn tensor(&self, name: &str, kind: Dtype, shape: &[usize]) -> Result<Vec<u8>, StorageError> {
        let Some(info) = self.metadata.info(name) else {
            return Err(StorageError::Missing {
                path: self.path.into(),
                tensor: name.into(),
            });
        };
        if info.dtype != kind || info.shape != shape {
            return Err(StorageError::Shape {
                path: self.path.into(),
                tensor: name.into(),
                expected: format!("{kind} {shape:?}"),
                found: format!("{} {:?}", info.dtype, info.shape),
            });
        }
        let (begin, end) = info.data_offsets;
        let mut bytes = vec![0; end - begin];
        self.file
            .read_exact_at(&mut bytes, self.begin + begin as u64)
            .map_err(cannot_read(self.path))?;
        Ok(bytes)
    }

    fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, StorageError> {
        let bytes = self.tensor(name, Dtype::F32, shape)?;
        let (floats, _) = bytes.as_chunks();
        Ok(floats.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
    }

    fn nvfp4(&self, name: &str, rows: usize, columns: usize) -> Result<Nvfp4Tensor, StorageError> {
        let packed = self.tensor(&format!("{name}.values"), Dtype::U8, &[rows, columns / 2])?;
        let scales = self.tensor(
            &format!("{name}.scales"),
            Dtype::F8_E4M3,
            &[rows, columns / BLOCK],
        )?;
        let tensor_scale = self.floats(&format!("{name}.tensor_scale"), &[1])?[0];
        Nvfp4Tensor::new(rows, columns, packed, scales, tensor_scale).map_err(|source| StorageError::Format {
            path: self.path.into(),
            tensor: name.into(),
            source,
        })
    }

    fn heads(
        &self,
        name: &str,
        attention: &Attention,
        rows: usize,
        scales: usize,
    ) -> Result<HeadTensor, StorageError> {
        let elements = rows * attention.head_size;
        let bytes = self.tensor(
            &format!("{name}.values"),
            attention_type(attention.format),
            &[elements],
        )?;
        let scales = self.floats(&format!("{name}.scales"), &[scales])?;
        Ok(HeadTensor {
            format: attention.format,
            bytes,
            scales,
        })
    }
}

/// Files from this size on are read by several threads. Below it there is little to win, and a worker's threads that have
/// just been woken would disturb the call that follows.
const READ_AT_ONCE: usize = 8 << 20;

fn load_groups(file: &File, gemm: &GroupedGemm) -> Result<Vec<GroupInputs>, StorageError> {
    let load = |(group, shape): (usize, &crate::GemmShape)| {
        let dual = gemm.form == Form::Swiglu;
        Ok(GroupInputs {
            a: file.nvfp4(&format!("{group}.a"), shape.m, shape.k)?,
            b: file.nvfp4(&format!("{group}.b"), shape.n, shape.k)?,
            b2: dual
                .then(|| file.nvfp4(&format!("{group}.b2"), shape.n, shape.k))
                .transpose()?,
        })
    };
    if file.metadata.data_len() < READ_AT_ONCE {
        return gemm.groups.iter().enumerate().map(load).collect();
    }
    let groups: Vec<_> = gemm.groups.par_iter().enumerate().map(load).collect();
    // The first complaint is the one that is told, whichever thread was quickest.
    groups.into_iter().collect()
}

fn load_heads(file: &File, attention: &Attention) -> Result<AttentionInputs, StorageError> {
    let (queries, keys) = (attention.query_rows(), attention.key_rows());
    let key_scales = attention.key_scales();
    Ok(AttentionInputs {
        query: file.heads("query", attention, queries, attention.query_scales())?,
        key: file.heads("key", attention, keys, key_scales)?,
        value: file.heads("value", attention, keys, key_scales)?,
    })
}

fn save_groups(groups: &[GroupInputs], path: &Path) -> Result<(), SafeTensorError> {
    let tensors: Vec<(String, &Nvfp4Tensor, [u8; 4])> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, inputs)| {
            let named = [
                ("a", Some(&inputs.a)),
                ("b", Some(&inputs.b)),
                ("b2", inputs.b2.as_ref()),
            ];
            named.into_iter().filter_map(move |(name, tensor)| {
                tensor.map(|tensor| {
                    (
                        format!("{group}.{name}"),
                        tensor,
                        tensor.tensor_scale().to_le_bytes(),
                    )
                })
            })
        })
        .collect();
    let mut views = Vec::with_capacity(3 * tensors.len());
    for (name, tensor, scale) in &tensors {
        let (rows, columns) = (tensor.rows(), tensor.columns());
        let values = TensorView::new(Dtype::U8, vec![rows, columns / 2], tensor.packed())?;
        let scales = TensorView::new(Dtype::F8_E4M3, vec![rows, columns / BLOCK], tensor.scales())?;
        views.push((format!("{name}.values"), values));
        views.push((format!("{name}.scales"), scales));
        views.push((
            format!("{name}.tensor_scale"),
            TensorView::new(Dtype::F32, vec![1], scale)?,
        ));
    }
    safetensors::serialize_to_file(views, None, path)
}

fn save_heads(inputs: &AttentionInputs, path: &Path) -> Result<(), SafeTensorError> {
    let tensors = [
        ("query", &inputs.query),
        ("key", &inputs.key),
        ("value", &inputs.value),
    ];
    let scales = tensors.map(|(_, tensor)| -> Vec<u8> {
        tensor
            .scales
            .iter()
            .flat_map(|scale| scale.to_le_bytes())
            .collect()
    });
    let mut views = Vec::with_capacity(2 * tensors.len());
    for ((name, tensor), scales) in tensors.into_iter().zip(&scales) {
        let values = TensorView::new(attention_type(tensor.format), vec![tensor.len()], &tensor.bytes)?;
        views.push((format!("{name}.values"), values));
        views.push((
            format!("{name}.scales"),
            TensorView::new(Dtype::F32, vec![tensor.scales.len()], scales)?,
        ));
    }
    safetensors::serialize_to_file(views, None, path)
}

fn part_name(part: usize) -> String {
    format!("{part}.c")
}

fn attention_type(format: AttentionFormat) -> Dtype {
    match format {
        AttentionFormat::E4m3 => Dtype::F8_E4M3,
        AttentionFormat::Int8 => Dtype::I8,
        AttentionFormat::F16 => Dtype::F16,
        AttentionFormat::Bf16 => Dtype::BF16,
    }
}

fn output_type(format: OutputFormat) -> Dtype {
    match format {
        OutputFormat::F16 => Dtype::F16,
        OutputFormat::Bf16 => Dtype::BF16,
        OutputFormat::F32 => Dtype::F32,
    }
}
