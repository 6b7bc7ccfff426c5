//! Kernels on the device.

use std::cell::RefCell;
use std::num::NonZeroUsize;

use lru::LruCache;

use super::encode_all;
use crate::compiler::{Compiled, compile_all};
use crate::error::BuildError;
use crate::plan::{Code, Launch, MappedOperands, Variant};
use gauntlet_cuda::compiler::Compiler;
use gauntlet_cuda::driver::{Context, Device, DriverError, Function, LaunchShape, Stream};

/// Encoded maps of operands that a kernel keeps: calls mostly come with the same buffers, such as the cached keys of each layer
/// of a model.
const KEPT: NonZeroUsize = NonZeroUsize::new(128).expect("it is not zero");

/// A variant on the device.
pub(crate) struct Loaded {
    pub function: Function,
    overlapping: bool,
    /// The tensor maps of operands that launches brought last.
    mapped: RefCell<LruCache<MappedOperands, Vec<u8>>>,
}

impl Loaded {
    /// Compiles variants side by side or takes them from the cache, and loads them, in their order.
    pub fn all(
        context: &Context,
        compiler: &Compiler,
        variants: &[&Variant],
    ) -> Result<Vec<(Compiled, Self)>, BuildError> {
        let compiled = compile_all(compiler, variants, Code::of_gpu(context.device())?)?;
        let loaded = variants.iter().zip(compiled).map(|(variant, compiled)| {
            let loaded = Self::new(context, variant, &compiled)?;
            Ok((compiled, loaded))
        });
        loaded.collect()
    }

    /// Loads what was compiled of a variant.
    pub fn new(context: &Context, variant: &Variant, compiled: &Compiled) -> Result<Self, BuildError> {
        check_budget(variant, compiled, context.device())?;
        let function = Function::new(
            context,
            &compiled.cubin,
            compiled.entry,
            &variant.to_string(),
            variant.threads,
            variant.shared_bytes,
        )?;
        Ok(Self {
            function,
            overlapping: variant.overlaps(),
            mapped: RefCell::new(LruCache::new(KEPT)),
        })
    }

    /// Queues a launch.
    ///
    /// # Safety
    /// As [`Function::launch`].
    pub unsafe fn launch(&self, launch: &Launch, stream: &Stream) -> Result<(), DriverError> {
        let shape = LaunchShape {
            grid: launch.grid,
            cluster: launch.cluster,
            overlapping: self.overlapping,
        };
        let Some(operands) = launch.mapped else {
            // SAFETY: the caller makes the same promise.
            return unsafe { self.function.launch(shape, &launch.parameter, stream) };
        };
        let mut kept = self.mapped.borrow_mut();
        let maps = kept.try_get_or_insert(operands, || {
            encode_all(&operands.maps(), |map| operands.address(map))
        })?;
        let parameter = MappedOperands::complete(&launch.parameter, maps);
        // SAFETY: the caller makes the same promise.
        unsafe { self.function.launch(shape, &parameter, stream) }
    }
}

/// Checked here because the driver would refuse the launch with a less helpful message.
fn check_budget(variant: &Variant, compiled: &Compiled, device: &Device) -> Result<(), BuildError> {
    let over = |what, found, most, remedy| BuildError::OverBudget {
        variant: variant.to_string(),
        what,
        found,
        most,
        remedy,
    };
    let registers = compiled.resources.registers;
    if registers > variant.registers {
        return Err(over(
            "registers a thread",
            registers,
            variant.registers,
            "use a smaller tile",
        ));
    }
    let shared = compiled.resources.static_shared_bytes + variant.shared_bytes;
    if shared > device.block_shared_bytes {
        return Err(over(
            "bytes of shared memory a block",
            shared,
            device.block_shared_bytes,
            "use a smaller tile or fewer stages",
        ));
    }
    Ok(())
}
