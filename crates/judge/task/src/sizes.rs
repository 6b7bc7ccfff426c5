//! One set of sizes of a task.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use gauntlet_device::Device;
use gauntlet_tensors::{Tensor, TensorFile, TensorFileError, TensorSpec, save_tensors};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    Cached, Coverage, ErrorMeasures, Expected, InputKind, Output, Rightness, Rules, Schedules, Task,
};

/// Operands of a case. Only the task that made them knows their concrete type.
pub trait Inputs: Any + fmt::Debug + Send + Sync {
    /// Writes the input tensors to a file, where workers read them.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn save(&self, path: &Path) -> Result<(), TensorFileError>;
}

impl dyn Inputs {
    /// The operands as the type of their task; none if they belong to another task.
    pub fn downcast<T: Inputs>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Operands that are plain tensors, in the order of [`TaskSizes::inputs`].
#[derive(Debug, Clone)]
pub struct InputTensors(pub Vec<Tensor>);

impl InputTensors {
    /// Reads the input tensors from a file.
    ///
    /// # Errors
    /// When the file cannot be read, or a tensor is missing or of another type or shape.
    pub fn load(path: &Path, inputs: &[TensorSpec]) -> Result<Self, TensorFileError> {
        TensorFile::open(path)?.tensors(inputs).map(Self)
    }
}

impl Inputs for InputTensors {
    fn save(&self, path: &Path) -> Result<(), TensorFileError> {
        let tensors = self.0.iter();
        save_tensors(
            tensors.map(|tensor| (&tensor.spec, tensor.bytes.as_slice())),
            path,
        )
    }
}

/// One set of sizes of a task: its tensors, operands, expected results, and the rules for right ones. The judge uses only this
/// interface. A task leaves questions that it cannot answer at the default, and gates that need the answer skip with a reason.
pub trait TaskSizes: Any + fmt::Debug + fmt::Display + Send + Sync {
    /// The task.
    fn task(&self) -> &dyn Task;

    /// The sizes as records and the worker protocol carry them, without the task's name. [`Task::open`] reads them.
    fn record(&self) -> serde_json::Value;

    /// The input tensors.
    fn inputs(&self) -> Vec<TensorSpec>;

