//! Traced calls: the kernels are built again with tracing, so that they record which role does what and when.

use std::ffi::CStr;
use std::rc::Rc;

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::Operation;
use gauntlet_problems::Schedule;

use super::{Engine, Kernel, Operands};
use crate::error::{RunError, TracingError};
use crate::plan::Variant;
use crate::trace::{ROLES, Record, Trace};
use gauntlet_cuda::driver::{DeviceMemory, DriverError, Event, Stream};

/// Records that there is room for, 32 MiB; each role of each block has its own part of it.
const RECORDS: usize = 1 << 20;

/// The variable that tells kernels of the buffer.
const VARIABLE: &CStr = c"trace";

/// `TraceBuffer` of `kernels/trace.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Described {
    records: u64,
    lost: u64,
    room: u32,
    reserved: u32,
}

/// The buffer for a call's records.
struct Buffer {
    records: DeviceMemory,
    lost: DeviceMemory,
    room: u32,
}

impl Engine {
    /// Records the activities of each role of each block in a call, from the first block's start to the last one's end.
    /// If the stream can be held back, all launches are queued before the first begins, so none waits for the host. A call on
    /// each copy of the operands precedes the traced one, as in a rotation.
    ///
    /// # Errors
    /// As [`Engine::build`] and [`Kernel::run`]; and if there are more records than fit the buffer.
    pub fn trace(
        &self,
        problem: &Operation,
        schedule: &Schedule,
        copies: &[Rc<Operands>],
    ) -> Result<Trace, TracingError> {
        let mut kernel = self.build_as(Variant::traced, problem, schedule)?;
        kernel.attach(copies)?;
        kernel.trace()
    }
}

impl Kernel {
    /// Traces a kernel built from traced variants. They write to one buffer, each for its own roles.
    fn trace(&self) -> Result<Trace, TracingError> {
        let stream = &self.shared.stream;
        let buffer = Buffer::new(stream, self.most_blocks() as usize).map_err(RunError::from)?;
        let event = || Event::new(stream.context()).map_err(RunError::from);
        let events = [event()?, event()?];
        for function in self.functions() {
            function
                .set(VARIABLE, &buffer.described())
                .map_err(RunError::from)?;
        }
        for copy in 0..self.copies() {
            self.time_call(copy, 0)?;
        }
        buffer.clear(stream).map_err(RunError::from)?;
        self.time_kernel(0, 0, &events)?;
        buffer.trace(stream)
    }
}

impl Buffer {
    fn new(stream: &Stream, blocks: usize) -> Result<Self, DriverError> {
        let roles = (blocks * ROLES.len()).max(1);
        let room = (RECORDS / roles).max(1);
        Ok(Self {
            records: DeviceMemory::new(stream.context(), roles * room * size_of::<Record>())?,
            lost: DeviceMemory::new(stream.context(), size_of::<u32>())?,
            room: room as u32,
        })
    }

    fn described(&self) -> [u8; size_of::<Described>()] {
        bytemuck::cast(Described {
            records: self.records.address(),
            lost: self.lost.address(),
            room: self.room,
            reserved: 0,
        })
    }

    fn clear(&self, stream: &Stream) -> Result<(), DriverError> {
        self.records.fill(0, stream)?;
        self.lost.fill(0, stream)?;
        stream.synchronise()
    }

    fn trace(&self, stream: &Stream) -> Result<Trace, TracingError> {
        let records = self.records.read(stream).map_err(RunError::from)?;
        let lost = self.lost.read(stream).map_err(RunError::from)?;
        let records: Vec<Record> = records
            .chunks_exact(size_of::<Record>())
            .map(bytemuck::pod_read_unaligned)
            .collect();
        Ok(Trace::new(&records, bytemuck::pod_read_unaligned(&lost))?)
    }
}
