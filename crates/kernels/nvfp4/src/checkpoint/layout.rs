//! The layouts of NVFP4 weights in checkpoints.

use std::fmt;

use safetensors::SafeTensors;

use super::{CheckpointError, layers};

/// The suffix of the tensor with the block scales, the same in all layouts.
pub(super) const BLOCK_SCALES: &str = "weight_scale";

/// What a layer may have beside its weight: a bias, and scales of its inputs and outputs and of the cache of keys and values,
/// which stay in 16 bits. Anything else changes what the layer computes.
const BESIDE: [&str; 7] = [
    "bias",
    "input_scale",
    "input_global_scale",
    "output_scale",
    "q_scale",
    "k_scale",
    "v_scale",
];

/// How a quantiser stores an NVFP4 weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As NVIDIA's ModelOpt does: `weight_scale_2` multiplies.
    ModelOpt,
    /// As the library compressed-tensors does, for example for LLM Compressor: `weight_global_scale` divides.
    CompressedTensors,
}

impl Layout {
    /// The layouts that can be read.
    pub const ALL: [Self; 2] = [Self::ModelOpt, Self::CompressedTensors];

    /// The suffix of the tensor with the codes.
    pub(super) fn codes(self) -> &'static str {
        match self {
            Self::ModelOpt => "weight",
            Self::CompressedTensors => "weight_packed",
        }
    }

    /// The suffix of the tensor with the `f32` scale.
    pub(super) fn scale(self) -> &'static str {
        match self {
            Self::ModelOpt => "weight_scale_2",
            Self::CompressedTensors => "weight_global_scale",
        }
    }

    /// The factor of all elements, computed from the stored scale. The inverse of a stored divisor is rounded to `f32`.
    pub(super) fn factor(self, stored: f32) -> f32 {
        match self {
            Self::ModelOpt => stored,
            Self::CompressedTensors => (1.0 / f64::from(stored)) as f32,
        }
    }

    /// The layout, from the names of a layer's tensors. The name of the codes and that of the scale each belong to only one
    /// layout, so a layer with names from both layouts is an error.
    pub(super) fn of_layer(tensors: &SafeTensors, layer: &str) -> Result<Self, CheckpointError> {
        let prefix = format!("{layer}.");
        let mut found: Vec<_> = tensors
            .names()
            .into_iter()
            .filter_map(|name| name.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect();
        found.sort();
        if found.is_empty() {
            return Err(CheckpointError::NoLayer {
                layer: layer.to_owned(),
                known: layers(tensors),
            });
        }
        let has = |suffix: &str| found.iter().any(|name| name == suffix);
        let told: Vec<_> = Self::ALL
            .into_iter()
            .filter(|layout| has(layout.codes()) || has(layout.scale()))
            .collect();
        match told[..] {
            // A plain bf16 weight is also named `weight`, so that name alone does not decide.
            [layout] if has(BLOCK_SCALES) || has(layout.scale()) || layout == Self::CompressedTensors => {
                layout.check_others(layer, &found).map(|()| layout)
            }
            _ => Err(CheckpointError::UnknownLayout {
                layer: layer.to_owned(),
                found,
            }),
        }
    }

    /// The tensors of a layer, by their suffixes, are those of the layout and others that change nothing.
    fn check_others(self, layer: &str, found: &[String]) -> Result<(), CheckpointError> {
        let own = [self.codes(), BLOCK_SCALES, self.scale()];
        let foreign = found.iter().find(|name| {
            let name = name.as_str();
            !own.contains(&name) && !BESIDE.contains(&name)
        });
        foreign.map_or(Ok(()), |suffix| {
            Err(CheckpointError::Foreign {
                tensor: format!("{layer}.{suffix}"),
            })
        })
    }

    /// All layouts with the names of their tensors, for messages.
    pub(super) fn known() -> String {
        let described = Self::ALL.map(|layout| {
            format!(
                "{layout} (`{}`, `{BLOCK_SCALES}`, `{}`)",
                layout.codes(),
                layout.scale()
            )
        });
        described.join(" and ")
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::ModelOpt => "ModelOpt",
            Self::CompressedTensors => "compressed-tensors",
        })
    }
}
