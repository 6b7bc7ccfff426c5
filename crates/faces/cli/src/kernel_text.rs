//! Kernels in the form used on the command line.
//!
//! | text | kernel |
//! |---|---|
//! | `file.py:function`, `package.module:function` | a Python function |
//! | `solution.json` | a solution of FlashInfer-Trace or SOL-ExecBench |
//! | `file.so:function` | a function of a shared library |
//! | `file.cu:kernel`, `file.cu:kernel: NAME=VALUE …` | a CUDA kernel, with values of its own parameters |
//! | `command: PROGRAM ARGUMENTS` | a worker |
//! | `dispatch:FILE` | built-in kernels by a table |
//! | anything else | a built-in kernel with parameters, see [`schedule_text::read`] |
//!
//! The first four become the command of one of this program's own workers, so that the judge knows commands only.

use std::path::{Path, PathBuf};

use gauntlet_host_python::{KernelError, Solution, inspect};
use gauntlet_judge::Candidate;
use gauntlet_parameters::{Parameters, Table};

use crate::arguments::WorkerTensors;
use crate::commands::run::this_program;
use crate::error::CliError;
use crate::schedule_text;

/// The prefix of the name of a dispatch table.
const DISPATCH: &str = "dispatch:";

/// The prefix of a worker's program.
const COMMAND: &str = "command:";

/// The ending of a solution, which is a whole kernel.
pub const SOLUTION: &str = ".json";

/// Endings of files with kernels, and the worker of each.
const FILES: [(&str, Host); 4] = [
    (".py", Host::Python),
    (".so", Host::Library),
    (".dylib", Host::Library),
    (".cu", Host::Nvrtc),
];

/// A worker for kernels in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    Python,
    Library,
    Nvrtc,
}

impl Host {
    /// The name in `gauntlet worker`.
    fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Library => "library",
            Self::Nvrtc => "nvrtc",
        }
    }
}

/// A kernel in a file or a module, as its text names it.
#[derive(Debug, PartialEq, Eq)]
struct Named<'t> {
    host: Host,
    /// The file; a module if there is none.
    file: Option<&'t Path>,
    /// `FILE:FUNCTION`, as the worker takes it.
    whole: &'t str,
    function: &'t str,
    /// Values of its own parameters.
    parameters: &'t str,
}

/// The kernel that a text names; none if it is of another form.
fn named(text: &str) -> Option<Named<'_>> {
    let text = text.trim();
    // A command may end with the name of a file.
    if is_worker(text) || text.starts_with(DISPATCH) {
        return None;
    }
    for (ending, host) in FILES {
        let Some(end) = text.find(&format!("{ending}:")).map(|at| at + ending.len()) else {
            if text.ends_with(ending) && !text.contains('=') {
                return Some(Named {
                    host,
                    file: Some(Path::new(text)),
                    whole: text,
                    function: "",
                    parameters: "",
                });
            }
            continue;
        };
        let after = &text[end + 1..];
        let length = after.find(':').unwrap_or(after.len());
        return Some(Named {
            host,
            file: Some(Path::new(&text[..end])),
            whole: text[..end + 1 + length].trim_end(),
            function: after[..length].trim(),
            parameters: after[length..].trim_start_matches(':').trim(),
        });
    }
    let (module, function) = text.split_once(':')?;
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let is_module = module.split('.').all(is_name) && function.split('.').all(is_name);
    is_module.then_some(Named {
        host: Host::Python,
        file: None,
        whole: text,
        function,
        parameters: "",
    })
}

/// Reads a kernel. Parameters that it does not name are those of `base`; the table defines them.
pub fn candidate(
    name: &str,
    text: &str,
    base: &Parameters,
    table: &Table,
    tensors: WorkerTensors,
) -> Result<Candidate, CliError> {
    let mut candidate = Candidate::new(name, table.complete(base));
    if let Some(command) = text.trim().strip_prefix(COMMAND) {
        candidate.command = Some(program(command)?);
    } else if let Some(file) = text.strip_prefix(DISPATCH) {
        let found = gauntlet_families::load_dispatch(Path::new(file)).map_err(|error| {
            CliError::bad_input(
                error.to_string(),
                "name a table that `gauntlet tune --output FILE` has written",
            )
        })?;
        candidate.dispatch = Some(found);
    } else if let Some(file) = solution_file(text) {
        candidate.command = Some(solution_worker(file, tensors)?);
        candidate.hosted = true;
        candidate.schedule = Parameters::new();
    } else if let Some(kernel) = named(text) {
        candidate.command = Some(worker(&kernel, tensors)?);
        candidate.hosted = true;
        candidate.device_only = matches!(kernel.host, Host::Nvrtc);
        candidate.schedule = own_parameters(&kernel)?;
    } else {
        candidate.schedule = table.complete(&schedule_text::read(text, base, table)?);
    }
    Ok(candidate)
}

