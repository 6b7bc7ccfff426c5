//! `gauntlet task`.

use std::fs;
use std::path::Path;

use crate::arguments::{Kernels, TaskArguments, TaskCommand};
use crate::error::CliError;
use crate::exit::Exit;
use crate::sink;

/// What stands for the task's name in the files.
const NAME: &str = "NAME";

/// A file's name and its text.
type File = (&'static str, &'static str);

macro_rules! template {
    ($($from:literal / $file:literal),*) => {
        &[$(($file, include_str!(concat!("../../templates/", $from, "/", $file)))),*]
    };
}

impl Kernels {
    fn files(self) -> &'static [File] {
        match self {
            Self::Numpy => template!(
                "numpy" / "task.py",
                "numpy" / "kernels.py",
                "numpy" / "test_task.py",
                "numpy" / "README.md"
            ),
            Self::Torch => template!(
                "torch" / "task.py",
                "torch" / "kernels.py",
                "numpy" / "test_task.py",
                "torch" / "README.md"
            ),
            Self::Cuda => template!(
                "numpy" / "task.py",
                "cuda" / "kernels.cu",
                "cuda" / "kernels.toml",
                "cuda" / "test_task.py",
                "cuda" / "README.md"
            ),
        }
    }
}

/// Writes what is asked for.
pub fn task(arguments: &TaskArguments) -> Result<Exit, CliError> {
    let TaskCommand::New { folder, kernels } = &arguments.command;
    new(folder, *kernels)
}

fn new(folder: &Path, kernels: Kernels) -> Result<Exit, CliError> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(name) = name else {
        return Err(CliError::bad_input(
            format!("{} ends with no name", folder.display()),
            "name a folder that does not exist yet, such as `silu`",
        ));
    };
    if folder.exists() {
        return Err(CliError::bad_input(
            format!("{} exists", folder.display()),
            "name a folder that does not exist yet: nothing is written over",
        ));
    }
    let write = || {
        fs::create_dir_all(folder)?;
        let mut files = kernels.files().iter();
        files.try_for_each(|(file, text)| fs::write(folder.join(file), text.replace(NAME, &name)))
    };
    write().map_err(|error| {
        CliError::of_place(
            &error,
            format!("{} cannot be written: {error}", folder.display()),
            "name a place that can be written",
        )
    })?;
    for (file, _) in kernels.files() {
        sink::line(format_args!("{}", folder.join(file).display()))?;
    }
    sink::line(format_args!(
        "`gauntlet audit {}` says whether it would notice a kernel that computes nothing.",
        folder.join("task.py").display()
    ))?;
    Ok(Exit::Done)
}
