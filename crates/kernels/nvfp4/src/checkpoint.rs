//! NVFP4 weights in safetensors checkpoints.
//!
//! Two quantisers write such checkpoints. Both store e2m1 codes two a byte, low nibble first, and one e4m3 scale for each
//! 16 values along K. They differ in the names of the tensors and in the meaning of the `f32` scale:
//!
//! | layout | codes, U8 `[n, k / 2]` | block scales, F8_E4M3 `[n, k / 16]` | F32 scale | an element is |
//! | --- | --- | --- | --- | --- |
//! | ModelOpt | `weight` | `weight_scale` | `weight_scale_2` | e2m1 × e4m3 × `weight_scale_2` |
//! | compressed-tensors | `weight_packed` | `weight_scale` | `weight_global_scale` | e2m1 × e4m3 / `weight_global_scale` |
//!
//! The names of a layer's tensors decide its layout. A layer that lacks one of the three tensors, that has tensors of both
//! layouts, or that has another tensor, such as AWQ's `pre_quant_scale`, is an error: without it, or with a wrong scale, shapes are
//! plausible and results wrong. Scales of activations, and of the cache of keys and values, are not read: both stay in 16 bits.
//!
//! ```
//! use gauntlet_nvfp4::checkpoint;
//! use safetensors::tensor::{Dtype, SafeTensors, TensorView};
//!
//! // One row of 16 ones with a block scale of 1, stored as compressed-tensors stores it: the global scale divides.
//! let divisor = 4.0f32.to_le_bytes();
//! let file = safetensors::serialize(
//!     [
//!         ("layer.weight_packed", TensorView::new(Dtype::U8, vec![1, 8], &[0x22; 8])?),
//!         ("layer.weight_scale", TensorView::new(Dtype::F8_E4M3, vec![1, 1], &[0x38])?),
//!         ("layer.weight_global_scale", TensorView::new(Dtype::F32, vec![1], &divisor)?),
//!     ],
//!     None,
//! )?;
//! let layer = checkpoint::read(&SafeTensors::deserialize(&file)?, "layer")?;
//! assert_eq!(layer.layout, checkpoint::Layout::CompressedTensors);
//! assert_eq!(layer.weight.dequantise_scaled(), vec![0.25; 16]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod layout;

use layout::BLOCK_SCALES;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use gauntlet_tensors::e4m3;

use crate::{BLOCK, FormatError, Nvfp4Tensor};

pub use error::CheckpointError;
pub use layout::Layout;

/// One layer's weight, and the layout it was stored in.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The layout, from the names of the tensors.
    pub layout: Layout,
    /// The weight, `[n, k]`. Its tensor scale multiplies, whatever the file stores.
    pub weight: Nvfp4Tensor,
}

/// What is read in spite of a fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowances {
    /// A block scale that is NaN counts as 0 where all 16 codes are 0. Some published checkpoints have such scales, because
    /// their quantiser divided 0 by 0.
    pub nan_scales_of_zeros: bool,
}

/// Reads the weight of the layer with the tensors `{layer}.weight…`.
///
/// # Errors
/// [`CheckpointError`] names the missing or wrong tensor, or the tensors found if they match no known layout.
pub fn read(tensors: &SafeTensors, layer: &str) -> Result<Layer, CheckpointError> {
    read_with(tensors, layer, Allowances::default())
}

/// As [`read`], with allowances.
///
/// # Errors
/// As [`read`].
pub fn read_with(
    tensors: &SafeTensors,
    layer: &str,
    allowances: Allowances,
) -> Result<Layer, CheckpointError> {
    let layout = Layout::of_layer(tensors, layer)?;
    let source = Source {
        tensors,
        layer,
        layout,
    };
    let (codes, [n, half]) = source.matrix(layout.codes(), Dtype::U8, "U8 [n, k / 2]")?;
    let (scales, shape) = source.matrix(BLOCK_SCALES, Dtype::F8_E4M3, "F8_E4M3 [n, k / 16]")?;
    let k = half * 2;
    let expected = [n, k / BLOCK];
    if k % BLOCK == 0 && shape != expected {
        return Err(source.unexpected(BLOCK_SCALES, &scales, &format!("F8_E4M3 {expected:?}")));
    }
    let factor = layout.factor(source.scale()?);
    let mut scales = scales.data().to_vec();
    if allowances.nan_scales_of_zeros {
        for (scale, block) in scales.iter_mut().zip(codes.data().chunks_exact(BLOCK / 2)) {
            if e4m3::is_nan(*scale) && is_zero(block) {
                *scale = 0;
            }
        }
    }
    let block_codes = |row: usize, block: usize| {
        let at = row * (k / BLOCK) + block;
        codes.data().chunks_exact(BLOCK / 2).nth(at).unwrap_or_default()
    };
    match Nvfp4Tensor::new(n, k, codes.data().to_vec(), scales, factor) {
        Ok(weight) => Ok(Layer { layout, weight }),
        Err(FormatError::NanScale { row, block, code }) if is_zero(block_codes(row, block)) => {
            Err(CheckpointError::NanScaleOfZeros {
                tensor: source.full(BLOCK_SCALES),
                row,
                block,
                code,
            })
        }
        Err(source) => Err(CheckpointError::Format {
            layer: layer.to_owned(),
            source,
        }),
    }
}

