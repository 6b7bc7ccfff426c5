//! The way of tensors between a coordinator that holds the worker and a GPU.
//!
//! The coordinator reaches memory of the host only. It writes operands there, and the worker copies them to the GPU; results go the
//! other way. Operands travel through memory of the GPU whose address the kernel is never given: the long copy over the bus
//! ends there, and a short one on the GPU brings them to where the kernel looks.
//!
//! If the device is put under load before a call, its operands are on the GPU by then, and are sealed until the load is over.

use std::rc::Rc;

use gauntlet_calls::opening::BLOCK;
use gauntlet_cuda::driver::{Context, DeviceMemory, DriverError, HostMemory, Stream};
use gauntlet_tensors::{Tensor, TensorSpec};
use gauntlet_worker::protocol::CaseRequest;

use crate::opener::Opener;

/// The way of all tensors of a case.
#[derive(Debug)]
pub(crate) struct Staging {
    /// For each input; none for those that stay the same in every call.
    operands: Vec<Option<Operand>>,
    /// For each output.
    results: Vec<HostMemory>,
    /// Present as soon as a load has been asked for.
    known: Option<Rc<Known>>,
}

/// What loads need besides: operands of theirs on the GPU, in memory whose address no kernel is given, and the kernel that opens
/// those of the call.
#[derive(Debug)]
pub(crate) struct Known {
    /// All inputs.
    pub tensors: Vec<DeviceMemory>,
    pub opener: Opener,
}

impl Known {
    fn new(context: &Context, inputs: &[Tensor]) -> Result<Self, DriverError> {
        let tensor = |tensor: &Tensor| DeviceMemory::from_bytes(context, &tensor.bytes);
        Ok(Self {
            tensors: inputs.iter().map(tensor).collect::<Result<_, _>>()?,
            opener: Opener::new(context)?,
        })
    }

    /// Queues copies of the inputs that `is_wanted` names by their index to these places on the GPU, of which there is one for
    /// each input.
    ///
    /// # Errors
    /// If a copy cannot be queued.
    pub fn copy<'m>(
        &self,
        places: impl Iterator<Item = (&'m DeviceMemory, usize)>,
        is_wanted: impl Fn(usize) -> bool,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        for (input, (tensor, (memory, begin))) in self.tensors.iter().zip(places).enumerate() {
            if is_wanted(input) {
                memory.receive(begin, tensor, tensor.bytes(), stream)?;
            }
        }
        Ok(())
    }
}

/// An operand on its way to the GPU.
#[derive(Debug)]
struct Operand {
    /// Where the coordinator writes it.
    host: HostMemory,
    /// Where the copy over the bus ends: as long as whole blocks of a seal.
    hidden: DeviceMemory,
}

impl Operand {
    fn new(context: &Context, tensor: &Tensor) -> Result<Self, DriverError> {
        let mut host = HostMemory::new(context, tensor.bytes.len())?;
        host.bytes_mut().copy_from_slice(&tensor.bytes);
        Ok(Self {
            host,
            hidden: DeviceMemory::new(context, tensor.bytes.len().next_multiple_of(BLOCK))?,
        })
    }
}

impl Staging {
    /// Room for the tensors of a case. Until the coordinator has written others, the way holds these inputs.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new(context: &Context, case: &CaseRequest, inputs: &[Tensor]) -> Result<Self, DriverError> {
        let operand = |tensor: &Tensor| {
            let stays = case.constant.contains(&tensor.spec.name);
            (!stays).then(|| Operand::new(context, tensor)).transpose()
        };
        let result = |spec: &TensorSpec| HostMemory::new(context, spec.bytes());
        Ok(Self {
            operands: inputs.iter().map(operand).collect::<Result<_, _>>()?,
            results: case.outputs.iter().map(result).collect::<Result<_, _>>()?,
            known: None,
        })
    }

    /// What loads need besides. The first one makes it, from these inputs.
    ///
    /// # Errors
    /// If there is no memory for it, or the driver does not take the kernel that opens operands.
    pub fn known(&mut self, context: &Context, inputs: &[Tensor]) -> Result<Rc<Known>, DriverError> {
        let known = match &self.known {
            Some(known) => Rc::clone(known),
            None => Rc::new(Known::new(context, inputs)?),
        };
        self.known = Some(Rc::clone(&known));
        Ok(known)
    }

    /// Whether an input stays the same in every call.
    pub fn stays(&self, input: usize) -> bool {
        self.operands.get(input).is_none_or(Option::is_none)
    }

    /// Where the coordinator writes each input; none for those that it does not.
    pub fn addresses(&self) -> impl Iterator<Item = Option<u64>> {
        let address = |operand: &Operand| operand.host.address();
        self.operands
            .iter()
            .map(move |operand| operand.as_ref().map(address))
    }

    /// Copies what the coordinator has written to the GPU, to where no kernel looks.
    ///
    /// # Errors
    /// If a copy fails.
    pub fn send(&self) -> Result<(), DriverError> {
        let mut operands = self.operands.iter().flatten();
        operands.try_for_each(|operand| operand.hidden.overwrite(0, operand.host.bytes()))
    }

    /// Queues the opening of what came sealed.
    ///
    /// # Errors
    /// If the kernel that does it cannot be launched.
    pub fn open(&self, opener: &Opener, key: u64, stream: &Stream) -> Result<(), DriverError> {
        let mut operands = self.operands.iter().flatten();
        operands.try_for_each(|operand| opener.queue(&operand.hidden, operand.host.address(), key, stream))
    }

    /// Copies what was sent to these places on the GPU, all at once after the last has come over the bus: a kernel that is
    /// still at work there cannot begin with the first of them.
    ///
    /// # Errors
    /// If a copy fails.
    pub fn reveal<'m>(
        &self,
        places: impl Iterator<Item = (&'m DeviceMemory, usize)>,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        for (operand, (memory, begin)) in self.operands.iter().zip(places) {
            if let Some(operand) = operand {
                memory.receive(begin, &operand.hidden, operand.host.bytes().len(), stream)?;
            }
        }
        stream.synchronise()
    }

    /// Copies outputs from these places on the GPU, and returns where each lies on the host.
    ///
    /// # Errors
    /// If a copy fails.
    pub fn bring_down<'m>(
        &mut self,
        places: impl Iterator<Item = (&'m DeviceMemory, usize)>,
        stream: &Stream,
    ) -> Result<Vec<Vec<i64>>, DriverError> {
        self.results
            .iter_mut()
            .zip(places)
            .map(|(result, (memory, begin))| {
                memory.read_part(begin, result.bytes_mut(), stream)?;
                Ok(vec![result.address() as i64])
            })
            .collect()
    }
}
