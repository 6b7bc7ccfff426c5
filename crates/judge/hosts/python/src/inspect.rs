//! Whether a file has a function, told without running the file.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use thiserror::Error;

use crate::interpreter;

/// Why a function cannot be called.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The file does not exist.
    #[error("there is no file {file}")]
    NoFile {
        /// The file.
        file: PathBuf,
    },
    /// The interpreter finds no such module.
    #[error("{interpreter} finds no module {module}")]
    NoModule {
        /// The interpreter.
        interpreter: PathBuf,
        /// The module's name.
        module: String,
    },
    /// The text names no function.
    #[error("`{file}` names no function")]
    NoName {
        /// The file.
        file: PathBuf,
        /// The functions that it has.
        functions: Vec<String>,
    },
    /// The interpreter does not start, or is none.
    #[error("the Python interpreter {interpreter} does not work: {reason}")]
    NoInterpreter {
        /// The interpreter.
        interpreter: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The interpreter is too old.
    #[error("the Python interpreter {interpreter} is version {}.{}, which is too old", .version.0, .version.1)]
    Old {
        /// The interpreter.
        interpreter: PathBuf,
        /// Its version.
        version: (u32, u32),
    },
    /// The interpreter has no numpy.
    #[error("the Python interpreter {interpreter} has no numpy")]
    NoNumpy {
        /// The interpreter.
        interpreter: PathBuf,
    },
    /// The file is not Python.
    #[error("{file}{}: {message}", .line.map_or_else(String::new, |line| format!(":{line}")))]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: Option<u32>,
        /// Python's message.
        message: String,
    },
    /// The file has no such function.
    #[error("{file} has no function `{name}`")]
    NoFunction {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
        /// The functions that it has.
        functions: Vec<String>,
    },
    /// The function has no such parameter.
    #[error("`{function}` in {file} has no parameter `{name}`")]
    NoParameter {
        /// The file.
        file: PathBuf,
        /// The function.
        function: String,
        /// The name that is given.
        name: String,
        /// The names of its parameters.
        takes: Vec<String>,
    },
}

impl KernelError {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoFile { .. } => "write a kernel as FILE:FUNCTION, such as softmax.py:fast".to_owned(),
            Self::NoModule { module, .. } => format!(
                "install it for this interpreter, or name its file, as in {}.py:fast",
                module.replace('.', "/")
            ),
            Self::NoName { file, functions } | Self::NoFunction { file, functions, .. } => {
                match functions.as_slice() {
                    [] => "define a function in it, such as `def fast(x): …`".to_owned(),
                    [first, ..] => format!(
                        "it has {}: write {}:{first}",
                        functions.join(", "),
                        file.display()
                    ),
                }
            }
            Self::NoParameter { takes, name, .. } => format!(
                "it has {}: add `{name}` with a default, or leave it out",
                takes.join(", ")
            ),
            Self::NoInterpreter { .. } => {
                format!("install Python 3.9 or newer, or name one by {}", crate::VARIABLE)
            }
            Self::Old { .. } => format!("name Python 3.9 or newer by {}", crate::VARIABLE),
            Self::NoNumpy { interpreter } => format!(
                "`{} -m pip install numpy`, or name another Python by {}",
                interpreter.display(),
                crate::VARIABLE
            ),
            Self::Syntax { .. } => "correct the line; nothing was run".to_owned(),
        }
    }
}

