//! The [safetensors](https://github.com/huggingface/safetensors) files that hold named tensors, a format that programs in
//! any language can read and write.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use safetensors::SafeTensorError;
use safetensors::tensor::{Metadata, TensorView};
use thiserror::Error;

use crate::{Tensor, TensorSpec};

/// Why a file of tensors cannot be read or written.
#[derive(Debug, Error)]
pub enum TensorFileError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error.
        source: SafeTensorError,
    },
    /// The file is not a safetensors file.
    #[error("{path} is not a whole safetensors file: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error.
        source: SafeTensorError,
    },
    /// A tensor is not in the file.
    #[error("{path} has no tensor `{tensor}`, which the task takes")]
    Missing {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        tensor: String,
    },
    /// A tensor has another type or shape.
    #[error("{path}: tensor `{tensor}` is {found}, but the task takes {expected}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        tensor: String,
        /// The type and shape that the task expects.
        expected: String,
        /// The type and shape found.
        found: String,
    },
    /// The contents of a tensor are not what the format of its operand allows.
    #[error("{path}: tensor `{tensor}`: {source}")]
    Contents {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        tensor: String,
        /// The error, and its place.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Bytes of the number at the start of a file, which is the length of its header.
const LENGTH_BYTES: u64 = 8;

/// The longest accepted header, as in safetensors itself: a file from another program may claim any length.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// An open file of tensors. Tensors are read on demand, possibly by several threads at the same time: operands may be
/// gigabytes, and workers load them repeatedly.
pub struct TensorFile<'a> {
    path: &'a Path,
    file: fs::File,
    metadata: Metadata,
    /// The offset of the tensors.
    begin: u64,
}

impl<'a> TensorFile<'a> {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a whole safetensors file.
    pub fn open(path: &'a Path) -> Result<Self, TensorFileError> {
        let malformed = |source| TensorFileError::Malformed {
            path: path.into(),
            source,
        };
        let cannot_read = |source| TensorFileError::Read {
            path: path.into(),
            source,
        };
        // Others may have put a pipe or a leased file in its place, which would make a blocking open wait for them.
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(cannot_read)?;
        let metadata = file.metadata().map_err(cannot_read)?;
        if !metadata.is_file() {
            return Err(cannot_read(std::io::Error::other("it is no regular file")));
        }
        let bytes = metadata.len();
        if bytes < LENGTH_BYTES {
            return Err(malformed(SafeTensorError::HeaderTooSmall));
        }
        let mut length = [0; LENGTH_BYTES as usize];
        file.read_exact_at(&mut length, 0).map_err(cannot_read)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES {
            return Err(malformed(SafeTensorError::HeaderTooLarge));
        }
        if length > bytes - LENGTH_BYTES {
            return Err(malformed(SafeTensorError::InvalidHeaderLength));
        }
        let mut header = vec![0; length as usize];
        file.read_exact_at(&mut header, LENGTH_BYTES)
            .map_err(cannot_read)?;
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

    /// The file's path.
    pub fn path(&self) -> &Path {
        self.path
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> usize {
        self.metadata.data_len()
    }

    /// Reads one tensor.
    ///
    /// # Errors
    /// When it is not in the file, has another type or shape, or cannot be read.
    pub fn tensor(&self, spec: &TensorSpec) -> Result<Tensor, TensorFileError> {
        let Some(info) = self.metadata.info(&spec.name) else {
            return Err(TensorFileError::Missing {
                path: self.path.into(),
                tensor: spec.name.clone(),
            });
        };
        if info.dtype != spec.data_type.stored() || info.shape != spec.shape {
            return Err(TensorFileError::Shape {
                path: self.path.into(),
                tensor: spec.name.clone(),
                expected: format!("{} {:?}", spec.data_type.stored(), spec.shape),
                found: format!("{} {:?}", info.dtype, info.shape),
            });
        }
        let (begin, end) = info.data_offsets;
        let mut bytes = vec![0; end - begin];
        self.file
            .read_exact_at(&mut bytes, self.begin + begin as u64)
            .map_err(|source| TensorFileError::Read {
                path: self.path.into(),
                source,
            })?;
        Ok(Tensor {
            spec: spec.clone(),
            bytes,
        })
    }

    /// Reads several tensors.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor), for the first of them.
    pub fn tensors(&self, specs: &[TensorSpec]) -> Result<Vec<Tensor>, TensorFileError> {
        specs.iter().map(|spec| self.tensor(spec)).collect()
    }
}

/// Writes tensors, each with its elements, as a safetensors file.
///
/// # Errors
/// When the file cannot be written, or the bytes are not those of a tensor's type and shape.
pub fn save_tensors<'t>(
    tensors: impl IntoIterator<Item = (&'t TensorSpec, &'t [u8])>,
    path: &Path,
) -> Result<(), TensorFileError> {
    let write = || safetensors::serialize_to_file(views(tensors)?, None, path);
    write().map_err(|source| TensorFileError::Write {
        path: path.into(),
        source,
    })
}

/// The bytes of a safetensors file of these tensors, each with its elements.
///
/// # Errors
/// When the bytes are not those of a tensor's type and shape.
pub fn serialize_tensors<'t>(
    tensors: impl IntoIterator<Item = (&'t TensorSpec, &'t [u8])>,
) -> Result<Vec<u8>, SafeTensorError> {
    safetensors::serialize(views(tensors)?, None)
}

