//! The layers of a GPU as calls name them.

use std::sync::Arc;

use gauntlet_kernels_cuda::plan::DEPTH_STEP;
use gauntlet_kernels_cuda::{Choice, LayerShape, ProductShape, Weights};
use gauntlet_problems::{Form, OutputFormat, Packing, TokenFormat};
use pyo3::prelude::*;

use crate::{error, gemm};

/// What all calls with a stack of matrices on a GPU share, so that it is converted once: everything but the addresses, which the
/// package asks its tensors for in each call.
#[pyclass(frozen, eq)]
#[derive(PartialEq)]
pub struct Stack {
    shape: StackShape,
    /// Bits of the tensor scales: one for all groups, or one for each.
    scales: Arc<[u32]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StackShape {
    groups: usize,
    n: usize,
    /// Values of a row in memory, a multiple of [`DEPTH_STEP`]; see `_cuda.padded`.
    depth: usize,
    packing: Packing,
}

#[pymethods]
impl Stack {
    /// `sizes = (groups, n, values of a row in memory)`; tensor scales; how the weights are packed.
    #[new]
    fn new(sizes: (usize, usize, usize), scales: Vec<f32>, packing: &str) -> PyResult<Self> {
        let (groups, n, depth) = sizes;
        Ok(Self {
            shape: StackShape {
                groups,
                n,
                depth,
                packing: packing_named(packing)?,
            },
            scales: bits(scales),
        })
    }

    /// Rows of each matrix: columns of the result.
    #[getter]
    fn n(&self) -> usize {
        self.shape.n
    }
}

/// The addresses of values and block scales of the first weights, and of the second ones, 0 in the plain form.
pub type Addresses = (u64, u64, u64, u64);

/// A layer by its weights. Memory that is freed and given out again serves as well: a layer keeps no values.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LayerKey {
    shape: StackShape,
    k: usize,
    form: Form,
    addresses: Addresses,
    /// Bits of the tensor scales of the tokens, the first and the second weights: none, one for all groups, or one for each.
    scales: [Arc<[u32]>; 3],
    tokens: TokenFormat,
    output: OutputFormat,
}

impl LayerKey {
    /// The layer with these weights, whose tokens have `k` values and these tensor scales; `formats` name those of the tokens and the
    /// result.
    pub fn new(
        k: usize,
        (first, second): (&Stack, Option<&Stack>),
        addresses: Addresses,
        token_scales: Vec<f32>,
        formats: (&str, &str),
    ) -> PyResult<Self> {
        let shape = first.shape;
        if second.is_some_and(|second| second.shape != shape) {
            return Err(error::value("up: its shape in memory is not that of gate"));
        }
        if k > shape.depth || shape.depth - k >= DEPTH_STEP {
            return Err(error::value(format!(
                "tokens: {k} values do not fit weights whose rows have {} in memory",
                shape.depth
            )));
        }
        let token_scales = bits(token_scales);
        let second_scales = &second.unwrap_or(first).scales;
        Ok(Self {
            shape,
            k,
            form: match second {
                None => Form::Plain,
                Some(_) => Form::Swiglu,
            },
            addresses,
            scales: [&token_scales, &first.scales, second_scales].map(Arc::clone),
            tokens: token_format(formats.0)?,
            output: gemm::format(formats.1)?,
        })
    }

    pub fn choice(&self) -> Choice {
        match self.shape.packing {
            Packing::Canonical => Choice::Automatic,
            packing => Choice::Repacked(packing),
        }
    }

    pub fn shape(&self) -> LayerShape {
        let StackShape { groups, n, .. } = self.shape;
        LayerShape {
            products: vec![ProductShape { n, k: self.k }; groups],
            form: self.form,
            output: self.output,
            tokens: self.tokens,
        }
    }

    pub fn weights(&self) -> Vec<Weights> {
        let StackShape { groups, n, depth, .. } = self.shape;
        let place = |address: u64, group: usize, bytes: usize| match address {
            0 => 0,
            address => address + (group * n * bytes) as u64,
        };
        let scale = |of: usize, group: usize| {
            let numbers = [&self.scales[0], &self.scales[of]].map(|scales| {
                let bits = scales.get(group).or_else(|| scales.first());
                bits.map_or(1.0, |bits| f32::from_bits(*bits))
            });
            numbers[0] * numbers[1]
        };
        let (values, scales, values2, scales2) = self.addresses;
        (0..groups)
            .map(|group| Weights {
                packed: [place(values, group, depth / 2), place(values2, group, depth / 2)],
                scales: [
                    place(scales, group, depth / 16),
                    place(scales2, group, depth / 16),
                ],
                scale: [scale(1, group), scale(2, group)],
            })
            .collect()
    }
}

/// Numbers as their bits, which have an order and a hash.
fn bits(numbers: Vec<f32>) -> Arc<[u32]> {
    numbers.into_iter().map(f32::to_bits).collect()
}

fn packing_named(name: &str) -> PyResult<Packing> {
    match name {
        "canonical" => Ok(Packing::Canonical),
        "steps" => Ok(Packing::Steps),
        other => Err(error::value(format!("there is no packing `{other}`"))),
    }
}

/// The format of tokens by name.
pub fn token_format(name: &str) -> PyResult<TokenFormat> {
    match name {
        "nvfp4" => Ok(TokenFormat::Nvfp4),
        other => gemm::float("tokens", other).map(TokenFormat::from),
    }
}