/// What `inspect.py` prints.
#[derive(Debug, Deserialize)]
struct Inspected {
    version: (u32, u32),
    /// Whether the module is there, if one is named.
    #[serde(default = "yes")]
    module: bool,
    /// The module's file.
    file: Option<PathBuf>,
    numpy: bool,
    error: Option<SyntaxFault>,
    functions: Vec<String>,
    bound: bool,
    /// The names of the parameters that the function has, where the source shows all of them.
    takes: Option<Vec<String>>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
struct SyntaxFault {
    line: Option<u32>,
    message: String,
}

/// The oldest Python that the worker's files run on.
const OLDEST: (u32, u32) = (3, 9);

/// The kernel as the worker takes it, `FILE:FUNCTION` with an absolute path, if the file has the function, and the function
/// parameters of the `given` names, as far as can be told without running it.
///
/// # Errors
/// If the file, the function or a parameter is missing, the file is no Python, or the interpreter or numpy is missing.
pub fn inspect(file: &Path, function: &str, given: &[&str]) -> Result<String, KernelError> {
    inspect_by(&interpreter(), file, function, given)
}

/// The same for a function of a module, `MODULE:FUNCTION`.
///
/// # Errors
/// If the module or the function is missing, or the interpreter or numpy is missing.
pub fn inspect_module(module: &str, function: &str) -> Result<String, KernelError> {
    bound(
        &interpreter(),
        Path::new(module),
        Path::new(module),
        (function, &[]),
    )
}

fn inspect_by(
    interpreter: &Path,
    file: &Path,
    function: &str,
    given: &[&str],
) -> Result<String, KernelError> {
    match std::path::absolute(file) {
        Ok(path) if path.is_file() => bound(interpreter, file, &path, (function, given)),
        _ => Err(KernelError::NoFile { file: file.into() }),
    }
}

/// A place, a file's path in full or a module's name, with its function, which has the `given` parameters; `named` is the place
/// as the user names it.
fn bound(
    interpreter: &Path,
    named: &Path,
    place: &Path,
    (function, given): (&str, &[&str]),
) -> Result<String, KernelError> {
    let found = run(interpreter, place, function)?;
    if found.version < OLDEST {
        let (interpreter, version) = (interpreter.into(), found.version);
        return Err(KernelError::Old { interpreter, version });
    }
    if !found.module {
        return Err(KernelError::NoModule {
            interpreter: interpreter.into(),
            module: named.display().to_string(),
        });
    }
    let file = found.file.unwrap_or_else(|| named.into());
    if let Some(SyntaxFault { line, message }) = found.error {
        return Err(KernelError::Syntax { file, line, message });
    }
    let functions = found.functions;
    if function.is_empty() {
        return Err(KernelError::NoName { file, functions });
    }
    if !found.bound {
        let name = function.to_owned();
        return Err(KernelError::NoFunction {
            file,
            name,
            functions,
        });
    }
    if let Some(takes) = found.takes
        && let Some(name) = given
            .iter()
            .find(|name| !takes.iter().any(|other| other == *name))
    {
        return Err(KernelError::NoParameter {
            file,
            function: function.to_owned(),
            name: (*name).to_owned(),
            takes,
        });
    }
    if !found.numpy {
        return Err(KernelError::NoNumpy {
            interpreter: interpreter.into(),
        });
    }
    Ok(format!("{}:{function}", place.display()))
}

fn inspecting(interpreter: &Path, file: &Path, function: &str) -> Command {
    let mut command = Command::new(interpreter);
    // Nothing of the current folder is imported: a file `ast.py` of a candidate would run here, unconfined.
    command
        .args(["-I", "-c", include_str!("inspect.py")])
        .arg(file)
        .arg(function);
    command
}

fn run(interpreter: &Path, file: &Path, function: &str) -> Result<Inspected, KernelError> {
    let failed = |reason: String| KernelError::NoInterpreter {
        interpreter: interpreter.into(),
        reason,
    };
    let output = inspecting(interpreter, file, function)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let words = String::from_utf8_lossy(&output.stderr);
        failed(words.lines().last().unwrap_or("it prints nothing").to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome for a file with this text: the kernel's function, or the error and its remedy.
    fn outcome(text: &str, function: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernels.py");
        std::fs::write(&file, text).unwrap();
        match inspect_by(&interpreter(), &file, function, &[]) {
            Ok(kernel) => {
                assert_eq!(kernel, format!("{}:{function}", file.display()));
                Ok(())
            }
            Err(KernelError::NoNumpy { .. }) => Ok(()),
            Err(error) => {
                let said = format!("{error}; {}", error.remedy());
                Err(said.replace(&format!("{}/", folder.path().display()), ""))
            }
        }
    }

    #[test]
    fn functions_are_found_without_running_the_file() {
        assert_eq!(outcome("raise SystemExit\ndef fast(x): pass\n", "fast"), Ok(()));
        assert_eq!(outcome("if True:\n  def fast(x): pass\n", "fast"), Ok(()));
        assert_eq!(outcome("fast = lambda x: x\n", "fast"), Ok(()));
        assert_eq!(outcome("from somewhere import fast\n", "fast"), Ok(()));
        assert_eq!(outcome("from somewhere import *\n", "fast"), Ok(()));
        assert_eq!(
            outcome("class Kernels:\n  def fast(x): pass\n", "Kernels.fast"),
            Ok(())
        );
    }

    #[test]
    fn parameters_that_a_function_lacks_are_named_where_the_source_shows_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernels.py");
        let lacks = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let found = inspect_by(&interpreter(), &file, "fast", &["BLOCK"]);
            matches!(found, Err(KernelError::NoParameter { name, .. }) if name == "BLOCK")
        };
        assert!(lacks("def fast(x): pass\n"));
        assert!(lacks("def fast(x, *, WARPS=4): pass\ndef slow(x, BLOCK): pass\n"));
        assert!(!lacks("def fast(x, BLOCK=64): pass\n"));
        assert!(!lacks("def fast(x, **others): pass\n"));
        assert!(!lacks("@jit\ndef fast(x): pass\n"));
        assert!(!lacks("from somewhere import fast\n"));
        assert!(!lacks("def fast(x): pass\nfast = wrapped(fast)\n"));
        assert!(!lacks(
            "if True:\n  def fast(x): pass\nelse:\n  def fast(x, BLOCK): pass\n"
        ));
    }

