//! Solutions in the form of FlashInfer-Trace and SOL-ExecBench: a JSON file with sources, an entry point, and how it is
//! called.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use thiserror::Error;

use crate::interpreter;

/// Languages whose entry point is a Python function that runs on any device.
const PYTHON: [&str; 2] = ["python", "pytorch"];

/// Languages whose entry point is a Python function that needs a GPU.
const PYTHON_ON_GPU: [&str; 5] = ["triton", "tlx", "cute_dsl", "cutile", "cudnn_frontend"];

/// Languages that are built by a C++ compiler.
const COMPILED: [&str; 6] = ["cuda", "cuda_cpp", "cpp", "cutlass", "cudnn", "cublas"];

/// A solution: the sources of a kernel, and how it is called.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Solution {
    /// Its name.
    pub name: String,
    /// The name of the definition that it solves.
    pub definition: String,
    spec: Spec,
    sources: Vec<SourceFile>,
}

/// How a solution is built and called.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Spec {
    language: Option<String>,
    #[serde(default)]
    languages: Vec<String>,
    entry_point: String,
    #[serde(default = "yes")]
    destination_passing_style: bool,
    #[serde(default)]
    target_hardware: Vec<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    build_commands: Vec<String>,
    binding: Option<String>,
    compile_options: Option<serde_json::Value>,
}

fn yes() -> bool {
    true
}

/// One file of a solution.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SourceFile {
    path: PathBuf,
    content: String,
}

/// Why a solution cannot be a kernel.
#[derive(Debug, Error)]
#[error("{}{}: {message}", .file.display(), .line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct SolutionError {
    file: PathBuf,
    line: Option<usize>,
    message: String,
    remedy: String,
}

impl SolutionError {
    /// What the user can do.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl Solution {
    /// Reads a solution and checks that it is whole.
    ///
    /// # Errors
    /// If the file cannot be read, is no solution, or names an entry point that it does not hold.
    pub fn read(file: &Path) -> Result<Self, SolutionError> {
        let fault = |line: Option<usize>, message: String, remedy: &str| SolutionError {
            file: file.to_owned(),
            line,
            message,
            remedy: remedy.to_owned(),
        };
        let text = fs::read_to_string(file).map_err(|error| {
            fault(
                None,
                format!("it cannot be read: {error}"),
                "name a solution.json that is there",
            )
        })?;
        let solution: Self = serde_json::from_str(&text).map_err(|error| {
            let remedy =
                "a solution has name, definition, spec (language, entry_point) and sources (path, content)";
            fault(Some(error.line()), format!("not a solution: {error}"), remedy)
        })?;
        let line_of = |key: &str| {
            text.lines()
                .position(|line| line.contains(key))
                .map(|index| index + 1)
        };
        if let Some(source) = solution.sources.iter().find(|source| !stays_inside(&source.path)) {
            let message = format!(
                "the source {} lies outside of the solution's folder",
                source.path.display()
            );
            return Err(fault(
                line_of("\"path\""),
                message,
                "give each source a path without `..` and without a leading `/`",
            ));
        }
        let mut paths = BTreeSet::new();
        if let Some(source) = solution.sources.iter().find(|source| !paths.insert(&source.path)) {
            let message = format!("there are two sources {}", source.path.display());
            return Err(fault(
                line_of("\"sources\""),
                message,
                "give each source a path of its own",
            ));
        }
        let entry = &solution.spec.entry_point;
        let known: Vec<_> = solution
            .sources
            .iter()
            .map(|source| source.path.display().to_string())
            .collect();
        match solution.entry() {
            None => {
                let message = format!("the entry point `{entry}` names no file and function");
                Err(fault(
                    line_of("\"entry_point\""),
                    message,
                    "write it as FILE::FUNCTION, such as main.py::run",
                ))
            }
            Some((path, _)) if !paths.contains(&path.to_owned()) => {
                let message = format!("the entry point `{entry}` names a file that is not among the sources");
                Err(fault(
                    line_of("\"entry_point\""),
                    message,
                    &format!("name one of {}", known.join(", ")),
                ))
            }
            Some(_) => Ok(solution),
        }
    }

    /// The same, for the place where it is to run.
    ///
    /// # Errors
    /// Names the language or the build step that is not supported, or that needs a GPU where there is none.
    pub fn read_for(file: &Path, on_gpu: bool) -> Result<Self, SolutionError> {
        let solution = Self::read(file)?;
        match solution.obstacle(on_gpu) {
            None => Ok(solution),
            Some((message, remedy)) => Err(SolutionError {
                file: file.to_owned(),
                line: None,
                message: format!("the solution {} {message}", solution.name),
                remedy: remedy.to_owned(),
            }),
        }
    }

