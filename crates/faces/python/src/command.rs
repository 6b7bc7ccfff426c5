//! The `gauntlet` command in the interpreter's process.

use std::ffi::OsString;

use gauntlet_worker::Program;
use pyo3::prelude::*;

use crate::error;

/// Runs the command and returns its exit code. `arguments` begin with the name of the program; `program` is the
/// interpreter's file and the arguments with which it runs the command again, for workers.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> PyResult<u8> {
    set_program(program)?;
    error::detached(py, || Ok(gauntlet_cli::main(arguments)))
}

/// Sets the words that start this program in a process of its own, for workers: the interpreter's file and its arguments.
pub fn set_program(words: Vec<OsString>) -> PyResult<()> {
    let mut words = words.into_iter();
    let file = words
        .next()
        .ok_or_else(|| error::value("program: it is empty; give the interpreter's file first"))?;
    Program {
        file: file.into(),
        arguments: words.collect(),
    }
    .set();
    Ok(())
}

/// A text in which every character can be seen, with its line breaks: control characters, marks of the direction of writing and
/// the like are written as escapes.
#[pyfunction]
pub fn visible(text: &str) -> String {
    gauntlet_cli::visible_lines(text).into_owned()
}

/// The version of the command, with its commit.
#[pyfunction]
pub fn version() -> String {
    gauntlet_cli::version()
}
