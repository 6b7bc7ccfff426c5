//! One case of a Python task.

mod computed;

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use gauntlet_audit::Dependences;
use gauntlet_task::{
    Coverage, ErrorMeasures, Expected, FasterCall, Grid, InputKind, InputTensors, Inputs, Limits, Output,
    Remark, Rules, Task, TaskSizes, words::counted,
};
use gauntlet_tensors::{Tensor, TensorSpec};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::TaskError;
use crate::memory::{MemoryFile, without_room};
use crate::noticed::Noticed;
use crate::protocol::{CaseTensors, Checked};
use crate::results::digest;
use crate::rules;
use crate::task::PythonTask;

/// Elements up to which a look between measurements compares a whole output.
const FULL_BELOW: usize = 1 << 20;

/// Rows that such a look compares of larger outputs.
const SPOT_ROWS: usize = 64;

/// How long a reference may take on inputs that no seed draws.
const PROBE: Duration = Duration::from_secs(20);

/// One case. Its tensors are found out by a first call of the task's generator and reference, when they are first asked
/// for; [`open`](crate::open) does that for the cases that are wanted, and reports an error.
#[derive(Debug)]
pub struct PythonSizes {
    task: PythonTask,
    parameters: Value,
    /// The parameters in words.
    shown: String,
    tensors: OnceLock<Result<CaseTensors, TaskError>>,
    /// Whether the reference was called twice on the same inputs.
    repeated: AtomicBool,
    /// The shortest call of the reference so far, in microseconds.
    pub(crate) shortest: AtomicU64,
    noticed: Noticed,
    /// What hangs on each input; none if that was not asked.
    pub(crate) dependences: OnceLock<Option<Dependences>>,
}

impl PythonSizes {
    pub(crate) fn new(task: PythonTask, parameters: Value, shown: String) -> Self {
        Self {
            task,
            parameters,
            shown,
            tensors: OnceLock::new(),
            repeated: AtomicBool::new(false),
            shortest: AtomicU64::new(u64::MAX),
            noticed: Noticed::default(),
            dependences: OnceLock::new(),
        }
    }

    pub(crate) fn task(&self) -> &PythonTask {
        &self.task
    }

    pub(crate) fn parameters(&self) -> &Value {
        &self.parameters
    }

    pub(crate) fn noticed(&self) -> &Noticed {
        &self.noticed
    }

    pub(crate) fn digest(&self, inputs: &InputTensors) -> blake3::Hash {
        digest(&self.parameters, &inputs.0)
    }

