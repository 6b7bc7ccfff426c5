//! A GPU with the kernels loaded so far.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;

use lru::LruCache;

use super::{
    AttentionPlan, AttentionShape, Choice, LayerShape, Planner, RaggedAttentionPlan, RaggedShape, ServeError,
    ShapePlan,
};
use crate::compiler::{Beforehand, compile_all};
use crate::engine::Loaded;
use crate::error::BuildError;
use crate::plan::{Code, Target, Variant};
use gauntlet_cuda::compiler::Compiler;
use gauntlet_cuda::driver::{Context, Device, RelaxedCapture, driver_version};

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
    beforehand: Option<Beforehand>,
    /// Found at once or, if there are kernels that were compiled beforehand, when the first other one is needed.
    compiler: OnceCell<Compiler>,
    tell: fn(&str),
    kernels: RefCell<HashMap<Variant, Rc<Loaded>>>,
    attention: RefCell<LruCache<AttentionShape, Rc<AttentionPlan>>>,
    ragged: RefCell<LruCache<RaggedShape, Rc<RaggedAttentionPlan>>>,
}

impl Library {
    /// Opens the GPU with this number, from 0.
    ///
    /// # Errors
    /// If there is no driver, no GPU with this number, no compiler, or the GPU cannot run the kernels.
    pub fn new(ordinal: usize) -> Result<Self, ServeError> {
        Self::telling(ordinal, None, |_| ())
    }

    /// The same, and calls `tell` with the name of each kernel before it is compiled, which takes up to a minute. Kernels
    /// are compiled once and kept on disk. Those in the folder `beforehand`, which
    /// [`compile_beforehand`](crate::compiler::compile_beforehand) made, are not compiled, and no compiler is looked for until another one is needed.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn telling(ordinal: usize, beforehand: Option<&Path>, tell: fn(&str)) -> Result<Self, ServeError> {
        let device = Device::new(ordinal)?;
        Target::of_gpu(&device)?;
        let driver = driver_version().map_err(ServeError::Driver)?;
        let library = Self(Rc::new(Shared {
            context: Context::new(&device)?,
            beforehand: beforehand.and_then(|folder| Beforehand::open(folder, driver)),
            compiler: OnceCell::new(),
            tell,
            kernels: RefCell::default(),
            attention: RefCell::new(LruCache::new(ATTENTION_PLANS)),
            ragged: RefCell::new(LruCache::new(ATTENTION_PLANS)),
        }));
        if library.0.beforehand.is_none() {
            library.0.compiler()?;
        }
        Ok(library)
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
        let planned = shape.plan(Target::of_gpu(self.device())?)?;
        let _relaxed = RelaxedCapture::new(self.context())?;
        let plan = Rc::new(AttentionPlan::new(self, *shape, planned)?);
        self.0.attention.borrow_mut().put(*shape, Rc::clone(&plan));
        Ok(plan)
    }

    /// The kept plan of a shape, or the one that `make` makes.
    pub(super) fn ragged(
        &self,
        shape: &RaggedShape,
        make: impl FnOnce(&Self) -> Result<RaggedAttentionPlan, ServeError>,
    ) -> Result<Rc<RaggedAttentionPlan>, ServeError> {
        if let Some(plan) = self.0.ragged.borrow_mut().get(shape) {
            return Ok(Rc::clone(plan));
        }
        let plan = Rc::new(make(self)?);
        self.0.ragged.borrow_mut().put(*shape, Rc::clone(&plan));
        Ok(plan)
    }

    /// A planner for layers on this GPU.
    ///
    /// # Errors
    /// If the GPU cannot run the kernels.
    pub fn planner(&self, shape: LayerShape, choice: Choice) -> Result<Planner, ServeError> {
        // Layers have their scales row by row, as every kernel takes them but Blackwell's native one.
        let target = Target::of_gpu(self.device())?.for_common_kernels();
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
        let loaded = self.0.load(&missing)?;
        let kernels = loaded.into_iter().map(Rc::new);
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

impl Shared {
    fn compiler(&self) -> Result<&Compiler, BuildError> {
        if let Some(compiler) = self.compiler.get() {
            return Ok(compiler);
        }
        let compiler = Compiler::new()?.telling(self.tell);
        Ok(self.compiler.get_or_init(|| compiler))
    }

    /// Loads variants, in their order. Those that were not compiled beforehand are compiled side by side.
    fn load(&self, variants: &[&Variant]) -> Result<Vec<Loaded>, BuildError> {
        let code = Code::of_gpu(self.context.device())?;
        let found = |variant| {
            self.beforehand
                .as_ref()
                .and_then(|folder| folder.find(variant, code))
        };
        let found: Vec<_> = variants.iter().map(|variant| found(variant)).collect();
        let others: Vec<_> = variants
            .iter()
            .zip(&found)
            .filter_map(|(variant, found)| found.is_none().then_some(*variant))
            .collect();
        let mut compiled = match others.as_slice() {
            [] => Vec::new(),
            others => compile_all(self.compiler()?, others, code)?,
        }
        .into_iter();
        let loaded = variants.iter().zip(found).map(|(variant, found)| {
            // There is one compiled for each that was not found.
            let code = found.or_else(|| compiled.next());
            code.map(|code| Loaded::new(&self.context, variant, &code))
        });
        loaded.flatten().collect()
    }
}
