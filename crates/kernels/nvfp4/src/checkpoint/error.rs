//! Why a weight cannot be read from a checkpoint.

use thiserror::Error;

use super::Layout;
use crate::FormatError;

/// The maximum number of names in an error about a missing layer.
const LISTED: usize = 8;

/// Why a layer's weight cannot be read.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// No tensor belongs to the layer.
    #[error(
        "no tensor is named `{layer}.…`; name one of the layers in the file: {}",
        listed(known)
    )]
    NoLayer {
        /// The layer asked for.
        layer: String,
        /// The layers with block scales, in order.
        known: Vec<String>,
    },
    /// The tensors match none of the known layouts, or more than one.
    #[error(
        "`{layer}` has {}, which is no known NVFP4 layout; known are {}",
        listed(found),
        Layout::known()
    )]
    UnknownLayout {
        /// The layer.
        layer: String,
        /// The suffixes of its tensors, in order.
        found: Vec<String>,
    },
    /// A tensor of the layout is missing.
    #[error(
        "`{tensor}` is missing, which the layout {layout} of this layer needs; without it every result would be wrong"
    )]
    Missing {
        /// The full name of the tensor.
        tensor: String,
        /// The layout, from the other tensors.
        layout: Layout,
    },
    /// A tensor that no layout has.
    #[error(
        "`{tensor}` changes what the layer computes, in a way that is not computed here; quantise the model again without it \
         (without AWQ, for example)"
    )]
    Foreign {
        /// The full name of the tensor.
        tensor: String,
    },
    /// A block scale is NaN and its block is zero, which [`Allowances`](super::Allowances) can have read.
    #[error(
        "`{tensor}` is NaN in row {row}, block {block} ({code:#04x}); all 16 codes there are 0, so the option \
         `nan_scales_of_zeros` reads it as 0"
    )]
    NanScaleOfZeros {
        /// The full name of the tensor of block scales.
        tensor: String,
        /// Row of the scale.
        row: usize,
        /// Block in the row.
        block: usize,
        /// The code found: 0x7F or 0xFF.
        code: u8,
    },
    /// A tensor's type or shape differs from its layout's.
    #[error("`{tensor}` is {found}; the layout {layout} has {expected} there")]
    Shape {
        /// The full name of the tensor.
        tensor: String,
        /// The layout.
        layout: Layout,
        /// The type and shape found.
        found: String,
        /// The type and shape of the layout.
        expected: String,
    },
    /// The `f32` scale is not a valid scale.
    #[error(
        "`{tensor}` is {value}; a scale must be finite and not negative, and one that divides must not be 0"
    )]
    Scale {
        /// The full name of the tensor.
        tensor: String,
        /// The value found.
        value: f32,
    },
    /// The tensors do not form an NVFP4 tensor.
    #[error("`{layer}`: {source}")]
    Format {
        /// The layer.
        layer: String,
        /// The error.
        source: FormatError,
    },
    /// The file's own table is broken.
    #[error("`{tensor}` cannot be read: {source}; the file may be cut short, fetch it again")]
    File {
        /// The full name of the tensor.
        tensor: String,
        /// The error.
        source: safetensors::SafeTensorError,
    },
}

/// The first names, and the number of the others.
fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len().saturating_sub(LISTED) {
        0 if names.is_empty() => "none, for it holds no NVFP4 weight".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
