//! The worker protocol for kernels on plain tensors.

use std::path::{Path, PathBuf};

use gauntlet_parameters::Parameters;
use gauntlet_tensors::TensorSpec;
use gauntlet_worker::protocol::{
    CallActivity, CaseRequest, Description, Failure, FailureKind, POISON, Resources, Sample, Scope, Turn,
};
use gauntlet_worker::{Calls, Service, Steps, Turns};

use crate::operands::{Operands, save};

/// Where the tensors of a call lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Addresses of the inputs, in the order of the case.
    pub inputs: Vec<u64>,
    /// Addresses of the outputs, in the order of the case.
    pub outputs: Vec<u64>,
}

/// A kernel that can be called.
pub trait Call {
    /// Does what needs no timing: puts the addresses into the kernel's arguments.
    ///
    /// # Errors
    /// If the kernel cannot be called on them.
    fn prepare(&mut self, addresses: &Addresses) -> Result<(), Failure>;

    /// Calls the kernel with the arguments prepared last. On a GPU it only queues the work.
    ///
    /// # Errors
    /// If the kernel reports an error.
    fn call(&mut self) -> Result<(), Failure>;
}

/// The calls of a request.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    /// The operands.
    pub operands: &'a Operands,
    /// The number of the load that brought them.
    pub load: usize,
    /// The copy of the operands that each call computes on.
    pub copies: &'a [usize],
    /// The byte that fills outputs before each call.
    pub poison: u8,
    /// The calls whose results are wanted, in order.
    pub results: &'a [usize],
    /// Whether the times are wanted, and not the results alone.
    pub is_timed: bool,
    /// From where to where calls are clocked.
    pub scope: Scope,
    /// Seconds of load right before each call that the coordinator steps through; empty for none.
    pub heat: &'a [f64],
    /// Seconds for which a device is held back before a call.
    pub hold: f64,
}

impl Planned<'_> {
    /// Whether the result of the call with this number is wanted.
    pub fn keeps(&self, call: usize) -> bool {
        self.results.binary_search(&call).is_ok()
    }

    /// Whether the results of all calls are wanted.
    pub fn keeps_all(&self) -> bool {
        self.results.len() == self.copies.len()
    }
}

/// What a host of kernels on plain tensors implements.
pub trait Host {
    /// Which worker this is.
    fn describe(&self) -> Description;

    /// Prepares the kernel for a case.
    ///
    /// # Errors
    /// If the kernel cannot compute it, or not with these parameters.
    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure>;

