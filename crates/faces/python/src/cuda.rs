//! Grouped GEMM and attention on NVIDIA GPUs, on memory and streams that belong to the caller.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;

use gauntlet_kernels_cuda::packing;
use gauntlet_kernels_cuda::{
    ArrangeBuffers, AttentionBuffers, AttentionPlan, AttentionScales, AttentionShape, Buffers, CallPlan,
    CombineBuffers, Ends, Epilogue, ExpertMap, IndexWidth, KeyPlaces, Layer, Library, MixtureShape, Queue,
    RaggedAttentionPlan, RaggedPlaces, RaggedShape, RepackBuffers, RepackShape, Routing, ServeError, Strides,
};
use lru::LruCache;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::stack::{Addresses, LayerKey, Stack, token_format};
use crate::{attention, error, gemm};

/// Layers that stay registered. Each has its plans and encoded maps, not the weights.
const LAYERS: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");

/// A GPU as one thread uses it: the layers that were called last, and a queue for each stream.
#[pyclass(unsendable)]
pub struct CudaLibrary {
    library: Library,
    layers: RefCell<LruCache<LayerKey, Rc<Layer>>>,
    queues: RefCell<HashMap<usize, Rc<Queue>>>,
    /// What captured graphs hold: it may never be dropped, because nothing says when a graph is gone.
    captured: RefCell<Vec<(Rc<Layer>, Rc<CallPlan>)>>,
    /// The same of attention.
    captured_attention: RefCell<Vec<Rc<AttentionPlan>>>,
    captured_ragged: RefCell<Vec<Rc<RaggedAttentionPlan>>>,
}

/// The sizes and formats of attention: the same for many calls, so it is made once.
#[pyclass(frozen, eq, name = "AttentionShape")]
#[derive(PartialEq)]
pub struct Shape(AttentionShape);

#[pymethods]
impl Shape {
    /// `sizes` and `words` as [`attention::attention`] takes them.
    #[new]
    fn new(
        sizes: (usize, usize, usize, usize, usize, usize),
        words: (&str, &str, &str),
        causal: bool,
    ) -> PyResult<Self> {
        let (batch, heads, kv_heads, queries, keys, head_size) = sizes;
        Ok(Self(AttentionShape {
            batch,
            heads,
            kv_heads,
            queries,
            keys,
            head_size,
            causal,
            format: attention::operand_format(words.0)?,
            scaling: attention::scaling(words.1)?,
            output: gemm::format(words.2)?,
        }))
    }
}

/// The sizes and formats of attention on sequences of several lengths.
#[pyclass(frozen, name = "RaggedShape")]
pub struct Ragged(RaggedShape);

#[pymethods]
impl Ragged {
    /// `sizes = (batch, heads, kv_heads, most queries, most keys, head_size)`, `words` as [`Shape`] takes them.
    #[new]
    fn new(
        sizes: (usize, usize, usize, usize, usize, usize),
        words: (&str, &str, &str),
        causal: bool,
    ) -> PyResult<Self> {
        let (batch, heads, kv_heads, most_queries, most_keys, head_size) = sizes;
        Ok(Self(RaggedShape {
            batch,
            heads,
            kv_heads,
            head_size,
            most_queries,
            most_keys,
            causal,
            format: attention::operand_format(words.0)?,
            scaling: attention::scaling(words.1)?,
            output: gemm::format(words.2)?,
        }))
    }
}

#[pymethods]
impl CudaLibrary {
    /// Opens a GPU and its primary context; `beforehand` is the folder of kernels that were compiled for the package, if there is one.
    #[new]
    #[pyo3(signature = (ordinal, beforehand))]
    fn new(ordinal: usize, beforehand: Option<PathBuf>) -> PyResult<Self> {
        guarded(|| {
            Ok(Self {
                library: Library::telling(ordinal, beforehand.as_deref(), tell)?,
                layers: RefCell::new(LruCache::new(LAYERS)),
                queues: RefCell::default(),
                captured: RefCell::default(),
                captured_attention: RefCell::default(),
                captured_ragged: RefCell::default(),
            })
        })
    }

