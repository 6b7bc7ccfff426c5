//! Which kind of task lies at a path, and the parts of it that are not Python: task.toml and task.yml.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gauntlet_parameters::did_you_mean;
use gauntlet_task::Expression;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::TaskError;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Description {
    /// The file or folder that the reference process opens.
    pub(crate) path: PathBuf,
    /// The task's name, unless its text gives another.
    pub(crate) name: String,
    /// The kind, as the reference process calls it.
    pub(crate) kind: &'static str,
    /// What task.toml or task.yml says; null if there is neither.
    pub(crate) said: Value,
    /// The work of a call, if task.toml says it.
    pub(crate) work: Option<WorkTable>,
    /// What of it is not honoured.
    pub(crate) notes: Vec<String>,
}

/// Whether a path is a task: a Python file, a folder with task.py, task.yml or definition.json, a task.toml, or a JSON
/// file with a definition.
pub fn is_task(path: &Path) -> bool {
    let is_named = |name: &str| path.file_name().is_some_and(|own| own == name);
    let has = |name: &str| path.join(name).is_file();
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension == Some("py")
        || extension == Some("json")
        || is_named("task.toml")
        || is_named("task.yml")
        || ["task.py", "task.yml", "definition.json"].into_iter().any(has)
}

/// Describes the task at a path.
pub(crate) fn describe(path: &Path) -> Result<Description, TaskError> {
    let missing = || {
        TaskError::new(
            format!("there is no task at {}", path.display()),
            "name a Python file, or a folder with task.py, task.yml or definition.json",
        )
    };
    let path = path.canonicalize().map_err(|_| missing())?;
    let extension = path.extension().and_then(|extension| extension.to_str());
    let file_name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if !path.is_dir() {
        let folder = path.parent().unwrap_or(Path::new(""));
        return match (file_name, extension) {
            ("task.toml" | "task.yml", _) => described_folder(folder),
            ("task.py", _) if folder.join("task.toml").is_file() => described_folder(folder),
            (_, Some("py")) => Ok(of_kind("file", &path, Value::Null)),
            (_, Some("json")) => Ok(of_kind("definition", &path, Value::Null)),
            _ => Err(missing()),
        };
    }
    described_folder(&path)
}

fn described_folder(folder: &Path) -> Result<Description, TaskError> {
    if folder.join("task.yml").is_file() {
        return gpu_mode(folder);
    }
    if folder.join("definition.json").is_file() {
        return Ok(of_kind(
            "definition",
            &folder.join("definition.json"),
            Value::Null,
        ));
    }
    let code = folder.join("task.py");
    if !code.is_file() {
        return Err(TaskError::new(
            format!(
                "the folder {} has neither task.py, task.yml nor definition.json",
                folder.display()
            ),
            "name a folder with one of them",
        ));
    }
    let table = folder.join("task.toml");
    let (said, work) = if table.is_file() {
        task_toml(&table)?
    } else {
        (Value::Null, None)
    };
    let name = said["name"].as_str().map(str::to_owned);
    let described = of_kind("file", &code, said);
    Ok(Description {
        name: name.unwrap_or(described.name),
        work,
        ..described
    })
}

fn of_kind(kind: &'static str, path: &Path, said: Value) -> Description {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stands_for_its_folder = matches!(
        path.file_name().and_then(|name| name.to_str()),
        Some("task.py" | "definition.json")
    );
    let named = if stands_for_its_folder {
        path.parent()
    } else {
        Some(path)
    };
    Description {
        path: path.to_owned(),
        name: named.and_then(stem).unwrap_or_else(|| "task".to_owned()),
        kind,
        said,
        work: None,
        notes: Vec::new(),
    }
}

fn read(file: &Path) -> Result<String, TaskError> {
    fs::read_to_string(file).map_err(|error| {
        TaskError::new(
            format!("the file cannot be read: {error}"),
            "check its permissions",
        )
        .in_file(file)
    })
}

