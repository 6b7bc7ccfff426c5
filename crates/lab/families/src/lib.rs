//! The table of the built-in tasks. To add one, add a line to [`TASKS`].
//!
//! ```
//! let suite = gauntlet_families::suite("group-gemm")?;
//! assert_eq!(suite.benchmark[0].sizes.task().name(), "grouped-gemm");
//! # Ok::<(), gauntlet_task::SuiteError>(())
//! ```

pub mod operations;

use std::path::Path;

use gauntlet_host_cpu::CpuFamilies;
use gauntlet_parameters::{Parameters, Table};
use gauntlet_task::{DispatchError, DispatchTable, Sizes, Suite, SuiteError, Task};

/// The built-in tasks.
pub static TASKS: &[&dyn Task] = &[
    gauntlet_gemm::GEMM,
    gauntlet_attention::ATTENTION,
    gauntlet_rms_norm::RMS_NORM,
];

/// The built-in CPU kernels.
pub fn cpu_families() -> CpuFamilies {
    CpuFamilies::built_in().with(gauntlet_rms_norm::RmsNormKernels)
}

/// The parameters of all tasks, without duplicates.
pub fn parameters() -> Table {
    let empty = Table::new("the built-in kernels", Vec::new());
    TASKS.iter().fold(empty, |all, task| all.with(task.parameters()))
}

/// A built-in suite of a task.
///
/// # Errors
/// When none has that name.
pub fn suite(name: &str) -> Result<Suite, SuiteError> {
    Suite::builtin(name, TASKS)
}

/// Names of the built-in suites.
pub fn suite_names() -> Vec<&'static str> {
    Suite::builtin_names(TASKS)
}

/// Reads a suite from a TOML file.
///
/// # Errors
/// When the file cannot be read, is not a suite, or has a case that its task refuses.
pub fn load_suite(path: &Path) -> Result<Suite, SuiteError> {
    Suite::load(path, TASKS)
}

/// Reads a dispatch table from a file, and completes the parameters of its entries: tables leave out defaults, and
/// tables of earlier versions lack later parameters.
///
/// # Errors
/// When the file cannot be read, is not a table, has another version, or has an entry with sizes or parameters that its
/// task refuses.
pub fn load_dispatch(path: &Path) -> Result<DispatchTable, DispatchError> {
    let mut table = DispatchTable::load(path)?;
    for entry in &mut table.entries {
        let malformed = |message: String| DispatchError::Malformed {
            file: path.to_owned(),
            message: format!("the entry `{}`: {message}", entry.case),
        };
        let sizes = open(&entry.problem).map_err(malformed)?;
        let parameters = sizes.task().parameters();
        let completed = |given: &Parameters| {
            let checked = parameters.check(given).map(|()| parameters.complete(given));
            checked.map_err(|error| malformed(error.message))
        };
        let schedule = completed(&entry.schedule)?;
        if let Some(choice) = &mut entry.model_choice {
            choice.schedule = completed(&choice.schedule)?;
        }
        entry.schedule = schedule;
    }
    Ok(table)
}

/// Sizes in the form of records and the worker protocol, of the task named under `family`.
///
/// # Errors
/// When no task has that name, or the task refuses the sizes.
pub fn open(record: &serde_json::Value) -> Result<Sizes, String> {
    let name = record
        .get("family")
        .and_then(|name| name.as_str())
        .unwrap_or_default();
    let task = TASKS.iter().find(|task| task.name() == name).ok_or_else(|| {
        let known: Vec<_> = TASKS.iter().map(|task| format!("`{}`", task.name())).collect();
        format!("no task is called `{name}`; there are {}", known.join(", "))
    })?;
    task.open(record)
}

#[cfg(test)]
mod tests {
    use gauntlet_parameters::Value;

    use super::*;

    const TABLE: &str = r#"
        version = 1
        device = "host"
        executor = "cpu"
        gauntlet = "0.1.0"
        made = "2026-11-21T03:00:00Z"

        [[entry]]
        case = "case-1"
        problem = { family = "grouped-gemm", groups = [{ m = 80, n = 4096, k = 7168 }] }
        schedule = { stages = 2 }
        evidence = "measured"
        model-choice = { schedule = { stages = 3 } }
    "#;

    fn load(text: &str) -> Result<DispatchTable, DispatchError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("table.toml");
        std::fs::write(&file, text).unwrap();
        load_dispatch(&file)
    }

    #[test]
    fn parameters_that_a_table_leaves_out_are_the_defaults() {
        let table = load(TABLE).unwrap();
        let entry = &table.entries[0];
        let choice = &entry.model_choice.as_ref().unwrap().schedule;
        assert_eq!(entry.schedule.get("stages"), Some(&Value::Number(2)));
        assert_eq!(choice.get("stages"), Some(&Value::Number(3)));
        for schedule in [&entry.schedule, choice] {
            assert_eq!(schedule.get("epilogue"), Some(&Value::from("direct")));
        }
    }

    #[test]
    fn an_entry_that_its_task_refuses_is_named_with_what_is_wrong() {
        for (before, after, said) in [
            ("{ stages = 2", "{ stagse = 2", "did you mean `stages`?"),
            ("{ stages = 3", "{ stages = 0", "it takes a whole number from 1"),
            ("\"grouped-gemm\"", "\"softmax\"", "no task is called `softmax`"),
            ("m = 80", "m = 80, x = 1", "unknown field `x`"),
        ] {
            let error = load(&TABLE.replace(before, after)).unwrap_err().to_string();
            assert!(
                error.contains("the entry `case-1`") && error.contains(said),
                "{error}"
            );
            assert!(error.contains("table.toml"), "{error}");
        }
    }
}
