//! Expected results, kept so that a check and a comparison of the same operands do not compute twice.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use gauntlet_task::Output;
use gauntlet_tensors::{Tensor, TensorSpec};

/// Bytes of results that are kept.
const MAX_BYTES: usize = 256 << 20;

/// The results of the last operands, by the operands' contents.
#[derive(Debug, Default)]
pub(crate) struct Results(Mutex<VecDeque<(blake3::Hash, Output)>>);

impl Results {
    /// The result for operands, computed unless it is kept.
    pub(crate) fn of<E>(
        &self,
        key: blake3::Hash,
        compute: impl FnOnce() -> Result<Output, E>,
    ) -> Result<Output, E> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, output)) = kept().iter().find(|(known, _)| *known == key) {
            return Ok(output.clone());
        }
        let output = compute()?;
        let mut kept = kept();
        kept.push_back((key, output.clone()));
        let bytes = |kept: &VecDeque<(blake3::Hash, Output)>| -> usize {
            kept.iter().map(|(_, output)| bytes_of(&output.0)).sum()
        };
        while kept.len() > 1 && bytes(&kept) > MAX_BYTES {
            kept.pop_front();
        }
        Ok(output)
    }
}

fn bytes_of(tensors: &[Tensor]) -> usize {
    tensors.iter().map(|tensor| tensor.bytes.len()).sum()
}

/// Digests the parameters and operands of a case.
pub(crate) fn digest(parameters: &serde_json::Value, tensors: &[Tensor]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(parameters.to_string().as_bytes());
    for Tensor { spec, bytes } in tensors {
        let TensorSpec { name, .. } = spec;
        hasher.update(name.as_bytes());
        hasher.update_rayon(bytes);
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::DataType;

    use super::*;

    fn output(value: f64) -> Output {
        Output(vec![Tensor::of(
            TensorSpec::new("y", DataType::F32, [1]),
            [value],
        )])
    }

    #[test]
    fn a_result_is_computed_once_for_the_same_operands() {
        let results = Results::default();
        let key = |value| digest(&serde_json::json!({}), &output(value).0);
        let first = results.of(key(1.0), || Ok::<_, ()>(output(10.0)));
        assert_eq!(first, Ok(output(10.0)));
        assert_eq!(results.of(key(1.0), || Err(())), Ok(output(10.0)));
        assert_eq!(results.of(key(2.0), || Err(())), Err(()));
    }
}
