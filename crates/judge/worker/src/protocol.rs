//! The worker protocol: JSON lines, one request and one reply at a time.
//!
//! ```text
//! → {"id":1,"call":"describe"}
//! ← {"id":1,"answer":"description","protocol":4,"worker":"gauntlet cpu",…}
//! → {"id":2,"call":"build","case":{"task":"rms-norm","sizes":{…},"inputs":[…],"outputs":[…]},"parameters":{…}}
//! ← {"id":2,"error":{"kind":"refused","message":"cluster = 2×1: no blocks share loads on a CPU"}}
//! ```
//!
//! The order of calls is describe, build, load, prepare, then run, time and output in any order. Build and load may be
//! repeated; prepare comes once, after the first load; trace and activity may come after load, and a
//! worker may refuse each. A worker exits at end of file. Operands and results travel through files of tensors (safetensors), so
//! that workers can be written in any language and never learn the seed. `docs/reference/protocol.md` documents every message and
//! has an example worker.

mod activity;
mod turn;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use gauntlet_parameters::Parameters;
use gauntlet_task::Sizes;
use gauntlet_tensors::TensorSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use activity::{Activity, CallActivity, Work};
pub use turn::{Place, Turn};

/// The version of this protocol.
pub const VERSION: u32 = 4;

/// How long a device is held back before a call, in seconds, unless the request says otherwise. Launching a kernel
/// from Python took 80 to 160 µs on the host of an H100 whose caches had just been used for something else.
pub const HOLD: f64 = 600e-6;

/// The phases of a call that are no part of it: what its worker does around it, and how long the host took until it waited for the
/// device.
pub const BETWEEN: &str = "between";
/// See [`BETWEEN`].
pub const HOST: &str = "host";

/// The byte that fills outputs unless a request gives another: it makes every element of a float type NaN.
pub const POISON: u8 = 0xFF;

/// A case as workers see it: which tensors to read and write, whatever the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseRequest {
    /// The task's name.
    pub task: String,
    /// The sizes, in a form that depends on the task.
    pub sizes: serde_json::Value,
    /// The input tensors, as stored in files of operands.
    pub inputs: Vec<TensorSpec>,
    /// Names of the inputs that stay the same in every call, such as weights: a worker may preprocess them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<String>,
    /// The output tensors, as stored in the file of a result.
    pub outputs: Vec<TensorSpec>,
}

impl CaseRequest {
    /// The case of these sizes.
    pub fn of(sizes: &Sizes) -> Self {
        Self {
            task: sizes.task().name().to_owned(),
            sizes: sizes.record(),
            inputs: sizes.inputs(),
            constant: sizes.constant_inputs(),
            outputs: sizes.outputs(),
        }
    }

    /// Task and sizes as one record, see [`Sizes::to_record`].
    pub fn record(&self) -> serde_json::Value {
        let mut record = self.sizes.clone();
        if let Some(fields) = record.as_object_mut() {
            fields.insert("family".to_owned(), self.task.clone().into());
        }
        record
    }
}

/// A request with the number that its reply repeats.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Counts up from 1.
    pub id: u64,
    /// The call and its arguments.
    #[serde(flatten)]
    pub request: Request,
}

