//! Attention on sequences whose lengths are in the device's memory, and on keys and values in pages.

use std::rc::Rc;

use super::attention::addresses;
use super::layer::{check_address, check_aligned};
use super::ready::Ready;
use super::{AttentionBuffers, Library, Queue, ServeError};
use crate::plan::attention::ragged::{KeyPlaces, RaggedPlaces, RaggedPlan, RaggedShape, Strides};
use crate::plan::{Plan, Target};
use gauntlet_cuda::driver::RelaxedCapture;

/// Attention of these sizes, ready on the device. Keep it, also for a graph that holds its launches, until the stream's work is
/// done.
pub struct RaggedAttentionPlan {
    shape: RaggedShape,
    plan: RaggedPlan,
    ready: Ready,
}

impl RaggedAttentionPlan {
    /// Sizes and formats.
    pub fn shape(&self) -> &RaggedShape {
        &self.shape
    }

    /// Bytes of scratch memory that a call needs.
    pub fn workspace_bytes(&self) -> usize {
        self.ready.workspace_bytes
    }
}

impl Library {
    /// Attention on sequences of several lengths: planned now, or taken from the cache of recent plans. A stream may be captured
    /// meanwhile.
    ///
    /// # Errors
    /// If a size is invalid, no kernel supports the call, or the kernel does not compile.
    pub fn plan_ragged_attention(&self, shape: &RaggedShape) -> Result<Rc<RaggedAttentionPlan>, ServeError> {
        self.ragged(shape, |library| {
            let plan = RaggedPlan::new(shape, Target::of_gpu(library.device())?)?;
            let _relaxed = RelaxedCapture::new(library.context())?;
            let call = plan.call(NOWHERE);
            let memory = call.memory(&[]);
            let ready = Ready::new(library, &call, &memory)?;
            Ok(RaggedAttentionPlan {
                shape: *shape,
                plan,
                ready,
            })
        })
    }
}

/// For a plan without a call.
const NOWHERE: RaggedPlaces = RaggedPlaces {
    query_begins: 0,
    keys: KeyPlaces::Ragged { begins: 0, counts: 0 },
    query: Strides::NONE,
    key: Strides::NONE,
    value: Strides::NONE,
};

impl Queue {
    /// Makes sure that there is scratch memory for the plan's calls, as [`reserve`](Self::reserve).
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn reserve_ragged_attention(&self, plan: &RaggedAttentionPlan) -> Result<(), ServeError> {
        self.reserve_for(&plan.ready)
    }

    /// Puts a call on the stream: one launch or two, whatever the lengths, which the kernels read when they run. It may be captured.
    /// The result is `[positions of Q, heads, head_size]` without gaps; positions of no sequence are not written.
    ///
    /// # Errors
    /// As [`enqueue_attention`](Self::enqueue_attention), or if a stride is no multiple of 16 bytes.
    ///
    /// # Safety
    /// Buffers and lengths must be device memory, and live until the stream's work is done; plan and queue must also live as long
    /// as a graph holds the call. Positions that the lengths name must lie within the operands and the result, and so must the
    /// pages that the table names for positions below the sequences' numbers of keys. Positions beyond the plan's most queries of a
    /// sequence may be left out.
    pub unsafe fn enqueue_ragged_attention(
        &self,
        plan: &RaggedAttentionPlan,
        buffers: &AttentionBuffers,
        places: &RaggedPlaces,
    ) -> Result<(), ServeError> {
        let shape = &plan.shape;
        let addresses = addresses((shape.format, shape.scaling), buffers)?;
        let check = || {
            for (name, address) in ["query", "key", "value"].into_iter().zip(addresses.operands) {
                check_address(|| name.to_owned(), address)?;
            }
            check_address(|| "output".to_owned(), addresses.output)?;
            check_places(places)
        };
        let call = plan.plan.call(*places);
        // SAFETY: the caller promises operands, lengths and result; the plan has neither tables nor maps.
        unsafe { self.launch_all(&plan.ready, &call, addresses, check) }
    }
}

fn check_places(places: &RaggedPlaces) -> Result<(), ServeError> {
    let lengths = |name: &'static str, address| check_aligned(|| name.to_owned(), address, 4);
    lengths("begins of queries", places.query_begins)?;
    match places.keys {
        KeyPlaces::Ragged { begins, counts } => {
            lengths("begins of keys", begins)?;
            if counts != 0 {
                lengths("numbers of keys", counts)?;
            }
        }
        KeyPlaces::Paged { counts, pages, .. } => {
            lengths("numbers of keys", counts)?;
            lengths("table of pages", pages)?;
        }
    }
    for (name, strides) in [
        ("query", places.query),
        ("key", places.key),
        ("value", places.value),
    ] {
        for bytes in [strides.page, strides.position, strides.head] {
            if !bytes.is_multiple_of(super::ALIGNMENT) {
                return Err(ServeError::Stride {
                    what: name,
                    bytes,
                    alignment: super::ALIGNMENT,
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_that_bulk_copies_do_not_take_are_refused_by_name() {
        let strides = Strides {
            page: 0,
            position: 256,
            head: 128,
        };
        let places = RaggedPlaces {
            query_begins: 1 << 20,
            keys: KeyPlaces::Ragged {
                begins: 1 << 21,
                counts: 0,
            },
            query: strides,
            key: strides,
            value: strides,
        };
        assert_eq!(check_places(&places), Ok(()));
        let odd = RaggedPlaces {
            key: Strides {
                position: 264,
                ..strides
            },
            ..places
        };
        assert_eq!(
            check_places(&odd).unwrap_err().to_string(),
            "key: neighbours lie 264 bytes apart, which is no multiple of 16; copy it to a contiguous array"
        );
        let nowhere = RaggedPlaces {
            query_begins: 0,
            ..places
        };
        assert!(
            check_places(&nowhere)
                .unwrap_err()
                .to_string()
                .starts_with("begins of queries: the address is null")
        );
    }
}
