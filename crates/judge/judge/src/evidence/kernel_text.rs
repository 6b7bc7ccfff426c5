//! What a user writes for a kernel, read once: everything that follows carries the [`KernelForm`].
//!
//! | text | form |
//! |---|---|
//! | `builtin`, `baseline` | the built-in kernel as it is |
//! | `command: PROGRAM ARGUMENTS` | a worker |
//! | `dispatch:FILE` | built-in kernels by a table |
//! | `file.py:function`, `file.c:function`, `file.so:function`, `file.so.1:function`, `file.cu:kernel` | a function of a file |
//! | `file.py:function: NAME=VALUE …`, the same of `.c` and `.cu` | with values of its own parameters |
//! | `solution.json` | a solution of FlashInfer-Trace or SOL-ExecBench |
//! | `tuned.toml` | a file with parameters of the built-in kernel |
//! | `package.module:function` | a function of a Python module |
//! | `stages=2, order=dynamic` | the built-in kernel with other parameters |
//!
//! The first that fits counts. A file of another kind is no kernel, and neither is any other text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gauntlet_parameters::{Parameters, did_you_mean};
use thiserror::Error;

/// The prefix of a worker's program.
const COMMAND: &str = "command:";

/// The prefix of a dispatch table.
const DISPATCH: &str = "dispatch:";

/// Endings of files that people take for kernels, and what to name in their place.
const NO_KERNELS: [(&[&str], &str); 5] = [
    (
        &["rs", "f90", "zig", "o", "a"],
        "compile it to a shared library, and name a function of that as FILE.so:FUNCTION",
    ),
    (
        &["cuh", "h", "hpp", "hh", "inl"],
        "a header is compiled with the file that includes it: name that one, as FILE.cu:KERNEL",
    ),
    (
        &["ptx", "cubin", "fatbin"],
        "name its source as FILE.cu:KERNEL, or a shared library that launches it",
    ),
    (&["pyc", "pyx", "pyi"], "name its source as FILE.py:FUNCTION"),
    (
        &["ipynb"],
        "move the function to a file, and name it as FILE.py:FUNCTION",
    ),
];

/// Endings of sources in C and C++.
const C_ENDINGS: [&str; 4] = [".c", ".cc", ".cpp", ".cxx"];

/// How a kernel is written.
const FORMS: &str = "write a kernel as FILE.py:FUNCTION, FILE.cu:KERNEL, FILE.c:FUNCTION, FILE.so:FUNCTION, MODULE:FUNCTION, solution.json, \
                     'command: PROGRAM ARGUMENTS' or 'stages=2, order=dynamic'";

/// A kernel as a user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelText {
    written: String,
    form: KernelForm,
}

/// What a text for a kernel means.
#[derive(Debug, Clone, PartialEq)]
pub enum KernelForm {
    /// The built-in kernel as it is.
    BuiltIn,
    /// The built-in kernel with these parameters changed.
    Parameters(Parameters),
    /// The same, with the parameters in a TOML file.
    ParameterFile(PathBuf),
    /// Built-in kernels by a dispatch table.
    Dispatch(PathBuf),
    /// A worker: a program with its arguments.
    Command(Vec<String>),
    /// A solution, which is a whole kernel.
    Solution(PathBuf),
    /// A function of a Python module.
    Module {
        /// The module's name with dots.
        module: String,
        /// The function's name.
        function: String,
    },
    /// A function of a file.
    File(FileKernel),
}

/// A kernel that is a function of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileKernel {
    /// What kind of file it is.
    pub kind: FileKind,
    /// The file.
    pub file: PathBuf,
    /// The function's name; empty if a Python file is named alone.
    pub function: String,
    /// Values of the kernel's own parameters.
    pub parameters: Parameters,
}

/// The kinds of files with kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Python.
    Python,
    /// C or C++, compiled to a shared library.
    C,
    /// A shared library.
    Library,
    /// CUDA C++.
    Cuda,
}