/// What a task.toml says; its cases replace those of task.py.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TaskToml {
    /// The name; the folder's name if it is left out.
    name: Option<String>,
    /// A one-line description.
    description: Option<String>,
    /// The inputs that stay the same in every call, such as weights.
    constant: Option<Vec<String>>,
    /// Whether equal inputs must give equal bits in every call; true if it is left out.
    deterministic: Option<bool>,
    /// Names of kernels that leave work out and pass, of which the task knows (`gauntlet audit`).
    accepts: Option<Vec<String>>,
    /// The outputs, in the order in which `reference` returns them.
    outputs: Option<Vec<String>>,
    /// The limits `rtol`, `atol`, `share`, `nrmse` and `bias`, for all outputs or by output; or `"check"`, if the task's own
    /// `check` alone decides.
    #[schemars(with = "Option<Tolerance>")]
    tolerance: Option<Value>,
    /// The work of one call.
    work: Option<WorkTable>,
    /// The cases that are only checked: the arguments of `generate`, and optionally a `name`.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    correctness: Vec<Value>,
    /// The cases that are checked and timed: the arguments of `generate`, and optionally a `name`.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    benchmark: Vec<Value>,
}

/// The work of one call: expressions of the case's sizes and tensors, such as `5 * rows * cols`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkTable {
    /// The arithmetic operations.
    pub(crate) flops: Option<Expression>,
    /// The bytes of each operand and result once.
    pub(crate) bytes: Option<Expression>,
}

/// A tolerance as task.toml writes it; the reference process reads it.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(
    dead_code,
    reason = "the reference process reads the value; this is for the schema"
)]
enum Tolerance {
    /// `check`.
    Check(#[schemars(regex(pattern = "^check$"))] String),
    /// Limits of all floating-point outputs.
    All(Limits),
    /// Limits by output.
    ByOutput(BTreeMap<String, Limits>),
}

/// How far an output may be off.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "the reference process reads the value; this is for the schema"
)]
struct Limits {
    /// The relative part of an element's tolerance.
    rtol: Option<f64>,
    /// The absolute part of an element's tolerance.
    atol: Option<f64>,
    /// The share of elements that may be out of tolerance.
    share: Option<f64>,
    /// The greatest root-mean-square error over the root mean square of the reference.
    nrmse: Option<f64>,
    /// The greatest bias over the root mean square of the reference.
    bias: Option<f64>,
}

fn task_toml(file: &Path) -> Result<(Value, Option<WorkTable>), TaskError> {
    let text = read(file)?;
    let table: TaskToml = toml::from_str(&text).map_err(|error| {
        let line = error.span().and_then(|span| Some(text.get(..span.start)?.matches('\n').count() + 1));
        let remedy = format!(
            "a task.toml has name, description, constant, deterministic, accepts, outputs, tolerance, work, and the cases \
             [[correctness]] and [[benchmark]]{}",
            gauntlet_parameters::field_meant(error.message())
        );
        TaskError::new(error.message(), remedy).in_file(file).at_line(line)
    })?;
    let TaskToml {
        name,
        description,
        constant,
        deterministic,
        accepts,
        outputs,
        tolerance,
        work,
        correctness,
        benchmark,
    } = table;
    let mut said = json!({});
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            said[key] = value;
        }
    };
    put("name", name.map(Value::from));
    put("description", description.map(Value::from));
    put("constant", constant.map(Value::from));
    put("deterministic", deterministic.map(Value::from));
    put("accepts", accepts.map(Value::from));
    put("outputs", outputs.map(Value::from));
    put("tolerance", tolerance);
    if !(correctness.is_empty() && benchmark.is_empty()) {
        put(
            "cases",
            Some(json!({ "correctness": correctness, "benchmark": benchmark })),
        );
    }
    Ok((said, work))
}

/// The fields of a task.yml that are read.
const READ: [&str; 5] = ["files", "lang", "description", "tests", "benchmarks"];

/// The fields that are known and not honoured, each with the reason.
const NOT_HONOURED: [(&str, &str); 10] = [
    (
        "config",
        "the task's own runner is not used: gauntlet times and checks the calls itself",
    ),
    ("templates", ""),
    ("ranking_by", ""),
    ("gpus", ""),
    ("multi_gpu", "the kernel gets one GPU"),
    ("test_timeout", "gauntlet's own timeouts hold"),
    ("benchmark_timeout", "gauntlet's own timeouts hold"),
    ("ranked_timeout", "gauntlet's own timeouts hold"),
    ("milestones", "only the baseline is compared with"),
    ("name", ""),
];

