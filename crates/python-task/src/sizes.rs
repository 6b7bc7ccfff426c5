//! One case of a Python task.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use gauntlet_device::Device;
use gauntlet_formats::{DataType, Tensor, TensorSpec};
use gauntlet_parameters::Parameters;
use gauntlet_task::{
    Coverage, ErrorMeasures, Expected, Grid, InputKind, InputTensors, Inputs, Output, Remedy, Rules, Task,
    TaskSizes, Violation,
};
use serde_json::{Value, json};

use crate::TaskError;
use crate::memory::{MemoryFile, without_room};
use crate::protocol::{CaseTensors, Checked};
use crate::results::digest;
use crate::rules;
use crate::task::PythonTask;

/// Elements up to which a look between measurements compares a whole output.
const FULL_BELOW: usize = 1 << 20;

/// Rows that such a look compares of larger outputs.
const SPOT_ROWS: usize = 64;

/// One case. Its tensors are found out by a first call of the task's generator and reference, when they are first asked
/// for; [`open`](crate::open) does that for the cases that are wanted, and reports an error.
#[derive(Debug)]
pub struct PythonSizes {
    task: PythonTask,
    parameters: Value,
    /// The parameters in words.
    shown: String,
    tensors: OnceLock<Result<CaseTensors, TaskError>>,
}

impl PythonSizes {
    pub(crate) fn new(task: PythonTask, parameters: Value, shown: String) -> Self {
        Self {
            task,
            parameters,
            shown,
            tensors: OnceLock::new(),
        }
    }

    /// Its tensors and rules.
    pub(crate) fn tensors(&self) -> Result<&CaseTensors, TaskError> {
        let found = self.tensors.get_or_init(|| self.task.case(&self.parameters));
        found.as_ref().map_err(TaskError::clone)
    }

    fn request(&self, call: &str, more: Value) -> Value {
        let mut request = json!({ "call": call, "parameters": self.parameters });
        if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
            request.extend(more);
        }
        request
    }

    fn generated(&self, seed: u64) -> Result<InputTensors, TaskError> {
        let file = MemoryFile::new()?;
        // The seeders of numpy's older generators take 32 bits.
        let seed = seed % (1 << 31);
        let request = self.request("generate", json!({ "seed": seed }));
        self.task.reference().ask::<Value>(&request, &[("path", &file)])?;
        InputTensors::load(file.path(), &self.tensors()?.inputs).map_err(|error| without_room(&error))
    }

    fn computed(&self, inputs: &InputTensors) -> Result<Output, TaskError> {
        self.task.results().of(digest(&self.parameters, &inputs.0), || {
            let (given, made) = (MemoryFile::of(&inputs.0)?, MemoryFile::new()?);
            let files = [("inputs", &given), ("path", &made)];
            let request = self.request("expected", Value::Null);
            self.task.reference().ask::<Value>(&request, &files)?;
            Output::load(made.path(), &self.tensors()?.outputs).map_err(|error| without_room(&error))
        })
    }

    /// The task's own check of a result.
    fn checked(&self, inputs: &InputTensors, output: &Output) -> Result<Option<String>, TaskError> {
        let opened = self.task.opened();
        let exact = if opened.check_is_the_rule {
            Vec::new()
        } else {
            exact_integers(output, &rules::tolerances(self.tensors()?))
        };
        // Finding the expected result takes a digest of the inputs and a copy of the result.
        if exact.is_empty() && !opened.has_check {
            return Ok(None);
        }
        let expected = self.computed(inputs)?;
        if let Some(different) = unequal_integers(output, &expected, &exact) {
            return Ok(Some(different));
        }
        if !opened.has_check {
            return Ok(None);
        }
        let (given, found) = (MemoryFile::of(&inputs.0)?, MemoryFile::of(&output.0)?);
        let wanted = MemoryFile::of(&expected.0)?;
        let files = [("inputs", &given), ("output", &found), ("expected", &wanted)];
        let request = self.request("check", Value::Null);
        let checked: Checked = self.task.reference().ask(&request, &files)?;
        Ok(checked
            .fault
            .map(|fault| format!("the task's own check: {fault}")))
    }
}

/// The outputs of 64-bit integers, which f64 cannot tell apart beyond 2⁵³, that have to be equal.
fn exact_integers(output: &Output, tolerances: &[gauntlet_task::Tolerance]) -> Vec<usize> {
    let tensors = output.0.iter().zip(tolerances).enumerate();
    let exact = tensors.filter(|(_, (found, tolerance))| {
        let is_long = matches!(found.spec.data_type, DataType::I64 | DataType::U64);
        is_long && tolerance.relative == 0.0 && tolerance.absolute == 0.0
    });
    exact.map(|(index, _)| index).collect()
}

/// Differences of these outputs of 64-bit integers.
fn unequal_integers(output: &Output, expected: &Output, exact: &[usize]) -> Option<String> {
    let tensors = exact.iter().map(|index| (&output.0[*index], &expected.0[*index]));
    let mut unequal = tensors.filter_map(|(found, wanted)| {
        let pairs = found.bytes.chunks_exact(8).zip(wanted.bytes.chunks_exact(8));
        let count = pairs.filter(|(found, wanted)| found != wanted).count();
        (count > 0).then(|| {
            format!(
                "{count} elements of `{}` differ from the reference",
                found.spec.name
            )
        })
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
    inputs.as_any().downcast_ref().ok_or_else(foreign)
}

/// The computed elements of one output.
fn grid(tensor: &Tensor, part: usize, coverage: Coverage) -> Grid {
    let columns = tensor.spec.columns();
    let rows = coverage.rows(part, tensor.spec.rows());
    let of_row = |&row: &usize| (0..columns).map(move |column| tensor.get(row * columns + column));
    Grid {
        values: rows.iter().flat_map(of_row).collect(),
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

    fn as_any(&self) -> &dyn Any {
        self
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
        Ok(expected.within(rules::tolerances(tensors)))
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
        match self.tensors() {
            Ok(tensors) => rules::rules(tensors, general, self.task.opened().check_is_the_rule),
            Err(_) => general.clone(),
        }
    }

    fn check(&self, inputs: &dyn Inputs, output: &Output, _errors: &ErrorMeasures) -> Option<String> {
        let checked = tensors_of(inputs).map_err(|error| TaskError::new(error, ""));
        match checked.and_then(|inputs| self.checked(inputs, output)) {
            Ok(fault) => fault,
            Err(error) => Some(format!("the task's own check fails: {}", error.whole())),
        }
    }

    /// Kernels are programs of the user's.
    fn violations(&self, parameters: &Parameters, _device: &Device) -> Vec<Violation> {
        vec![Violation {
            parameter: "kernel".to_owned(),
            value: "builtin".to_owned(),
            rule: format!("the task {} has no built-in kernel", self.task.name()),
            source: "crates/python-task".to_owned(),
            remedies: vec![Remedy {
                sentence: "name a kernel of your own: `command: PROGRAM ARGUMENTS` is one".to_owned(),
                parameters: parameters.clone(),
            }],
        }]
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
