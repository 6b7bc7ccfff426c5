//! Registered weights, and the calls planned for them.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;

use gauntlet_problems::Form;
use lru::LruCache;

use super::ready::Ready;
use super::{Choice, Epilogue, LayerShape, Library, Planner, Routing, ServeError, ShapePlan};
use crate::engine::{encode_all, weight_address};
use crate::plan::{Map, Variant, Weights};
use gauntlet_cuda::driver::{DeviceMemory, RelaxedCapture};

/// Required alignment of addresses in bytes: tensor maps and bulk copies need it (CUDA driver API,
/// cuTensorMapEncodeTiled: globalAddress; PTX ISA, cp.async.bulk).
pub const ALIGNMENT: u64 = 16;

/// Plans that a layer caches. Each has tables of some kilobytes in device memory.
const PLANS: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");

/// The registered weights of one layer: their tensor maps are encoded once and serve calls with any token counts.
pub struct Layer {
    library: Library,
    planner: Planner,
    weights: Vec<Weights>,
    /// Encoded maps for each way in which a kernel fetches the weights: one entry, rarely two.
    maps: RefCell<Vec<(Vec<Map>, Rc<DeviceMemory>)>>,
    plans: RefCell<LruCache<Routing, Rc<CallPlan>>>,
}

/// A planned call of a layer for given token counts, ready on the device.
///
/// It owns the tables that its launches read. Keep it, also for a graph that holds its launches, until the stream's
/// work is done.
pub struct CallPlan {
    shape: ShapePlan,
    ready: Ready,
    maps: Rc<DeviceMemory>,
}

impl Layer {
    /// Registers the weights of each product: their addresses, and the factor for the sums (the tensor scale of the
    /// tokens times that of the weights). The weights must stay at these addresses as long as a call uses them.
    ///
    /// # Errors
    /// If there are more or fewer weights than products, an address is null or not a multiple of [`ALIGNMENT`], or the GPU
    /// cannot run the kernels.
    pub fn new(
        library: &Library,
        shape: LayerShape,
        weights: Vec<Weights>,
        choice: Choice,
    ) -> Result<Self, ServeError> {
        check_weights(&shape, &weights)?;
        Ok(Self {
            planner: library.planner(shape, choice)?,
            library: library.clone(),
            weights,
            maps: RefCell::default(),
            plans: RefCell::new(LruCache::new(PLANS)),
        })
    }

    /// A planner for this layer, for use in other threads.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// The call with these token counts, one for each product: planned and uploaded now, or taken from the cache of
    /// recent plans. A stream may be captured meanwhile, unless it waits for the default stream, in which tables are copied.
    ///
    /// # Errors
    /// If no kernel supports the call, the kernel does not compile, or there is no memory for its tables.
    pub fn plan(&self, tokens: &[usize]) -> Result<Rc<CallPlan>, ServeError> {
        if let Some(plan) = self.plans.borrow_mut().get(&Routing::Host(tokens.to_vec())) {
            return Ok(Rc::clone(plan));
        }
        self.upload(self.planner.plan(tokens)?)
    }

    /// Calls with at most this many rows of tokens, of which the device knows how many each product has; see
    /// [`Queue::enqueue_routed`](super::Queue::enqueue_routed).
    ///
    /// # Errors
    /// If the products have several sizes, no kernel supports the call, a kernel does not compile, or there is no memory for
    /// its tables.
    pub fn plan_routed(&self, rows: usize) -> Result<Rc<CallPlan>, ServeError> {
        self.plan_routed_with(rows, None)
    }

    /// The same with biases and an activation, whose memory must live as long as that of the weights.
    ///
    /// # Errors
    /// As [`plan_routed`](Self::plan_routed), and if the address of a bias is not a multiple of 2.
    pub fn plan_routed_with(
        &self,
        rows: usize,
        epilogue: Option<Epilogue>,
    ) -> Result<Rc<CallPlan>, ServeError> {
        let routing = Routing::Device { rows, epilogue };
        if let Some(plan) = self.plans.borrow_mut().get(&routing) {
            return Ok(Rc::clone(plan));
        }
        for address in epilogue.map_or([0; 2], |epilogue| epilogue.biases) {
            if address != 0 {
                check_aligned(|| "biases".to_owned(), address, 2)?;
            }
        }
        self.upload(self.planner.plan_routed_with(rows, epilogue)?)
    }

