//! Memory, clock and loop for kernels on the CPU.
//!
//! Inputs are copied to fresh memory when a request begins, and again after a call if the same copy is used later in
//! the request, so that no call finds its operands where another had them. Only requests that keep the results of some calls
//! alone leave them in place. Nothing flushes the caches: the number of
//! copies that the coordinator rotates over decides whether a call finds its operands there, as for all workers.

mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytemuck::{Pod, Zeroable};
use gauntlet_calls::{Turns, back_to_back};
use gauntlet_tensors::{Tensor, TensorSpec};
use gauntlet_worker::protocol::{CaseRequest, Failure, Sample};

use crate::operands::check_memory;
use crate::service::{Addresses, Call, Planned, gone, ready};
use standing::Standing;

/// A line of the cache.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Bytes of a line, to which all tensors are aligned.
const LINE: usize = 64;

/// Tensors begin in turn at each of this many lines of their allocation: one page.
const SHIFTS: usize = 64;

/// A tensor in memory of its own.
#[derive(Debug)]
struct Placed {
    lines: Vec<Line>,
    /// The line at which the tensor begins.
    begin: usize,
    bytes: usize,
}

impl Placed {
    fn new(bytes: usize, begin: usize) -> Self {
        let lines = vec![Line([0; LINE]); bytes.div_ceil(LINE) + begin];
        Self { lines, begin, bytes }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines[self.begin..])[..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines[self.begin..])[..self.bytes]
    }

    fn address(&mut self) -> u64 {
        self.bytes_mut().as_mut_ptr().expose_provenance() as u64
    }
}

/// This machine's CPU as a place for calls.
#[derive(Debug, Default)]
pub struct CpuPlace {
    /// Tensors placed so far, which decides where the next one begins.
    placed: usize,
    /// What stays in place between requests that keep few results.
    standing: Option<Standing>,
}

impl CpuPlace {
    /// Calls a kernel once for each planned copy, and appends the outputs of the calls that are wanted to `results`.
    ///
    /// # Errors
    /// If the memory does not suffice, or a call fails.
    pub fn compute(
        &mut self,
        planned: &Planned<'_>,
        outputs: &[TensorSpec],
        call: &mut dyn Call,
        results: &mut Vec<u8>,
    ) -> Result<Vec<Sample>, Failure> {
        if !planned.keeps_all() {
            return self.compute_in_place(planned, outputs, call, results);
        }
        let bytes: usize = outputs.iter().map(TensorSpec::bytes).sum();
        let bytes = bytes.saturating_mul(planned.copies.len());
        let mut samples = Vec::with_capacity(planned.copies.len());
        self.each(planned, bytes, |place, _, inputs| {
            results.reserve_exact(bytes.saturating_sub(results.len()));
            let mut filled = place.fill(outputs, planned.poison);
            call.prepare(&addresses(inputs, &mut filled))?;
            samples.push(sample(timed(call)?));
            filled
                .iter()
                .for_each(|output| results.extend_from_slice(output.bytes()));
            Ok(())
        })?;
        Ok(samples)
    }

    /// Calls a kernel once for each planned copy, and takes turns with the coordinator, which writes the inputs and reads the
    /// outputs.
    ///
    /// # Errors
    /// If the memory does not suffice, a call fails, or the coordinator is gone.
    pub fn step(
        &mut self,
        planned: &Planned<'_>,
        case: &CaseRequest,
        call: &mut dyn Call,
        turns: &mut Turns,
    ) -> Result<(), Failure> {
        self.each(planned, 0, |place, number, inputs| {
            if let Some(seconds) = planned.heat.get(number) {
                place.heat(planned, number, case, call, *seconds, turns)?;
            }
            let mut filled = place.fill(&case.outputs, planned.poison);
            let addresses = addresses(inputs, &mut filled);
            call.prepare(&addresses)?;
            let places = addresses.inputs.iter().map(|address| Some(*address));
            // The load is over, so nothing has to be hidden from it.
            let ready = ready(case, places, false)?;
            turns.ready(&ready).map_err(gone)?;
            let seconds = timed(call)?;
            let outputs: Vec<_> = addresses.outputs.iter().map(place_at).collect();
            turns.done(seconds, &outputs).map_err(gone)
        })
    }