    #[test]
    fn what_is_missing_is_named_with_a_remedy() {
        let said = outcome("def slow(x): pass\ndef fast(x): pass\n", "fsat").unwrap_err();
        assert_eq!(
            said,
            "kernels.py has no function `fsat`; it has slow, fast: write kernels.py:slow"
        );
        let said = outcome("def slow(x): pass\n", "").unwrap_err();
        assert_eq!(
            said,
            "`kernels.py` names no function; it has slow: write kernels.py:slow"
        );
        let said = outcome("x = 1\n", "fast").unwrap_err();
        assert_eq!(
            said,
            "kernels.py has no function `fast`; define a function in it, such as `def fast(x): …`"
        );
        let said = outcome("def fast(x):\n  return (\n", "fast").unwrap_err();
        assert!(said.starts_with("kernels.py:2: '(' was never closed"), "{said}");
        let said = inspect("nowhere.py".as_ref(), "f", &[]).unwrap_err().to_string();
        assert_eq!(said, "there is no file nowhere.py");
    }

    #[test]
    fn modules_are_found_without_running_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("package")).unwrap();
        for (name, text) in [
            ("kernels.py", "raise SystemExit\ndef fast(x): pass\n"),
            ("package/__init__.py", "raise SystemExit\n"),
            ("package/softmax.py", "def fast(x): pass\n"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let found = |module: &str, function: &str| -> Inspected {
            let mut command = inspecting(&interpreter(), Path::new(module), function);
            let output = command.env("PYTHONPATH", folder.path()).output().unwrap();
            serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
        };
        for (module, function, is_there, is_bound) in [
            ("kernels", "fast", true, true),
            ("kernels", "fsat", true, false),
            ("package.softmax", "fast", true, true),
            ("package.softmax", "fsat", true, false),
            // A package may bind names and modules when it is imported.
            ("package", "fsat", true, true),
            ("package.other", "fast", true, true),
            ("os.path", "join", true, true),
            ("nowhere", "fast", false, true),
            ("nowhere.pyy", "fast", false, true),
        ] {
            let found = found(module, function);
            assert_eq!(
                (found.module, found.bound),
                (is_there, is_bound),
                "{module}:{function}"
            );
        }
    }

    #[test]
    fn a_module_that_is_not_there_is_named() {
        let error = inspect_module("nowhere.kernels", "fast").unwrap_err();
        assert!(
            error.to_string().ends_with(" finds no module nowhere.kernels"),
            "{error}"
        );
        assert!(
            error.remedy().contains("nowhere/kernels.py:fast"),
            "{}",
            error.remedy()
        );
    }

    /// The current folder and PYTHONPATH belong to the test's process, so that another one is started in their place.
    #[test]
    fn no_file_of_the_current_folder_or_of_the_search_path_runs() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ast.py", "json.py", "operator.py", "numpy.py", "kernels.py"] {
            std::fs::write(folder.path().join(name), "raise SystemExit\ndef fast(x): pass\n").unwrap();
        }
        for path in ["", "."] {
            let mut command = inspecting(&interpreter(), &folder.path().join("kernels.py"), "fast");
            command.current_dir(&folder).env("PYTHONPATH", path);
            let output = command.output().unwrap();
            let found: Result<Inspected, _> = serde_json::from_slice(&output.stdout);
            assert!(
                found.unwrap().bound,
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }

    #[test]
    fn an_interpreter_that_is_none_is_named() {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/inspect.py"));
        let said = inspect_by("/bin/false".as_ref(), file, "f", &[]).unwrap_err();
        assert!(
            said.to_string()
                .contains("/bin/false does not work: it prints nothing"),
            "{said}"
        );
        let said = inspect_by("/nowhere/python".as_ref(), file, "f", &[]).unwrap_err();
        assert!(said.to_string().contains("No such file"), "{said}");
    }
}