/// The requests of a coordinator.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "call", rename_all = "kebab-case")]
pub enum Request {
    /// Say which worker this is, and what it runs on.
    Describe,
    /// Prepare a kernel for this case with these parameters; refuse, by name, any that are unsupported.
    Build {
        /// What to compute.
        case: CaseRequest,
        /// How to compute it. Parameters that are not named have their defaults.
        parameters: Parameters,
        /// A folder for files that the build makes, such as compiled code; writable while the worker builds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artefacts: Option<PathBuf>,
    },
    /// Read operands for the case built last and keep `copies` of them in memory: copy i holds the operands of file i
    /// modulo the number of files. All files hold the same values in the inputs that the case names as constant.
    Load {
        /// Safetensors files, at least one.
        inputs: Vec<PathBuf>,
        /// The number of copies.
        copies: usize,
    },
    /// Prepare everything that stays the same in every call: repack constant inputs, tune, plan. Work that depends on
    /// other inputs does not belong here.
    Prepare,
    /// Fill the outputs with a byte, then compute once.
    Run {
        /// Which copy of the operands.
        copy: usize,
        /// The byte. For types without NaN, two runs with different bytes reveal elements that are never written.
        #[serde(default = "poison", skip_serializing_if = "is_poison")]
        poison: u8,
    },
    /// Compute once for each entry of `copies`, in this order, and report the time of each call. The results of all
    /// calls are kept for `output` until the next request to compute; their number is bounded so that they fit memory.
    Time {
        /// The copy of the operands for each call.
        copies: Vec<usize>,
        /// Whether to report phases too, and also the device time where measuring it takes separate calls; this may
        /// slow the kernel, and takes longer.
        phases: bool,
        /// From where to where each call is clocked; `device` only for workers whose description says `device_times`.
        #[serde(default, skip_serializing_if = "Scope::is_call")]
        scope: Scope,
        /// The calls whose results are kept, counted from 0; all of them unless this is given. What protects only results, such
        /// as filling outputs beforehand, may be left out around the other calls. Only for workers whose description says
        /// `chooses_results`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        results: Option<Vec<usize>>,
        /// As for `step`. Only for workers whose description says `device_times`.
        #[serde(rename = "gate", default = "hold", skip_serializing_if = "is_usual_hold")]
        hold: f64,
    },
    /// Compute once for each entry of `copies`, in this order, and let the coordinator clock each call, write its operands and
    /// read its outputs: only for a worker that it holds. [`Turn`] lists the lines that are exchanged before the answer.
    Step {
        /// The copy of the operands for each call.
        copies: Vec<usize>,
        /// As for `run`.
        #[serde(default = "poison", skip_serializing_if = "is_poison")]
        poison: u8,
        /// Seconds of load right before each call, in which the worker calls the kernel back to back on other operands; none
        /// if this is empty. Only for workers whose description says `heat`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        heat: Vec<f64>,
        /// As for `time`.
        #[serde(default, skip_serializing_if = "Scope::is_call")]
        scope: Scope,
        /// Seconds for which the device is held back right before each call that is clocked there. What takes the host
        /// longer than that shows in the time of the call.
        #[serde(rename = "gate", default = "hold", skip_serializing_if = "is_usual_hold")]
        hold: f64,
    },
    /// Write the result of a call of the last `run`, `time` or `activity` to this file (safetensors).
    Output {
        /// The file.
        path: PathBuf,
        /// Which call of that request, counted from 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        index: usize,
    },
    /// Compute once on each copy and then once more on the first, and write a timeline of the last call on the device
    /// to this file (JSON, a timeline of `gauntlet_simulate`). The worker may rebuild the candidate for this.
    Trace {
        /// The file.
        path: PathBuf,
    },
    /// Compute once for each entry of `copies`, in this order, and report what the device did in each call. No time is taken,
    /// because that slows calls down. The results of all calls are kept for `output`. Only for workers whose description
    /// says `activity`.
    Activity {
        /// The copy of the operands for each call.
        copies: Vec<usize>,
    },
    /// Exit.
    Stop,
}

/// From where to where a call is clocked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// From the call of the function until its results are there: with all that the host does, such as launching.
    #[default]
    Call,
    /// What the call takes on the device, with launches that do not wait for the host.
    Device,
}

impl Scope {
    fn is_call(&self) -> bool {
        *self == Self::Call
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Call => "call",
            Self::Device => "device",
        })
    }
}

fn poison() -> u8 {
    POISON
}

fn hold() -> f64 {
    HOLD
}

fn is_usual_hold(seconds: &f64) -> bool {
    *seconds == HOLD
}

fn is_poison(byte: &u8) -> bool {
    *byte == POISON
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Request {
    /// The call's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Build { .. } => "build",
            Self::Load { .. } => "load",
            Self::Prepare => "prepare",
            Self::Run { .. } => "run",
            Self::Time { .. } => "time",
            Self::Step { .. } => "step",
            Self::Output { .. } => "output",
            Self::Trace { .. } => "trace",
            Self::Activity { .. } => "activity",
            Self::Stop => "stop",
        }
    }
}

