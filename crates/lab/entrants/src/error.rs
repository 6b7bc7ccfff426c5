//! Why a name stands for nothing.

use gauntlet_judge::KernelTextError;
use gauntlet_python_task::TaskError;
use thiserror::Error;

use crate::source::FileError;

/// Why a name stands for no task or no kernel.
#[derive(Debug, Error)]
pub enum EntrantError {
    /// A named file is malformed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The name is wrong, or what it names is.
    #[error("{message}")]
    Wrong {
        /// What is wrong.
        message: String,
        /// What the user can do.
        remedy: String,
    },
    /// The machine fails, and not the name.
    #[error("{0}")]
    Machine(String),
}

impl EntrantError {
    pub(crate) fn wrong(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Wrong {
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

impl From<KernelTextError> for EntrantError {
    fn from(error: KernelTextError) -> Self {
        Self::wrong(error.to_string(), error.remedy())
    }
}

impl From<TaskError> for EntrantError {
    fn from(error: TaskError) -> Self {
        if error.is_of_the_machine {
            return Self::Machine(format!("{error}; {}", error.remedy));
        }
        Self::wrong(error.to_string(), error.remedy)
    }
}
