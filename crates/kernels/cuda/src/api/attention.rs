//! Attention on memory and streams that belong to the caller.

use gauntlet_problems::{Attention, AttentionFormat, Operation, OutputFormat, Scaling, Schedule, Sequence};

use super::layer::{check_address, check_aligned};
use super::ready::Ready;
use super::{Library, Queue, ServeError};
use crate::plan::attention::automatic;
use crate::plan::{self, Addresses, OPERANDS, Plan, Target, Variant};

/// Required alignment of the addresses of scales in bytes: they are read one by one.
const SCALE_ALIGNMENT: u64 = 4;

/// What the operands are called in errors.
const NAMES: [&str; OPERANDS] = ["query", "key", "value"];

/// Attention over a batch of sequences of equal lengths, `softmax(Q·Kᵀ / √head_size)·V`: sizes and formats, without addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttentionShape {
    /// Sequences.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads, which divide `heads`: query head h reads key head `h / (heads / kv_heads)`.
    pub kv_heads: usize,
    /// Query positions of a sequence.
    pub queries: usize,
    /// Key and value positions of a sequence, at least one.
    pub keys: usize,
    /// Values of a head and position: a multiple of 16, up to 256.
    pub head_size: usize,
    /// Whether query i sees only the keys up to `i + keys - queries`. A query that sees none yields 0.
    pub causal: bool,
    /// The format of Q, K and V.
    pub format: AttentionFormat,
    /// Which values share a scale; per head for formats without scales.
    pub scaling: Scaling,
    /// The format of the result.
    pub output: OutputFormat,
}

/// Planned attention, ready on the device. It owns the tables that its launches read. Keep it, also for a graph that holds its
/// launches, until the stream's work is done.
pub struct AttentionPlan {
    shape: AttentionShape,
    schedule: Schedule,
    plan: Box<dyn Plan>,
    ready: Ready,
}

/// Addresses of a call in device memory; those of operands and result are multiples of [`ALIGNMENT`](super::ALIGNMENT).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionBuffers {
    /// Q, `[batch, heads, queries, head_size]` without gaps.
    pub query: u64,
    /// K, `[batch, kv_heads, keys, head_size]`.
    pub key: u64,
    /// V, as K.
    pub value: u64,
    /// The scales of all three.
    pub scales: AttentionScales,
    /// The result, as Q.
    pub output: u64,
}

/// The scales of Q, K and V, in this order: what their elements are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AttentionScales {
    /// None, for operands of 16 bits.
    Absent,
    /// Numbers of the host, for scaling per tensor. A captured graph keeps them.
    Numbers([f32; OPERANDS]),
    /// Addresses of `f32` in device memory, which the kernel reads when it runs: one per tensor, `[batch, heads]` per head
    /// (`[batch, kv_heads]` of K and V), or per block one more dimension, of `⌈positions / 64⌉`.
    Addresses([u64; OPERANDS]),
}

/// A shape that was planned, not yet on a device.
pub(super) struct PlannedAttention {
    schedule: Schedule,
    pub(super) plan: Box<dyn Plan>,
}

impl AttentionShape {
    /// The same as a problem of the family.
    fn attention(&self) -> Attention {
        let sequence = Sequence {
            queries: self.queries,
            keys: self.keys,
        };
        Attention {
            sequences: vec![sequence; self.batch],
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_size: self.head_size,
            causal: self.causal,
            format: self.format,
            scaling: self.scaling,
            output: self.output,
        }
    }

    /// Plans it in the schedule that is chosen by its sizes.
    pub(super) fn plan(&self, target: Target) -> Result<PlannedAttention, ServeError> {
        let attention = self.attention();
        let operation = Operation::Attention(attention.clone());
        // The choice divides by numbers that are valid only then.
        operation.validate().map_err(plan::PlanError::from)?;
        let schedule = automatic(&attention, target);
        let plan = plan::plan(&operation, &schedule, target)?;
        Ok(PlannedAttention { schedule, plan })
    }
}

impl AttentionPlan {
    pub(super) fn new(
        library: &Library,
        shape: AttentionShape,
        PlannedAttention { schedule, plan }: PlannedAttention,
    ) -> Result<Self, ServeError> {
        let memory = plan.memory(&[]);
        Ok(Self {
            ready: Ready::new(library, plan.as_ref(), &memory)?,
            shape,
            schedule,
            plan,
        })
    }

    /// Sizes and formats.
    pub fn shape(&self) -> &AttentionShape {
        &self.shape
    }