    /// Enqueues a product on a stream: tokens of `k` values; the first weights, and the second ones of the dual form; their addresses,
    /// tensor scales of the tokens and formats as [`LayerKey::new`] takes them; the tokens of each group; addresses of the tokens'
    /// values, their scales (0 for 16-bit floats, which have none) and the result.
    #[expect(
        clippy::too_many_arguments,
        reason = "a struct would have to be built in each call from Python"
    )]
    fn enqueue(
        &self,
        stream: usize,
        is_capturing: bool,
        k: usize,
        first: &Stack,
        second: Option<&Stack>,
        addresses: Addresses,
        token_scales: Vec<f32>,
        formats: (&str, &str),
        tokens: Vec<usize>,
        buffers: (u64, u64, u64),
    ) -> PyResult<()> {
        let key = LayerKey::new(k, (first, second), addresses, token_scales, formats)?;
        self.call(
            (stream, is_capturing),
            key,
            |layer| layer.plan(&tokens),
            // SAFETY: the package's `_cuda.py` passes addresses of contiguous tensors of these sizes on this GPU, which
            // PyTorch's allocator keeps for the work that is already on the current stream; that is the stream given.
            // `call` keeps the plan and the queue in this object, those of a captured call for good.
            |queue, plan| unsafe { queue.enqueue(plan, &operands(buffers)) },
        )
    }

    /// The same with `routing = (tokens of all groups together, the address at which the device reads where each group's end, whether
    /// they are [ready](Ends::are_ready))`, and what follows the sums, or nothing.
    #[expect(
        clippy::too_many_arguments,
        reason = "a struct would have to be built in each call from Python"
    )]
    fn enqueue_routed(
        &self,
        stream: usize,
        is_capturing: bool,
        k: usize,
        first: &Stack,
        second: Option<&Stack>,
        addresses: Addresses,
        token_scales: Vec<f32>,
        formats: (&str, &str),
        routing: (usize, u64, bool),
        buffers: (u64, u64, u64),
        epilogue: Option<EpilogueWords<'_>>,
    ) -> PyResult<()> {
        let epilogue = epilogue.map(epilogue_of).transpose()?;
        let key = LayerKey::new(k, (first, second), addresses, token_scales, formats)?;
        self.call(
            (stream, is_capturing),
            key,
            |layer| layer.plan_routed_with(Routing::bound(routing.0), epilogue),
            // SAFETY: as in `enqueue`; the ends are a contiguous tensor of an `i32` for each group on this GPU.
            |queue, plan| unsafe {
                let (rows, address, are_ready) = routing;
                let ends = Ends {
                    address,
                    rows,
                    are_ready,
                };
                queue.enqueue_routed(plan, &operands(buffers), ends)
            },
        )
    }

    /// Loads the kernels of products that follow one another, so that those which have to be compiled are compiled side by side:
    /// of each product `k`, the weights and the formats as `enqueue` takes them, and whether its routing is on the device.
    fn load(&self, products: Vec<Product<'_>>) -> PyResult<()> {
        let keys = products.into_iter().map(|product| {
            let (k, first, second, formats, is_routed) = product;
            let weights = (&*first, second.as_deref());
            let formats = (formats.0.as_str(), formats.1.as_str());
            let key = LayerKey::new(k, weights, (0, 0, 0, 0), Vec::new(), formats)?;
            Ok((key, is_routed))
        });
        let keys = keys.collect::<PyResult<Vec<_>>>()?;
        guarded(|| {
            let plans = keys.iter().map(|(key, is_routed)| {
                let shape = key.shape();
                let groups = shape.products.len();
                let planner = self.library.planner(shape, key.choice())?;
                match is_routed {
                    true => planner.plan_routed(groups),
                    false => planner.plan(&vec![1; groups]),
                }
            });
            self.library.load(&plans.collect::<Result<Vec<_>, _>>()?)
        })
    }

    /// Enqueues the sorting of a mixture's tokens by their experts: `sizes = (tokens, experts of a token, experts here, hidden)`; the
    /// addresses of the ids and of the tokens; the address and length of the expert map, (0, 0) without one; the bytes of an id and
    /// of an entry of the map, 0 without one; addresses of the ends, the experts and rows, of the tokens by rows, and of scratch
    /// memory of `mixture_scratch` bytes; the format of the sums, whose kernel is loaded too.
    #[expect(
        clippy::too_many_arguments,
        reason = "a struct would have to be built in each call from Python"
    )]
    fn enqueue_arrange(
        &self,
        stream: usize,
        sizes: (usize, usize, usize, usize),
        inputs: (u64, u64),
        map: (u64, usize),
        bytes: (usize, usize),
        results: [u64; 5],
        output: &str,
    ) -> PyResult<()> {
        let [ends, row_experts, rows, gathered, counts] = results;
        let buffers = ArrangeBuffers {
            ids: inputs.0,
            ids_width: index_width(bytes.0)?,
            expert_map: match bytes.1 {
                0 => None,
                bytes => Some(ExpertMap {
                    places: map.0,
                    width: index_width(bytes)?,
                    len: map.1,
                }),
            },
            hidden: inputs.1,
            ends,
            row_experts,
            rows,
            gathered,
            counts,
        };
        let format = gemm::format(output)?;
        guarded(|| {
            let mixture = self.library.mixture(mixture_shape(sizes), format)?;
            // SAFETY: as in `enqueue`, of the package's `_cuda_mixture.py`. The library keeps the kernels.
            unsafe { self.queue(stream)?.arrange(&mixture, &buffers) }
        })
    }

    /// Bytes of scratch memory that `enqueue_arrange` takes for these sizes.
    #[staticmethod]
    fn mixture_scratch(sizes: (usize, usize, usize, usize)) -> usize {
        mixture_shape(sizes).count_bytes()
    }

    /// Enqueues the sums of a mixture's results: `sizes` as in `enqueue_arrange`; addresses of the results, the rows, the weights and
    /// the sums; the formats of the weights and the sums.
    fn enqueue_combine(
        &self,
        stream: usize,
        sizes: (usize, usize, usize, usize),
        buffers: (u64, u64, u64, u64),
        formats: (&str, &str),
    ) -> PyResult<()> {
        let (results, rows, weights, output) = buffers;
        let buffers = CombineBuffers {
            results,
            rows,
            weights,
            weight_format: gemm::format(formats.0)?,
            output,
        };
        let format = gemm::format(formats.1)?;
        guarded(|| {
            let mixture = self.library.mixture(mixture_shape(sizes), format)?;
            // SAFETY: as in `enqueue_arrange`.
            unsafe { self.queue(stream)?.combine(&mixture, &buffers) }
        })
    }

    /// Repacks weights for 16-bit tokens, and waits for them: `shape = (matrices, rows, depth)`, addresses of the values, the scales
    /// and of both as repacked.
    fn repack(
        &self,
        stream: usize,
        shape: (usize, usize, usize),
        buffers: (u64, u64, u64, u64),
        tokens: &str,
    ) -> PyResult<()> {
        let (matrices, rows, depth) = shape;
        let shape = RepackShape {
            matrices,
            rows,
            depth,
            tokens: token_format(tokens)?,
        };
        let (values, scales, packed_values, packed_scales) = buffers;
        let buffers = RepackBuffers {
            values,
            scales,
            packed_values,
            packed_scales,
        };
        guarded(|| {
            let queue = self.queue(stream)?;
            // SAFETY: as in `enqueue`, of the package's `_cuda.py`, which makes the results.
            unsafe { self.library.repack(&queue, &shape, &buffers) }
        })
    }

    /// Enqueues attention on a stream: addresses of Q, K, V and the result; scales as the addresses of three arrays, or as three
    /// numbers of whole tensors, or neither.
    #[pyo3(signature = (stream, is_capturing, shape, buffers, scales, numbers))]
    fn enqueue_attention(
        &self,
        stream: usize,
        is_capturing: bool,
        shape: &Shape,
        buffers: (u64, u64, u64, u64),
        scales: Option<[u64; 3]>,
        numbers: Option<[f32; 3]>,
    ) -> PyResult<()> {
        let buffers = attention_buffers(buffers, scales, numbers);
        guarded(|| {
            let plan = self.library.plan_attention(&shape.0)?;
            let queue = self.queue(stream)?;
            queue.reserve_attention(&plan)?;
            // SAFETY: as in `enqueue`, of the package's `_cuda_attention.py`; the scales are contiguous tensors of f32.
            unsafe { queue.enqueue_attention(&plan, &buffers) }?;
            if is_capturing {
                self.captured_attention.borrow_mut().push(plan);
            }
            Ok(())
        })
    }

    /// Enqueues attention on sequences of several lengths: buffers and scales as in `enqueue_attention`; `lengths` = addresses of the
    /// begins of queries, of the begins of keys (0 if in pages), of the numbers of keys (0 if the begins say them) and of the table of
    /// pages (0 without pages); `pages` = entries of a sequence in that table, and the logarithm of the positions of a page;
    /// `strides` = bytes from a page, a position and a head of Q, K and V to the next.
    #[pyo3(signature = (stream, is_capturing, shape, buffers, scales, numbers, lengths, pages, strides))]
    #[expect(
        clippy::too_many_arguments,
        reason = "a struct would have to be built in each call from Python"
    )]
    fn enqueue_ragged_attention(
        &self,
        stream: usize,
        is_capturing: bool,
        shape: &Ragged,
        buffers: (u64, u64, u64, u64),
        scales: Option<[u64; 3]>,
        numbers: Option<[f32; 3]>,
        lengths: (u64, u64, u64, u64),
        pages: (u32, u32),
        strides: [(u64, u64, u64); 3],
    ) -> PyResult<()> {
        let buffers = attention_buffers(buffers, scales, numbers);
        let (query_begins, begins, counts, table) = lengths;
        let [query, key, value] = strides.map(|(page, position, head)| Strides { page, position, head });
        let places = RaggedPlaces {
            query_begins,
            keys: match table {
                0 => KeyPlaces::Ragged { begins, counts },
                _ => KeyPlaces::Paged {
                    counts,
                    pages: table,
                    pages_a_sequence: pages.0,
                    page_shift: pages.1,
                },
            },
            query,
            key,
            value,
        };
        guarded(|| {
            let plan = self.library.plan_ragged_attention(&shape.0)?;
            let queue = self.queue(stream)?;
            queue.reserve_ragged_attention(&plan)?;
            // SAFETY: as in `enqueue_attention`, of the package's `_cuda_ragged.py`; lengths and pages are contiguous tensors of i32,
            // whose values the caller of the package promises.
            unsafe { queue.enqueue_ragged_attention(&plan, &buffers, &places) }?;
            if is_capturing {
                self.captured_ragged.borrow_mut().push(plan);
            }
            Ok(())
        })
    }
}

