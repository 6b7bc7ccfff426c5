//! Files of a candidate beside a task: none of them runs in the process that computes the expected results.

use std::process::Command;

use gauntlet_python_task::{Options, open};
use gauntlet_task::InputTensors;
use tempfile::TempDir;

use crate::{Files, computed, has};

const TASK: &str = "
import numpy as np
cases = [{'rows': 3}]
def generate(rows, seed):
    return {'x': np.random.default_rng(seed).standard_normal(rows)}
def reference(x):
    return x + 1
";

/// A file that runs nowhere.
const STRANGER: &str = "raise SystemError('a file of the candidate runs')";

/// Writes a compiled file for a source, which Python uses without looking at the source.
fn plant(files: &Files, source: &str, text: &str) {
    let program = "
import importlib._bootstrap_external as external, importlib.util, os, sys
source, text = sys.argv[1:]
path = importlib.util.cache_from_source(source)
os.makedirs(os.path.dirname(path), exist_ok=True)
open(path, 'wb').write(external._code_to_hash_pyc(compile(text, source, 'exec'), bytes(8), False))
";
    let path = files.path(source).canonicalize().unwrap();
    let planted = Command::new(crate::python())
        .args(["-c", program])
        .arg(&path)
        .arg(text)
        .status();
    assert!(planted.unwrap().success());
}

/// What the task in `task.py` adds to its input.
fn added(files: &Files) -> f64 {
    let sizes = &files.open("task.py").unwrap().benchmark[0].sizes;
    let (inputs, output) = computed(sizes, 7);
    let x = &inputs.downcast::<InputTensors>().unwrap().0[0];
    (output.0[0].get(1) - x.get(1)).round()
}

#[test]
fn compiled_files_do_not_stand_in_for_sources() {
    if !has("numpy") {
        return;
    }
    let files = Files::new(&[
        (
            "task.py",
            &TASK.replace("x + 1", "add(x)").replace(
                "import numpy as np",
                "import numpy as np\nfrom part.add import add",
            ),
        ),
        ("part/__init__.py", ""),
        ("part/add.py", "def add(x):\n    return x + 1\n"),
    ]);
    plant(&files, "part/add.py", "def add(x):\n    return x + 2\n");
    assert_eq!(added(&files), 1.0);
    plant(&files, "part/__init__.py", STRANGER);
    plant(&files, "task.py", STRANGER);
    assert_eq!(added(&files), 1.0);
}

/// A folder with a library that imports a module if there is one, and the lines that let a task import it.
fn library() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let text = "try:\n    import accelerator\nexcept ImportError:\n    pass\n";
    std::fs::write(folder.path().join("library.py"), text).unwrap();
    let path = format!(
        "import sys\nsys.path.append({:?})\n",
        folder.path().display().to_string()
    );
    (folder, path)
}

#[test]
fn a_library_finds_no_optional_module_beside_the_task() {
    if !has("numpy") {
        return;
    }
    let (_folder, path) = library();
    let task = format!("{path}import library\n{TASK}");
    assert_eq!(
        added(&Files::new(&[("task.py", &task), ("accelerator.py", STRANGER)])),
        1.0
    );
}

/// Nobody can tell which one the task means, and the one beside it may be a kernel's file.
#[test]
fn a_file_beside_the_task_with_the_name_of_another_module_is_refused() {
    if !has("numpy") {
        return;
    }
    let task = format!("import colorsys\n{TASK}");
    let said = Files::new(&[("task.py", &task), ("colorsys.py", STRANGER)]).refused("task.py");
    let start = "colorsys.py: `colorsys` is the name of this file and of another module (";
    assert!(said.starts_with(start), "{said}");
    // A folder of that name is no module beside the other.
    assert_eq!(
        added(&Files::new(&[("task.py", &task), ("colorsys/notes.txt", "")])),
        1.0
    );
}

#[test]
fn a_baseline_in_place_of_the_reference_serves_no_library() {
    if !has("numpy") {
        return;
    }
    let (_folder, path) = library();
    let without = path + &TASK.replace("def reference", "def other");
    let files = Files::new(&[
        ("task.py", &without),
        (
            "kernels/slow.py",
            "def slow(x):\n    import library\n    return x + 1\n",
        ),
        ("kernels/accelerator.py", STRANGER),
    ]);
    let options = Options {
        baseline: Some((files.path("kernels/slow.py"), "slow".to_owned())),
        ..Options::default()
    };
    open(&files.path("task.py"), &options).unwrap();
}

#[test]
fn it_is_told_where_the_limits_come_from() {
    if !has("numpy") {
        return;
    }
    let last = |files: &[(&str, &str)]| files_notes(&Files::new(files));
    let stated = format!("tolerance = {{'rtol': 1e-5}}\n{TASK}");
    let table = "[tolerance]\nrtol = 10.0\n";
    assert!(
        last(&[("task.py", TASK)]).ends_with(
            "limits of results: those of the outputs' types, since the task states no `tolerance`"
        )
    );
    assert!(
        last(&[("task.py", &stated)]).ends_with("limits of results: `tolerance` of task.py: {'rtol': 1e-05}")
    );
    let told = last(&[("task.py", &stated), ("task.toml", table)]);
    assert!(
        told.contains("task.toml stands in place of task.py for `tolerance`"),
        "{told}"
    );
    assert!(
        told.ends_with("limits of results: `tolerance` of task.toml: {'rtol': 10.0}"),
        "{told}"
    );
}

fn files_notes(files: &Files) -> String {
    files.open("task.py").unwrap().notes.join("; ")
}

/// What runs in the process that computes the expected results.
const CURIOUS: &str = "
import os, socket
def tried(what):
    try:
        what()
        return 0
    except OSError:
        return 1
def reference(x):
    here = os.path.dirname(os.path.abspath(__file__))
    refused = [
        tried(lambda: open(os.path.join(here, 'ESCAPED'), 'w')),
        tried(lambda: socket.socket(socket.AF_INET)),
    ]
    open(os.path.join(os.environ['TMPDIR'], 'own'), 'w').write('x')
    return x + refused[0] + 2 * refused[1] + 4 * ('CARGO_MANIFEST_DIR' not in os.environ)
";

#[test]
fn the_process_that_computes_expected_results_is_confined() {
    let active = |what: &str| {
        let safeguards = gauntlet_worker::safeguards();
        let found = safeguards.iter().find(|found| found.what == what).unwrap();
        matches!(found.standing, gauntlet_worker::Standing::Active(_))
    };
    if !has("numpy") || !active("writes only in its own folder") || !active("no network") {
        return;
    }
    let task = TASK.split("def reference").next().unwrap().to_owned() + CURIOUS;
    let files = Files::new(&[("task.py", &task)]);
    assert_eq!(added(&files), 7.0);
    assert!(!files.path("ESCAPED").exists());
}
