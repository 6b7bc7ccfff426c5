//! The program that runs, and how it starts itself again: workers are processes of the same program.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::WorkerCommand;

static THIS: OnceLock<Program> = OnceLock::new();

/// A program with the arguments that precede those of its commands, such as an interpreter and its script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The executable file.
    pub file: PathBuf,
    /// The arguments that always come first.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// An executable file that needs no arguments of its own.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            arguments: Vec::new(),
        }
    }

    /// The program of this process: the one that was [set](Self::set), else its executable file.
    ///
    /// # Errors
    /// If the operating system does not say where the executable file is.
    pub fn this() -> io::Result<Self> {
        match THIS.get() {
            Some(program) => Ok(program.clone()),
            None => std::env::current_exe().map(Self::new),
        }
    }

    /// Makes it the program of this process, whose executable file alone is not the whole program. The first call
    /// counts.
    pub fn set(self) {
        let _ = THIS.set(self);
    }

    /// All arguments of a command.
    pub fn with<T: Into<OsString>>(&self, arguments: impl IntoIterator<Item = T>) -> Vec<OsString> {
        let own = self.arguments.iter().cloned();
        own.chain(arguments.into_iter().map(Into::into)).collect()
    }

    /// The file and all arguments of a command.
    pub fn words<T: Into<OsString>>(&self, arguments: impl IntoIterator<Item = T>) -> Vec<PathBuf> {
        let arguments = self.with(arguments).into_iter().map(PathBuf::from);
        std::iter::once(self.file.clone()).chain(arguments).collect()
    }

    /// The program as a worker, with the arguments of its command.
    pub fn worker<T: Into<OsString>>(&self, arguments: impl IntoIterator<Item = T>) -> WorkerCommand {
        WorkerCommand::new(self.file.clone(), self.with(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gets_the_arguments_of_its_interpreter_first() {
        let program = Program {
            file: "/usr/bin/python3".into(),
            arguments: vec!["-m".into(), "gauntlet".into()],
        };
        let worker = program.worker(["worker", "cpu"]);
        assert_eq!(worker.program, PathBuf::from("/usr/bin/python3"));
        assert_eq!(worker.arguments, ["-m", "gauntlet", "worker", "cpu"]);
        assert_eq!(Program::new("/bin/gauntlet").with(["doctor"]), ["doctor"]);
    }

    #[test]
    fn the_program_is_the_executable_file_unless_another_is_set() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(Program::this().unwrap(), Program::new(own));
    }
}
