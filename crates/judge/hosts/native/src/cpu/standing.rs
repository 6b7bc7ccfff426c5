//! Tensors that stay where they are from call to call, for requests that keep few results: making and filling new memory for
//! each call took as long as the calls of a memory-bound kernel.

use std::collections::{BTreeMap, BTreeSet};

use gauntlet_tensors::{Tensor, TensorSpec};
use gauntlet_worker::protocol::{Failure, Sample};

use super::{CpuPlace, Placed, addresses, sample, timed};
use crate::operands::check_memory;
use crate::service::{Call, Planned};

/// The tensors of a load.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// The number of the load.
    load: usize,
    /// The inputs of the copies used so far.
    inputs: BTreeMap<usize, Vec<Placed>>,
    outputs: Vec<Placed>,
    /// Whether the kernel was seen to write to its inputs: they are put right after each call then.
    are_written: bool,
}

impl CpuPlace {
    /// As [`compute`](Self::compute), for a request that keeps the results of only some calls.
    pub(super) fn compute_in_place(
        &mut self,
        planned: &Planned<'_>,
        outputs: &[TensorSpec],
        call: &mut dyn Call,
        results: &mut Vec<u8>,
    ) -> Result<Vec<Sample>, Failure> {
        let kept = self.standing.take_if(|standing| standing.load == planned.load);
        // Another load's memory is freed before this one's is allocated.
        self.standing = None;
        let mut standing = kept.unwrap_or_else(|| Standing {
            load: planned.load,
            outputs: self.fill(outputs, planned.poison),
            ..Standing::default()
        });
        let total = planned.operands.copies();
        let copies: Vec<usize> = planned.copies.iter().map(|copy| copy % total).collect();
        let used: BTreeSet<usize> = copies.iter().copied().collect();
        let new = used
            .iter()
            .filter(|copy| !standing.inputs.contains_key(*copy))
            .count();
        check_memory(
            &format!("{new} copies of the operands"),
            planned.operands.bytes() * new,
        )?;
        for copy in &used {
            let inputs = standing.inputs.entry(*copy);
            inputs.or_insert_with(|| self.place(planned.operands.copy(*copy)));
        }
        let mut samples = Vec::with_capacity(copies.len());
        for (index, copy) in copies.iter().enumerate() {
            let Some(inputs) = standing.inputs.get_mut(copy) else {
                continue;
            };
            if planned.keeps(index) {
                for output in &mut standing.outputs {
                    output.bytes_mut().fill(planned.poison);
                }
            }
            call.prepare(&addresses(inputs, &mut standing.outputs))?;
            samples.push(sample(timed(call)?));
            if planned.keeps(index) {
                for output in &standing.outputs {
                    results.extend_from_slice(output.bytes());
                }
            }
            if standing.are_written {
                put_right(inputs, planned.operands.copy(*copy));
            }
        }
        // A request of one call comes first, so that a kernel that writes to its inputs is known before any call counts.
        for copy in used {
            if let Some(inputs) = standing.inputs.get_mut(&copy) {
                standing.are_written |= put_right(inputs, planned.operands.copy(copy));
            }
        }
        self.standing = Some(standing);
        Ok(samples)
    }
}

/// Copies each tensor to its input if the two differ. Says whether any did.
fn put_right(inputs: &mut [Placed], tensors: &[Tensor]) -> bool {
    let mut differed = false;
    for (input, tensor) in inputs.iter_mut().zip(tensors) {
        if input.bytes() != tensor.bytes.as_slice() {
            input.bytes_mut().copy_from_slice(&tensor.bytes);
            differed = true;
        }
    }
    differed
}