    /// The schedule of the kernel.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The variant of the kernel.
    pub fn variant(&self) -> &Variant {
        self.plan.variant()
    }

    /// Bytes of scratch memory that a call needs: none unless keys are split over blocks.
    pub fn workspace_bytes(&self) -> usize {
        self.ready.workspace_bytes
    }

    /// Bytes of counters that a call needs.
    pub fn counter_bytes(&self) -> usize {
        self.ready.counter_bytes
    }
}

impl Queue {
    /// Makes sure that there is scratch memory for the plan's calls, as [`reserve`](Self::reserve).
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn reserve_attention(&self, plan: &AttentionPlan) -> Result<(), ServeError> {
        self.reserve_for(&plan.ready)
    }

    /// Puts a call on the stream: one launch and nothing else, or none without queries. It may be captured. Operands may be at
    /// other addresses in each call.
    ///
    /// # Errors
    /// If an address is null or not aligned, the scales are of another kind than the plan's, the plan is for another GPU, no
    /// scratch memory was reserved for it, or the driver reports an error.
    ///
    /// # Safety
    /// The buffers must be device memory of the plan's sizes. They and the plan must live until the stream's work is done; plan
    /// and queue must also live as long as a graph holds the call.
    pub unsafe fn enqueue_attention(
        &self,
        plan: &AttentionPlan,
        buffers: &AttentionBuffers,
    ) -> Result<(), ServeError> {
        let addresses = addresses((plan.shape.format, plan.shape.scaling), buffers)?;
        let check = || check_buffers(&addresses);
        // SAFETY: the caller promises the operands and the result, and attention has its maps in the launch's parameter:
        // all sequences are equal.
        unsafe { self.launch_all(&plan.ready, plan.plan.as_ref(), addresses, check) }
    }
}

/// The addresses of a call, without tables and scratch memory.
pub(super) fn addresses(
    kind: (AttentionFormat, Scaling),
    buffers: &AttentionBuffers,
) -> Result<Addresses, ServeError> {
    let (format, scaling) = kind;
    let none = ([0; OPERANDS], [1.0; OPERANDS]);
    let (scales, factors) = match (buffers.scales, format.has_scales()) {
        (AttentionScales::Absent, false) => none,
        (AttentionScales::Numbers(numbers), true) if scaling == Scaling::PerTensor => (none.0, numbers),
        (AttentionScales::Addresses(scales), true) => {
            for (name, address) in NAMES.into_iter().zip(scales) {
                check_scales(name, address)?;
            }
            (scales, none.1)
        }
        (given, has_scales) => return Err(wrong_scales(given, kind, has_scales)),
    };
    Ok(Addresses {
        operands: [buffers.query, buffers.key, buffers.value],
        scales,
        factors,
        output: buffers.output,
        tables: 0,
        maps: 0,
        workspace: 0,
        counters: 0,
        rows: 0,
    })
}

fn wrong_scales(
    given: AttentionScales,
    (format, scaling): (AttentionFormat, Scaling),
    has_scales: bool,
) -> ServeError {
    let (needed, remedy) = match (has_scales, scaling) {
        (false, _) => ("no scales", "give `AttentionScales::Absent`"),
        (true, Scaling::PerTensor) => (
            "scales per tensor",
            "give `AttentionScales::Numbers` or `AttentionScales::Addresses`",
        ),
        (true, _) => ("several scales", "give `AttentionScales::Addresses`"),
    };
    ServeError::Scales {
        given: match given {
            AttentionScales::Absent => "there are none",
            AttentionScales::Numbers(_) => "they are numbers",
            AttentionScales::Addresses(_) => "they are addresses",
        },
        format,
        needed,
        remedy,
    }
}

fn check_scales(name: &str, address: u64) -> Result<(), ServeError> {
    check_aligned(|| format!("scales of {name}"), address, SCALE_ALIGNMENT)
}