fn attention_buffers(
    (query, key, value, output): (u64, u64, u64, u64),
    scales: Option<[u64; 3]>,
    numbers: Option<[f32; 3]>,
) -> AttentionBuffers {
    AttentionBuffers {
        query,
        key,
        value,
        scales: match (scales, numbers) {
            (Some(scales), _) => AttentionScales::Addresses(scales),
            (None, Some(numbers)) => AttentionScales::Numbers(numbers),
            (None, None) => AttentionScales::Absent,
        },
        output,
    }
}

fn operands((tokens, token_scales, output): (u64, u64, u64)) -> Buffers {
    Buffers {
        tokens,
        token_scales,
        output,
    }
}

fn mixture_shape((tokens, experts_a_token, experts, hidden): (usize, usize, usize, usize)) -> MixtureShape {
    MixtureShape {
        tokens,
        experts_a_token,
        experts,
        hidden,
    }
}

fn index_width(bytes: usize) -> PyResult<IndexWidth> {
    match bytes {
        4 => Ok(IndexWidth::Bits32),
        8 => Ok(IndexWidth::Bits64),
        other => Err(error::value(format!(
            "integers of {other} bytes: give int32 or int64"
        ))),
    }
}

/// Addresses of the biases of both weights, their format, and alpha, beta and limit.
type EpilogueWords<'w> = ((u64, u64), &'w str, (f32, f32, f32));

