//! Operands in device memory.

use std::rc::Rc;

use gauntlet_problems::{Attention, AttentionInputs, GroupedGemm, Inputs, InputsError, Operation, Packing};

use super::layout::Layout;
use crate::error::RunError;
use crate::packing::{PackingError, pack_as};
use crate::plan::{self, OPERANDS, ScaleLayout, Target, Weights};
use gauntlet_cuda::driver::{Context, DeviceMemory, DriverError, Stream};

/// One copy of a problem's operands in device memory.
#[derive(Debug)]
pub struct Operands {
    /// A GEMM's tokens; attention's Q, K and V.
    pub(super) rows: [u64; OPERANDS],
    /// Their scales.
    pub(super) scales: [u64; OPERANDS],
    /// The addresses of each group's weights.
    pub(super) weights: Vec<Weights>,
    memory: Vec<DeviceMemory>,
    /// The operands that own these tokens, if they are shared.
    _tokens: Option<Rc<Operands>>,
}

impl Operands {
    /// Bytes of device memory.
    pub fn bytes(&self) -> usize {
        self.memory.iter().map(DeviceMemory::bytes).sum()
    }

    /// The same tokens with a GEMM's weights repacked, beside the canonical ones.
    pub(super) fn repacked(
        self: &Rc<Self>,
        stream: &Stream,
        gemm: &GroupedGemm,
        packing: Packing,
    ) -> Result<Self, RunError> {
        let Some(canonical) = self.memory.last() else {
            return Err(RunError::NoOperands);
        };
        let bytes = canonical.read(stream)?;
        let (mut memory, mut weights) = (Vec::new(), self.weights.clone());
        repack(
            gemm,
            packing,
            &bytes,
            canonical.address(),
            &mut weights,
            |bytes| {
                let piece = DeviceMemory::from_bytes(stream.context(), &bytes)?;
                memory.push(piece);
                Ok::<_, RunError>(memory[memory.len() - 1].address())
            },
        )?;
        Ok(Self {
            rows: self.rows,
            scales: self.scales,
            weights,
            memory,
            _tokens: Some(Rc::clone(self)),
        })
    }
}

/// Repacks weights that lie in `canonical`, whose first byte has the address `base`. `place` receives the bytes of each
/// repacked matrix and returns its new address.
pub(super) fn repack<E: From<PackingError>>(
    gemm: &GroupedGemm,
    packing: Packing,
    canonical: &[u8],
    base: u64,
    weights: &mut [Weights],
    mut place: impl FnMut(Vec<u8>) -> Result<u64, E>,
) -> Result<(), E> {
    let of_matrix = |begin: u64, length: usize| &canonical[(begin - base) as usize..][..length];
    for (shape, weights) in gemm.groups.iter().zip(weights) {
        let (rows, depth) = (shape.n, plan::depth(shape.k));
        let matrices = weights.packed.iter_mut().zip(&mut weights.scales);
        for (values, scales) in matrices.take(plan::matrices(gemm)) {
            let packed = pack_as(
                packing,
                gemm.tokens,
                rows,
                depth,
                of_matrix(*values, rows * depth / 2),
                of_matrix(*scales, rows * depth / 16),
            )?;
            *values = place(packed.values)?;
            *scales = place(packed.scales)?;
        }
    }
    Ok(())
}

/// Copies operands to the device, `copies` times in all.
pub(super) fn load(
    context: &Context,
    problem: &Operation,
    sets: &[Inputs],
    copies: usize,
) -> Result<Vec<Rc<Operands>>, RunError> {
    let family = Family::new(
        problem,
        ScaleLayout::of(Target::of_gpu(context.device())?.for_problem(problem).arch),
    );
    let (free, _) = context.memory()?;
    let bytes = family.bytes().saturating_mul(copies);
    if bytes > free {
        return Err(RunError::Memory { copies, bytes, free });
    }
    let mut loaded: Vec<Rc<Operands>> = Vec::with_capacity(copies);
    for set in sets.iter().take(copies) {
        set.validate(problem)?;
        let memory = family.upload(context, set)?;
        loaded.push(Rc::new(family.bind(set, memory)?));
    }
    for (copy, set) in (loaded.len()..copies).zip(sets.iter().cycle()) {
        let first = &loaded[copy % sets.len()];
        let memory: Result<_, DriverError> = first.memory.iter().map(DeviceMemory::copied).collect();
        loaded.push(Rc::new(family.bind(set, memory?)?));
    }
    Ok(loaded)
}

/// How each family's operands lie in buffers.
enum Family<'a> {
    /// Tokens, their scales, and all weights.
    Gemm(Layout),
    /// Q, K and V, then their scales.
    Attention(&'a Attention),
}

impl<'a> Family<'a> {
    fn new(problem: &'a Operation, scales: ScaleLayout) -> Self {
        match problem {
            Operation::GroupedGemm(gemm) => Self::Gemm(Layout::new(gemm, scales)),
            Operation::Attention(attention) => Self::Attention(attention),
        }
    }

    /// Bytes of one copy.
    fn bytes(&self) -> usize {
        match self {
            Self::Gemm(layout) => layout.bytes(),
            Self::Attention(attention) => {
                let rows = attention.query_rows() + 2 * attention.key_rows();
                rows * attention.head_size * attention.format.bytes()
            }
        }
    }

    fn upload(&self, context: &Context, inputs: &Inputs) -> Result<Vec<DeviceMemory>, RunError> {
        match (self, inputs) {
            (Self::Gemm(layout), Inputs::GroupedGemm(inputs)) => {
                let pieces = layout.pieces(inputs);
                Ok(vec![
                    DeviceMemory::assembled(context, layout.token_bytes, &pieces.tokens)?,
                    DeviceMemory::assembled(context, layout.token_scale_bytes, &pieces.token_scales)?,
                    DeviceMemory::assembled(context, layout.weight_bytes, &pieces.weights)?,
                ])
            }
            (Self::Attention(_), Inputs::Attention(AttentionInputs { query, key, value })) => {
                let tensors = [query, key, value];
                let rows = tensors.map(|tensor| DeviceMemory::from_bytes(context, &tensor.bytes));
                let scales = tensors
                    .map(|tensor| DeviceMemory::from_bytes(context, bytemuck::cast_slice(&tensor.scales)));
                let memory: Result<_, DriverError> = rows.into_iter().chain(scales).collect();
                Ok(memory?)
            }
            _ => Err(InputsError::Family.into()),
        }
    }

    fn bind(&self, inputs: &Inputs, memory: Vec<DeviceMemory>) -> Result<Operands, RunError> {
        let address = |index: usize| memory.get(index).map_or(0, DeviceMemory::address);
        match (self, inputs) {
            (Self::Gemm(layout), Inputs::GroupedGemm(inputs)) => Ok(Operands {
                rows: [address(0), 0, 0],
                scales: [address(1), 0, 0],
                weights: layout.weights(inputs, address(2)),
                memory,
                _tokens: None,
            }),
            (Self::Attention(_), Inputs::Attention(_)) => Ok(Operands {
                rows: [0, 1, 2].map(address),
                scales: [3, 4, 5].map(address),
                weights: Vec::new(),
                memory,
                _tokens: None,
            }),
            _ => Err(InputsError::Family.into()),
        }
    }
}