impl FileKind {
    /// The kind of a file by its name.
    fn of(file: &str) -> Option<Self> {
        let is_version = |end: &str| end.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        if file.ends_with(".py") {
            Some(Self::Python)
        } else if file.ends_with(".cu") {
            Some(Self::Cuda)
        } else if C_ENDINGS.iter().any(|ending| file.ends_with(ending)) {
            Some(Self::C)
        } else if file.ends_with(".so")
            || file.ends_with(".dylib")
            || file.rsplit_once(".so.").is_some_and(|(_, end)| is_version(end))
        {
            Some(Self::Library)
        } else {
            None
        }
    }
}

/// Why a text is no kernel.
#[derive(Debug, Error)]
pub enum KernelTextError {
    /// It names a file or a module that is of no known kind.
    #[error("{file} is no kernel")]
    NoKernel {
        /// The file.
        file: String,
        /// What to write in its place.
        remedy: String,
    },
    /// It names a file and no function of it.
    #[error("`{file}` names no function")]
    NoFunction {
        /// The file.
        file: String,
    },
    /// It gives parameters to a kernel that takes none.
    #[error("`{kernel}` takes no parameters, but `{given}` is given")]
    NoParameters {
        /// The kernel.
        kernel: String,
        /// What it is given.
        given: String,
    },
    /// It is not a program with arguments.
    #[error("`{command}` is not a program with arguments")]
    NoProgram {
        /// What stands after `command:`.
        command: String,
    },
    /// It is neither of these nor a set of parameters.
    #[error("`{text}` is not a set of parameters: {message}")]
    NoWords {
        /// The text.
        text: String,
        /// What is wrong with it.
        message: String,
        /// How parameters are written.
        example: &'static str,
    },
}

impl KernelTextError {
    /// Whether the text can mean nothing but a kernel, so that its fault is one of a kernel.
    pub fn is_of_a_kernel(&self) -> bool {
        !matches!(self, Self::NoWords { .. })
    }

    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoKernel { remedy, .. } => remedy.clone(),
            Self::NoFunction { file } => format!("write {file}:FUNCTION"),
            Self::NoParameters { .. } => {
                "leave them out, or name a source, which can be compiled with them".to_owned()
            }
            Self::NoProgram { .. } => {
                "write it as for a shell, such as 'command: python3 worker.py'; quotes must be closed"
                    .to_owned()
            }
            Self::NoWords { example, .. } => (*example).to_owned(),
        }
    }
}

impl FromStr for KernelText {
    type Err = KernelTextError;

    fn from_str(text: &str) -> Result<Self, KernelTextError> {
        Ok(Self {
            written: text.to_owned(),
            form: form(text.trim())?,
        })
    }
}

/// As it was written.
impl fmt::Display for KernelText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

impl KernelText {
    /// What it means.
    pub fn form(&self) -> &KernelForm {
        &self.form
    }

    /// Whether it is a kernel of the user's, and not a built-in one.
    pub fn is_users(&self) -> bool {
        match self.form {
            KernelForm::BuiltIn
            | KernelForm::Parameters(_)
            | KernelForm::ParameterFile(_)
            | KernelForm::Dispatch(_) => false,
            KernelForm::Command(_)
            | KernelForm::Solution(_)
            | KernelForm::Module { .. }
            | KernelForm::File(_) => true,
        }
    }

    /// Whether it names a file, a module or a program, and not only parameters.
    pub fn names_a_place(&self) -> bool {
        !matches!(self.form, KernelForm::BuiltIn | KernelForm::Parameters(_))
    }

    /// The function of a file, if it is one of this kind.
    pub fn in_file(&self, kind: FileKind) -> Option<&FileKernel> {
        match &self.form {
            KernelForm::File(kernel) if kernel.kind == kind => Some(kernel),
            _ => None,
        }
    }

