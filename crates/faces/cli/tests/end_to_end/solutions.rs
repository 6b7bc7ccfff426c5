//! Solutions of FlashInfer-Trace and SOL-ExecBench as kernels of a definition.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, Ran, has_numpy, names, repository};
use serde_json::{Value, json};

/// A folder with the definition, its workloads and two solutions.
fn place() -> Place {
    let place = Place::new();
    for file in [
        "definition.json",
        "workload.jsonl",
        "returned.json",
        "destination.json",
    ] {
        let text =
            std::fs::read_to_string(repository("crates/faces/cli/tests/solutions").join(file)).unwrap();
        place.write(file, &text);
    }
    place
}

/// Writes a changed solution.
fn changed(place: &Place, file: &str, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(place.path("returned.json")).unwrap();
    let mut solution: Value = serde_json::from_str(&text).unwrap();
    change(&mut solution);
    place.write(file, &serde_json::to_string_pretty(&solution).unwrap());
}

fn compare(place: &Place, baseline: &str, candidate: &str) -> Ran {
    place.run(&[
        "compare",
        baseline,
        candidate,
        "--task",
        "definition.json",
        "--budget",
        "1ms",
        "--warm",
        "--json",
        "out.json",
    ])
}

#[test]
fn two_solutions_are_compared_on_every_workload() {
    if !has_numpy() {
        return;
    }
    let place = place();
    let ran = compare(&place, "returned.json", "destination.json");
    let result: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("out.json")).unwrap()).unwrap();
    assert!(
        ran.code == Some(0) || result["verdict"] == "blocked",
        "{}\n{}",
        ran.out,
        ran.err
    );
    assert_eq!(result["task"], "gated_rows");
    let cases = result["comparison"]["cases"].as_array().unwrap();
    let cases: Vec<_> = cases.iter().map(|case| case["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["few", "many"]);
    let notes = result["notes"].to_string();
    for said in [
        "the inputs are arrays of numpy on the CPU",
        "the solution returned: its dependencies are not installed: no-such-package",
        "the solution destination: its target hardware is not compared with this machine: LOCAL",
    ] {
        assert!(notes.contains(said), "{said:?} is not in {notes}");
    }
}

#[test]
fn a_wrong_solution_is_incorrect() {
    if !has_numpy() {
        return;
    }
    let place = place();
    changed(&place, "wrong.json", |solution| {
        let content = solution["sources"][0]["content"].as_str().unwrap();
        solution["sources"][0]["content"] = json!(content.replace("y.sum(1)", "y.max(1)"));
    });
    let ran = compare(&place, "returned.json", "wrong.json").expect(1);
    assert!(ran.out.contains("incorrect"), "{}", ran.out);
    changed(&place, "arity.json", |solution| {
        let content = solution["sources"][0]["content"].as_str().unwrap();
        solution["sources"][0]["content"] = json!(content.replace(", factor)", ")"));
    });
    let ran = compare(&place, "returned.json", "arity.json").expect(1);
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("is called with its inputs (x, gate, scale): too many positional"),
        "{said}"
    );
}

#[test]
fn a_solution_is_judged_and_checked() {
    if !has_numpy() {
        return;
    }
    let place = place();
    let ran = place
        .run(&["check", "destination.json", "--task", "definition.json"])
        .expect(0);
    assert!(ran.out.contains("2 of 2 comparisons right"), "{}", ran.out);
}

#[test]
fn what_cannot_be_honoured_is_said_by_name() {
    if !has_numpy() {
        return;
    }
    let place = place();
    let spec = |key: &'static str, value: Value| move |solution: &mut Value| solution["spec"][key] = value;
    changed(&place, "triton.json", spec("language", json!("triton")));
    changed(&place, "cuda.json", spec("language", json!("cuda_cpp")));
    changed(&place, "strange.json", spec("language", json!("fortran")));
    changed(&place, "built.json", spec("build_commands", json!(["make"])));
    changed(&place, "other.json", |solution| {
        solution["definition"] = json!("another")
    });
    changed(&place, "entry.json", spec("entry_point", json!("kernel.py::run")));
    for (file, said) in [
        (
            "triton.json",
            &["triton.json: the solution returned is in triton, which needs a GPU"][..],
        ),
        (
            "cuda.json",
            &[
                "is in cuda_cpp, bound by torch, which a C++ compiler must build",
                "FILE.cu:KERNEL",
            ],
        ),
        (
            "strange.json",
            &["is in `fortran`, which is not known", "use python, pytorch"],
        ),
        ("built.json", &["has `build_commands` (make), which are not run"]),
        (
            "other.json",
            &["other.json solves the definition `another`, and the task is `gated_rows`"],
        ),
        (
            "entry.json",
            &[
                "entry.json:",
                "`kernel.py::run` names a file that is not among the sources",
                "main.py",
            ],
        ),
        (
            "absent.json",
            &["absent.json: it cannot be read", "name a solution.json"],
        ),
        (
            "definition.json",
            &["definition.json:", "not a solution: missing field `definition`"],
        ),
    ] {
        names(&compare(&place, "returned.json", file).expect(2), said);
    }
}