/// A reply: the request's number and an answer or a failure.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The request's number.
    pub id: u64,
    /// The answer or the failure.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Outcome {
    /// The request failed; the worker keeps running.
    Failed {
        /// The reason.
        error: Failure,
    },
    /// The request succeeded.
    Done(Answer),
}

/// Why a worker could not serve a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// What, where, and the remedy.
    pub message: String,
}

/// Kinds of failure, as the gates distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The candidate cannot be built.
    Refused,
    /// The call came out of order, or its inputs are malformed.
    BadRequest,
    /// The candidate races: the worker saw accesses to memory that nothing orders, or results that depend on the order in
    /// which threads run.
    Racy,
    /// The worker itself failed: it has no memory or no device.
    Broken,
}

/// The answers of a worker, one for each kind of request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// To `describe`.
    Description(Description),
    /// To `build`.
    Built {
        /// The candidate's resources.
        resources: Resources,
    },
    /// To `load`.
    Loaded {
        /// Bytes of all copies.
        bytes: u64,
    },
    /// To `prepare`.
    Prepared {
        /// Bytes of the prepared form, besides the operands.
        bytes: u64,
    },
    /// To `run`.
    Ran(Sample),
    /// To `time`.
    Timed {
        /// In the order of the calls.
        samples: Vec<Sample>,
    },
    /// To `step`, after the turns of all calls.
    Stepped,
    /// To `output` and `trace`.
    Written {
        /// Bytes of the result, or of the file.
        bytes: u64,
    },
    /// To `activity`.
    Recorded {
        /// In the order of the calls.
        calls: Vec<CallActivity>,
    },
    /// To `stop`.
    Stopped,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Which worker this is, and what it runs on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// The protocol version that it speaks.
    pub protocol: u32,
    /// Its name and version.
    pub worker: String,
    /// The device's name.
    pub device: String,
    /// Choices made at run time, such as the SIMD path or the driver.
    #[serde(default)]
    pub details: BTreeMap<String, String>,
    /// The address of the bytes `gauntlet` in its memory, if it takes `step`: the coordinator then writes operands into
    /// its memory and reads results there. Only hosts of Gauntlet give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Whether it can clock a call on the device alone, and takes `scope` in `time` and `step`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub device_times: bool,
    /// Whether it takes `heat` in `step`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub heat: bool,
    /// Whether it can say what the device did in a call, and takes `activity`; it may still refuse, where a library is missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub activity: bool,
    /// Whether it takes `results` in `time`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub chooses_results: bool,
    /// Whether its kernel is given row-major tensors whatever the task's layout is, as functions of shared libraries are.
    #[serde(default, skip_serializing_if = "is_false")]
    pub row_major: bool,
}

/// The resources of a built candidate, by name: `registers`, `spills`, `shared-memory-bytes`, `panel-bytes`,
/// `workspace-bytes`, `threads` and the like. Budgets and abort rules use the same names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Resources(pub BTreeMap<String, f64>);

/// One timed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Seconds for the call, clocked as the request's scope says.
    pub call: f64,
    /// Seconds on the device alone; `None` where the device time cannot be separated, or where it takes separate calls
    /// and phases were not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<f64>,
    /// The clock in MHz, as last read among these calls, where it is readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<f64>,
    /// Seconds in each phase summed over threads or CTAs: `setup`, `load`, `multiply`, `epilogue`, `wait`. No part of the call:
    /// `between`, around it, and `host`, until the host waited for the device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phases: BTreeMap<String, f64>,
}

impl Sample {
    /// Whether the times are possible: the call's is positive and no other is negative.
    pub fn is_possible(&self) -> bool {
        let parts = self.kernel.iter().chain(self.phases.values());
        self.call > 0.0
            && self.call.is_finite()
            && parts.into_iter().all(|part| *part >= 0.0 && part.is_finite())
    }
}

#[cfg(test)]
mod tests;