fn check_buffers(addresses: &Addresses) -> Result<(), ServeError> {
    for (name, address) in NAMES.into_iter().zip(addresses.operands) {
        check_address(|| name.to_owned(), address)?;
    }
    check_address(|| "output".to_owned(), addresses.output)
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;

    use super::*;
    use crate::plan::Source;
    use crate::plan::fixture::{ADDRESSES, hopper};

    fn shape(batch: usize, [queries, keys]: [usize; 2], format: AttentionFormat) -> AttentionShape {
        AttentionShape {
            batch,
            heads: 32,
            kv_heads: 8,
            queries,
            keys,
            head_size: 128,
            causal: true,
            format,
            scaling: Scaling::default(),
            output: OutputFormat::F16,
        }
    }

    fn buffers(scales: AttentionScales) -> AttentionBuffers {
        AttentionBuffers {
            query: 1 << 20,
            key: 2 << 20,
            value: 3 << 20,
            scales,
            output: 4 << 20,
        }
    }

    fn refusal(shape: &AttentionShape, scales: AttentionScales) -> String {
        addresses((shape.format, shape.scaling), &buffers(scales))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn few_queries_are_split_along_their_keys() {
        for (batch, parts) in [(1, 16), (8, 2), (64, 1)] {
            let planned = shape(batch, [1, 8192], AttentionFormat::F16)
                .plan(hopper())
                .unwrap();
            assert_eq!(planned.schedule.split_k, parts);
            let memory = planned.plan.memory(&[]);
            assert_eq!(memory.workspace_bytes > 0, parts > 1);
            assert_eq!(planned.plan.launches(&ADDRESSES).len(), 1);
        }
    }

    /// A call with operands at new addresses would otherwise have to wait for a copy of its maps.
    #[test]
    fn no_plan_has_maps_in_memory() {
        let mut found = Vec::new();
        for lengths in [[1, 8192], [512, 512], [4096, 4096], [100, 300]] {
            for format in [AttentionFormat::Bf16, AttentionFormat::E4m3] {
                let shape = AttentionShape {
                    kv_heads: 4,
                    heads: 4,
                    ..shape(2, lengths, format)
                };
                let planned = shape.plan(hopper()).unwrap();
                assert!(planned.plan.memory(&[]).maps.is_empty(), "{shape:?}");
                let source = planned.plan.variant().source;
                let launches = planned.plan.launches(&ADDRESSES);
                assert_eq!(launches[0].mapped.is_some(), source != Source::AttentionUnified);
                if !found.contains(&source) {
                    found.push(source);
                }
            }
        }
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn every_format_has_a_kernel_on_every_architecture() {
        for name in ["h200", "a100", "l4", "b200"] {
            let target = Target::of(&Device::builtin(name).unwrap()).unwrap();
            for format in [
                AttentionFormat::F16,
                AttentionFormat::Bf16,
                AttentionFormat::E4m3,
                AttentionFormat::Int8,
            ] {
                for lengths in [[1, 8192], [77, 300], [4096, 4096]] {
                    shape(2, lengths, format).plan(target).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_no_kernel_takes_is_refused_with_its_value() {
        let refused = |change: fn(&mut AttentionShape)| {
            let mut shape = shape(1, [4, 4], AttentionFormat::F16);
            change(&mut shape);
            shape.plan(hopper()).map(drop).unwrap_err().to_string()
        };
        assert!(refused(|shape| shape.head_size = 72).contains("multiples of 16, up to 256"));
        assert!(refused(|shape| shape.kv_heads = 3).starts_with("32 query heads over 3 key heads"));
        assert!(refused(|shape| shape.kv_heads = 0).starts_with("32 query heads over 0 key heads"));
    }

    #[test]
    fn scales_fit_the_format() {
        let halves = shape(1, [4, 4], AttentionFormat::F16);
        assert_eq!(
            refusal(&halves, AttentionScales::Numbers([1.0; 3])),
            "scales: they are numbers, and the plan is for f16 with no scales; give `AttentionScales::Absent`"
        );
        let eights = shape(1, [4, 4], AttentionFormat::E4m3);
        assert_eq!(
            refusal(&eights, AttentionScales::Numbers([1.0; 3])),
            "scales: they are numbers, and the plan is for e4m3 with several scales; give `AttentionScales::Addresses`"
        );
        assert_eq!(
            refusal(&eights, AttentionScales::Addresses([4, 6, 8])),
            "scales of key: the address 0x6 is not a multiple of 4; memory from cuMemAlloc is, so copy it to the begin of \
             an allocation"
        );
        assert!(
            refusal(&eights, AttentionScales::Addresses([4, 4, 0]))
                .starts_with("scales of value: the address is null")
        );
        let whole = AttentionShape {
            scaling: Scaling::PerTensor,
            ..eights
        };
        let numbers = addresses(
            (whole.format, whole.scaling),
            &buffers(AttentionScales::Numbers([2.0, 3.0, 5.0])),
        )
        .unwrap();
        assert_eq!((numbers.scales, numbers.factors), ([0; 3], [2.0, 3.0, 5.0]));
        assert!(refusal(&whole, AttentionScales::Absent).contains("there are none"));
    }
}