fn views<'t>(
    tensors: impl IntoIterator<Item = (&'t TensorSpec, &'t [u8])>,
) -> Result<Vec<(&'t str, TensorView<'t>)>, SafeTensorError> {
    let view = |(spec, bytes): (&'t TensorSpec, &'t [u8])| {
        let view = TensorView::new(spec.data_type.stored(), spec.shape.clone(), bytes)?;
        Ok((spec.name.as_str(), view))
    };
    tensors.into_iter().map(view).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::DataType;

    fn save(tensors: &[Tensor], path: &Path) -> Result<(), TensorFileError> {
        save_tensors(
            tensors
                .iter()
                .map(|tensor| (&tensor.spec, tensor.bytes.as_slice())),
            path,
        )
    }

    fn any_tensor() -> impl Strategy<Value = (DataType, Vec<usize>, Vec<u8>)> {
        let data_type = proptest::sample::select(DataType::ALL.to_vec());
        // A scalar, an empty tensor, and tensors of several dimensions.
        (data_type, prop::collection::vec(0..5_usize, 0..4)).prop_flat_map(|(data_type, shape)| {
            let bytes = shape.iter().product::<usize>() * data_type.bytes();
            (
                Just(data_type),
                Just(shape),
                prop::collection::vec(any::<u8>(), bytes),
            )
        })
    }

    proptest! {
        #[test]
        fn tensors_survive_the_file_whatever_their_bits(drawn in prop::collection::vec(any_tensor(), 0..5)) {
            let tensors: Vec<Tensor> = drawn
                .into_iter()
                .enumerate()
                .map(|(number, (data_type, shape, bytes))| Tensor {
                    spec: TensorSpec::new(format!("{number}.x"), data_type, shape),
                    bytes,
                })
                .collect();
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("tensors");
            save(&tensors, &path).unwrap();
            let file = TensorFile::open(&path).unwrap();
            prop_assert_eq!(file.bytes(), tensors.iter().map(|tensor| tensor.bytes.len()).sum::<usize>());
            let mut specs: Vec<TensorSpec> = tensors.iter().map(|tensor| tensor.spec.clone()).collect();
            prop_assert_eq!(&file.tensors(&specs).unwrap(), &tensors);
            // In any order.
            specs.reverse();
            let reversed: Vec<Tensor> = tensors.iter().rev().cloned().collect();
            prop_assert_eq!(file.tensors(&specs).unwrap(), reversed);
        }
    }

    /// A worker may put one where the coordinator expects results.
    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let message = TensorFile::open(&path).err().unwrap().to_string();
        assert!(message.ends_with("pipe: it is no regular file"), "{message}");
    }

    #[test]
    fn tensors_that_do_not_fit_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tensors");
        let message = |spec: TensorSpec| {
            let file = TensorFile::open(&path).unwrap();
            let message = file.tensors(&[spec]).unwrap_err().to_string();
            message.replace(&path.display().to_string(), "FILE")
        };
        save(
            &[Tensor::filled(TensorSpec::new("x", DataType::F16, [2, 3]), 0)],
            &path,
        )
        .unwrap();
        assert_eq!(
            message(TensorSpec::new("y", DataType::F16, [2, 3])),
            "FILE has no tensor `y`, which the task takes"
        );
        assert_eq!(
            message(TensorSpec::new("x", DataType::F16, [3, 2])),
            "FILE: tensor `x` is F16 [2, 3], but the task takes F16 [3, 2]"
        );
        assert_eq!(
            message(TensorSpec::new("x", DataType::Bf16, [2, 3])),
            "FILE: tensor `x` is F16 [2, 3], but the task takes BF16 [2, 3]"
        );
    }

    #[test]
    fn files_that_are_not_whole_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tensors");
        save(
            &[Tensor::filled(TensorSpec::new("x", DataType::I64, [4]), 0)],
            &path,
        )
        .unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut longer = whole.clone();
        longer.push(0);
        for bytes in [
            &[] as &[u8],
            &whole[..7],
            &whole[..20],
            &whole[..whole.len() - 1],
            &longer,
            &[b'x'; 64],
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = TensorFile::open(&path).err();
            assert!(
                matches!(error, Some(TensorFileError::Malformed { .. })),
                "{} bytes: {error:?}",
                bytes.len()
            );
        }
        let missing = directory.path().join("missing");
        let error = TensorFile::open(&missing).err();
        assert!(matches!(error, Some(TensorFileError::Read { .. })), "{error:?}");
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tensors");
        let mut short = Tensor::filled(TensorSpec::new("x", DataType::F32, [4]), 0);
        short.bytes.pop();
        let error = save(&[short], &path).unwrap_err();
        assert!(matches!(error, TensorFileError::Write { .. }), "{error}");
        assert!(!path.exists(), "nothing is written of what does not fit");
        let nowhere = directory.path().join("no/such/folder");
        let error = save(&[], &nowhere).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot write {}", nowhere.display())),
            "{error}"
        );
    }
}
