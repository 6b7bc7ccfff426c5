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

/// The error of a folder whose task.toml says this work.
fn refused_work(table: &str) -> String {
    let files = Files::new(&[
        ("one/task.py", GOOD),
        (
            "one/task.toml",
            &format!("[work]\n{table}\n[[benchmark]]\nn = 4\n"),
        ),
    ]);
    files.refused("one")
}

#[test]
fn work_that_is_no_number_is_refused_and_is_no_program() {
    if !has("numpy") {
        return;
    }
    let long = format!("flops = \"{}n\"", "-".repeat(50_000));
    let files = tempfile::tempdir().unwrap();
    let made = files.path().join("made");
    let program = format!(
        "flops = '().__class__.__base__.__subclasses__()[0](open(\"{}\", \"w\"))'",
        made.display()
    );
    for (table, phrase) in [
        (
            "flops = \"9**9**9\"",
            "task.toml: work.flops: `9**9**9`: the value is beyond 64 bits",
        ),
        (
            "flops = \"10**400 * n\"",
            "`10**400 * n`: the value is beyond 64 bits",
        ),
        (
            "flops = \"n > 3\"",
            "work.flops: `n > 3` is a condition and counts nothing",
        ),
        ("bytes = \"n - 5\"", "work.bytes: `n - 5` is -1"),
        ("bytes = \"m\"", "there is no size, parameter or tensor `m`"),
        ("flops = \"n / 0\"", "it divides by zero"),
        (
            "flops = \"2.5 * n\"",
            "task.toml:2: `2.5 * n`: `.` has no meaning here",
        ),
        ("flop = \"n\"", "unknown field `flop`"),
        (
            long.as_str(),
            "an expression has at most 1000 numbers, names and signs",
        ),
        (program.as_str(), "`.` has no meaning here"),
    ] {
        let said = refused_work(table);
        assert!(said.contains(phrase) && said.len() < 1000, "{table:.100}: {said}");
    }
    assert!(!made.exists());
    let files = Files::new(&[
        ("one/task.py", GOOD),
        (
            "one/task.toml",
            "work = { flops = \"2 * n ** 2 // 1\", bytes = \"bytes(x) + 16\" }\n[[benchmark]]\nn = 4\n",
        ),
    ]);
    let sizes = &files.open("one").unwrap().benchmark[0].sizes;
    assert_eq!((sizes.flops(), sizes.bytes()), (Some(32), 32));
}

#[test]
fn numbers_that_no_record_holds_are_named() {
    if !has("numpy") {
        return;
    }
    let work = |value: &str| refused("cases =", &format!("def work(n): return {value}\ncases ="));
    for (value, phrase) in [
        ("{'flops': 10**400}", "`work` says that flops is 1000"),
        ("{'flops': 10**5000}", "`work` says that flops is "),
        ("{'flops': float('nan')}", "`work` says that flops is nan"),
        ("{'bytes': -1}", "`work` says that bytes is -1"),
        ("{'flops': n > 3}", "`work` says that flops is True"),
        ("{'flop': 1}", "`work` returned {'flop': 1}"),
        ("3", "`work` returned 3"),
    ] {
        let said = work(value);
        assert!(
            said.contains(phrase) && said.contains("task_one.py:2"),
            "{value}: {said}"
        );
    }
    for (case, phrase) in [
        ("{\"n\": 4, \"m\": 10**400}", "a case has 1000"),
        ("{\"n\": 4, \"m\": 10**5000}", "a case has "),
        ("{\"n\": 4, \"m\": float(\"nan\")}", "a case has nan"),
        ("{\"n\": 4, \"m\": [1, np.int64(2)]}", "a int64"),
        ("{\"n\": 4, \"m\": {1, 2}}", "a set"),
    ] {
        let text = GOOD
            .replace("(n, seed)", "(n, m, seed)")
            .replace("{\"n\": 4}", case);
        let said = Files::new(&[("task_one.py", &text)]).refused("task_one.py");
        assert!(
            said.contains(phrase)
                && said.contains("which no record can hold")
                && said.contains("task_one.py:2"),
            "{case}: {said}"
        );
    }
}