fn gpu_mode(folder: &Path) -> Result<Description, TaskError> {
    let file = folder.join("task.yml");
    let text = read(&file)?;
    let at = |message: String, remedy: &str, key: &str| {
        TaskError::new(message, remedy)
            .in_file(&file)
            .at_line(line_of(&text, key))
    };
    let fields: BTreeMap<String, Value> = serde_saphyr::from_str(&text).map_err(|error| {
        let line = error
            .location()
            .and_then(|place| usize::try_from(place.line()).ok());
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default();
        // The place stands before the message.
        let message = first
            .split_once(": \"")
            .map_or(first.to_owned(), |(_, rest)| format!("\"{rest}"));
        TaskError::new(message, "correct the YAML")
            .in_file(&file)
            .at_line(line)
    })?;
    let known = || READ.into_iter().chain(NOT_HONOURED.map(|(name, _)| name));
    for key in fields.keys() {
        if !known().any(|name| name == key) {
            let meant = did_you_mean(key, known());
            return Err(at(
                format!("unknown field `{key}`{meant}"),
                "remove or correct it; gauntlet cannot tell what it asks for",
                key,
            ));
        }
    }
    let language = fields.get("lang").and_then(Value::as_str).unwrap_or("py");
    if language != "py" {
        let message = format!("the task's `lang` is {language}, and only Python tasks (py) are read");
        return Err(at(message, "describe the task in a task.py", "lang"));
    }
    let cases = |key: &str| fields.get(key).cloned().unwrap_or_else(|| json!([]));
    for key in ["tests", "benchmarks"] {
        let list = cases(key);
        if !list
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_object))
        {
            return Err(at(
                format!("`{key}` is not a list of cases"),
                "write `- {\"size\": 1024, \"seed\": 1}`",
                key,
            ));
        }
    }
    if cases("benchmarks").as_array().is_none_or(Vec::is_empty) {
        return Err(at(
            "the task has no `benchmarks`, so nothing can be timed".to_owned(),
            "add a case to `benchmarks`",
            "benchmarks",
        ));
    }
    let description = fields
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let summary = description
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let said = json!({
        "tests": cases("tests"), "benchmarks": cases("benchmarks"), "summary": summary,
        "files": sources(fields.get("files")),
    });
    Ok(Description {
        notes: notes(&fields),
        ..of_kind("gpu-mode", folder, said)
    })
}

/// The sources by the names that they have beside the submission.
fn sources(files: Option<&Value>) -> BTreeMap<String, String> {
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
    match files {
        Some(Value::Array(list)) => {
            let named = list
                .iter()
                .filter_map(|file| Some((text(file, "name")?, text(file, "source")?)));
            named.collect()
        }
        Some(Value::Object(named)) => {
            let source =
                |(name, source): (&String, &Value)| Some((name.clone(), source.as_str()?.to_owned()));
            named.iter().filter_map(source).collect()
        }
        _ => BTreeMap::new(),
    }
}

fn notes(fields: &BTreeMap<String, Value>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(rule) = fields.get("ranking_by").and_then(Value::as_str) {
        let meant = match rule {
            "geom" => " (the geometric mean of the benchmarks' times)",
            "mean" => " (the mean of the benchmarks' times)",
            "last" => " (the last benchmark's time)",
            _ => "",
        };
        notes.push(format!(
            "the competition ranks by `{rule}`{meant}; the verdict here is about all benchmarks together"
        ));
    }
    if let Some(gpus) = fields.get("gpus").and_then(Value::as_array) {
        let names: Vec<_> = gpus.iter().filter_map(Value::as_str).collect();
        notes.push(format!("the competition runs on {}", names.join(", ")));
    }
    for (name, why) in NOT_HONOURED {
        if !why.is_empty() && fields.contains_key(name) && !matches!(fields[name], Value::Bool(false)) {
            notes.push(format!("`{name}` is not honoured: {why}"));
        }
    }
    notes
}

/// The line on which a field of the outermost level stands.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let starts = |line: &str| {
        let own = line.trim_start_matches(['"', '\'']);
        own.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    };
    text.lines().position(starts).map(|index| index + 1)
}