    /// Why it cannot run, with a remedy.
    fn obstacle(&self, on_gpu: bool) -> Option<(String, &'static str)> {
        let languages = self.languages();
        let is = |known: &[&str], language: &&str| known.contains(language);
        if languages.is_empty() {
            return Some((
                "names no language".to_owned(),
                "add `language` to its spec, such as \"python\" or \"triton\"",
            ));
        }
        if let Some(language) = languages.iter().find(|language| is(&COMPILED, language)) {
            let binding = self.spec.binding.as_deref().unwrap_or("torch");
            return Some((
                format!("is in {language}, bound by {binding}, which a C++ compiler must build"),
                "call its kernel from Python, write it as FILE.cu:KERNEL with a launch table, or build a shared library and \
                 name FILE.so:FUNCTION",
            ));
        }
        let known = |language: &&&str| is(&PYTHON, language) || is(&PYTHON_ON_GPU, language);
        if let Some(language) = languages.iter().find(|language| !known(language)) {
            return Some((
                format!("is in `{language}`, which is not known"),
                "use python, pytorch, triton, tlx, cute_dsl, cutile or cudnn_frontend",
            ));
        }
        if !self.spec.build_commands.is_empty() {
            return Some((
                format!(
                    "has `build_commands` ({}), which are not run",
                    self.spec.build_commands.join("; ")
                ),
                "build before, and take the field out",
            ));
        }
        if let Some((file, _)) = self.entry()
            && file.extension().is_none_or(|ending| ending != "py")
        {
            return Some((
                format!(
                    "has the entry point {}, which is no Python file",
                    self.spec.entry_point
                ),
                "name a function in a .py file",
            ));
        }
        let language = languages.iter().find(|language| is(&PYTHON_ON_GPU, language))?;
        (!on_gpu).then(|| {
            (
                format!("is in {language}, which needs a GPU, and the task's tensors are on the CPU"),
                "use a machine with an NVIDIA GPU and torch, or add --executor cuda; `gauntlet doctor` says what is missing",
            )
        })
    }

    fn languages(&self) -> Vec<&str> {
        self.spec
            .language
            .iter()
            .chain(&self.spec.languages)
            .map(String::as_str)
            .collect()
    }

    /// File and function of the entry point.
    fn entry(&self) -> Option<(&Path, &str)> {
        let (file, function) = self.spec.entry_point.split_once("::")?;
        let is_whole = !file.is_empty() && !function.is_empty() && !function.contains(':');
        is_whole.then_some((Path::new(file), function))
    }

    /// What of it is not honoured, each as a sentence.
    pub fn notes(&self) -> Vec<String> {
        let Spec {
            target_hardware,
            dependencies,
            compile_options,
            binding,
            ..
        } = &self.spec;
        let mut notes = Vec::new();
        let mut note = |text: String| notes.push(format!("the solution {}: {text}", self.name));
        let missing = missing(dependencies);
        if !missing.is_empty() {
            note(format!("its dependencies are not installed: {missing}"));
        }
        if !target_hardware.is_empty() {
            note(format!(
                "its target hardware is not compared with this machine: {}",
                target_hardware.join(", ")
            ));
        }
        if compile_options.is_some() {
            note("`compile_options` is not honoured: nothing of it is compiled".to_owned());
        }
        if let Some(binding) = binding {
            note(format!(
                "`binding` is not honoured: {binding} binds compiled code, and this is Python"
            ));
        }
        notes
    }

    /// Whether the function writes to its outputs, which are its last arguments, rather than to return them.
    pub fn writes_outputs(&self) -> bool {
        self.spec.destination_passing_style
    }

    /// Writes its sources below a folder; returns the file and the function of its kernel.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn unpack(&self, folder: &Path) -> io::Result<(PathBuf, String)> {
        for source in &self.sources {
            let path = folder.join(&source.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, &source.content)?;
        }
        let entry = self
            .entry()
            .map(|(file, function)| (folder.join(file), function.to_owned()));
        entry.ok_or_else(|| io::Error::other("the entry point names no file and function"))
    }
}

/// Prints those of its arguments that are neither installed packages nor modules.
const MISSING: &str = r#"
import re, sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
def there(text):
    name = re.match(r"[A-Za-z0-9_-]*", text.strip()).group()
    try:
        return bool(name and version(name))
    except PackageNotFoundError:
        return find_spec(name.replace("-", "_")) is not None
print(", ".join(text for text in sys.argv[1:] if not there(text)))
"#;

