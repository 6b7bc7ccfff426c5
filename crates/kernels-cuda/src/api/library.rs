//! A GPU with the kernels loaded so far.

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::rc::Rc;

use lru::LruCache;

use super::{AttentionPlan, AttentionShape, Choice, LayerShape, Planner, ServeError, ShapePlan};
use crate::compiler::Compiler;
use crate::driver::{Context, Device, RelaxedCapture};
use crate::engine::Loaded;
use crate::plan::Variant;

/// Plans of attention that a library caches. Each has tables in device memory, 16 bytes for each tile of queries of a head.
const ATTENTION_PLANS: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");

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
    attention: RefCell<LruCache<AttentionShape, Rc<AttentionPlan>>>,
}

impl Library {
    /// Opens the GPU with this number, from 0.
    ///
    /// # Errors
    /// If there is no driver, no GPU with this number, no compiler, or the GPU cannot run the kernels.
    pub fn new(ordinal: usize) -> Result<Self, ServeError> {
        Self::open(ordinal, |compiler| compiler)
    }

    /// The same, and calls `tell` with the name of each kernel before it is compiled, which takes up to a minute. Kernels
    /// are compiled once and kept on disk.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn telling(ordinal: usize, tell: impl Fn(&str) + Send + Sync + 'static) -> Result<Self, ServeError> {
        Self::open(ordinal, |compiler| compiler.telling(tell))
    }

    fn open(ordinal: usize, equip: impl FnOnce(Compiler) -> Compiler) -> Result<Self, ServeError> {
        let device = Device::new(ordinal)?;
        device.target()?;
        let compiler = equip(Compiler::new()?);
        Ok(Self(Rc::new(Shared {
            context: Context::new(&device)?,
            compiler,
            kernels: RefCell::default(),
            attention: RefCell::new(LruCache::new(ATTENTION_PLANS)),
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

    /// Attention of these sizes: planned and uploaded now, or taken from the cache of recent plans. A stream may be captured
    /// meanwhile, unless it waits for the default stream, in which tables are copied.
    ///
    /// # Errors
    /// If a size is invalid, no kernel supports the call, the kernel does not compile, or there is no memory for its tables.
    pub fn plan_attention(&self, shape: &AttentionShape) -> Result<Rc<AttentionPlan>, ServeError> {
        if let Some(plan) = self.0.attention.borrow_mut().get(shape) {
            return Ok(Rc::clone(plan));
        }
        let planned = shape.plan(self.device().target()?)?;
        let _relaxed = RelaxedCapture::new(self.context())?;
        let plan = Rc::new(AttentionPlan::new(self, *shape, planned)?);
        self.0.attention.borrow_mut().put(*shape, Rc::clone(&plan));
        Ok(plan)
    }

    /// A planner for layers on this GPU.
    ///
    /// # Errors
    /// If the GPU cannot run the kernels.
    pub fn planner(&self, shape: LayerShape, choice: Choice) -> Result<Planner, ServeError> {
        // Layers have their scales row by row, as every kernel takes them but Blackwell's native one.
        let target = self.device().target()?.for_common_kernels();
        Ok(Planner::new(shape, choice, target))
    }

    /// Loads the kernels of plans. Those that have to be compiled are compiled side by side, so the kernels of several layers
    /// that follow one another take about as long as one of them if there is a core for each. A stream may be captured meanwhile.
    ///
    /// # Errors
    /// If a kernel does not compile or does not fit the GPU.
    pub fn load(&self, plans: &[ShapePlan]) -> Result<(), ServeError> {
        let _relaxed = RelaxedCapture::new(self.context())?;
        let variants = plans.iter().flat_map(|plan| plan.plan().variants());
        self.load_variants(variants)
    }

    /// Loads the kernels of variants that are not loaded yet, from the cache on disk or compiled now, which takes up to a minute.
    pub(super) fn load_variants<'v>(
        &self,
        variants: impl IntoIterator<Item = &'v Variant>,
    ) -> Result<(), ServeError> {
        let mut missing = Vec::new();
        for variant in variants {
            if !self.0.kernels.borrow().contains_key(variant) && !missing.contains(&variant) {
                missing.push(variant);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let loaded = Loaded::all(&self.0.context, &self.0.compiler, &missing)?;
        let kernels = loaded.into_iter().map(|(_, kernel)| Rc::new(kernel));
        self.0
            .kernels
            .borrow_mut()
            .extend(missing.into_iter().cloned().zip(kernels));
        Ok(())
    }

    /// The kernel of a variant, loaded now unless it is already.
    pub(super) fn kernel(&self, variant: &Variant) -> Result<Rc<Loaded>, ServeError> {
        loop {
            if let Some(kernel) = self.0.kernels.borrow().get(variant) {
                return Ok(Rc::clone(kernel));
            }
            self.load_variants([variant])?;
        }
    }
}