    /// Sends a request with files to the reference process and waits for its answer.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        request: &Value,
        files: &[(&'static str, &MemoryFile)],
    ) -> Result<T, TaskError> {
        self.task.reference().ask(request, files)
    }

    /// Its tensors and rules.
    pub(crate) fn tensors(&self) -> Result<&CaseTensors, TaskError> {
        let found = self.tensors.get_or_init(|| self.task.case(&self.parameters));
        found.as_ref().map_err(TaskError::clone)
    }

    /// Which case it is, at the beginning of a sentence.
    pub(crate) fn on(&self) -> String {
        format!("on {self}")
    }

    pub(crate) fn generated(&self, seed: u64) -> Result<InputTensors, TaskError> {
        let file = MemoryFile::new()?;
        // The seeders of numpy's older generators take 32 bits.
        let seed = seed % (1 << 31);
        let request = self.request("generate", json!({ "seed": seed }));
        self.ask::<Value>(&request, &[("path", &file)])?;
        let inputs = InputTensors::load(file.path(), &self.tensors()?.inputs);
        let inputs = inputs.map_err(|error| without_room(&error))?;
        self.noticed.drawn(&inputs);
        Ok(inputs)
    }

    pub(crate) fn computed(&self, inputs: &InputTensors) -> Result<Output, TaskError> {
        let key = self.digest(inputs);
        let output = self.task.results().of(key, || self.computed_anew(inputs))?;
        if self.noticed.is_new(key) {
            let limits = self.limits(&output)?;
            let is_refused = |other: &Output| !matches!(self.own_check(inputs, other, &output), Ok(None));
            self.noticed.expected(&output, &limits, &is_refused);
            self.noticed.views(&inputs.0, &output);
        }
        Ok(output)
    }

    /// The limits of each output, given the expected result.
    fn limits(&self, expected: &Output) -> Result<Vec<Limits>, TaskError> {
        let stated = rules::limits(self.tensors()?).into_iter().zip(&expected.0);
        let limits = stated.map(|(limits, tensor)| {
            let mut elements = 0..tensor.len();
            let has_a_size = elements.any(|index| tensor.get(index) != 0.0);
            if has_a_size {
                limits
            } else {
                rules::by_tolerance(limits)
            }
        });
        Ok(limits.collect())
    }

    /// The task's own check of a result, and that of integers that f64 cannot tell apart.
    fn checked(&self, inputs: &InputTensors, output: &Output) -> Result<Option<String>, TaskError> {
        let opened = self.task.opened();
        let exact = if opened.check_is_the_rule {
            Vec::new()
        } else {
            let limits = rules::limits(self.tensors()?);
            let tensors = output.0.iter().zip(limits).enumerate();
            let exact = tensors.filter(|(_, (found, limits))| rules::is_exact(&found.spec, limits));
            exact.map(|(index, _)| index).collect()
        };
        // Finding the expected result takes a digest of the inputs and a copy of the result.
        if exact.is_empty() && !opened.has_check {
            return Ok(None);
        }
        let expected = self.computed(inputs)?;
        match unequal_integers(output, &expected, &exact) {
            Some(different) => Ok(Some(different)),
            None => self.own_check(inputs, output, &expected),
        }
    }

    fn own_check(
        &self,
        inputs: &InputTensors,
        output: &Output,
        expected: &Output,
    ) -> Result<Option<String>, TaskError> {
        if !self.task.opened().has_check {
            return Ok(None);
        }
        let (given, found) = (MemoryFile::of(&inputs.0)?, MemoryFile::of(&output.0)?);
        let wanted = MemoryFile::of(&expected.0)?;
        let files = [("inputs", &given), ("output", &found), ("expected", &wanted)];
        let checked: Checked = self.ask(&self.request("check", Value::Null), &files)?;
        Ok(checked
            .fault
            .map(|fault| format!("the task's own check: {fault}")))
    }
}

/// Differences of these outputs of 64-bit integers.
fn unequal_integers(output: &Output, expected: &Output, exact: &[usize]) -> Option<String> {
    let tensors = exact.iter().map(|index| (&output.0[*index], &expected.0[*index]));
    let mut unequal = tensors.filter_map(|(found, wanted)| {
        let pairs = found.bytes.chunks_exact(8).zip(wanted.bytes.chunks_exact(8));
        let count = pairs.filter(|(found, wanted)| found != wanted).count();
        let differ = counted(count, "element of", "elements of");
        let verb = if count == 1 { "differs" } else { "differ" };
        (count > 0).then(|| format!("{differ} `{}` {verb} from the reference", found.spec.name))
    });
    unequal.next()
}

/// The leaf of a tensor in a tree of arguments.
fn leaf<'t>(tree: &'t Value, name: &str) -> Option<&'t Value> {
    match tree {
        Value::Object(leaf) if leaf.get("tensor").is_some_and(Value::is_string) => {
            (leaf["tensor"] == name).then_some(tree)
        }
        Value::Object(branches) => branches.values().find_map(|branch| self::leaf(branch, name)),
        Value::Array(branches) => branches.iter().find_map(|branch| self::leaf(branch, name)),
        _ => None,
    }
}

/// Strides of a stored tensor, which count elements of its library, in bytes. A complex number is stored as two, in a
/// dimension more.
fn in_bytes(spec: &TensorSpec, strides: &[Value]) -> Vec<i64> {
    let inner: usize = spec.shape.iter().skip(strides.len()).product();
    let whole: usize = spec.shape.iter().product();
    let element = (spec.bytes() / whole.max(1) * inner) as i64;
    let strides = strides.iter().filter_map(Value::as_i64);
    strides.map(|stride| stride * element).collect()
}