fn epilogue_of((biases, format, (alpha, beta, limit)): EpilogueWords<'_>) -> PyResult<Epilogue> {
    Ok(Epilogue {
        biases: biases.into(),
        bias_format: gemm::format(format)?,
        alpha,
        beta,
        limit,
    })
}

/// A product as `load` takes it.
type Product<'py> = (
    usize,
    PyRef<'py, Stack>,
    Option<PyRef<'py, Stack>>,
    (String, String),
    bool,
);

/// Values and scales.
type PackedArrays<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u8>>);

/// Repacks a stack of matrices for 16-bit tokens on a Hopper GPU: `shape = (groups, rows, depth)`, rows a multiple of 16 and
/// depth of 256, so that values and scales take as many bytes as before.
#[pyfunction]
pub fn pack_steps<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, u8>,
    scales: PyReadonlyArray1<'py, u8>,
    shape: (usize, usize, usize),
    tokens: &str,
) -> PyResult<PackedArrays<'py>> {
    let (groups, rows, depth) = shape;
    let tokens = token_format(tokens)?;
    let (values, scales) = (values.as_slice()?, scales.as_slice()?);
    let (of_values, of_scales) = (rows * depth / 2, rows * depth / 16);
    let packed = error::detached(py, || {
        let mut packed = (Vec::with_capacity(values.len()), Vec::with_capacity(scales.len()));
        for group in 0..groups {
            let own = |size: usize| group * size..(group + 1) * size;
            let (Some(values), Some(scales)) = (values.get(own(of_values)), scales.get(own(of_scales)))
            else {
                return Err(error::value("values: fewer bytes than the shape has"));
            };
            let one = packing::pack_steps(tokens, rows, depth, values, scales).map_err(error::value)?;
            packed.0.extend(one.values);
            packed.1.extend(one.scales);
        }
        Ok(packed)
    })?;
    Ok((packed.0.into_pyarray(py), packed.1.into_pyarray(py)))
}

