//! Compiled kernels from the command line: shared libraries, and CUDA C++ on machines without a GPU. Where a compiler is
//! missing, these tests print a note and pass, unless `GAUNTLET_REQUIRE_CC` or `GAUNTLET_REQUIRE_COMPILER` is set.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

use crate::common::{Place, has_numpy, names, repository};

/// Compiles a C source of this repository beside its table; `false` without a C compiler.
pub fn library(place: &Place, source: &str, table: Option<&str>) -> bool {
    let made = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&place.path("libkernel.so"), &repository(source)])
        .arg("-lm")
        .status();
    if let Some(table) = table {
        place.write("libkernel.toml", table);
    }
    match made {
        Ok(status) => status.success(),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_CC").is_none(), "{error}");
            println!("skipped: there is no C compiler ({error})");
            false
        }
    }
}

/// Copies a kernel for the tests with its table and headers.
fn kernel(place: &Place) {
    let folder = repository("crates/judge/hosts/nvrtc/tests/kernels");
    for file in ["rms_norm.cu", "rms_norm.toml", "sums.cuh"] {
        place.write(file, &read(&folder.join(file)));
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Whether NVRTC is there.
fn has_compiler(place: &Place) -> bool {
    let ran = place.run(&[
        "worker",
        "nvrtc",
        "rms_norm.cu:rms_norm",
        "--compile-for",
        "sm_90a",
    ]);
    let missing = ran.err.contains("no CUDA compiler");
    assert!(
        !missing || std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none(),
        "{}",
        ran.err
    );
    !missing
}

const ORDER: &str = "arguments = ['x', 'weight', 'y', 'rows', 'columns']";

#[test]
fn a_right_library_passes_and_a_wrong_one_does_not() {
    let place = Place::new();
    let table = format!("rms_norm.{ORDER}\nwithout_weight.{ORDER}");
    if !library(
        &place,
        "crates/judge/hosts/library/tests/rms_norm.c",
        Some(&table),
    ) {
        return;
    }
    let right = place
        .run(&["check", "./libkernel.so:rms_norm", "--task", "rms-norm"])
        .expect(0);
    assert!(right.out.contains("16 of 16 comparisons right"), "{}", right.out);
    place
        .run(&["check", "libkernel.so:without_weight", "--task", "rms-norm"])
        .expect(1);
}

#[test]
fn every_command_takes_a_library_with_a_version_in_its_name() {
    let place = Place::new();
    if !library(&place, "crates/judge/hosts/library/tests/rms_norm.c", None) {
        return;
    }
    std::fs::rename(place.path("libkernel.so"), place.path("libkernel.so.1")).unwrap();
    let table = format!("rms_norm.{ORDER}\nwithout_weight.{ORDER}");
    place.write("libkernel.so.toml", &table);
    let [right, wrong] = ["./libkernel.so.1:rms_norm", "./libkernel.so.1:without_weight"];
    place.run(&["check", right, "--task", "rms-norm"]).expect(0);
    for arguments in [
        &["check", wrong][..],
        &["compare", right, wrong],
        &["judge", wrong, "--baseline", right],
    ] {
        place
            .run(&[arguments, &["--task", "rms-norm"]].concat())
            .expect(1);
        let ran = place.run(arguments).expect(2);
        names(
            &ran,
            &[
                "no task says what this kernel computes",
                "name a task with --task",
            ],
        );
    }
}

#[test]
fn a_cuda_kernel_is_compiled_and_interpreted_without_a_gpu() {
    let place = Place::new();
    kernel(&place);
    if !has_compiler(&place) {
        return;
    }
    let checked = |kernel: &str, more: &[&str]| {
        let target = format!("rms_norm.cu:{kernel}");
        place.run(&[&["check", &target, "--task", "rms-norm"], more].concat())
    };
    let right = checked("rms_norm", &["--schedule", "THREADS=96", "--device", "a100"]).expect(0);
    assert!(right.out.contains("8 of 8 comparisons right"), "{}", right.out);
    names(&right, &["runs in the PTX interpreter, not on a GPU", "sm_80"]);
    checked("forgets_the_last", &[]).expect(1);
}

#[test]
fn a_race_that_the_interpreter_sees_makes_a_kernel_racy_and_not_incorrect() {
    let place = Place::new();
    kernel(&place);
    if !has_compiler(&place) {
        return;
    }
    let kernel = format!(
        "command: {} worker nvrtc {}:zeroed_twice --compile-for sm_90a",
        env!("CARGO_BIN_EXE_gauntlet"),
        place.path("rms_norm.cu").display()
    );
    let ran = place
        .run(&["judge", &kernel, "--task", "rms-norm", "--json", "-"])
        .expect(1);
    let judged: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(judged["verdict"], "racy", "{judged}");
    assert!(judged["reason"].as_str().unwrap().contains("race: "), "{judged}");
}

/// The README shows this command. The kernel has one parameter, whose values are all tried.
#[test]
fn the_softmax_of_the_examples_is_checked_without_a_gpu() {
    let place = Place::new();
    kernel(&place);
    if !has_numpy() || !has_compiler(&place) {
        return;
    }
    let folder = repository("examples/softmax");
    for file in ["softmax.cu", "softmax.toml", "task.py"] {
        place.write(file, &read(&folder.join(file)));
    }
    let ran = place
        .run(&[
            "check",
            "softmax.cu:softmax_warp",
            "--task",
            "task.py",
            "--device",
            "h100",
        ])
        .expect(0);
    // Two cases, five values of ROWS.
    assert!(ran.out.contains("10 of 10 comparisons right"), "{}", ran.out);
}

#[test]
fn bad_input_is_named_with_its_remedy() {
    let place = Place::new();
    kernel(&place);
    place.write("bare.cu", "");
    for (arguments, phrases) in [
        (
            &["check", "rms_norm.cu:rms_norm"][..],
            &["no task says what this kernel computes", "--task"][..],
        ),
        (
            &["check", "nowhere.cu:rms_norm", "--task", "rms-norm"],
            &["there is no file nowhere.cu"],
        ),
        (
            &["check", "rms_norm.cu:rms_nrom", "--task", "rms-norm"],
            &[
                "has no table for the kernel `rms_nrom`",
                "did you mean `rms_norm`?",
            ],
        ),
        (
            &["check", "bare.cu:rms_norm", "--task", "rms-norm"],
            &["bare.toml is missing", "[rms_norm]"],
        ),
        (
            &[
                "check",
                "rms_norm.cu:rms_norm",
                "--task",
                "rms-norm",
                "--schedule",
                "THREAD=2",
            ],
            &["has no parameter `THREAD`", "`THREADS`"],
        ),
        (
            &[
                "check",
                "rms_norm.cu:rms_norm",
                "--task",
                "rms-norm",
                "--device",
                "host",
            ],
            &["is no GPU", "--device"],
        ),
        (
            &["check", "nowhere.so:f", "--task", "rms-norm"],
            &["there is no file nowhere.so"],
        ),
        (
            &["tune", "--kernel", "rms_norm.cu:rms_norm", "--suite", "rms-norm"],
            &["only the cuda executor runs one", "--executor cuda"],
        ),
        (
            &["worker", "nvrtc", "rms_norm.cu"],
            &["`rms_norm.cu` names no function", "write rms_norm.cu:FUNCTION"],
        ),
        (
            &["worker", "library", "nowhere.so:f"],
            &["nowhere.so cannot be loaded"],
        ),
        (
            &["worker", "library", "nowhere.so:f", "--arguments", "x,(y"],
            &["--arguments: argument `(y`"],
        ),
    ] {
        let ran = place.run(arguments).expect(2);
        names(&ran, phrases);
    }
}

#[test]
fn the_example_in_c_compiles_and_answers() {
    let place = Place::new();
    if !library(&place, "examples/softmax/softmax.c", None) {
        return;
    }
    place.write(
        "libkernel.toml",
        &read(&repository("examples/softmax/libsoftmax.toml")),
    );
    for function in ["softmax", "softmax_online"] {
        let ran = place
            .run(&["worker", "library", &format!("./libkernel.so:{function}")])
            .expect(0);
        assert_eq!(ran.err, "");
    }
}

#[test]
fn a_quick_comparison_says_so_and_is_no_evidence_unless_asked_for() {
    let place = Place::new();
    let table = format!("rms_norm.{ORDER}");
    if !library(
        &place,
        "crates/judge/hosts/library/tests/rms_norm.c",
        Some(&table),
    ) {
        return;
    }
    let kernel = "./libkernel.so:rms_norm";
    let quick = ["compare", kernel, kernel, "--task", "rms-norm", "--quick"];
    let ran = place
        .run(&[&quick[..], &["--budget", "1s", "--json", "quick.json"]].concat())
        .expect(0);
    assert!(ran.out.contains("quick: not watched"), "{}", ran.out);
    let found: serde_json::Value = serde_json::from_str(&read(&place.path("quick.json"))).unwrap();
    let comparison = &found["comparison"];
    assert_eq!(comparison["trust"], "quick");
    assert!(comparison["conduct"].is_null(), "conduct is not checked");
    assert_eq!(found["kept"]["conditions"]["measurement"]["trust"], "quick");
    let refused = place.run(&[&quick[..], &["--activity"]].concat()).expect(2);
    names(&refused, &["--activity"]);
}
