//! The task: its cases, and the process that computes with it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gauntlet_audit::known_names;
use gauntlet_parameters::{Table, did_you_mean};
use gauntlet_task::{
    Case, Expression, Fault, InputKind, Scope, Sizes, Suite, Task, WrittenSizes, fault_of_name,
};
use serde_json::{Map, Value, json};

use crate::TaskError;
use crate::description::{Description, WorkTable, describe};
use crate::process::Reference;
use crate::protocol::{CaseTensors, NamedCase, Opened, Work};
use crate::results::Results;
use crate::sizes::PythonSizes;

/// How long a generator, a reference or a check may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The environment variable with another timeout, in seconds.
const TIMEOUT_VARIABLE: &str = "GAUNTLET_REFERENCE_TIMEOUT";

/// How a task is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The file and the function of the baseline: the reference of a task that has none.
    pub baseline: Option<(PathBuf, String)>,
    /// Names of the benchmark cases that are wanted; all if there are none. The others are not generated.
    pub cases: Vec<String>,
    /// Whether the cases are only listed: no inputs are drawn and no reference is computed, so that tensors are not known.
    pub lists_only: bool,
    /// How long a generator, a reference or a check may take, if not as long as `GAUNTLET_REFERENCE_TIMEOUT` or the
    /// default say.
    pub timeout: Option<Duration>,
}

/// A task in Python. Clones share the reference process.
#[derive(Debug, Clone)]
pub struct PythonTask(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: String,
    opened: Opened,
    /// The work of a call as a task.toml says it, with the file.
    work: Option<(PathBuf, WorkTable)>,
    table: Table,
    reference: Reference,
    results: Results,
    /// Results for inputs in f64.
    exact: Results,
    /// Whether the reference was called twice on the same inputs of a case.
    repeated: AtomicBool,
    lists_only: bool,
}

/// Opens the task at a path: a Python file, a folder with task.py, task.yml or definition.json, or one of these files.
///
/// # Errors
/// When there is no task, its text cannot be read, or its own code fails on one of the wanted cases.
pub fn open(path: &Path, options: &Options) -> Result<Suite, TaskError> {
    let description = describe(path)?;
    // The reference process starts in a folder of its own.
    let baseline = options.baseline.as_ref().map(|(file, function)| {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        (file.display().to_string(), function)
    });
    let request = json!({
        "call": "open", "kind": description.kind, "description": description.said, "baseline": baseline,
    });
    let timeout = match options.timeout {
        Some(timeout) => timeout,
        None => timeout()?,
    };
    let reference = Reference::new(&description.path, request, timeout)?;
    let opened: Opened = reference.opened()?;
    let Description {
        name,
        work,
        mut notes,
        path: file,
        ..
    } = description;
    refuse_unknown(&opened, &file)?;
    let name = opened.name.clone().unwrap_or(name);
    notes.extend(opened.notes.iter().cloned());
    let task = PythonTask(Arc::new(Shared {
        table: Table::new(format!("the task {name}"), Vec::new()),
        name,
        opened,
        work: work.map(|work| (file.with_file_name("task.toml"), work)),
        reference,
        results: Results::default(),
        exact: Results::default(),
        repeated: AtomicBool::new(false),
        lists_only: options.lists_only,
    }));
    let suite = task.suite(notes)?;
    let is_wanted = |case: &Case| options.cases.is_empty() || options.cases.contains(&case.name);
    let wanted = suite.benchmark.iter().filter(|case| is_wanted(case));
    for case in suite.correctness.iter().chain(wanted) {
        if let Some(sizes) = case.sizes.downcast::<PythonSizes>() {
            sizes.tensors()?;
        }
    }
    Ok(suite)
}

/// Refuses names in `accepts` that name no kernel of the audit.
fn refuse_unknown(opened: &Opened, file: &Path) -> Result<(), TaskError> {
    let named = opened.accepts.iter().flatten();
    let mut unknown = named.filter(|name| known_names().all(|known| known != name.as_str()));
    let Some(name) = unknown.next() else {
        return Ok(());
    };
    let known: Vec<_> = known_names().collect();
    let meant = did_you_mean(name, known_names());
    let remedy = format!("name some of {}{meant}", known.join(", "));
    Err(TaskError::new(format!("`accepts` has `{name}`, which names nothing"), remedy).in_file(file))
}

/// The work of a call of a case.
fn work(table: &WorkTable, tensors: &CaseTensors) -> Result<Work, String> {
    let scope = Scope::of(&tensors.sizes, &tensors.inputs, &tensors.outputs);
    let value = |name: &str, expression: &Option<Expression>| {
        let Some(expression) = expression else {
            return Ok(None);
        };
        if expression.is_condition() {
            return Err(format!(
                "work.{name}: `{expression}` is a condition and counts nothing"
            ));
        }
        match expression.value(&scope) {
            Ok(value) if value >= 0 => Ok(Some(value as f64)),
            Ok(value) => Err(format!("work.{name}: `{expression}` is {value}")),
            Err(error) => Err(format!("work.{name}: {error}")),
        }
    };
    Ok(Work {
        flops: value("flops", &table.flops)?,
        bytes: value("bytes", &table.bytes)?,
    })
}

