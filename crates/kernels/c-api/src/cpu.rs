//! Plans and calls on the processor.

use std::ffi::c_void;

use gauntlet_kernels_cpu::{
    BuildError, Engine, EngineError, EngineOptions, FloatRows, GemmOperands, Kernel, RunError, TokenRows,
    Weights, output_for,
};
use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{
    Attention, AttentionInputs, GemmShape, GroupedGemm, HeadTensor, Inputs, Operation, Output, Scaling,
    Sequence, TokenFormat, check_heads,
};

use crate::matrix::Matrix;
use crate::status::{Failure, Status, destroy, elements, guarded, hand_over, null, reference};
use crate::words;

/// `gauntlet_plan`.
pub struct Plan {
    operation: Operation,
    kernel: Kernel,
}

/// `gauntlet_product`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Product {
    m: usize,
    n: usize,
    k: usize,
}

/// `gauntlet_attention`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AttentionSizes {
    batch: usize,
    heads: usize,
    kv_heads: usize,
    queries: usize,
    keys: usize,
    head_size: usize,
    operands: i32,
    output: i32,
    /// A `bool` of C, of which any byte but 0 is true.
    causal: u8,
}

/// `gauntlet_heads`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Heads {
    elements: *const u8,
    scales: *const f32,
}

/// # Safety
/// As the header says: a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_engine_create(threads: usize, engine: *mut *mut Engine) -> Status {
    guarded(|| {
        let options = EngineOptions {
            threads: (threads > 0).then_some(threads),
            ..EngineOptions::default()
        };
        let made = Engine::new(options).map_err(|error| match error {
            EngineError::Simd(_) => Failure(Status::Unsupported, error.to_string()),
            EngineError::Spawn { .. } => Failure(Status::OutOfMemory, error.to_string()),
            EngineError::NoThreads | EngineError::TooManyThreads { .. } => Failure::argument(error),
        })?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(made, engine, "engine") }
    })
}

/// # Safety
/// The engine must come from this library, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_engine_destroy(engine: *mut Engine) {
    // SAFETY: the caller's promise is the same.
    unsafe { destroy(engine) }
}

/// # Safety
/// As the header says: an engine of this library, `count` groups, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_plan_gemm(
    engine: *const Engine,
    groups: *const Product,
    count: usize,
    form: i32,
    output: i32,
    plan: *mut *mut Plan,
) -> Status {
    // SAFETY: the caller's promise is the same.
    guarded(|| unsafe { plan_gemm(engine, groups, count, form, TokenFormat::Nvfp4, output, plan) })
}

/// # Safety
/// As the header says: an engine of this library, `count` groups, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_plan_gemm_floats(
    engine: *const Engine,
    groups: *const Product,
    count: usize,
    form: i32,
    tokens: i32,
    output: i32,
    plan: *mut *mut Plan,
) -> Status {
    guarded(|| {
        let tokens = words::tokens(tokens)?.into();
        // SAFETY: the caller's promise is the same.
        unsafe { plan_gemm(engine, groups, count, form, tokens, output, plan) }
    })
}

/// # Safety
/// As [`gauntlet_plan_gemm`].
unsafe fn plan_gemm(
    engine: *const Engine,
    groups: *const Product,
    count: usize,
    form: i32,
    tokens: TokenFormat,
    output: i32,
    plan: *mut *mut Plan,
) -> Result<(), Failure> {
    // SAFETY: the caller promises an engine of this library.
    let engine = unsafe { reference(engine, "engine") }?;
    // SAFETY: the caller promises `count` groups.
    let groups = unsafe { elements(groups, count, "groups") }?;
    let gemm = GroupedGemm {
        groups: groups
            .iter()
            .map(|&Product { m, n, k }| GemmShape { m, n, k })
            .collect(),
        form: words::form(form)?,
        output: words::output(output)?,
        tokens,
    };
    let operation = Operation::GroupedGemm(gemm.clone());
    operation.validate().map_err(Failure::argument)?;
    let schedule = engine.recommend(&gemm);
    let kernel = engine.build(&operation, &schedule).map_err(refused)?;
    // SAFETY: the caller promises a place for the pointer.
    unsafe { hand_over(Plan { operation, kernel }, plan, "plan") }
}

/// # Safety
/// As the header says: an engine of this library, sizes, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_plan_attention(
    engine: *const Engine,
    sizes: *const AttentionSizes,
    plan: *mut *mut Plan,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises an engine of this library.
        let engine = unsafe { reference(engine, "engine") }?;
        // SAFETY: the caller promises sizes.
        let sizes = unsafe { reference(sizes, "attention") }?;
        check_heads(sizes.batch, sizes.heads).map_err(Failure::argument)?;
        let attention = Attention {
            sequences: vec![
                Sequence {
                    queries: sizes.queries,
                    keys: sizes.keys
                };
                sizes.batch
            ],
            heads: sizes.heads,
            kv_heads: sizes.kv_heads,
            head_size: sizes.head_size,
            causal: sizes.causal != 0,
            format: words::operands(sizes.operands)?,
            scaling: Scaling::PerHead,
            output: words::output(sizes.output)?,
        };
        let operation = Operation::Attention(attention.clone());
        operation.validate().map_err(Failure::argument)?;
        let schedule = engine.recommend_attention(&attention);
        let kernel = engine.build(&operation, &schedule).map_err(refused)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(Plan { operation, kernel }, plan, "plan") }
    })
}

