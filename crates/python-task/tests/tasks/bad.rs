//! Errors of a user's task: a message with the place and the remedy.

use std::time::Duration;

use gauntlet_python_task::{Options, open};

use super::{Files, has};

const GOOD: &str = "import numpy as np
cases = [{\"n\": 4}]
def generate(n, seed):
    return {\"x\": np.ones(n, np.float32)}
def reference(x):
    return x * 2
";

/// The error of a task in which `before` is replaced.
fn refused(before: &str, after: &str) -> String {
    assert!(GOOD.contains(before), "{before}");
    let text = GOOD.replace(before, after);
    Files::new(&[("task_one.py", &text)]).refused("task_one.py")
}

#[test]
fn an_error_of_the_task_is_told_with_its_place_and_a_remedy() {
    if !has("numpy") {
        return;
    }
    let told = [
        (
            "an exception in the reference",
            "x * 2",
            "np.linalg.norm(x, axis=3)",
        ),
        ("an exception in the generator", "np.ones(n, ", "np.ones(-n, "),
        ("no reference", "def reference", "def referense"),
        ("no generator", "def generate", "def make"),
        ("no cases", "cases =", "sizes ="),
        ("cases of another form", "[{\"n\": 4}]", "[4]"),
        ("another arity of the generator", "(n, seed)", "(rows, seed)"),
        ("an input that is not there", "reference(x)", "reference(x, y)"),
        ("a syntax error", "def reference(x):", "def reference(x:"),
        (
            "a module that is not there",
            "import numpy as np",
            "import numpy as np, torch_of_another_name",
        ),
        (
            "a generator that returns no dict",
            "{\"x\": np.ones(n, np.float32)}",
            "np.ones(n)",
        ),
        ("an input of another type", "np.ones(n, np.float32)", "object()"),
        ("no array among the inputs", "np.ones(n, np.float32)", "1"),
        ("a reference that returns nothing", "return x * 2", "x * 2"),
        ("a reference that returns a number", "return x * 2", "return 2"),
        ("an element type that no file holds", "x * 2", "x.astype(object)"),
        ("a tolerance that is none", "cases =", "tolerance = 1e-3\ncases ="),
        (
            "an unknown limit",
            "cases =",
            "tolerance = {\"relative\": 1e-3}\ncases =",
        ),
        (
            "a tolerance of no output",
            "cases =",
            "tolerance = {\"y\": {\"rtol\": 1e-3}}\ncases =",
        ),
        (
            "a constant that is no input",
            "cases =",
            "constant = [\"weight\"]\ncases =",
        ),
        (
            "a check that refuses the reference",
            "cases =",
            "def check(inputs, output, expected): return 'no'\ncases =",
        ),
        (
            "shapes that change with the seed",
            "np.ones(n,",
            "np.ones(n + seed % 2,",
        ),
        ("the process ended", "x * 2", "__import__('os')._exit(3)"),
    ];
    let mut all = String::new();
    for (what, before, after) in told {
        let said = match what {
            "shapes that change with the seed" => changed(before, after),
            _ => refused(before, after),
        };
        all += &format!("{what}:\n  {said}\n\n");
    }
    insta::assert_snapshot!(all);
}

/// The error of operands from another seed than the first.
fn changed(before: &str, after: &str) -> String {
    let files = Files::new(&[("task_one.py", &GOOD.replace(before, after))]);
    let suite = files.open("task_one.py").unwrap();
    let sizes = &suite.benchmark[0].sizes;
    let drawn = sizes.generate(gauntlet_task::InputKind::Competition, 2);
    let folder = files.path("").canonicalize().unwrap();
    drawn.unwrap_err().replace(&format!("{}/", folder.display()), "")
}

#[test]
fn a_reference_that_hangs_is_ended() {
    if !has("numpy") {
        return;
    }
    let text = GOOD.replace("cases =", "while True: pass\ncases =");
    let files = Files::new(&[("task_one.py", &text)]);
    let options = Options {
        timeout: Some(Duration::from_secs(2)),
        ..Options::default()
    };
    let error = open(&files.path("task_one.py"), &options).unwrap_err();
    insta::assert_snapshot!(files.said(&error));
}

#[test]
fn a_path_without_a_task_is_refused() {
    let files = Files::new(&[
        ("empty/readme", ""),
        ("bad/task.toml", "nane = 1"),
        ("bad/task.py", ""),
    ]);
    let said = ["empty", "nowhere.py", "bad"].map(|name| files.refused(name));
    insta::assert_snapshot!(said.join("\n\n").replace(&*files.path("").to_string_lossy(), ""));
}
