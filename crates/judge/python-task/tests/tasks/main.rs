//! Tasks written by these tests, opened and computed with by a real Python.

#![expect(clippy::unwrap_used, reason = "tests")]

mod audit;
mod bad;
mod candidates;
mod deceptions;
mod definition;
mod definition_numpy;
mod faults_of_tasks;
mod gpu_mode;
mod kernel_bench;
mod numpy;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gauntlet_python_task::{Options, TaskError, open};
use gauntlet_task::{Coverage, InputKind, InputTensors, Inputs, Limits, Output, Rules, Sizes, Suite};
use tempfile::TempDir;

/// The interpreter that runs the tasks.
fn python() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let active = variable("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python").into());
    let named = variable("GAUNTLET_PYTHON").or(active);
    named.unwrap_or_else(|| "python3".into()).into()
}

/// Whether Python has a module. Where numpy is required, such as in continuous integration, it must be there.
fn has(module: &str) -> bool {
    let python = python();
    let asked = Command::new(&python)
        .args(["-c", &format!("import {module}")])
        .output();
    let found = asked.is_ok_and(|asked| asked.status.success());
    if !found {
        let missing = format!("a test was left out: {} has no {module}", python.display());
        assert!(
            module != "numpy"
                || std::env::var_os("GAUNTLET_REQUIRE_NUMPY").is_none_or(|value| value.is_empty()),
            "{missing}"
        );
        eprintln!("{missing}");
    }
    found
}

/// Files of a task in a folder of their own.
struct Files(TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn open(&self, name: &str) -> Result<Suite, TaskError> {
        let options = Options {
            timeout: Some(Duration::from_secs(100)),
            ..Options::default()
        };
        open(&self.path(name), &options)
    }

    /// The error of opening, with the folder left out.
    fn refused(&self, name: &str) -> String {
        self.said(&self.open(name).unwrap_err())
    }

    fn said(&self, error: &TaskError) -> String {
        let folder = self.0.path().canonicalize().unwrap();
        let said = format!("{error}\n  help: {}", error.remedy);
        let said = said
            .replace(&format!("{}/", folder.display()), "")
            .replace(&folder.display().to_string(), "FOLDER");
        match said.split_once("for the Python at ") {
            Some((before, after)) => {
                let (_, after) = after.split_once(", or").unwrap();
                format!("{before}for the Python at PYTHON, or{after}")
            }
            None => said,
        }
    }
}

/// Operands of a case, and its expected result as an output.
fn computed(sizes: &Sizes, seed: u64) -> (Box<dyn Inputs>, Output) {
    let inputs = sizes.generate(InputKind::Competition, seed).unwrap();
    let expected = sizes.expected(&*inputs, Coverage::Full).unwrap();
    let mut output = Output::poisoned(&sizes.outputs());
    for (part, index, value) in expected.values() {
        output.0[part].set(index, value);
    }
    (inputs, output)
}

/// The limits of each output.
fn limits(sizes: &Sizes, inputs: &dyn Inputs) -> Vec<Limits> {
    let expected = sizes.expected(inputs, Coverage::Full).unwrap();
    expected
        .parts
        .into_iter()
        .filter_map(|part| part.limits)
        .collect()
}

/// What the rules and the task's own check say of a result.
fn fault(sizes: &Sizes, inputs: &dyn Inputs, output: &Output) -> Option<String> {
    let rules = sizes.rules(&Rules::default());
    let expected = sizes.expected(inputs, Coverage::Full).unwrap();
    sizes.examine(&rules, None, (inputs, output), &expected).1
}

/// An operand's values.
fn values(inputs: &dyn Inputs, name: &str) -> Vec<f64> {
    let tensors: &InputTensors = inputs.downcast().unwrap();
    let tensor = tensors.0.iter().find(|tensor| tensor.spec.name == name).unwrap();
    (0..tensor.len()).map(|index| tensor.get(index)).collect()
}