fn refused(error: BuildError) -> Failure {
    match error {
        BuildError::OutOfMemory(_) | BuildError::WorkspaceTooLarge { .. } => {
            Failure(Status::OutOfMemory, error.to_string())
        }
        error => Failure::argument(error),
    }
}

/// # Safety
/// The plan must be null or come from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_plan_output_bytes(plan: *const Plan) -> usize {
    // SAFETY: the caller's promise is the same.
    unsafe { plan.as_ref() }.map_or(0, |plan| plan.operation.output_bytes())
}

/// # Safety
/// The plan must come from this library, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_plan_destroy(plan: *mut Plan) {
    // SAFETY: the caller's promise is the same.
    unsafe { destroy(plan) }
}

/// # Safety
/// As the header says: a plan that no other thread uses, `count` matrices in each list, and `output_bytes` of memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_run_gemm(
    plan: *mut Plan,
    tokens: *const *const Matrix,
    weights: *const *const Matrix,
    second: *const *const Matrix,
    count: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a plan that no other thread uses, and `count` matrices in the list.
        let (plan, tokens) = unsafe {
            (
                plan.as_mut().ok_or_else(|| null("plan"))?,
                matrices(tokens, count, "tokens")?,
            )
        };
        let tokens = tokens.into_iter().map(TokenRows::Nvfp4).collect();
        // SAFETY: the caller's promise is the same.
        unsafe { run_gemm(plan, tokens, weights, second, output, output_bytes) }
    })
}

/// # Safety
/// As the header says: a plan that no other thread uses, `count` pointers in each list, to tokens of the plan's sizes and
/// matrices, and `output_bytes` of memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_run_gemm_floats(
    plan: *mut Plan,
    tokens: *const *const c_void,
    weights: *const *const Matrix,
    second: *const *const Matrix,
    count: usize,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a plan that no other thread uses, and `count` pointers.
        let (plan, tokens) = unsafe {
            (
                plan.as_mut().ok_or_else(|| null("plan"))?,
                elements(tokens, count, "tokens")?,
            )
        };
        let gemm = match &plan.operation {
            Operation::GroupedGemm(gemm) if gemm.groups.len() == count => gemm,
            Operation::GroupedGemm(gemm) => {
                return Err(Failure::argument(format!(
                    "count = {count}: the plan has {} groups; give tokens and weights for each",
                    gemm.groups.len()
                )));
            }
            Operation::Attention(_) => {
                return Err(Failure::argument(
                    "plan: it is one of attention; use gauntlet_run_attention",
                ));
            }
        };
        let Some(float) = gemm.tokens.float() else {
            return Err(Failure::argument(
                "plan: its tokens are NVFP4; use gauntlet_run_gemm",
            ));
        };
        let rows = |(group, (pointer, shape)): (usize, (&*const c_void, &GemmShape))| {
            let bytes = shape.m * float.bytes() * shape.k;
            // SAFETY: the caller promises tokens of the plan's sizes.
            let bytes = unsafe { elements(pointer.cast::<u8>(), bytes, &format!("tokens[{group}]")) }?;
            FloatRows::new(float, [shape.m, shape.k], bytes)
                .map(TokenRows::Floats)
                .map_err(failed)
        };
        let tokens = tokens.iter().zip(&gemm.groups).enumerate().map(rows);
        let tokens = tokens.collect::<Result<_, _>>()?;
        // SAFETY: the caller's promise is the same.
        unsafe { run_gemm(plan, tokens, weights, second, output, output_bytes) }
    })
}

/// # Safety
/// As [`gauntlet_run_gemm`], with as many matrices in each list as there are groups of tokens.
unsafe fn run_gemm(
    plan: &mut Plan,
    tokens: Vec<TokenRows<'_>>,
    weights: *const *const Matrix,
    second: *const *const Matrix,
    output: *mut c_void,
    output_bytes: usize,
) -> Result<(), Failure> {
    // SAFETY: the caller promises as many matrices as groups of tokens.
    let weights = unsafe { matrices(weights, tokens.len(), "weights") }?;
    let second = if second.is_null() {
        None
    } else {
        // SAFETY: as above.
        Some(unsafe { matrices(second, tokens.len(), "second") }?)
    };
    let operands: Vec<_> = tokens
        .into_iter()
        .enumerate()
        .map(|(group, a)| GemmOperands {
            a,
            b: Weights::Tensor(weights[group]),
            b2: second.as_ref().map(|second| Weights::Tensor(second[group])),
        })
        .collect();
    let mut result = result_for(&plan.operation, output, output_bytes)?;
    plan.kernel.run_gemm(&operands, &mut result).map_err(failed)?;
    // SAFETY: the caller promises `output_bytes` of writable memory.
    unsafe { write(&result, output) };
    Ok(())
}