    /// Calls the kernel built last once for each planned copy, and appends the outputs of the calls whose results are wanted to
    /// `results`, in the order of the case and without gaps.
    ///
    /// # Errors
    /// If a call fails.
    fn compute(&mut self, planned: &Planned<'_>, results: &mut Vec<u8>) -> Result<Vec<Sample>, Failure>;

    /// Calls the kernel built last once for each planned copy, appends the outputs as [`compute`](Self::compute) does, and
    /// says what the device did in each call. Only for hosts whose description says `activity`.
    ///
    /// # Errors
    /// If a call fails, or the device cannot be traced.
    fn trace(
        &mut self,
        _planned: &Planned<'_>,
        _results: &mut Vec<u8>,
    ) -> Result<Vec<CallActivity>, Failure> {
        Err(refused("this worker does not trace its device"))
    }

    /// Calls the kernel built last once for each planned copy, and takes turns with the coordinator. Only for hosts whose
    /// description names their memory.
    ///
    /// # Errors
    /// If a call fails, or the coordinator is gone.
    fn step(&mut self, _planned: &Planned<'_>, _turns: &mut Turns) -> Result<(), Failure> {
        Err(bad_request("this worker is not held, and does not step"))
    }
}

/// A [`Host`] behind the worker protocol: keeps the operands, and the wanted results of the last request that the coordinator
/// did not step through.
pub struct HostService<H> {
    host: H,
    case: Option<CaseRequest>,
    operands: Option<Operands>,
    /// How often operands were loaded.
    loads: usize,
    /// The outputs of these calls of the last request, one after the other.
    results: Vec<u8>,
    kept: Vec<usize>,
}

impl<H: Host> HostService<H> {
    /// Serves a host.
    pub fn new(host: H) -> Self {
        Self {
            host,
            case: None,
            operands: None,
            loads: 0,
            results: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Lets the host call the kernel as a request says, and keeps the results. `compute` returns one value for each call.
    fn kept<T>(
        &mut self,
        calls: Calls,
        poison: u8,
        is_timed: bool,
        compute: impl FnOnce(&mut H, &Planned<'_>, &mut Vec<u8>) -> Result<Vec<T>, Failure>,
    ) -> Result<Vec<T>, Failure> {
        // The memory of the request before is used again.
        self.results.clear();
        self.kept.clear();
        let mut wanted = calls.results.unwrap_or_else(|| (0..calls.copies.len()).collect());
        wanted.sort_unstable();
        wanted.dedup();
        let planned = Planned {
            operands: loaded(self.case.as_ref(), self.operands.as_ref())?,
            load: self.loads,
            copies: &calls.copies,
            poison,
            results: &wanted,
            is_timed,
            scope: calls.scope,
            heat: &[],
            hold: calls.hold,
        };
        let computed = compute(&mut self.host, &planned, &mut self.results)?;
        self.kept = wanted;
        Ok(computed)
    }
}

impl<H: Host> Service for HostService<H> {
    fn describe(&self) -> Description {
        self.host.describe()
    }

    /// Operands stay loaded if the case is the same as in the previous build.
    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        self.kept.clear();
        if self.case.as_ref() != Some(case) {
            self.operands = None;
        }
        self.case = None;
        let resources = self.host.build(case, parameters)?;
        self.case = Some(case.clone());
        Ok(resources)
    }

    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure> {
        let case = self.case.as_ref().ok_or_else(nothing_built)?;
        self.operands = None;
        let operands = Operands::load(inputs, &case.inputs, copies)?;
        let bytes = operands.bytes() * copies;
        self.operands = Some(operands);
        self.loads += 1;
        Ok(bytes as u64)
    }

    fn run(&mut self, copy: usize, poison: u8) -> Result<Sample, Failure> {
        let calls = Calls {
            copies: vec![copy],
            ..Calls::default()
        };
        let mut samples = self.kept(calls, poison, false, H::compute)?;
        samples.pop().ok_or_else(|| broken("the call gave no time"))
    }

    fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure> {
        self.kept(calls, POISON, true, H::compute)
    }

    fn activity(&mut self, copies: &[usize]) -> Result<Vec<CallActivity>, Failure> {
        let calls = Calls {
            copies: copies.to_vec(),
            scope: Scope::Device,
            ..Calls::default()
        };
        self.kept(calls, POISON, false, H::trace)
    }

    fn output(&mut self, path: &Path, index: usize) -> Result<u64, Failure> {
        let case = self.case.as_ref().ok_or_else(nothing_built)?;
        let Ok(place) = self.kept.binary_search(&index) else {
            return Err(bad_request(format!(
                "there is no result of call {index}; {} results were kept of the last request",
                self.kept.len()
            )));
        };
        let row: usize = case.outputs.iter().map(TensorSpec::bytes).sum();
        let result = self.results.get(place * row..(place + 1) * row);
        let result = result.ok_or_else(|| broken("the result of the call was not kept"))?;
        save(&case.outputs, result, path)
    }

    fn step(&mut self, steps: &Steps) -> Result<(), Failure> {
        self.kept.clear();
        let planned = Planned {
            operands: loaded(self.case.as_ref(), self.operands.as_ref())?,
            load: self.loads,
            copies: &steps.copies,
            poison: steps.poison,
            results: &[],
            is_timed: true,
            scope: steps.scope,
            heat: &steps.heat,
            hold: steps.hold,
        };
        // SAFETY: standard input and output stay open until the process ends.
        let mut turns = unsafe { Turns::on(0, 1) };
        self.host.step(&planned, &mut turns)
    }
}

/// The line before a stepped call, with the address of each input that the coordinator writes; none for the others. `sealed` says
/// whether it has to seal them.
pub(crate) fn ready(
    case: &CaseRequest,
    addresses: impl Iterator<Item = Option<u64>>,
    sealed: bool,
) -> Result<Vec<u8>, Failure> {
    let names = case.inputs.iter().map(|spec| spec.name.clone());
    let inputs = names
        .zip(addresses)
        .filter_map(|(name, address)| Some((name, vec![address? as i64])))
        .collect();
    serde_json::to_vec(&Turn::Ready { inputs, sealed }).map_err(|error| broken(error.to_string()))
}

/// The failure of a turn that the coordinator does not answer.
pub(crate) fn gone(error: std::io::Error) -> Failure {
    broken(format!("the coordinator does not answer: {error}"))
}

/// The operands of the case, if both are there.
fn loaded<'o>(case: Option<&CaseRequest>, operands: Option<&'o Operands>) -> Result<&'o Operands, Failure> {
    case.ok_or_else(nothing_built)?;
    operands.ok_or_else(|| bad_request("no operands; call load first"))
}

fn nothing_built() -> Failure {
    bad_request("nothing has been built; call build first")
}

/// The kernel cannot be built.
pub fn refused(message: impl Into<String>) -> Failure {
    failure(FailureKind::Refused, message)
}

/// The request is out of order, or its files are malformed.
pub fn bad_request(message: impl Into<String>) -> Failure {
    failure(FailureKind::BadRequest, message)
}

/// The kernel races.
pub fn racy(message: impl Into<String>) -> Failure {
    failure(FailureKind::Racy, message)
}

/// The worker itself cannot go on.
pub fn broken(message: impl Into<String>) -> Failure {
    failure(FailureKind::Broken, message)
}

fn failure(kind: FailureKind, message: impl Into<String>) -> Failure {
    Failure {
        kind,
        message: message.into(),
    }
}
