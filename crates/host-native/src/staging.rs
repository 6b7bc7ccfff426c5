//! The way of tensors between a coordinator that holds the worker and a GPU.
//!
//! The coordinator reaches memory of the host only. It writes operands there, and the worker copies them to the GPU; results go the
//! other way. Operands travel through memory of the GPU whose address the kernel is never given: the long copy over the bus
//! ends there, and a short one on the GPU brings them to where the kernel looks.

use gauntlet_formats::{Tensor, TensorSpec};
use gauntlet_kernels_cuda::driver::{Context, DeviceMemory, DriverError, HostMemory, Stream};
use gauntlet_worker::protocol::CaseRequest;

/// The way of all tensors of a case.
#[derive(Debug)]
pub(crate) struct Staging {
    /// For each input; none for those that stay the same in every call.
    operands: Vec<Option<Operand>>,
    /// For each output.
    results: Vec<HostMemory>,
}

/// An operand on its way to the GPU.
#[derive(Debug)]
struct Operand {
    /// Where the coordinator writes it.
    host: HostMemory,
    /// Where the copy over the bus ends.
    hidden: DeviceMemory,
}

impl Operand {
    fn new(context: &Context, tensor: &Tensor) -> Result<Self, DriverError> {
        let mut host = HostMemory::new(context, tensor.bytes.len())?;
        host.bytes_mut().copy_from_slice(&tensor.bytes);
        Ok(Self {
            host,
            hidden: DeviceMemory::new(context, tensor.bytes.len())?,
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
        })
    }

    /// Where the coordinator writes each input; none for those that it does not.
    pub fn addresses(&self) -> impl Iterator<Item = Option<u64>> {
        let address = |operand: &Operand| operand.host.address();
        self.operands
            .iter()
            .map(move |operand| operand.as_ref().map(address))
    }

    /// Copies what the coordinator has written to these places on the GPU, all at once after the last has come over the bus:
    /// a kernel that is still at work there cannot begin with the first of them.
    ///
    /// # Errors
    /// If a copy fails.
    pub fn reveal<'m>(
        &self,
        places: impl Iterator<Item = (&'m DeviceMemory, usize)>,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        for operand in self.operands.iter().flatten() {
            operand.hidden.overwrite(0, operand.host.bytes())?;
        }
        for (operand, (memory, begin)) in self.operands.iter().zip(places) {
            if let Some(operand) = operand {
                memory.receive(begin, &operand.hidden, stream)?;
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