fn tensors_of(inputs: &dyn Inputs) -> Result<&InputTensors, String> {
    let foreign = || "the operands are those of another task".to_owned();
    inputs.downcast().ok_or_else(foreign)
}

/// The computed elements of one output.
fn grid(tensor: &Tensor, part: usize, coverage: Coverage) -> Grid {
    let columns = tensor.spec.columns();
    let rows = coverage.rows(part, tensor.spec.rows());
    let mut values = vec![0.0; rows.len() * columns];
    for (row, values) in rows.iter().zip(values.chunks_mut(columns.max(1))) {
        tensor.get_all(row * columns, values);
    }
    Grid {
        values,
        columns: (0..columns).collect(),
        rows,
    }
}

impl TaskSizes for PythonSizes {
    fn task(&self) -> &dyn Task {
        &self.task
    }

    fn record(&self) -> Value {
        match self.tensors() {
            Ok(tensors) => tensors.sizes.clone(),
            Err(_) => json!({ "parameters": self.parameters }),
        }
    }

    fn inputs(&self) -> Vec<TensorSpec> {
        self.tensors()
            .map(|tensors| tensors.inputs.clone())
            .unwrap_or_default()
    }

    fn constant_inputs(&self) -> Vec<String> {
        self.tensors()
            .map(|tensors| tensors.constant.clone())
            .unwrap_or_default()
    }

    fn strides(&self, input: &str) -> Vec<i64> {
        let Ok(tensors) = self.tensors() else {
            return Vec::new();
        };
        let spec = tensors.inputs.iter().find(|spec| spec.name == input);
        let leaf = leaf(&tensors.sizes["arguments"], input);
        let strides = leaf.and_then(|leaf| leaf["strides"].as_array());
        spec.zip(strides)
            .map_or_else(Vec::new, |(spec, strides)| in_bytes(spec, strides))
    }

    fn outputs(&self) -> Vec<TensorSpec> {
        self.tensors()
            .map(|tensors| tensors.outputs.clone())
            .unwrap_or_default()
    }

    fn is_deterministic(&self) -> bool {
        self.tensors().map_or(true, |tensors| tensors.deterministic)
    }

    fn generate(&self, _kind: InputKind, seed: u64) -> Result<Box<dyn Inputs>, String> {
        let generated = self.tensors().and_then(|_| self.generated(seed));
        match generated {
            Ok(inputs) => Ok(Box::new(inputs)),
            Err(error) => Err(error.whole()),
        }
    }

