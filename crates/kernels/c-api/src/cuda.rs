//! Layers, plans and calls on NVIDIA GPUs: a thin cover over the library's own interface.

use std::ffi::c_void;
use std::rc::Rc;

use gauntlet_cuda::driver::DriverError;
use gauntlet_kernels_cuda::{
    Buffers, BuildError, CallPlan, Choice, Ends, Layer, LayerShape, Library, ProductShape, Queue, ServeError,
    Weights,
};
use gauntlet_problems::Packing;

use crate::status::{Failure, Status, destroy, elements, guarded, hand_over, reference};
use crate::words;

/// `gauntlet_cuda_plan`.
pub struct Plan(Rc<CallPlan>);

/// `gauntlet_cuda_weights`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProductWeights {
    n: usize,
    k: usize,
    values: [u64; 2],
    scales: [u64; 2],
    scale: [f32; 2],
}

fn failure(error: ServeError) -> Failure {
    let status = match &error {
        ServeError::Gpu(_)
        | ServeError::Compiler(_)
        | ServeError::Driver(
            DriverError::NoDriver | DriverError::TooOld { .. } | DriverError::NoDevice { .. },
        ) => Status::Unsupported,
        ServeError::Driver(_) | ServeError::Build(BuildError::Driver(_)) => Status::Driver,
        ServeError::Build(_) => Status::Internal,
        _ => Status::BadArgument,
    };
    Failure(status, error.to_string())
}

/// # Safety
/// As the header says: a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_library_create(ordinal: usize, library: *mut *mut Library) -> Status {
    guarded(|| {
        let made = Library::new(ordinal).map_err(failure)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(made, library, "library") }
    })
}

/// # Safety
/// The library must come from here, be used in its thread, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_library_destroy(library: *mut Library) {
    // SAFETY: the caller's promise is the same.
    unsafe { destroy(library) }
}

/// # Safety
/// As the header says: a library of this thread, `count` products, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_layer_create(
    library: *const Library,
    products: *const ProductWeights,
    count: usize,
    form: i32,
    tokens: i32,
    packing: i32,
    output: i32,
    layer: *mut *mut Layer,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a library of this thread.
        let library = unsafe { reference(library, "library") }?;
        // SAFETY: the caller promises `count` products.
        let products = unsafe { elements(products, count, "weights") }?;
        let shape = LayerShape {
            products: products
                .iter()
                .map(|&ProductWeights { n, k, .. }| ProductShape { n, k })
                .collect(),
            form: words::form(form)?,
            output: words::output(output)?,
            tokens: words::layer_tokens(tokens)?,
        };
        let weights = products.iter().map(|product| Weights {
            packed: product.values,
            scales: product.scales,
            scale: product.scale,
        });
        let choice = match words::packing(packing)? {
            Packing::Canonical => Choice::Automatic,
            packing => Choice::Repacked(packing),
        };
        let made = Layer::new(library, shape, weights.collect(), choice).map_err(failure)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(made, layer, "layer") }
    })
}

/// # Safety
/// The layer must come from here, be used in its thread, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_layer_destroy(layer: *mut Layer) {
    // SAFETY: the caller's promise is the same.
    unsafe { destroy(layer) }
}

/// # Safety
/// As the header says: a layer of this thread, `count` token counts, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_plan_create(
    layer: *const Layer,
    tokens: *const usize,
    count: usize,
    plan: *mut *mut Plan,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a layer of this thread.
        let layer = unsafe { reference(layer, "layer") }?;
        // SAFETY: the caller promises `count` token counts.
        let tokens = unsafe { elements(tokens, count, "tokens") }?;
        let made = layer.plan(tokens).map_err(failure)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(Plan(made), plan, "plan") }
    })
}

/// # Safety
/// As the header says: a layer of this thread, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_plan_create_routed(
    layer: *const Layer,
    rows: usize,
    plan: *mut *mut Plan,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a layer of this thread.
        let layer = unsafe { reference(layer, "layer") }?;
        let made = layer.plan_routed(rows).map_err(failure)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(Plan(made), plan, "plan") }
    })
}

/// # Safety
/// The plan must come from here, be used in its thread, and not be used again; its calls must be done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_plan_destroy(plan: *mut Plan) {
    // SAFETY: the caller's promise is the same.
    unsafe { destroy(plan) }
}

/// # Safety
/// As the header says: a library of this thread, a stream of its context that outlives the queue, and a place for the
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_queue_create(
    library: *const Library,
    stream: *mut c_void,
    queue: *mut *mut Queue,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a library of this thread.
        let library = unsafe { reference(library, "library") }?;
        // SAFETY: the caller promises a stream of the library's context that outlives the queue.
        let made = unsafe { Queue::on(library, stream) }.map_err(failure)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(made, queue, "queue") }
    })
}

/// # Safety
/// The queue must come from here, be used in its thread, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_queue_destroy(queue: *mut Queue) {
    // SAFETY: the caller's promise is the same.
    unsafe { destroy(queue) }
}

/// # Safety
/// As the header says: a queue and a plan of this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_reserve(queue: *const Queue, plan: *const Plan) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a queue and a plan of this thread.
        let (queue, plan) = unsafe { (reference(queue, "queue")?, reference(plan, "plan")?) };
        queue.reserve(&plan.0).map_err(failure)
    })
}

/// # Safety
/// As the header says: a queue and a plan of this thread, and device memory of the plan's sizes that lives until the
/// stream's work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_enqueue(
    queue: *const Queue,
    plan: *const Plan,
    tokens: u64,
    token_scales: u64,
    output: u64,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a queue and a plan of this thread.
        let (queue, plan) = unsafe { (reference(queue, "queue")?, reference(plan, "plan")?) };
        let buffers = Buffers {
            tokens,
            token_scales,
            output,
        };
        // SAFETY: the caller promises memory of the plan's sizes that lives until the stream's work is done.
        unsafe { queue.enqueue(&plan.0, &buffers) }.map_err(failure)
    })
}

/// # Safety
/// As the header says: as [`gauntlet_cuda_enqueue`], and the ends of a routed plan's products, written by earlier work on the
/// stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_enqueue_routed(
    queue: *const Queue,
    plan: *const Plan,
    tokens: u64,
    token_scales: u64,
    output: u64,
    ends: u64,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a queue and a plan of this thread.
        let (queue, plan) = unsafe { (reference(queue, "queue")?, reference(plan, "plan")?) };
        let buffers = Buffers {
            tokens,
            token_scales,
            output,
        };
        let ends = Ends {
            address: ends,
            rows: plan.0.shape().routing().rows(),
            are_ready: false,
        };
        // SAFETY: the caller promises memory of the plan's sizes that lives until the stream's work is done.
        unsafe { queue.enqueue_routed(&plan.0, &buffers, ends) }.map_err(failure)
    })
}