    /// The load before a planned call: the kernel is called back to back on another copy, in memory of its own, and on what
    /// the call before has left there.
    fn heat(
        &mut self,
        planned: &Planned<'_>,
        number: usize,
        case: &CaseRequest,
        call: &mut dyn Call,
        seconds: f64,
        turns: &mut Turns,
    ) -> Result<(), Failure> {
        let other = (planned.copies[number] + 1) % planned.operands.copies();
        let mut inputs = self.place(planned.operands.copy(other));
        let mut outputs = self.fill(&case.outputs, planned.poison);
        call.prepare(&addresses(&mut inputs, &mut outputs))?;
        turns.heating(seconds).map_err(gone)?;
        let begun = Instant::now();
        let clock = || begun.elapsed().as_secs_f64();
        let (calls, busy) = back_to_back(seconds, clock, || call.call())?;
        turns.heated(calls, busy).map_err(gone)
    }

    /// Does something with the number and the inputs of each planned copy in turn. `results` is how many bytes its results take in all.
    fn each(
        &mut self,
        planned: &Planned<'_>,
        results: usize,
        mut work: impl FnMut(&mut Self, usize, &mut [Placed]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let total = planned.operands.copies();
        let copies: Vec<usize> = planned.copies.iter().map(|copy| copy % total).collect();
        let distinct: BTreeSet<usize> = copies.iter().copied().collect();
        // One copy that is placed again while the old one is still there, and one for a load.
        let spare = 1 + usize::from(!planned.heat.is_empty());
        check_memory(
            &format!(
                "{} copies of the operands and {results} bytes of results",
                distinct.len()
            ),
            (planned.operands.bytes() * (distinct.len() + spare)).saturating_add(results),
        )?;
        let mut inputs: BTreeMap<usize, Vec<Placed>> = distinct
            .into_iter()
            .map(|copy| (copy, self.place(planned.operands.copy(copy))))
            .collect();
        for (index, copy) in copies.iter().enumerate() {
            if let Some(placed) = inputs.get_mut(copy) {
                work(self, index, placed)?;
            }
            if copies[index + 1..].contains(copy) {
                // The old memory is freed only after the new was allocated, so the addresses differ.
                inputs.insert(*copy, self.place(planned.operands.copy(*copy)));
            }
        }
        Ok(())
    }

    /// New memory for outputs, which holds `byte` everywhere.
    fn fill(&mut self, outputs: &[TensorSpec], byte: u8) -> Vec<Placed> {
        let mut placed: Vec<Placed> = outputs.iter().map(|spec| self.allocate(spec.bytes())).collect();
        for output in &mut placed {
            output.bytes_mut().fill(byte);
        }
        placed
    }

    fn place(&mut self, tensors: &[Tensor]) -> Vec<Placed> {
        let copied = tensors.iter().map(|tensor| {
            let mut placed = self.allocate(tensor.bytes.len());
            placed.bytes_mut().copy_from_slice(&tensor.bytes);
            placed
        });
        copied.collect()
    }

    fn allocate(&mut self, bytes: usize) -> Placed {
        self.placed += 1;
        Placed::new(bytes, self.placed % SHIFTS)
    }
}

fn addresses(inputs: &mut [Placed], outputs: &mut [Placed]) -> Addresses {
    Addresses {
        inputs: inputs.iter_mut().map(Placed::address).collect(),
        outputs: outputs.iter_mut().map(Placed::address).collect(),
    }
}

/// The place of a row-major tensor at this address.
fn place_at(address: &u64) -> Vec<i64> {
    vec![*address as i64]
}

fn sample(call: f64) -> Sample {
    Sample {
        call,
        kernel: None,
        clock: None,
        phases: BTreeMap::new(),
    }
}

/// Seconds of a call.
fn timed(call: &mut dyn Call) -> Result<f64, Failure> {
    let start = Instant::now();
    let called = call.call();
    let seconds = start.elapsed().as_secs_f64();
    called.map(|()| seconds)
}

#[cfg(test)]
mod tests {
    use gauntlet_tensors::DataType;