/// The file of a solution that a text names.
fn solution_file(text: &str) -> Option<&Path> {
    let text = text.trim();
    text.ends_with(SOLUTION).then(|| Path::new(text))
}

/// The solution that a text names, if it names one.
///
/// # Errors
/// If it names a file that is no solution.
pub fn solution(text: &str) -> Result<Option<Solution>, CliError> {
    let read =
        |file| Solution::read(file).map_err(|error| CliError::bad_input(error.to_string(), error.remedy()));
    solution_file(text).map(read).transpose()
}

/// The command that serves a solution.
fn solution_worker(file: &Path, tensors: WorkerTensors) -> Result<Vec<PathBuf>, CliError> {
    Solution::read_for(file, tensors == WorkerTensors::Cuda)
        .map_err(|error| CliError::bad_input(error.to_string(), error.remedy()))?;
    let mut command = this_program()?.words(["worker", Host::Python.name()]);
    command.push(std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    command.extend(opening(tensors));
    Ok(command)
}

/// The command that serves a kernel in a file.
fn worker(kernel: &Named, tensors: WorkerTensors) -> Result<Vec<PathBuf>, CliError> {
    if kernel.host == Host::Nvrtc && tensors != WorkerTensors::Cuda {
        return Err(CliError::bad_input(
            format!(
                "`{}` is a CUDA kernel, and the cpu executor measures on the CPU",
                kernel.whole
            ),
            "leave out --executor cpu; without a GPU, `gauntlet check` compiles and interprets the kernel",
        ));
    }
    let mut command = this_program()?.words(["worker", kernel.host.name()]);
    match (kernel.host, kernel.file) {
        (Host::Python, Some(file)) => {
            let whole = inspect(file, kernel.function).map_err(of_kernel)?;
            command.push(whole.into());
        }
        (Host::Python, None) => command.push(kernel.whole.into()),
        (_, file) => command.push(existing(file.unwrap_or(Path::new("")), kernel)?),
    }
    if kernel.host == Host::Python {
        command.extend(opening(tensors));
    }
    Ok(command)
}

/// The arguments that tell a Python worker which libraries it imports at its start; none for numpy.
fn opening(tensors: WorkerTensors) -> Vec<PathBuf> {
    let name = match tensors {
        WorkerTensors::Cpu => return Vec::new(),
        WorkerTensors::Torch => "torch",
        WorkerTensors::Cuda => "cuda",
    };
    vec!["--tensors".into(), name.into()]
}

/// The kernel with the absolute path of its file, because a worker runs in its own folder.
fn existing(file: &Path, kernel: &Named) -> Result<PathBuf, CliError> {
    if kernel.function.is_empty() {
        return Err(CliError::bad_input(
            format!("`{}` names no function", file.display()),
            format!("write {}:FUNCTION", file.display()),
        ));
    }
    match std::path::absolute(file) {
        Ok(path) if path.is_file() => Ok(format!("{}:{}", path.display(), kernel.function).into()),
        _ => Err(CliError::bad_input(
            format!("there is no file {}", file.display()),
            "write a kernel as FILE:FUNCTION, such as softmax.cu:softmax_kernel",
        )),
    }
}

fn own_parameters(kernel: &Named) -> Result<Parameters, CliError> {
    if kernel.parameters.is_empty() {
        return Ok(Parameters::new());
    }
    if kernel.host != Host::Nvrtc {
        return Err(CliError::bad_input(
            format!(
                "`{}` takes no parameters, but `{}` is given",
                kernel.whole, kernel.parameters
            ),
            "leave them out, or write a function for each variant",
        ));
    }
    Parameters::parse(kernel.parameters).map_err(|message| {
        CliError::bad_input(
            format!("`{}` is not a set of parameters: {message}", kernel.parameters),
            "write them as 'softmax.cu:softmax_kernel: ROWS=4'",
        )
    })
}

fn of_kernel(error: KernelError) -> CliError {
    CliError::bad_input(error.to_string(), error.remedy())
}

/// A program with its arguments. Existing files among them are made absolute, because a worker runs in its own folder.
fn program(command: &str) -> Result<Vec<PathBuf>, CliError> {
    let parts = shlex::split(command)
        .filter(|parts| !parts.is_empty())
        .ok_or_else(|| {
            CliError::bad_input(
                format!("`{command}` is not a program with arguments"),
                "write it as for a shell, such as 'command: python3 worker.py'; quotes must be closed",
            )
        })?;
    let absolute = |part: String| match Path::new(&part).exists() {
        true => std::path::absolute(&part).unwrap_or_else(|_| part.into()),
        false => PathBuf::from(part),
    };
    Ok(parts.into_iter().map(absolute).collect())
}

/// The files that a text names, whether they exist or not; of a module, where it would be in this folder.
pub fn files(text: &str) -> Vec<PathBuf> {
    let text = text.trim();
    if let Some(command) = text.strip_prefix(COMMAND) {
        return shlex::split(command)
            .unwrap_or_default()
            .into_iter()
            .map(PathBuf::from)
            .collect();
    }
    let file = match (text.strip_prefix(DISPATCH), named(text)) {
        (Some(table), _) => PathBuf::from(table),
        (None, Some(Named { file: Some(file), .. })) => file.to_owned(),
        (None, Some(kernel)) => {
            let module = kernel.whole.split(':').next().unwrap_or_default();
            PathBuf::from(module.replace('.', "/") + ".py")
        }
        (None, None) => PathBuf::from(text),
    };
    vec![file]
}

/// Whether a text names a CUDA kernel, which runs on a GPU only.
pub fn is_cuda(text: &str) -> bool {
    named(text).is_some_and(|kernel| kernel.host == Host::Nvrtc)
}

/// Whether a text names a kernel of the user's: a function of a file or a module, a solution, or a worker.
pub fn is_users(text: &str) -> bool {
    named(text).is_some() || solution_file(text).is_some() || is_worker(text)
}

/// Whether a text names a worker.
pub fn is_worker(text: &str) -> bool {
    text.trim().starts_with(COMMAND)
}

/// What to say where no task is named for a kernel of the user's.
pub fn no_task(text: &str) -> CliError {
    CliError::bad_input(
        format!("{text}: no task says what this kernel computes"),
        "name a task with --task: a file of yours (docs/guide/tasks.md), or a suite that `gauntlet suites` lists",
    )
}

/// A kernel's text if it names a function of a Python file, as `softmax.py:fast` does.
pub fn python_function(text: &str) -> Option<&str> {
    let kernel = named(text).filter(|kernel| kernel.host == Host::Python && kernel.file.is_some())?;
    Some(kernel.whole)
}

/// Short names of two kernels for sentences about them: their functions if these differ, else their texts if those are
/// short and differ.
pub fn short_names(baseline: &str, candidate: &str) -> [String; 2] {
    let function = |text| named(text).map(|kernel| kernel.function.to_owned());
    if let (Some(one), Some(other)) = (function(baseline), function(candidate))
        && one != other
    {
        return [one, other];
    }
    let is_short = |text: &str| text.chars().count() <= 32;
    if baseline != candidate && is_short(baseline) && is_short(candidate) {
        return [baseline.to_owned(), candidate.to_owned()];
    }
    ["the baseline".to_owned(), "the candidate".to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_files_and_functions() {
        let parts = |text| {
            let kernel = named(text)?;
            let file = kernel.file.map(|file| file.display().to_string());
            Some((kernel.host.name(), file, kernel.function, kernel.parameters))
        };
        let file = |name: &str| Some(name.to_owned());
        assert_eq!(parts("a/b.py:fast"), Some(("python", file("a/b.py"), "fast", "")));
        assert_eq!(parts("b.py"), Some(("python", file("b.py"), "", "")));
        assert_eq!(parts("kernels.softmax:fast"), Some(("python", None, "fast", "")));
        assert_eq!(parts("lib.so:f"), Some(("library", file("lib.so"), "f", "")));
        assert_eq!(
            parts("s.cu:k: ROWS=4, T=2"),
            Some(("nvrtc", file("s.cu"), "k", "ROWS=4, T=2"))
        );
        for text in [
            "builtin",
            "stages=2",
            "tile=64x64x256, order=dynamic",
            "tuned.toml",
            "command: python3 worker.py",
            "dispatch:table.py",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn files_of_kernels_are_known() {
        let of = |text| -> Vec<String> {
            files(text)
                .iter()
                .map(|file| file.display().to_string())
                .collect()
        };
        for (text, named) in [
            ("a/b.py:fast", "a/b.py"),
            ("kernels.softmax:fast", "kernels/softmax.py"),
            ("s.cu:k: ROWS=4", "s.cu"),
            ("dispatch:table.toml", "table.toml"),
            ("tuned.toml", "tuned.toml"),
            ("solution.json", "solution.json"),
        ] {
            assert_eq!(of(text), [named]);
        }
        assert_eq!(
            of("command: python3 'my worker.py' --fast"),
            ["python3", "my worker.py", "--fast"]
        );
    }

    #[test]
    fn kernels_are_called_by_what_tells_them_apart() {
        assert_eq!(short_names("s.py:slow", "s.py:fast"), ["slow", "fast"]);
        assert_eq!(short_names("a.py:f", "b.py:f"), ["a.py:f", "b.py:f"]);
        assert_eq!(short_names("builtin", "s.py:f"), ["builtin", "s.py:f"]);
        assert_eq!(
            short_names("builtin", "builtin"),
            ["the baseline", "the candidate"]
        );
    }
}