    /// Uploads a plan that was made elsewhere, and caches it for [`Layer::plan`].
    ///
    /// # Errors
    /// If the plan is for another layer, a kernel does not compile, or there is no memory for its tables.
    pub fn upload(&self, shape: ShapePlan) -> Result<Rc<CallPlan>, ServeError> {
        if !shape.is_of(&self.planner) {
            return Err(ServeError::OtherLayer);
        }
        let _relaxed = RelaxedCapture::new(self.library.context())?;
        let memory = shape.plan().memory(&self.weights);
        let routing = shape.routing().clone();
        let plan = Rc::new(CallPlan {
            ready: Ready::new(&self.library, shape.plan(), &memory)?,
            maps: self.encoded(memory.maps)?,
            shape,
        });
        self.plans.borrow_mut().put(routing, Rc::clone(&plan));
        Ok(plan)
    }

    fn encoded(&self, maps: Vec<Map>) -> Result<Rc<DeviceMemory>, ServeError> {
        let mut known = self.maps.borrow_mut();
        if let Some((_, memory)) = known.iter().find(|(of, _)| *of == maps) {
            return Ok(Rc::clone(memory));
        }
        let bytes = encode_all(&maps, |map| weight_address(map, &self.weights))?;
        let memory = Rc::new(DeviceMemory::from_bytes(self.library.context(), &bytes)?);
        known.push((maps, Rc::clone(&memory)));
        Ok(memory)
    }
}

impl CallPlan {
    /// The plan on the host.
    pub fn shape(&self) -> &ShapePlan {
        &self.shape
    }

    /// The variant of the kernel that computes the result.
    pub fn variant(&self) -> &Variant {
        self.shape.plan().variant()
    }

    /// Bytes of scratch memory that a call needs.
    pub fn workspace_bytes(&self) -> usize {
        self.ready.workspace_bytes
    }

    /// Bytes of counters that a call needs.
    pub fn counter_bytes(&self) -> usize {
        self.ready.counter_bytes
    }

    pub(super) fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Where the encoded maps of the weights lie.
    pub(super) fn maps(&self) -> u64 {
        self.maps.address()
    }
}

/// Checks that an address is not null and is aligned for bulk copies and wide loads.
pub(super) fn check_address(what: impl FnOnce() -> String, address: u64) -> Result<(), ServeError> {
    check_aligned(what, address, ALIGNMENT)
}

/// Checks that an address is not null and is a multiple of `alignment`.
pub(super) fn check_aligned(
    what: impl FnOnce() -> String,
    address: u64,
    alignment: u64,
) -> Result<(), ServeError> {
    if address == 0 {
        return Err(ServeError::Null { what: what() });
    }
    if !address.is_multiple_of(alignment) {
        return Err(ServeError::Alignment {
            what: what(),
            address,
            alignment,
        });
    }
    Ok(())
}

fn check_weights(shape: &LayerShape, weights: &[Weights]) -> Result<(), ServeError> {
    if weights.len() != shape.products.len() {
        return Err(ServeError::Count {
            what: "weights",
            expected: shape.products.len(),
            found: weights.len(),
        });
    }
    let matrices = match shape.form {
        Form::Plain => 1,
        Form::Swiglu => 2,
    };
    for (product, weights) in weights.iter().enumerate() {
        for matrix in 0..matrices {
            let name = |part: &str| {
                format!(
                    "product {product}, {} weights' {part}",
                    ["first", "second"][matrix]
                )
            };
            check_address(|| name("values"), weights.packed[matrix])?;
            check_address(|| name("scales"), weights.scales[matrix])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use gauntlet_problems::{OutputFormat, TokenFormat};

    use super::super::ProductShape;
    use super::*;

    fn refusal(form: Form, weights: &[Weights]) -> String {
        let shape = LayerShape {
            products: vec![ProductShape { n: 512, k: 256 }],
            form,
            output: OutputFormat::F16,
            tokens: TokenFormat::Nvfp4,
        };
        check_weights(&shape, weights).unwrap_err().to_string()
    }

    #[test]
    fn addresses_are_checked_by_name() {
        let mut weights = Weights {
            packed: [256, 0],
            scales: [520, 0],
            scale: [1.0; 2],
        };
        assert_eq!(
            refusal(Form::Plain, &[weights]),
            "product 0, first weights' scales: the address 0x208 is not a multiple of 16; memory from cuMemAlloc is, so \
             copy it to the begin of an allocation"
        );
        weights.scales[0] = 512;
        assert_eq!(
            refusal(Form::Swiglu, &[weights]),
            "product 0, second weights' values: the address is null; give that of device memory"
        );
        assert_eq!(
            refusal(Form::Plain, &[weights, weights]),
            "2 weights for a layer of 1 products; give one for each, in their order"
        );
    }
}