    use gauntlet_worker::protocol::{HOLD, Scope, Turn};

    use super::*;
    use crate::operands::Operands;
    use crate::service::bad_request;

    /// Adds 1 to each byte of its input and notes where its tensors lay and what the output held.
    #[derive(Default)]
    struct Adding {
        addresses: Vec<Addresses>,
        found: Vec<u8>,
    }

    impl Call for Adding {
        fn prepare(&mut self, addresses: &Addresses) -> Result<(), Failure> {
            self.addresses.push(addresses.clone());
            Ok(())
        }

        fn call(&mut self) -> Result<(), Failure> {
            let Some(addresses) = self.addresses.last() else {
                return Err(bad_request("not prepared"));
            };
            let pointer = |address: u64| std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
            let (from, to) = (pointer(addresses.inputs[0]), pointer(addresses.outputs[0]));
            for index in 0..100 {
                // SAFETY: the test's tensors have 100 bytes each.
                unsafe {
                    self.found.push(to.add(index).read());
                    to.add(index).write(from.add(index).read() + 1);
                    // A kernel that spoils its input must not spoil the next call's.
                    from.add(index).write(0);
                }
            }
            Ok(())
        }
    }

    /// Three copies of two files, full of 10 and of 20.
    fn operands(folder: &std::path::Path, spec: &TensorSpec) -> Operands {
        let paths: Vec<_> = [10_u8, 20]
            .into_iter()
            .map(|byte| {
                let path = folder.join(byte.to_string());
                let tensor = Tensor::filled(spec.clone(), byte);
                gauntlet_tensors::save_tensors([(&tensor.spec, tensor.bytes.as_slice())], &path).unwrap();
                path
            })
            .collect();
        Operands::load(&paths, std::slice::from_ref(spec), 3).unwrap()
    }

    #[test]
    fn every_call_has_fresh_inputs_poisoned_outputs_and_a_result_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let spec = TensorSpec::new("x", DataType::U8, [100]);
        let operands = operands(folder.path(), &spec);
        assert_eq!((operands.copies(), operands.bytes()), (3, 100));
        let planned = Planned {
            operands: &operands,
            load: 1,
            copies: &[0, 1, 1, 2, 0],
            poison: 0x5A,
            results: &[0, 1, 2, 3, 4],
            is_timed: true,
            scope: Scope::Call,
            heat: &[],
            hold: HOLD,
        };
        let outputs = [TensorSpec::new("y", DataType::U8, [100])];
        let mut call = Adding::default();
        let mut bytes = Vec::new();
        let samples = CpuPlace::default()
            .compute(&planned, &outputs, &mut call, &mut bytes)
            .unwrap();
        let results: Vec<u8> = bytes.chunks(100).map(|result| result[99]).collect();
        assert_eq!(results, [11, 21, 21, 11, 11], "copy 2 holds file 0");
        assert!(call.found.iter().all(|byte| *byte == 0x5A));
        assert!(samples.iter().all(Sample::is_possible));
        let at: Vec<u64> = call.addresses.iter().map(|one| one.inputs[0]).collect();
        assert!(at[1] != at[2] && at[0] != at[4], "{at:?}");
        let all = call
            .addresses
            .iter()
            .flat_map(|one| one.inputs.iter().chain(&one.outputs));
        assert!(all.into_iter().all(|address| address % 64 == 0));
    }