/// # Safety
/// As the header says: a plan that no other thread uses, operands of its sizes, and `output_bytes` of memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_run_attention(
    plan: *mut Plan,
    query: Heads,
    key: Heads,
    value: Heads,
    output: *mut c_void,
    output_bytes: usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a plan that no other thread uses.
        let plan = unsafe { plan.as_mut() }.ok_or_else(|| null("plan"))?;
        let Operation::Attention(attention) = &plan.operation else {
            return Err(Failure::argument(
                "plan: it is one of a GEMM; use gauntlet_run_gemm",
            ));
        };
        // SAFETY: the caller promises operands of the plan's sizes.
        let inputs = unsafe {
            Inputs::Attention(AttentionInputs {
                query: heads(
                    query,
                    attention,
                    attention.query_rows(),
                    attention.query_scales(),
                    "query",
                )?,
                key: heads(
                    key,
                    attention,
                    attention.key_rows(),
                    attention.key_scales(),
                    "key",
                )?,
                value: heads(
                    value,
                    attention,
                    attention.key_rows(),
                    attention.key_scales(),
                    "value",
                )?,
            })
        };
        inputs.validate(&plan.operation).map_err(Failure::argument)?;
        let mut result = result_for(&plan.operation, output, output_bytes)?;
        plan.kernel.run(&inputs, &mut result).map_err(failed)?;
        // SAFETY: the caller promises `output_bytes` of writable memory.
        unsafe { write(&result, output) };
        Ok(())
    })
}

/// # Safety
/// The list must hold `count` pointers, each null or of a matrix of this library.
unsafe fn matrices<'a>(
    list: *const *const Matrix,
    count: usize,
    name: &str,
) -> Result<Vec<&'a Nvfp4Tensor>, Failure> {
    // SAFETY: the caller promises `count` pointers.
    let pointers = unsafe { elements(list, count, name) }?;
    let matrix = |(group, &pointer): (usize, &*const Matrix)| {
        // SAFETY: the caller promises a matrix or null.
        unsafe { reference(pointer, &format!("{name}[{group}]")) }.map(|matrix| &matrix.0)
    };
    pointers.iter().enumerate().map(matrix).collect()
}

/// # Safety
/// The pointers must be null or point to as many elements and scales as the attention has.
unsafe fn heads(
    given: Heads,
    attention: &Attention,
    rows: usize,
    scales: usize,
    name: &str,
) -> Result<HeadTensor, Failure> {
    let bytes = rows * attention.head_size * attention.format.bytes();
    // SAFETY: the caller promises that many bytes.
    let bytes = unsafe { elements(given.elements, bytes, name) }?.to_vec();
    let scales = if attention.format.has_scales() {
        // SAFETY: the caller promises that many scales.
        unsafe { elements(given.scales, scales, &format!("{name}.scales")) }?.to_vec()
    } else {
        vec![1.0; scales]
    };
    Ok(HeadTensor {
        format: attention.format,
        bytes,
        scales,
    })
}

fn failed(error: RunError) -> Failure {
    match error {
        RunError::OutOfMemory(_) | RunError::Result { .. } | RunError::Spawn { .. } => {
            Failure(Status::OutOfMemory, error.to_string())
        }
        RunError::Plan(error) => refused(error),
        error @ RunError::Mismatch { .. } => Failure::argument(error),
    }
}

/// Memory for a plan's result, once its place in the caller's memory is checked.
fn result_for(operation: &Operation, place: *mut c_void, bytes: usize) -> Result<Output, Failure> {
    let needed = operation.output_bytes();
    if bytes != needed {
        return Err(Failure::argument(format!(
            "output_bytes = {bytes}: the result takes {needed}; gauntlet_plan_output_bytes says so"
        )));
    }
    if needed > 0 && place.is_null() {
        return Err(null("output"));
    }
    output_for(operation).map_err(failed)
}

/// # Safety
/// `place` must be the one that [`result_for`] checked, of as many writable bytes as it got.
unsafe fn write(result: &Output, place: *mut c_void) {
    if !result.bytes.is_empty() {
        // SAFETY: it is not null, the caller promises that many writable bytes, and the result is memory of its own.
        unsafe { std::ptr::copy_nonoverlapping(result.bytes.as_ptr(), place.cast(), result.bytes.len()) };
    }
}
