//! The workflow of examples/ci judges a pull request by the task of the branch that it changes.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Place, Ran, has_numpy, interpreter, repository};

fn workflow() -> Value {
    let text = std::fs::read_to_string(repository("examples/ci/kernel-regressions.yml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn steps(workflow: &Value) -> &[Value] {
    workflow["jobs"]["compare"]["steps"].as_array().unwrap()
}

/// The command of the step that compares.
fn script(workflow: &Value) -> &str {
    let mut scripts = steps(workflow).iter().filter_map(|step| step["run"].as_str());
    scripts
        .find(|script| script.contains("gauntlet compare"))
        .unwrap()
}

#[test]
fn the_task_and_the_baseline_are_those_of_the_base() {
    let workflow = workflow();
    let mut checkouts = steps(&workflow).iter().map(|step| &step["with"]);
    let base = checkouts.find(|with| with["ref"].is_string()).unwrap();
    assert_eq!(base["ref"], "${{ github.base_ref }}");
    let folder = base["path"].as_str().unwrap();
    let script = script(&workflow);
    assert!(
        script.contains(&format!(r#"--task "{folder}/$TASK""#)),
        "{script}"
    );
    assert!(
        script.contains(&format!(r#"compare "{folder}/$KERNEL" "#)),
        "{script}"
    );
    let readme = std::fs::read_to_string(repository("examples/ci/README.md")).unwrap();
    assert!(readme.contains("--task baseline/task.py"), "{readme}");
}

const TASK: &str = r#"
import numpy as np
cases = [{"rows": 16, "cols": 64}]
def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).standard_normal((rows, cols), dtype=np.float32)}
def reference(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}
"#;

const KERNEL: &str = r#"
import numpy as np
def fast(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"#;

/// Runs the step on two checkouts, as a runner does it.
fn run(place: &Place) -> Ran {
    let workflow = workflow();
    let binary = Path::new(env!("CARGO_BIN_EXE_gauntlet")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let values = workflow["env"].as_object().unwrap();
    let values = values.iter().map(|(name, value)| (name, value.as_str().unwrap()));
    let mut command = Command::new("bash");
    command
        .args(["-e", "-c", script(&workflow)])
        .current_dir(place.folder.path())
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("TMPDIR", place.folder.path())
        .env("GAUNTLET_LOCKS", place.folder.path())
        .env("GAUNTLET_PYTHON", interpreter().unwrap())
        .envs(values);
    Ran::of(command.output().unwrap())
}

#[test]
fn a_pull_request_that_loosens_its_own_tolerance_fails() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    place.write("baseline/kernels/task.py", TASK);
    place.write("baseline/kernels/softmax.py", KERNEL);
    let anything = "tolerance = \"check\"\ndef check(inputs, output, expected): return None\n";
    place.write("candidate/kernels/task.py", &format!("{TASK}{anything}"));
    let constant = "import numpy as np\ndef fast(x): return np.full_like(x, 1 / x.shape[1])\n";
    place.write("candidate/kernels/softmax.py", constant);
    let ran = run(&place).expect(1);
    assert!(ran.out.contains("incorrect"), "{} {}", ran.out, ran.err);
    let report = std::fs::read(place.path("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(
        (&report["verdict"], &report["side"]),
        (&"incorrect".into(), &"candidate".into())
    );
}
