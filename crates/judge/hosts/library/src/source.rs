//! A function's source, compiled to a library with the values of its parameters.

use std::path::{Path, PathBuf};
use std::process::Command;

use gauntlet_parameters::{Parameters, Value};

use crate::table::FunctionTable;

/// The variable that names the compiler of C, and that of C++; and what is called if it is not set.
const COMPILERS: [(&str, &str); 2] = [("CC", "cc"), ("CXX", "c++")];

/// Options where the table names none.
const OPTIONS: [&str; 2] = ["-O3", "-march=native"];

/// The file that a source is compiled to, in the worker's own folder.
const LIBRARY: &str = "compiled.so";

/// Whether a file is a source that has to be compiled.
pub fn is_source(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ["c", "cc", "cpp", "cxx"].contains(&ending))
}

/// Why a source is not compiled.
pub enum CompileError {
    /// There is no compiler, or the system ended it.
    NoCompiler(String),
    /// The compiler refuses the source.
    Refused(String),
}

/// Compiles a source to a library in the current folder, whose path is returned.
///
/// # Errors
/// If there is no compiler, or it refuses the source.
pub fn compile(
    source: &Path,
    table: &FunctionTable,
    parameters: &Parameters,
) -> Result<PathBuf, CompileError> {
    let is_c = source.extension().is_some_and(|ending| ending == "c");
    let (variable, usual) = COMPILERS[usize::from(!is_c)];
    let words = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let mut words = words.split_whitespace();
    let compiler = words.next().unwrap_or(usual);
    let missing = |reason: String| {
        CompileError::NoCompiler(format!(
            "{}: `{compiler}` does not start: {reason}; install a compiler, or name one by {variable}",
            source.display()
        ))
    };
    let library = std::env::current_dir()
        .map_err(|error| missing(error.to_string()))?
        .join(LIBRARY);
    let output = Command::new(compiler)
        .args(words)
        .args(["-shared", "-fPIC"])
        .args(options(table, parameters))
        .args(definitions(parameters))
        .arg("-o")
        .arg(&library)
        .arg(source)
        .arg("-lm")
        .output()
        .map_err(|error| missing(error.to_string()))?;
    if output.status.success() {
        return Ok(library);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code().is_none() {
        // Ended by a signal, as where memory is short.
        return Err(CompileError::NoCompiler(format!(
            "{}: `{compiler}` ended with {}: {}; see whether the machine has memory left",
            source.display(),
            output.status,
            said.trim_end()
        )));
    }
    Err(CompileError::Refused(format!(
        "{} does not compile with {parameters}:\n{}",
        source.display(),
        said.trim_end()
    )))
}

/// The options of the table with the values of the parameters that they name.
fn options(table: &FunctionTable, parameters: &Parameters) -> Vec<String> {
    let usual = || OPTIONS.map(str::to_owned).to_vec();
    let written = table.options.clone().unwrap_or_else(usual);
    let filled = |option: String| {
        parameters.iter().fold(option, |option, (name, value)| {
            option.replace(&format!("{{{name}}}"), &text(value))
        })
    };
    // An option that is empty for a value is none.
    written
        .into_iter()
        .map(filled)
        .filter(|option| !option.is_empty())
        .collect()
}

fn definitions(parameters: &Parameters) -> impl Iterator<Item = String> {
    parameters
        .iter()
        .map(|(name, value)| format!("-D{name}={}", text(value)))
}

/// A value as a macro's text.
fn text(value: &Value) -> String {
    match value {
        Value::Flag(flag) => u8::from(*flag).to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_macros_and_fill_the_options_that_name_them() {
        let table: FunctionTable = toml::from_str("options = [\"-O{LEVEL}\", \"-Wall\"]").unwrap();
        let parameters = Parameters::parse("LEVEL=2, KEEP=true, MODE=fast").unwrap();
        assert_eq!(options(&table, &parameters), ["-O2", "-Wall"]);
        let defined: Vec<String> = definitions(&parameters).collect();
        assert_eq!(defined, ["-DKEEP=1", "-DLEVEL=2", "-DMODE=fast"]);
        assert_eq!(options(&FunctionTable::default(), &parameters), OPTIONS);
        assert!(is_source("a/b.cpp".as_ref()) && !is_source("libb.so".as_ref()));
    }
}