    fn load(&self, path: &Path) -> Result<Box<dyn Inputs>, String> {
        let tensors = self.tensors().map_err(|error| error.whole())?;
        match InputTensors::load(path, &tensors.inputs) {
            Ok(inputs) => Ok(Box::new(inputs)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn expected(&self, inputs: &dyn Inputs, coverage: Coverage) -> Result<Expected, String> {
        let inputs = tensors_of(inputs)?;
        let computed = self
            .tensors()
            .and_then(|tensors| Ok((tensors, self.computed(inputs)?)));
        let (tensors, output) = computed.map_err(|error| error.whole())?;
        let parts = output.0.iter().enumerate();
        let grids = parts
            .map(|(part, tensor)| vec![grid(tensor, part, coverage)])
            .collect();
        let expected = Expected::new(coverage, &tensors.outputs, grids);
        if self.task.opened().check_is_the_rule {
            return Ok(expected);
        }
        let limits = self.limits(&output).map_err(|error| error.whole())?;
        Ok(expected.within(limits))
    }

    fn result(&self, inputs: &dyn Inputs) -> Result<Output, String> {
        let computed = self.computed(tensors_of(inputs)?);
        computed.map_err(|error| error.whole())
    }

    fn probed(&self, inputs: &dyn Inputs) -> Result<Output, String> {
        let computed = self.referred(tensors_of(inputs)?, PROBE);
        computed.map_err(|error| error.whole())
    }

    fn depends_on(&self, input: &str) -> Option<bool> {
        let mut all = self.dependences()?.iter();
        all.find(|known| known.input == input)
            .map(|known| known.is_read == Some(true) && known.ignorable.is_none())
    }

    fn weights(&self) -> Vec<String> {
        // A task that does not answer has none that could be asked about.
        self.ask(&self.request("weights", Value::Null), &[])
            .unwrap_or_default()
    }

    fn probed_with_weight(&self, inputs: &dyn Inputs, weight: &str, value: f64) -> Result<Output, String> {
        let more = json!({ "weight": [weight, value] });
        let computed = self.referred_with(tensors_of(inputs)?, PROBE, more);
        computed.map_err(|error| error.whole())
    }

    fn faster_call(&self, inputs: &dyn Inputs) -> Option<FasterCall> {
        let given = MemoryFile::of(&tensors_of(inputs).ok()?.0).ok()?;
        let request = self.request("faster", Value::Null);
        let reference = self.task.reference();
        // A task that does not answer in time has none that could be told.
        let answer = reference.ask_within(PROBE, &request, &[("inputs", &given)]);
        answer.unwrap_or_default()
    }

    fn known_to_pass(&self) -> &[String] {
        self.task.opened().accepts.as_deref().unwrap_or_default()
    }

    fn spot(&self, seed: u64) -> Coverage {
        let elements: usize = self.outputs().iter().map(TensorSpec::elements).sum();
        if elements <= FULL_BELOW {
            return Coverage::Full;
        }
        Coverage::Sampled {
            rows: SPOT_ROWS,
            columns: 0,
            seed,
        }
    }

    fn rules(&self, general: &Rules) -> Rules {
        rules::rules(general, self.task.opened().check_is_the_rule)
    }

    fn reconsider(
        &self,
        inputs: &dyn Inputs,
        output: &Output,
        errors: &ErrorMeasures,
        fault: String,
    ) -> Option<String> {
        let Ok(inputs) = tensors_of(inputs) else {
            return Some(fault);
        };
        // A look that fails changes nothing.
        self.looked_at_again(inputs, output, errors, fault.clone())
            .unwrap_or(Some(fault))
    }

    fn remarks(&self) -> Vec<Remark> {
        let Ok(tensors) = self.tensors() else {
            return Vec::new();
        };
        let draw = || self.generated(self.noticed.next_seed());
        // An error of the task has been told where it stopped the judge; a remark is no place for it.
        while self.noticed.lacks_results() {
            if draw().and_then(|inputs| self.computed(&inputs)).is_err() {
                break;
            }
        }
        while self.noticed.lacks_inputs(tensors) && draw().is_ok() {}
        let mut remarks = self.noticed.remarks(&self.on(), tensors);
        self.add_dependences(&mut remarks, tensors);
        for remark in &mut remarks {
            if remark.is_blind && self.known_to_pass().iter().any(|name| name == remark.name) {
                remark.is_blind = false;
                remark.text += "; the task accepts this";
            }
        }
        remarks
    }

    fn check(&self, inputs: &dyn Inputs, output: &Output, _errors: &ErrorMeasures) -> Option<String> {
        let checked = tensors_of(inputs).map_err(|error| TaskError::new(error, ""));
        match checked.and_then(|inputs| self.checked(inputs, output)) {
            Ok(fault) => fault,
            Err(error) => Some(format!("the task's own check fails: {}", error.whole())),
        }
    }

    fn flops(&self) -> Option<u64> {
        let flops = self.tensors().ok()?.work.flops?;
        Some(flops.round().max(0.0) as u64)
    }

    fn bytes(&self) -> u64 {
        let stated = self.tensors().ok().and_then(|tensors| tensors.work.bytes);
        let of_tensors = || {
            [self.inputs(), self.outputs()]
                .concat()
                .iter()
                .map(TensorSpec::bytes)
                .sum::<usize>() as u64
        };
        stated.map_or_else(of_tensors, |bytes| bytes.round().max(0.0) as u64)
    }
}

impl fmt::Display for PythonSizes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shown.is_empty() {
            return formatter.write_str(self.task.name());
        }
        formatter.write_str(&self.shown)
    }
}