    #[test]
    fn inputs_that_stay_in_place_are_put_right_for_each_call() {
        let folder = tempfile::tempdir().unwrap();
        let spec = TensorSpec::new("x", DataType::U8, [100]);
        let operands = operands(folder.path(), &spec);
        let outputs = [TensorSpec::new("y", DataType::U8, [100])];
        let mut call = Adding::default();
        let mut place = CpuPlace::default();
        let mut request = |copies: &[usize], results: &[usize]| {
            let planned = Planned {
                operands: &operands,
                load: 1,
                copies,
                poison: 0x5A,
                results,
                is_timed: true,
                scope: Scope::Call,
                heat: &[],
                hold: HOLD,
            };
            let mut bytes = Vec::new();
            let samples = place.compute(&planned, &outputs, &mut call, &mut bytes).unwrap();
            assert_eq!(samples.len(), copies.len());
            bytes.chunks(100).map(|result| result[99]).collect::<Vec<_>>()
        };
        assert_eq!(request(&[0], &[]), [0; 0], "its spoilt input is found");
        assert_eq!(request(&[0, 1, 1, 2, 0], &[2, 4]), [21, 11]);
        let at: Vec<u64> = call.addresses.iter().map(|one| one.inputs[0]).collect();
        assert!(at[0] == at[1] && at[2] == at[3] && at[0] == at[5], "{at:?}");
        for kept in [3, 5] {
            assert!(
                call.found[100 * kept..][..100].iter().all(|byte| *byte == 0x5A),
                "{kept}"
            );
        }
    }

    #[test]
    fn a_load_is_on_another_copy_and_ends_before_the_operands_of_its_call_are_written() {
        use std::io::{BufRead, BufReader, Write};
        use std::os::fd::AsRawFd;

        let folder = tempfile::tempdir().unwrap();
        let spec = TensorSpec::new("x", DataType::U8, [100]);
        let operands = operands(folder.path(), &spec);
        let planned = Planned {
            operands: &operands,
            load: 1,
            copies: &[0, 1],
            poison: 0x5A,
            results: &[],
            is_timed: true,
            scope: Scope::Call,
            // Each load is one call.
            heat: &[0.0, 0.0],
            hold: HOLD,
        };
        let case = CaseRequest {
            task: "adding".to_owned(),
            sizes: serde_json::Value::Null,
            inputs: vec![spec.clone()],
            constant: Vec::new(),
            outputs: vec![TensorSpec::new("y", DataType::U8, [100])],
        };
        let (requests, mut coordinator) = std::io::pipe().unwrap();
        let (told, replies) = std::io::pipe().unwrap();
        coordinator.write_all(b"\n\n\n\n").unwrap();
        // SAFETY: both pipes stay open until the end of this test.
        let mut turns = unsafe { Turns::on(requests.as_raw_fd(), replies.as_raw_fd()) };
        let mut call = Adding::default();
        CpuPlace::default()
            .step(&planned, &case, &mut call, &mut turns)
            .unwrap();
        drop(replies);
        let lines: Vec<Turn> = BufReader::new(told)
            .lines()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        for (number, turns) in lines.chunks(4).enumerate() {
            let [
                Turn::Heating { .. },
                Turn::Heated { heated: 1, .. },
                Turn::Ready { inputs, .. },
                Turn::Done { .. },
            ] = turns
            else {
                panic!("{turns:?}");
            };
            let [load, earnest] = &call.addresses[2 * number..][..2] else {
                panic!("a load of one call, and the call");
            };
            assert_eq!(inputs["x"], [earnest.inputs[0] as i64]);
            assert_ne!(load.inputs, earnest.inputs);
            assert_ne!(load.outputs, earnest.outputs);
        }
        assert_eq!((lines.len(), call.addresses.len()), (8, 4));
        // The call in earnest finds its outputs as it is to find them, whatever the load has written.
        assert!(call.found.iter().all(|byte| *byte == 0x5A));
    }
}