    /// The files that it names, whether they exist or not; of a module, where it would be in this folder.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.form {
            KernelForm::BuiltIn | KernelForm::Parameters(_) => Vec::new(),
            KernelForm::ParameterFile(file) | KernelForm::Dispatch(file) | KernelForm::Solution(file) => {
                vec![file.clone()]
            }
            KernelForm::Command(words) => words.iter().map(PathBuf::from).collect(),
            KernelForm::Module { module, .. } => vec![PathBuf::from(module.replace('.', "/") + ".py")],
            KernelForm::File(kernel) => vec![kernel.file.clone()],
        }
    }

    /// The same kernel with the files that it names relative to a folder, in place of the current one. Words of a command are
    /// files if there is such a file in the folder.
    pub fn in_folder(&self, folder: &Path) -> Self {
        let moved = |file: &PathBuf| folder.join(file);
        let form = match &self.form {
            KernelForm::ParameterFile(file) => KernelForm::ParameterFile(moved(file)),
            KernelForm::Dispatch(file) => KernelForm::Dispatch(moved(file)),
            KernelForm::Solution(file) => KernelForm::Solution(moved(file)),
            KernelForm::File(kernel) => KernelForm::File(FileKernel {
                file: moved(&kernel.file),
                ..kernel.clone()
            }),
            KernelForm::Command(words) => {
                let word = |word: &String| match folder.join(word) {
                    file if file.is_file() => file.to_string_lossy().into_owned(),
                    _ => word.clone(),
                };
                KernelForm::Command(words.iter().map(word).collect())
            }
            form @ (KernelForm::BuiltIn | KernelForm::Parameters(_) | KernelForm::Module { .. }) => {
                form.clone()
            }
        };
        Self {
            written: self.written.clone(),
            form,
        }
    }

    fn function(&self) -> Option<&str> {
        match &self.form {
            KernelForm::Module { function, .. } => Some(function),
            KernelForm::File(kernel) => Some(&kernel.function),
            _ => None,
        }
    }

    /// Short names of two kernels for sentences about them: their functions if these differ, else their texts if those are
    /// short and differ.
    pub fn short_names([baseline, candidate]: [&Self; 2]) -> [String; 2] {
        let short = |text: &Self| {
            let text = text.to_string();
            (text.chars().count() <= 32).then_some(text)
        };
        let functions = baseline.function().zip(candidate.function());
        let functions = functions.map(|(one, other)| (one.to_owned(), other.to_owned()));
        let differ = |(one, other): &(String, String)| one != other;
        functions
            .filter(differ)
            .or_else(|| short(baseline).zip(short(candidate)).filter(differ))
            .map_or_else(
                || ["the baseline".to_owned(), "the candidate".to_owned()],
                |(one, other)| [one, other],
            )
    }
}

fn form(text: &str) -> Result<KernelForm, KernelTextError> {
    if ["baseline", "builtin"].contains(&text) {
        return Ok(KernelForm::BuiltIn);
    }
    if let Some(command) = text.strip_prefix(COMMAND) {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        return words
            .map(KernelForm::Command)
            .ok_or_else(|| KernelTextError::NoProgram {
                command: command.to_owned(),
            });
    }
    if let Some(file) = text.strip_prefix(DISPATCH) {
        return Ok(KernelForm::Dispatch(file.trim().into()));
    }
    if let Some(kernel) = in_file(text)? {
        return Ok(KernelForm::File(kernel));
    }
    match Path::new(text).extension().and_then(|ending| ending.to_str()) {
        Some("json") => return Ok(KernelForm::Solution(text.into())),
        Some("toml") => return Ok(KernelForm::ParameterFile(text.into())),
        _ => {}
    }
    if let Some((module, function)) = module(text) {
        return Ok(KernelForm::Module {
            module: module.to_owned(),
            function: function.to_owned(),
        });
    }
    match text.split_once(':') {
        Some((file, _)) if !text.contains('=') => Err(no_kernel(file)),
        _ => words(text),
    }
}

