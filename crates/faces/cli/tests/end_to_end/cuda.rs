//! The CUDA executor from the command line, on machines without a GPU, such as CI.

use std::path::Path;

use crate::common::{self, Place, repository};

/// Whether there is no GPU; says so if there is one.
fn without_gpu() -> bool {
    let gpu = Path::new("/dev/nvidiactl").exists();
    if gpu {
        println!("skipped: there is a GPU");
    }
    !gpu
}

#[test]
fn a_round_on_a_gpu_that_is_not_here_says_what_is_missing_and_leaves_no_trace() {
    if !without_gpu() {
        return;
    }
    let place = Place::new();
    let round = repository("examples/h200");
    let ran = place.run(&["run", round.to_str().unwrap()]).expect(3);
    let told = ran.folded();
    assert!(
        told.contains("the cuda executor cannot run here: no NVIDIA driver"),
        "{told}"
    );
    assert!(
        told.contains("gauntlet doctor") && told.contains("--executor model"),
        "{told}"
    );
    assert!(!place.path("ledger.sqlite").exists());
}

#[test]
fn every_command_that_measures_on_a_gpu_says_the_same() {
    if !without_gpu() {
        return;
    }
    let place = Place::new();
    for command in [
        ["bench", "baseline", "stages = 2"].as_slice(),
        &["tune"],
        &["validate"],
    ] {
        let on = ["--executor", "cuda", "--device", "h200"];
        let ran = place.run(&[command, &on].concat()).expect(3);
        assert!(ran.folded().contains("cannot run here"), "{}", ran.err);
    }
}

/// Comparing with recorded times of a GPU needs no GPU; the goals are those of `validate`, and the model reaches them.
#[test]
fn the_model_keeps_its_accuracy_against_times_that_were_measured_before() {
    let on = ["--executor", "cuda", "--device", "h200"];
    for (file, version, points) in [
        (
            "results/h200/model-validation/2026-11-22.json",
            "0.1.0+ab8fe26fe4",
            130,
        ),
        (
            "results/h200/model-validation/2026-11-23.json",
            "0.1.0+9deb3db86c",
            200,
        ),
    ] {
        let place = Place::new();
        let times = repository(file);
        let times = times.to_str().unwrap();
        let again = [
            "validate",
            "--from",
            times,
            "--require-goals",
            "--json",
            "again.json",
        ];
        let ran = place.run(&[&again, &on[..]].concat()).expect(0);
        assert!(ran.out.contains(&format!("{points} schedules")), "{}", ran.out);
        // Four of the ten shapes were used for the description.
        assert!(ran.out.contains("some of the shapes known"), "{}", ran.out);
        let text = std::fs::read_to_string(place.path("again.json")).unwrap();
        let again: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(again["measured"]["version"], version);
        assert_eq!(again["validation"]["points"].as_array().unwrap().len(), points);
        // The written file can be read again.
        let again = place.path("again.json");
        let again = again.to_str().unwrap();
        place
            .run(&[&["validate", "--from", again], &on[..]].concat())
            .expect(0);
    }
}

#[test]
fn a_file_that_holds_no_times_is_told_with_a_remedy() {
    let place = Place::new();
    let other = repository("results/computed/hadamard/2026-11-22.json");
    let other = other.to_str().unwrap();
    let on = ["--executor", "cuda", "--device", "h200"];
    let ran = place
        .run(&[&["validate", "--from", other], &on[..]].concat())
        .expect(2);
    assert!(
        ran.folded().contains("holds no validation of h200"),
        "{}",
        ran.err
    );
    let ran = place
        .run(&[&["validate", "--from", "nowhere.json"], &on[..]].concat())
        .expect(2);
    assert!(
        ran.folded().contains("nowhere.json cannot be read"),
        "{}",
        ran.err
    );
    let ran = place.run(&["validate", "--from", other]).expect(2);
    assert!(
        ran.folded().contains("add --executor cuda and --device"),
        "{}",
        ran.err
    );
}

#[test]
fn a_timeline_is_measured_on_a_gpu_alone_and_of_one_problem() {
    let place = Place::new();
    let explain = [
        "explain",
        "--problem",
        "group-gemm",
        "--device",
        "h200",
        "--measured",
    ];
    let ran = place.run(&explain).expect(2);
    assert!(
        ran.folded().contains("a timeline shows one problem"),
        "{}",
        ran.err
    );
    let case = [
        "explain",
        "--problem",
        "group-gemm/1",
        "--device",
        "h200",
        "--measured",
        "run.txt",
    ];
    let ran = place.run(&case).expect(2);
    assert!(
        ran.folded().contains("run.txt is no file for a timeline"),
        "{}",
        ran.err
    );
    if !without_gpu() {
        return;
    }
    let ran = place.run(&case[..6]).expect(3);
    let told = ran.folded();
    assert!(
        told.contains("cannot run here") && told.contains("`gauntlet explain` does without --measured"),
        "{told}"
    );
    assert!(
        !told.contains("--executor cpu"),
        "it takes no such option: {told}"
    );
    assert_eq!(ran.out, "");
}

#[test]
fn the_worker_says_why_it_cannot_serve_in_a_line() {
    if !without_gpu() {
        return;
    }
    let ran = Place::new().run(&["worker", "cuda"]).expect(3);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains("NVIDIA driver"), "{}", ran.err);
}

#[test]
fn a_gpu_has_to_be_named_and_the_cpu_is_none() {
    let place = Place::new();
    let ran = place
        .run(&["bench", "baseline", "stages = 2", "--executor", "cuda"])
        .expect(2);
    assert!(ran.folded().contains("--device"), "{}", ran.err);
    let ran = place
        .run(&["bench", "baseline", "stages = 2", "--device", "h200"])
        .expect(2);
    assert!(ran.folded().contains("--executor cuda"), "{}", ran.err);
}

#[test]
fn a_device_without_kernels_is_refused_by_name_without_a_compiler() {
    let place = Place::new();
    let mut command = place.command(&["compile", "--device", "host"]);
    command.env("GAUNTLET_CUDA_LIBRARIES", place.folder.path());
    let ran = common::Ran::of(command.output().unwrap()).expect(2);
    let told = ran.folded();
    assert!(
        told.contains("there are no CUDA kernels for cpu, the architecture of host"),
        "{told}"
    );
    let ran = place.run(&["compile", "no such variant"]).expect(2);
    assert!(ran.folded().contains("no shipped variant"), "{}", ran.err);
}

#[test]
fn what_cannot_run_is_still_examined_as_far_as_the_compiler() {
    if !without_gpu() {
        return;
    }
    let place = Place::new();
    let round = repository("examples/h200/rounds/1-pitches.toml");
    // With or without a compiler, the output says that nothing runs, and the cheap gates pass.
    let ran = place.run(&["check", round.to_str().unwrap()]);
    assert!(
        ran.err.contains("candidates are compiled and not run"),
        "{}",
        ran.err
    );
    assert!(matches!(ran.code, Some(0 | 1 | 4)), "{}", ran.err);
}
