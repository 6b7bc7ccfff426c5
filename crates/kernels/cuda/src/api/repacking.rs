//! Weights repacked where they lie: in the memory of the GPU.

use super::layer::check_address;
use super::{Library, Queue, RepackBuffers, RepackShape, ServeError};
use crate::plan::{PlanError, Source, Target, repacking};
use gauntlet_cuda::driver::RelaxedCapture;

impl Library {
    /// Repacks weights for tokens of 16 bits on a queue's stream, byte for byte as
    /// [`packing::pack_steps`](crate::packing::pack_steps) does on the host. It waits for the result, because calls read weights
    /// without waiting for earlier work on their stream. The kernel is loaded now, unless it is already.
    ///
    /// # Errors
    /// If the weights cannot be repacked as they lie, an address is null or not aligned, the queue is for another GPU, this one is no
    /// Hopper, the kernel does not compile, or the driver reports an error.
    ///
    /// # Safety
    /// The buffers must be device memory of these sizes; results do not overlap operands.
    pub unsafe fn repack(
        &self,
        queue: &Queue,
        shape: &RepackShape,
        buffers: &RepackBuffers,
    ) -> Result<(), ServeError> {
        shape.check()?;
        let Some(launch) = shape.launch(buffers) else {
            return Ok(());
        };
        for (name, address) in [
            ("values", buffers.values),
            ("scales", buffers.scales),
            ("packed values", buffers.packed_values),
            ("packed scales", buffers.packed_scales),
        ] {
            check_address(|| name.to_owned(), address)?;
        }
        queue.check_device(self.device().ordinal)?;
        let arch = Target::of_gpu(self.device())?.arch;
        if !Source::Repack.runs_on(arch) {
            return Err(ServeError::Plan(PlanError::Architecture {
                arch,
                kernel: Source::Repack.entry(),
            }));
        }
        let kernel = {
            let _relaxed = RelaxedCapture::new(self.context())?;
            self.kernel(&repacking::repack(shape.tokens))?
        };
        queue.stream().context().make_current()?;
        // SAFETY: the caller promises the size of the memory; the parameter is made for this kernel.
        unsafe { kernel.launch(&launch, queue.stream()) }?;
        Ok(queue.stream().synchronise()?)
    }
}