/// Whether all codes are 0 or -0, which differ in the sign alone.
fn is_zero(codes: &[u8]) -> bool {
    codes.iter().all(|pair| pair & 0x77 == 0)
}

/// The layers of a file that have block scales, in order.
pub fn layers(tensors: &SafeTensors) -> Vec<String> {
    let mut layers: Vec<_> = tensors
        .names()
        .into_iter()
        .filter_map(|name| name.strip_suffix(BLOCK_SCALES)?.strip_suffix('.'))
        .map(str::to_owned)
        .collect();
    layers.sort();
    layers
}

/// One layer of a file.
struct Source<'a> {
    tensors: &'a SafeTensors<'a>,
    layer: &'a str,
    layout: Layout,
}

impl<'a> Source<'a> {
    fn full(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.layer)
    }

    fn tensor(&self, suffix: &str) -> Result<TensorView<'a>, CheckpointError> {
        let tensor = self.full(suffix);
        self.tensors.tensor(&tensor).map_err(|error| match error {
            safetensors::SafeTensorError::TensorNotFound(_) => CheckpointError::Missing {
                tensor,
                layout: self.layout,
            },
            source => CheckpointError::File { tensor, source },
        })
    }

    /// A tensor of two dimensions and its sizes.
    fn matrix(
        &self,
        suffix: &str,
        dtype: Dtype,
        expected: &str,
    ) -> Result<(TensorView<'a>, [usize; 2]), CheckpointError> {
        let tensor = self.tensor(suffix)?;
        match *tensor.shape() {
            [rows, columns] if tensor.dtype() == dtype => Ok((tensor, [rows, columns])),
            _ => Err(self.unexpected(suffix, &tensor, expected)),
        }
    }

    /// The one `f32` scale as it is stored.
    fn scale(&self) -> Result<f32, CheckpointError> {
        let suffix = self.layout.scale();
        let tensor = self.tensor(suffix)?;
        let bytes: Option<[u8; 4]> = tensor.data().try_into().ok();
        let Some(bytes) = bytes.filter(|_| tensor.dtype() == Dtype::F32) else {
            return Err(self.unexpected(suffix, &tensor, "one F32"));
        };
        let value = f32::from_le_bytes(bytes);
        let usable = value >= 0.0 && value.is_finite() && self.layout.factor(value).is_finite();
        usable.then_some(value).ok_or_else(|| CheckpointError::Scale {
            tensor: self.full(suffix),
            value,
        })
    }

    fn unexpected(&self, suffix: &str, found: &TensorView, expected: &str) -> CheckpointError {
        CheckpointError::Shape {
            tensor: self.full(suffix),
            layout: self.layout,
            found: format!("{:?} {:?}", found.dtype(), found.shape()),
            expected: expected.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 3;
    const K: usize = 48;

    /// Codes and block scales of a small weight.
    fn weight() -> (Vec<u8>, Vec<u8>) {
        let codes = (0..N * K / 2).map(|at| (at * 37 % 256) as u8).collect();
        let scales = (0..N * K / BLOCK)
            .map(|at| e4m3::encode(0.25 + at as f64))
            .collect();
        (codes, scales)
    }

    /// A file with a layer of these tensors, the `f32` scale as stored.
    fn file(codes: &str, scale: Option<(&str, f32)>) -> Vec<u8> {
        let (packed, scales) = weight();
        let stored = scale.map(|(name, value)| (format!("model.layer.{name}"), value.to_le_bytes()));
        let mut tensors = vec![
            (
                format!("model.layer.{codes}"),
                TensorView::new(Dtype::U8, vec![N, K / 2], &packed).unwrap(),
            ),
            (
                "model.layer.weight_scale".to_owned(),
                TensorView::new(Dtype::F8_E4M3, vec![N, K / BLOCK], &scales).unwrap(),
            ),
        ];
        if let Some((name, bytes)) = &stored {
            tensors.push((name.clone(), TensorView::new(Dtype::F32, vec![1], bytes).unwrap()));
        }
        safetensors::serialize(tensors, None).unwrap()
    }

    fn read_layer(file: &[u8], layer: &str) -> Result<Layer, CheckpointError> {
        read(&SafeTensors::deserialize(file).unwrap(), layer)
    }

    fn message(file: &[u8]) -> String {
        read_layer(file, "model.layer").unwrap_err().to_string()
    }

    /// The weight by the definition of its layout, element by element in `f64`, independent of the code under test.
    fn by_definition(scale: impl Fn(f64) -> f64) -> Vec<f64> {
        let (codes, scales) = weight();
        (0..N * K)
            .map(|at| {
                let (row, column) = (at / K, at % K);
                let byte = codes[at / 2];
                let code = if column % 2 == 0 { byte & 0xF } else { byte >> 4 };
                let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)];
                let sign = if code & 8 == 0 { 1.0 } else { -1.0 };
                let block = scales[row * (K / BLOCK) + column / BLOCK];
                scale(sign * magnitude * f64::from(e4m3::decode(block)))
            })
            .collect()
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            // The factor of a layout that divides is rounded to f32.
            let allowed = expected.abs() * f64::from(f32::EPSILON);
            assert!((found - expected).abs() <= allowed, "{at}: {found} {expected}");
        }
    }

    #[test]
    fn model_opt_multiplies_by_its_scale() {
        for stored in [1.0f32, 0.0123, 7.5e-5, 448.0] {
            let layer = read_layer(&file("weight", Some(("weight_scale_2", stored))), "model.layer").unwrap();
            assert_eq!(layer.layout, Layout::ModelOpt);
            assert_eq!((layer.weight.rows(), layer.weight.columns()), (N, K));
            let expected = by_definition(|value| value * f64::from(stored));
            assert_close(&layer.weight.dequantise_scaled(), &expected);
        }
    }

    #[test]
    fn compressed_tensors_divide_by_their_scale() {
        for stored in [1.0f32, 168.99, 26_880.0, 0.3] {
            let bytes = file("weight_packed", Some(("weight_global_scale", stored)));
            let layer = read_layer(&bytes, "model.layer").unwrap();
            assert_eq!(layer.layout, Layout::CompressedTensors);
            let expected = by_definition(|value| value / f64::from(stored));
            assert_close(&layer.weight.dequantise_scaled(), &expected);
        }
    }

    #[test]
    fn a_missing_scale_is_an_error_that_names_the_tensor() {
        assert!(message(&file("weight", None)).starts_with("`model.layer.weight_scale_2` is missing"));
        assert!(
            message(&file("weight_packed", None)).starts_with("`model.layer.weight_global_scale` is missing")
        );
        let codes = [0u8; 8];
        let tensors = [(
            "model.layer.weight_packed",
            TensorView::new(Dtype::U8, vec![1, 8], &codes).unwrap(),
        )];
        let bytes = safetensors::serialize(tensors, None).unwrap();
        assert!(message(&bytes).starts_with("`model.layer.weight_scale` is missing"));
    }

    #[test]
    fn tensors_of_two_layouts_or_none_are_errors_that_list_them() {
        for (codes, scale) in [
            ("weight", "weight_global_scale"),
            ("weight_packed", "weight_scale_2"),
        ] {
            let said = message(&file(codes, Some((scale, 2.0))));
            for words in [codes, scale, "weight_scale", "ModelOpt", "compressed-tensors"] {
                assert!(said.contains(words), "{said}");
            }
            assert!(said.contains("no known NVFP4 layout"), "{said}");
        }
        let said = message(&file("qweight", None));
        assert!(
            said.contains("`qweight`, `weight_scale`, which is no known"),
            "{said}"
        );
        // A weight that is not quantised.
        let values = [0u8; 8];
        let tensors = [(
            "model.layer.weight",
            TensorView::new(Dtype::BF16, vec![2, 2], &values).unwrap(),
        )];
        let said = message(&safetensors::serialize(tensors, None).unwrap());
        assert!(
            said.contains("has `weight`, which is no known NVFP4 layout"),
            "{said}"
        );
    }

    #[test]
    fn a_tensor_that_changes_what_the_layer_computes_is_refused_by_name() {
        let with = |suffix: &str| {
            let bytes = file("weight", Some(("weight_scale_2", 1.0)));
            let file = SafeTensors::deserialize(&bytes).unwrap();
            let own = (
                format!("model.layer.{suffix}"),
                TensorView::new(Dtype::U8, vec![1], &[0]).unwrap(),
            );
            // The tensors of a layer whose name begins alike are its own.
            let other = ("model.layer2.pre_quant_scale".to_owned(), own.1.clone());
            let tensors = file.tensors().into_iter().chain([own, other]);
            read_layer(&safetensors::serialize(tensors, None).unwrap(), "model.layer")
        };
        for changing in [
            "pre_quant_scale",
            "weight_zero_point",
            "weight_g_idx",
            "svdquant_lora_a",
            "lora.weight",
        ] {
            let said = with(changing).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!(
                    "`model.layer.{changing}` changes what the layer computes"
                )),
                "{said}"
            );
        }
        for harmless in ["bias", "input_scale", "input_global_scale", "k_scale", "v_scale"] {
            assert!(with(harmless).is_ok(), "{harmless}");
        }
    }

    /// A row of two blocks: the first with codes and a scale that are given, the second of ones.
    fn with_block(code: u8, scale: u8, allowances: Allowances) -> Result<Layer, CheckpointError> {
        let codes: Vec<u8> = [[code; 8], [0x22; 8]].concat();
        let scales = [scale, 0x38];
        let tensors = [
            (
                "layer.weight",
                TensorView::new(Dtype::U8, vec![1, 16], &codes).unwrap(),
            ),
            (
                "layer.weight_scale",
                TensorView::new(Dtype::F8_E4M3, vec![1, 2], &scales).unwrap(),
            ),
            (
                "layer.weight_scale_2",
                TensorView::new(Dtype::F32, vec![], &[0, 0, 0x80, 0x3F]).unwrap(),
            ),
        ];
        let file = safetensors::serialize(tensors, None).unwrap();
        read_with(&SafeTensors::deserialize(&file).unwrap(), "layer", allowances)
    }

    #[test]
    fn a_nan_scale_of_zeros_counts_as_zero_where_that_is_allowed() {
        let allowed = Allowances {
            nan_scales_of_zeros: true,
        };
        for nan in [0x7F, 0xFF] {
            for zeros in [0x00, 0x80, 0x08, 0x88] {
                let said = with_block(zeros, nan, Allowances::default())
                    .unwrap_err()
                    .to_string();
                assert!(
                    said.starts_with("`layer.weight_scale` is NaN in row 0, block 0"),
                    "{said}"
                );
                assert!(
                    said.contains("all 16 codes there are 0") && said.contains("`nan_scales_of_zeros`"),
                    "{said}"
                );
                let weight = with_block(zeros, nan, allowed).unwrap().weight;
                assert_eq!(weight.dequantise_scaled(), [[0.0; 16], [1.0; 16]].concat());
            }
            // One code that is not 0 needs its scale.
            for allowances in [allowed, Allowances::default()] {
                let said = with_block(0x10, nan, allowances).unwrap_err().to_string();
                assert!(
                    said.contains("row 0, block 0") && !said.contains("nan_scales_of_zeros"),
                    "{said}"
                );
            }
        }
        assert_eq!(
            with_block(0x44, 0x38, allowed).unwrap(),
            with_block(0x44, 0x38, Allowances::default()).unwrap()
        );
    }

    #[test]
    fn an_unknown_layer_is_answered_with_those_in_the_file() {
        let file = file("weight", Some(("weight_scale_2", 1.0)));
        let said = read_layer(&file, "model.lair").unwrap_err().to_string();
        assert!(
            said.contains("`model.lair.…`") && said.contains("`model.layer`"),
            "{said}"
        );
    }

    #[test]
    fn a_scale_that_scales_nothing_is_refused() {
        for stored in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let said = message(&file("weight_packed", Some(("weight_global_scale", stored))));
            assert!(
                said.starts_with("`model.layer.weight_global_scale` is "),
                "{said}"
            );
        }
    }

    #[test]
    fn another_type_or_shape_is_refused_with_what_is_expected() {
        let (packed, scales) = weight();
        let scale = 1.0f32.to_le_bytes();
        let of = |codes: Dtype, blocks: Vec<usize>| {
            let tensors = [
                (
                    "model.layer.weight",
                    TensorView::new(codes, vec![N, K / 2], &packed).unwrap(),
                ),
                (
                    "model.layer.weight_scale",
                    TensorView::new(Dtype::F8_E4M3, blocks, &scales).unwrap(),
                ),
                (
                    "model.layer.weight_scale_2",
                    TensorView::new(Dtype::F32, vec![], &scale).unwrap(),
                ),
            ];
            safetensors::serialize(tensors, None).unwrap()
        };
        let said = message(&of(Dtype::I8, vec![N, K / BLOCK]));
        assert!(said.contains("`model.layer.weight` is I8 [3, 24]"), "{said}");
        let said = message(&of(Dtype::U8, vec![1, N * K / BLOCK]));
        assert!(
            said.contains("`model.layer.weight_scale` is F8_E4M3 [1, 9]") && said.contains("[3, 3]"),
            "{said}"
        );
        // A scalar without dimensions is one value too.
        assert!(read_layer(&of(Dtype::U8, vec![N, K / BLOCK]), "model.layer").is_ok());
    }
}