impl CudaLibrary {
    /// Plans a call of a layer and enqueues it on a stream. The plan of a call that is being captured is kept for good.
    fn call(
        &self,
        (stream, is_capturing): (usize, bool),
        key: LayerKey,
        plan: impl FnOnce(&Layer) -> Result<Rc<CallPlan>, ServeError>,
        enqueue: impl FnOnce(&Queue, &CallPlan) -> Result<(), ServeError>,
    ) -> PyResult<()> {
        guarded(|| {
            let layer = self.layer(key)?;
            let plan = plan(&layer)?;
            let queue = self.queue(stream)?;
            queue.reserve(&plan)?;
            enqueue(&queue, &plan)?;
            if is_capturing {
                self.captured.borrow_mut().push((layer, plan));
            }
            Ok(())
        })
    }

    fn layer(&self, key: LayerKey) -> Result<Rc<Layer>, ServeError> {
        let mut layers = self.layers.borrow_mut();
        if let Some(layer) = layers.get(&key) {
            return Ok(Rc::clone(layer));
        }
        let made = Layer::new(&self.library, key.shape(), key.weights(), key.choice())?;
        let made = Rc::new(made);
        layers.put(key, Rc::clone(&made));
        Ok(made)
    }

    fn queue(&self, stream: usize) -> Result<Rc<Queue>, ServeError> {
        let mut queues = self.queues.borrow_mut();
        if let Some(queue) = queues.get(&stream) {
            return Ok(Rc::clone(queue));
        }
        // SAFETY: the package passes PyTorch's current stream, of the device's primary context. PyTorch's streams come
        // from a pool that lives as long as the process.
        let made = Rc::new(unsafe { Queue::on(&self.library, stream as *mut c_void) }?);
        queues.insert(stream, Rc::clone(&made));
        Ok(made)
    }
}

/// Says to Python's logger `gauntlet` that a kernel is compiled, so that nothing seems to hang. The kernel is compiled even if
/// nothing can be said.
fn tell(kernel: &str) {
    let message =
        format!("compiling {kernel} for this GPU, which can take a minute; it is kept for later processes");
    let said = Python::attach(|python| {
        let logger = python
            .import("logging")?
            .call_method1("getLogger", ("gauntlet",))?;
        logger.call_method1("warning", (message,))?;
        PyResult::Ok(())
    });
    said.ok();
}

/// Runs `work`; errors and panics become exceptions. It keeps the interpreter's lock, because an enqueue takes
/// microseconds; only the first call of a kind compiles.
fn guarded<T>(work: impl FnOnce() -> Result<T, ServeError>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(refused),
        Err(panic) => Err(error::internal(&*panic)),
    }
}

fn refused(failure: ServeError) -> PyErr {
    match failure {
        ServeError::Gpu(_) | ServeError::Compiler(_) | ServeError::Build(_) | ServeError::Driver(_) => {
            error::runtime(failure)
        }
        failure => error::value(failure),
    }
}
