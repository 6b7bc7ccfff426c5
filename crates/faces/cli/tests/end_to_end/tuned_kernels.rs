//! The search over parameters of users' kernels, and the search over recorded times.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{Place, has_numpy, names};

const TASK: &str = "import numpy as np
cases = [{\"count\": 20000}]
def generate(count, seed):
    return {\"x\": np.random.default_rng(seed).standard_normal(count, dtype=np.float32)}
def reference(x):
    return {\"y\": x * 2}
";

/// Slower by the loops, of which one is the planted best; wrong in one mode.
const IN_PYTHON: &str = "import numpy as np
def twice(x, LOOPS=400, MODE='right'):
    for _ in range(LOOPS):
        y = x * (2 if MODE == 'right' else 3)
    return y
def by_triton(x, BLOCK=1024, num_warps=4):
    import triton
";

const IN_C: &str = "#include <stdint.h>
#if LOOPS == 3
#error three loops are not supported
#endif
void twice(const float *x, float *y, int64_t count) {
    for (volatile int loop = 0; loop < LOOPS; loop++)
        for (int64_t i = 0; i < count; i++)
            ((volatile float *)y)[i] = x[i] * (RIGHT ? 2 : 3);
}
";

const TABLE: &str = "[twice]
restrictions = [\"LOOPS != 16\"]
[twice.parameters]
LOOPS = [400, 16, 4, 1]
MODE = [\"right\", \"wrong\"]
[by_triton.parameters]
BLOCK = [1024, 512]
num_warps = { values = [4, 8], meaning = \"warps of a program\" }
";

/// A folder with the task, if there is a Python with numpy.
fn place() -> Option<Place> {
    if !has_numpy() {
        return None;
    }
    let place = Place::new();
    place.write("task.py", TASK);
    place.write("kernels.py", IN_PYTHON);
    place.write("kernels.toml", TABLE);
    Some(place)
}

/// A folder with the task and a kernel in C, if there is a compiler too.
fn place_of_c(table: &str) -> Option<Place> {
    let place = place()?;
    place.write("twice.c", IN_C);
    place.write("twice.toml", table);
    let has_compiler = Command::new("cc").arg("--version").output().is_ok();
    assert!(has_compiler || std::env::var_os("GAUNTLET_REQUIRE_CC").is_none());
    has_compiler.then_some(place)
}

fn tuned(place: &Place, kernel: &str) -> Value {
    let arguments = [
        "tune", "--kernel", kernel, "--suite", "task.py", "--quick", "--budget", "1h", "--seed", "5",
        "--json", "-",
    ];
    let result: Value = serde_json::from_str(&place.run(&arguments).expect(0).out).unwrap();
    result["cases"][0].clone()
}

#[test]
fn the_planted_best_of_a_function_in_python_is_found() {
    let Some(place) = place() else { return };
    let case = tuned(&place, "kernels.py:twice");
    assert_eq!(
        case["winner"]["schedule"],
        json!({"LOOPS": 1, "MODE": "right"}),
        "{case}"
    );
    let search = &case["search"];
    // Of 8 points the restriction forbids two; one is the baseline, and three compute something else.
    assert_eq!(search["points"], 6);
    assert_eq!(
        (&search["screening"]["looked-at"], &search["screening"]["seed"]),
        (&json!(5), &json!(5))
    );
    let failed = search["screening"]["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 3, "{search}");
    assert!(failed.iter().all(|one| one["schedule"]["MODE"] == "wrong"));
    assert_eq!(case["contenders"].as_array().unwrap().len(), 2);
}

#[test]
fn the_planted_best_of_a_function_in_c_is_found() {
    let Some(place) = place_of_c(
        "[twice]\noptions = [\"-O{LEVEL}\"]\n[twice.parameters]\nLOOPS = [400, 3, 1]\nRIGHT = [true, false]\nLEVEL = [1]\n",
    ) else {
        return;
    };
    let case = tuned(&place, "twice.c:twice");
    assert_eq!(
        case["winner"]["schedule"],
        json!({"LEVEL": 1, "LOOPS": 1, "RIGHT": true}),
        "{case}"
    );
    let failed = case["search"]["screening"]["failed"].as_array().unwrap();
    let faults: Vec<&str> = failed.iter().filter_map(|one| one["fault"].as_str()).collect();
    let are_refused = faults
        .iter()
        .filter(|fault| fault.contains("three loops are not supported"));
    assert_eq!((faults.len(), are_refused.count()), (4, 2), "{faults:?}");
}

#[test]
fn a_source_with_values_of_its_parameters_is_a_kernel_like_any_other() {
    let Some(place) = place_of_c("[twice.parameters]\nLOOPS = [1, 3]\nRIGHT = [true, false]\n") else {
        return;
    };
    let check = |kernel: &str| place.run(&["check", kernel, "--task", "task.py"]);
    let fails = |kernel: &str, said: &str| {
        let ran = check(kernel).expect(1);
        let told = ran.out.clone() + &ran.err;
        assert!(told.contains(said), "{said} is not in\n{told}");
    };
    check("kernels.py:twice: LOOPS=4").expect(0);
    fails("kernels.py:twice: LOOPS=4, MODE=wrong", "is not computed rightly");
    names(
        &check("kernels.py:twice: BLOCK=2").expect(2),
        &["has no parameter `BLOCK`", "it has x, LOOPS, MODE"],
    );
    // A value that the table beside the source does not declare is a slip of the user's, and says nothing of the kernel.
    names(
        &check("kernels.py:twice: LOOPS=2").expect(2),
        &["2 is not allowed in `LOOPS`; it takes 400, 16, 4, 1"],
    );
    names(&check("twice.c:twice: LOOP=3").expect(2), &["`LOOP`"]);
    // Without a table the function's own parameters count.
    place.write("other.py", IN_PYTHON);
    check("other.py:twice: LOOPS=2").expect(0);
    fails("other.py:twice: x=2", "give the kernel's parameter another name");
    check("twice.c:twice").expect(0);
    fails("twice.c:twice: RIGHT=false", "is not computed rightly");
    fails("twice.c:twice: LOOPS=3", "does not compile with LOOPS=3");
}

#[test]
fn what_cannot_be_tuned_is_refused_with_what_to_write() {
    let Some(place) = place() else { return };
    place.write("other.py", IN_PYTHON);
    for (kernel, more, said) in [
        (
            "other.py:twice",
            &[][..],
            [
                "other.py:twice has no parameters to tune",
                "declare them in other.toml",
            ],
        ),
        (
            "kernels.py:none",
            &[],
            ["kernels.py:none has no parameters to tune", "[none.parameters]"],
        ),
        ("kernels.py:twice: LOOPS=5", &[], ["LOOPS", "kernels.toml"]),
        ("./libx.so:twice", &[], ["names no source", "FILE.c:FUNCTION"]),
        ("stages=2", &[], ["names no source", "FILE.c:FUNCTION"]),
        (
            "kernels.py:by_triton",
            &["--executor", "cuda", "--device", "h100"],
            ["whose task is on the CPU", "leave out --executor"],
        ),
    ] {
        let tune = ["tune", "--kernel", kernel, "--suite", "task.py"];
        names(&place.run(&[&tune[..], more].concat()).expect(2), &said);
    }
}

/// A space of Kernel Tuner's T4 form, of 8 × 6 points, of which every eleventh failed.
fn recorded() -> String {
    let results = (0..48).map(|index: i32| {
        let (block, rows) = (index / 6, index % 6);
        let time = 1.0 + 0.5 * f64::from((block - 5).abs()) + 0.3 * f64::from((rows - 2).abs());
        let works = index % 11 != 10;
        json!({
            "configuration": {"BLOCK": 1 << block, "ROWS": 1 + rows},
            "invalidity": if works { "correct" } else { "runtime" },
            "objectives": ["time"],
            "measurements": if works { json!([{"name": "time", "value": time, "unit": "ms"}]) } else { json!([]) },
        })
    });
    json!({"results": results.collect::<Vec<_>>()}).to_string()
}

#[test]
fn a_search_over_recorded_times_says_how_near_the_optimum_it_comes() {
    let place = Place::new();
    place.write("space.json", &recorded());
    let replay = [
        "tune",
        "--replay",
        "space.json",
        "--evaluations",
        "40",
        "--seeds",
        "9",
    ];
    let ran = place
        .run(&[&replay[..], &["--t4", "first.json"]].concat())
        .expect(0);
    assert_snapshot!(ran.out);
    // What the first search evaluated is a space of its own, with as many points.
    let again = place
        .run(&["tune", "--replay", "first.json", "--json", "-"])
        .expect(0);
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again["points"], 40);
    let refused = place.run(&[&replay[..], &["--seed", "1"]].concat()).expect(2);
    names(&refused, &["--seed"]);
}