/// The file that a text names before a colon or as a whole, and what stands after it.
fn cuts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let colons = text.match_indices(':').map(|(at, _)| at);
    let cut = |at: usize| (&text[..at], text[at..].trim_start_matches(':'));
    // Parameters have values that may look like files.
    let is_file = |(file, _): &(&str, &str)| !file.contains('=') || Path::new(file).is_file();
    colons.chain([text.len()]).map(cut).filter(is_file)
}

/// The function of a file that a text names, if it names one.
fn in_file(text: &str) -> Result<Option<FileKernel>, KernelTextError> {
    let known = cuts(text).find_map(|(file, rest)| Some((FileKind::of(file)?, file, rest)));
    let Some((kind, file, rest)) = known else {
        let stranger = cuts(text)
            .find(|(file, rest)| advice(file).is_some() || (!rest.is_empty() && Path::new(file).is_file()));
        return stranger.map_or(Ok(None), |(file, _)| Err(no_kernel(file)));
    };
    let (function, given) = function_and_parameters(rest);
    let is_name = !function.is_empty() && !function.contains(char::is_whitespace);
    if !is_name && (kind != FileKind::Python || !function.is_empty()) {
        return Err(KernelTextError::NoFunction {
            file: file.to_owned(),
        });
    }
    let parameters = match (kind, given) {
        (_, "") => Parameters::new(),
        (FileKind::Cuda | FileKind::C | FileKind::Python, given) if !function.is_empty() => {
            Parameters::parse(given).map_err(|message| KernelTextError::NoWords {
                text: given.to_owned(),
                message,
                example: "write them as 'softmax.cu:softmax_kernel: ROWS=4'",
            })?
        }
        _ => {
            return Err(KernelTextError::NoParameters {
                kernel: format!("{file}:{function}"),
                given: given.to_owned(),
            });
        }
    };
    Ok(Some(FileKernel {
        kind,
        file: file.into(),
        function: function.to_owned(),
        parameters,
    }))
}

/// A function's name, in which C++ writes `::`, and what stands after a single colon.
fn function_and_parameters(text: &str) -> (&str, &str) {
    let is_single = |at: &usize| !text[at + 1..].starts_with(':') && !text[..*at].ends_with(':');
    let colon = text.match_indices(':').map(|(at, _)| at).find(is_single);
    let (function, rest) = text.split_at(colon.unwrap_or(text.len()));
    (function.trim(), rest.trim_start_matches(':').trim())
}

/// A Python module and a function of it, with names as Python takes them.
fn module(text: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    text.split_once(':')
        .filter(|(module, function)| module.split('.').chain(function.split('.')).all(is_name))
}

/// What to name in place of a file that is no kernel, by its ending.
fn advice(file: &str) -> Option<&'static str> {
    let ending = Path::new(file).extension()?.to_str()?;
    let found = NO_KERNELS.iter().find(|(endings, _)| endings.contains(&ending));
    found.map(|(_, advice)| *advice)
}

fn no_kernel(file: &str) -> KernelTextError {
    let remedy = advice(file).unwrap_or(FORMS);
    KernelTextError::NoKernel {
        file: file.to_owned(),
        remedy: format!("{remedy}{}", file_meant(Path::new(file))),
    }
}

/// `; did you mean …?` with a file of kernels that lies where the named one would and has almost its name, if there is one;
/// else nothing.
pub fn file_meant(file: &Path) -> String {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| FileKind::of(name).is_some()).collect();
    names.sort_unstable();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    did_you_mean(&name, names.iter().map(String::as_str))
}

/// Parameters of the built-in kernel.
fn words(text: &str) -> Result<KernelForm, KernelTextError> {
    let read = match text.contains('=') {
        true => Parameters::parse(text),
        false => Err("it names no parameter with a value".to_owned()),
    };
    read.map(KernelForm::Parameters)
        .map_err(|message| KernelTextError::NoWords {
            text: text.to_owned(),
            message,
            example: "write them as 'stages=2, order=dynamic'; `gauntlet schedules` explains them",
        })
}

#[cfg(test)]
mod tests;