    /// Names of the input tensors that stay the same in every call, such as weights. A kernel may prepare them in
    /// advance.
    fn constant_inputs(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes between neighbours in each dimension of an input as a kernel on the host is given it; empty if it is row-major.
    fn strides(&self, _input: &str) -> Vec<i64> {
        Vec::new()
    }

    /// Bytes of all input tensors.
    fn input_bytes(&self) -> u64 {
        self.inputs().iter().map(|spec| spec.bytes() as u64).sum()
    }

    /// The output tensors.
    fn outputs(&self) -> Vec<TensorSpec>;

    /// Whether equal inputs must give equal bits in every call. Sums by atomic additions of floats do not.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Operands drawn from a seed: the same seed gives the same bytes on any machine.
    ///
    /// # Errors
    /// When the task's generator is a program that fails.
    fn generate(&self, kind: InputKind, seed: u64) -> Result<Box<dyn Inputs>, String>;

    /// Reads operands from a file: [`InputTensors`] unless the task has a type of its own.
    ///
    /// # Errors
    /// Says what in the file does not fit these sizes.
    fn load(&self, path: &Path) -> Result<Box<dyn Inputs>, String> {
        match InputTensors::load(path, &self.inputs()) {
            Ok(tensors) => Ok(Box::new(tensors)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The expected result for these operands, as far as `coverage` asks for it.
    ///
    /// # Errors
    /// When the operands do not fit these sizes, or the task's reference is a program that fails.
    fn expected(&self, inputs: &dyn Inputs, coverage: Coverage) -> Result<Expected, String>;

    /// The whole expected result, as a kernel would return it.
    ///
    /// # Errors
    /// As [`expected`](Self::expected).
    fn result(&self, inputs: &dyn Inputs) -> Result<Output, String> {
        let expected = self.expected(inputs, Coverage::Full)?;
        let mut output = Output::poisoned(&self.outputs());
        for (part, index, value) in expected.values() {
            output.0[part].set(index, value);
        }
        Ok(output)
    }

    /// The same for operands that no seed draws, to learn what depends on them. The task may refuse them, and remembers nothing.
    ///
    /// # Errors
    /// When the task does not take them.
    fn probed(&self, inputs: &dyn Inputs) -> Result<Output, String> {
        self.result(inputs)
    }

    /// Whether results are wrong for a kernel that does not look at this input; none if that is not known.
    fn depends_on(&self, _input: &str) -> Option<bool> {
        None
    }

    /// Names of values that a kernel holds besides its inputs, such as the weights of a model that it makes itself.
    fn weights(&self) -> Vec<String> {
        Vec::new()
    }

    /// As [`probed`](Self::probed), with one of the [weights](Self::weights) replaced by one value throughout.
    ///
    /// # Errors
    /// When there is no such weight, or the task does not take it.
    fn probed_with_weight(&self, _inputs: &dyn Inputs, weight: &str, _value: f64) -> Result<Output, String> {
        Err(format!("there is no weight `{weight}`"))
    }

    /// A call of a library that gives the same as the reference for these operands, and is far faster; none if none is known.
    fn faster_call(&self, _inputs: &dyn Inputs) -> Option<FasterCall> {
        None
    }

    /// Names of kernels that leave work out and pass, of which the task knows.
    fn known_to_pass(&self) -> &[String] {
        &[]
    }

    /// How much of a result to compare when a kernel is examined: at most about a second of reference computation. The
    /// seed selects the sample.
    fn coverage(&self, _seed: u64) -> Coverage {
        Coverage::Full
    }

    /// How much of a result to compare between measurements: milliseconds of reference computation.
    fn spot(&self, seed: u64) -> Coverage {
        self.coverage(seed)
    }

    /// The rules for its results, given the general ones, which are those for results in f16.
    fn rules(&self, general: &Rules) -> Rules {
        general.suited_to(&self.outputs())
    }

    /// Known properties of correct results on operands of this kind, in addition to the general rules. Operands from a
    /// file have no kind.
    fn rightness(&self, _kind: Option<InputKind>) -> Rightness {
        Rightness::default()
    }

    /// The task's own check, in addition to the rules: the error of a result, if any.
    fn check(&self, _inputs: &dyn Inputs, _output: &Output, _errors: &ErrorMeasures) -> Option<String> {
        None
    }

    /// Another look at a result that the rules call wrong: the fault with what is known of its cause, or none if it is the
    /// rules that do not fit.
    fn reconsider(
        &self,
        _inputs: &dyn Inputs,
        _output: &Output,
        _errors: &ErrorMeasures,
        fault: String,
    ) -> Option<String> {
        Some(fault)
    }

    /// What was noticed of the task while it was used that makes its verdicts weaker. The first time this may take a few more
    /// draws of the inputs.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }

    /// The most bytes of memory that operands of a kind take up while they are made, and results while they are compared.
    fn host_bytes(&self, _kind: InputKind) -> u64 {
        let tensors = [self.inputs(), self.outputs()].concat();
        tensors
            .iter()
            .map(|spec| spec.bytes() as u64)
            .fold(0, u64::saturating_add)
    }

    /// Floating-point operations of a call, if known.
    fn flops(&self) -> Option<u64> {
        None
    }

    /// The minimum number of bytes that a call must move: each operand read once and each result written once.
    fn bytes(&self) -> u64 {
        let tensors = [self.inputs(), self.outputs()].concat();
        tensors.iter().map(|spec| spec.bytes() as u64).sum()
    }

    /// The seconds that no call on a device can undercut, if some of its memory is in the cache; none if no bound is certain.
    fn limit(&self, _device: &Device, _cached: Cached) -> Option<f64> {
        None
    }

    /// What is known of the schedules of kernels of ours; none for a task without such kernels.
    fn schedules(&self) -> Option<&dyn Schedules> {
        None
    }
}

impl dyn TaskSizes {
    /// Compares a result with the expected one: the measures, and the error by these rules of the case or by the task's own check.
    /// Operands from a file have no kind.
    pub fn examine(
        &self,
        rules: &Rules,
        kind: Option<InputKind>,
        (inputs, output): (&dyn Inputs, &Output),
        expected: &Expected,
    ) -> (ErrorMeasures, Option<String>) {
        let errors = ErrorMeasures::between(output, expected, rules.tolerance);
        let fault = rules
            .fault(&errors, self.rightness(kind))
            .and_then(|fault| self.reconsider(inputs, output, &errors, fault));
        let fault = fault.or_else(|| self.check(inputs, output, &errors));
        (errors, fault)
    }
}

/// A call of a library that gives the same as a reference, and is far faster.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FasterCall {
    /// The call in words, with the inputs that it takes.
    pub call: String,
    /// How many times as long the reference takes.
    pub times: f64,
}

/// What is known of a task that makes its verdicts weaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The kind, by which a task can accept it.
    pub name: &'static str,
    /// The input that it is about, if it is about one: where other cases depend on it, all is well.
    pub input: Option<String>,
    /// A sentence that says so, with the remedy.
    pub text: String,
    /// Whether a kernel that leaves work out would pass, so that none is adopted.
    pub is_blind: bool,
}

/// One set of sizes of a task, shared.
#[derive(Clone)]
pub struct Sizes(Arc<dyn TaskSizes>);

impl Sizes {
    /// Shares the sizes.
    pub fn new(sizes: impl TaskSizes) -> Self {
        Self(Arc::new(sizes))
    }

    /// The sizes as the type of their task; none if they belong to another task.
    pub fn downcast<T: TaskSizes>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// The sizes with the name of their task, under `family`, as records and the worker protocol carry them.
    pub fn to_record(&self) -> serde_json::Value {
        let mut record = serde_json::json!({ "family": self.task().name() });
        if let (Some(whole), serde_json::Value::Object(sizes)) = (record.as_object_mut(), self.record()) {
            whole.extend(sizes);
        }
        record
    }
}

impl std::ops::Deref for Sizes {
    type Target = dyn TaskSizes;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Sizes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, formatter)
    }
}

impl PartialEq for Sizes {
    fn eq(&self, other: &Self) -> bool {
        self.to_record() == other.to_record()
    }
}

impl Eq for Sizes {}

impl Hash for Sizes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_record().to_string().hash(state);
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_record().serialize(serializer)
    }
}

impl JsonSchema for Sizes {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One set of sizes of a task; its fields are those of the task.",
            "type": "object",
            "properties": { "family": { "description": "The name of the task.", "type": "string" } },
            "required": ["family"],
        })
    }
}