/// `FILE:FUNCTION` with an absolute path.
fn timeout() -> Result<Duration, TaskError> {
    let Some(text) = std::env::var_os(TIMEOUT_VARIABLE) else {
        return Ok(TIMEOUT);
    };
    let text = text.to_string_lossy();
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| {
        TaskError::new(
            format!("{TIMEOUT_VARIABLE} is `{text}`"),
            "give a positive number of seconds, such as 600",
        )
    })
}

impl PythonTask {
    /// The reference process.
    pub(crate) fn reference(&self) -> &Reference {
        &self.0.reference
    }

    /// The expected results that were computed last.
    pub(crate) fn results(&self) -> &Results {
        &self.0.results
    }

    /// The results for inputs in f64 that were computed last.
    pub(crate) fn exact(&self) -> &Results {
        &self.0.exact
    }

    /// The file or folder of the task.
    pub(crate) fn path(&self) -> &Path {
        self.0.reference.task()
    }

    /// Whether the reference was called twice on the same inputs of a case.
    pub(crate) fn was_repeated(&self) -> bool {
        self.0.repeated.load(Ordering::Relaxed)
    }

    /// Notes that it was.
    pub(crate) fn note_repeated(&self) {
        self.0.repeated.store(true, Ordering::Relaxed);
    }

    /// What the task said of itself.
    pub(crate) fn opened(&self) -> &Opened {
        &self.0.opened
    }

    fn suite(&self, notes: Vec<String>) -> Result<Suite, TaskError> {
        Ok(Suite {
            name: self.0.name.clone(),
            description: self.0.opened.summary.clone(),
            correctness: self.cases(&self.0.opened.correctness)?,
            benchmark: self.cases(&self.0.opened.benchmark)?,
            notes,
        })
    }

    fn cases(&self, listed: &[NamedCase]) -> Result<Vec<Case>, TaskError> {
        let mut names = HashSet::new();
        let mut cases = Vec::with_capacity(listed.len());
        for case in listed {
            let name = case.name.clone();
            if let Some(message) = fault_of_name(&name) {
                return Err(TaskError::new(message, "give the case a short `name`"));
            }
            if !names.insert(name.clone()) {
                let message = format!("the task {} has a second case `{name}`", self.0.name);
                return Err(TaskError::new(message, "give each case a `name` of its own"));
            }
            cases.push(Case {
                name,
                sizes: Sizes::new(PythonSizes::new(
                    self.clone(),
                    case.parameters.clone(),
                    case.shown.clone(),
                )),
                inputs: InputKind::default(),
                data: None,
                speed_of_light: None,
            });
        }
        Ok(cases)
    }

    /// A case that the task does not list.
    fn sizes(&self, parameters: Value) -> Sizes {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let words = parameters.as_object().into_iter().flatten();
        let words: Vec<_> = words
            .map(|(key, value)| format!("{key}={}", text(value)))
            .collect();
        Sizes::new(PythonSizes::new(self.clone(), parameters, words.join(", ")))
    }

    /// Asks for the tensors of a case.
    pub(crate) fn case(&self, parameters: &Value) -> Result<CaseTensors, TaskError> {
        if self.0.lists_only {
            return Ok(Self::listed(parameters));
        }
        let mut tensors: CaseTensors = self
            .reference()
            .ask(&json!({ "call": "case", "parameters": parameters }), &[])?;
        // A function of the task's own comes before the table.
        if let Some((file, table)) = &self.0.work
            && tensors.work == Work::default()
        {
            tensors.work = work(table, &tensors).map_err(|message| {
                let remedy = "write whole numbers that are not negative, such as `5 * rows * cols`";
                TaskError::new(message, remedy).in_file(file)
            })?;
        }
        Ok(tensors)
    }

    /// What is known of a case without drawing its inputs.
    fn listed(parameters: &Value) -> CaseTensors {
        CaseTensors {
            sizes: json!({ "parameters": parameters }),
            ..CaseTensors::default()
        }
    }
}

impl Task for PythonTask {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn summary(&self) -> &str {
        &self.0.opened.summary
    }

    fn parameters(&self) -> &Table {
        &self.0.table
    }

    fn suites(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn read(&self, written: &WrittenSizes) -> Result<Sizes, Fault> {
        let parameters: Map<String, Value> = written.parse()?;
        Ok(self.sizes(Value::Object(parameters)))
    }

    fn open(&self, record: &Value) -> Result<Sizes, String> {
        match record.get("parameters") {
            Some(parameters) if parameters.is_object() => Ok(self.sizes(parameters.clone())),
            _ => Err(format!("a case of the task {} has `parameters`", self.0.name)),
        }
    }

    fn claims(&self, _names: &[&str]) -> bool {
        false
    }
}