/// The dependencies that the interpreter does not have; all of them if it cannot be asked.
fn missing(dependencies: &[String]) -> String {
    if dependencies.is_empty() {
        return String::new();
    }
    let asked = Command::new(interpreter())
        .args(["-I", "-c", MISSING])
        .args(dependencies)
        .output();
    match asked {
        Ok(asked) if asked.status.success() => String::from_utf8_lossy(&asked.stdout).trim().to_owned(),
        _ => dependencies.join(", "),
    }
}

/// Whether a path of a source stays below the folder that it is joined to.
fn stays_inside(path: &Path) -> bool {
    let mut parts = path.components();
    path.file_name().is_some() && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn solution() -> Value {
        json!({
            "name": "rows", "definition": "scaled", "author": "someone",
            "spec": { "language": "python", "target_hardware": ["LOCAL"], "entry_point": "pkg/main.py::run" },
            "sources": [
                { "path": "pkg/main.py", "content": "from pkg.part import twice\nrun = twice\n" },
                { "path": "pkg/part.py", "content": "def twice(x): return 2 * x\n" },
            ],
        })
    }

    /// The solution of a changed file, or the error with its remedy.
    fn read(change: impl FnOnce(&mut Value), on_gpu: bool) -> Result<Solution, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("solution.json");
        let mut value = solution();
        change(&mut value);
        fs::write(&file, serde_json::to_string_pretty(&value).unwrap()).unwrap();
        Solution::read_for(&file, on_gpu).map_err(|error| {
            let said = format!("{error}; {}", error.remedy());
            said.replace(&format!("{}/", folder.path().display()), "")
        })
    }

    #[test]
    fn a_solution_is_unpacked_and_called_by_its_entry_point() {
        let solution = read(|_| {}, false).unwrap();
        assert!(
            solution.writes_outputs(),
            "destination passing is the format's default"
        );
        let folder = tempfile::tempdir().unwrap();
        let kernel = solution.unpack(folder.path()).unwrap();
        assert_eq!(kernel, (folder.path().join("pkg/main.py"), "run".to_owned()));
        assert!(folder.path().join("pkg/part.py").is_file());
        let returning = read(
            |value| value["spec"]["destination_passing_style"] = json!(false),
            false,
        );
        assert!(!returning.unwrap().writes_outputs());
    }

    #[test]
    fn what_is_not_honoured_is_named() {
        let solution = read(
            |value| {
                value["spec"]["dependencies"] = json!(["json", "no-such-package>=2"]);
                value["spec"]["compile_options"] = json!({ "cflags": ["-O2"] });
            },
            false,
        );
        let notes = solution.unwrap().notes().join("\n");
        for said in [
            "not installed: no-such-package>=2",
            "this machine: LOCAL",
            "`compile_options` is not honoured",
        ] {
            assert!(notes.contains(said), "{notes}");
        }
    }

    #[test]
    fn what_cannot_run_is_named_with_a_remedy() {
        let language = |name: &'static str| move |value: &mut Value| value["spec"]["language"] = json!(name);
        assert!(read(language("triton"), true).is_ok());
        let refused = |result: Result<Solution, String>, said: &str| {
            let error = result.unwrap_err();
            assert!(
                error.starts_with("solution.json") && error.contains(said),
                "{error}"
            );
        };
        refused(read(language("triton"), false), "is in triton, which needs a GPU");
        refused(read(language("cuda_cpp"), true), "is in cuda_cpp, bound by torch");
        refused(
            read(language("fortran"), true),
            "is in `fortran`, which is not known; use python",
        );
        refused(
            read(|value| value["spec"]["build_commands"] = json!(["make"]), false),
            "`build_commands` (make)",
        );
        refused(
            read(|value| value["spec"]["language"] = Value::Null, false),
            "names no language",
        );
    }

    #[test]
    fn what_is_no_solution_is_told_with_its_line() {
        let refused = |result: Result<Solution, String>, line: &str, said: &str| {
            let error = result.unwrap_err();
            assert!(
                error.starts_with(&format!("solution.json:{line}: ")) && error.contains(said),
                "{error}"
            );
        };
        let entry = |text: &'static str| move |value: &mut Value| value["spec"]["entry_point"] = json!(text);
        refused(
            read(entry("main.py"), false),
            "16",
            "names no file and function; write it as FILE::FUNCTION",
        );
        refused(
            read(entry("other.py::run"), false),
            "16",
            "not among the sources; name one of pkg/main.py, pkg/part.py",
        );
        refused(
            read(|value| value["sources"][0]["path"] = json!("../main.py"), false),
            "8",
            "outside of the solution's folder",
        );
        refused(
            read(|value| value["sources"] = json!(3), false),
            "5",
            "invalid type",
        );
    }
}
