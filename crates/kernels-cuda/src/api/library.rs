//! A GPU with the kernels loaded so far.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::ServeError;
use crate::compiler::Compiler;
use crate::driver::{Context, Device};
use crate::engine::Loaded;
use crate::plan::Variant;

/// A GPU with the kernels loaded so far; clones share the same state.
///
/// It uses the device's primary context, so memory and streams of any library that uses the runtime API (PyTorch,
/// cuBLAS) work here. It must stay in the thread that created it.
#[derive(Clone)]
pub struct Library(Rc<Shared>);

struct Shared {
    context: Context,
    compiler: Compiler,
    kernels: RefCell<HashMap<Variant, Rc<Loaded>>>,
}

impl Library {
    /// Opens the GPU with this number, from 0.
    ///
    /// # Errors
    /// If there is no driver, no GPU with this number, no compiler, or the GPU cannot run the kernels.
    pub fn new(ordinal: usize) -> Result<Self, ServeError> {
        let device = Device::new(ordinal)?;
        device.target()?;
        let compiler = Compiler::new()?;
        Ok(Self(Rc::new(Shared {
            context: Context::new(&device)?,
            compiler,
            kernels: RefCell::default(),
        })))
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.0.context.device()
    }

    /// Its context, in which memory and streams can be made.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The kernel of a variant: already loaded, loaded from the cache on disk, or compiled now, which takes seconds.
    pub(super) fn kernel(&self, variant: &Variant) -> Result<Rc<Loaded>, ServeError> {
        if let Some(kernel) = self.0.kernels.borrow().get(variant) {
            return Ok(Rc::clone(kernel));
        }
        let (_, kernel) = Loaded::new(&self.0.context, &self.0.compiler, variant)?;
        let kernel = Rc::new(kernel);
        self.0
            .kernels
            .borrow_mut()
            .insert(variant.clone(), Rc::clone(&kernel));
        Ok(kernel)
    }
}
