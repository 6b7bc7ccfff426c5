//! A GPU with the kernels loaded so far.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::ServeError;
use crate::compiler::Compiler;
use crate::driver::{Context, Device, Function};
use crate::engine;
use crate::plan::Variant;

/// A GPU with the kernels loaded so far; its clones are one and the same.
///
/// It works in the device's primary context, so memory and streams of any library that uses the runtime API (PyTorch,
/// cuBLAS) are good here. Stays in the thread that made it.
#[derive(Clone)]
pub struct Library(Rc<Shared>);

struct Shared {
    context: Context,
    compiler: Compiler,
    functions: RefCell<HashMap<Variant, Rc<Function>>>,
}

impl Library {
    /// Takes the GPU of this number, from 0.
    ///
    /// # Errors
    /// If there is no driver, no such GPU, no compiler, or the GPU is no Hopper.
    pub fn new(ordinal: usize) -> Result<Self, ServeError> {
        let (context, compiler) = engine::open(ordinal)?;
        Ok(Self(Rc::new(Shared {
            context,
            compiler,
            functions: RefCell::default(),
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

    /// The kernel of a variant: loaded before, from the cache on disk, or compiled now, which takes seconds.
    pub(super) fn function(&self, variant: &Variant) -> Result<Rc<Function>, ServeError> {
        if let Some(function) = self.0.functions.borrow().get(variant) {
            return Ok(Rc::clone(function));
        }
        let (_, function) = engine::load(&self.0.context, &self.0.compiler, variant)?;
        let function = Rc::new(function);
        self.0
            .functions
            .borrow_mut()
            .insert(variant.clone(), Rc::clone(&function));
        Ok(function)
    }
}
