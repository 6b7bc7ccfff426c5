//! Every command answers, with text for users and JSON for programs.

use crate::common::{Place, Ran, TINY_SUITE, pitch, repository, tiny_round};
use gauntlet_problems::{AttentionFormat, AttentionInputs, HeadTensor, Inputs};
use serde_json::Value;

#[test]
fn help_has_examples() {
    let place = Place::new();
    for command in [
        &["--help"][..],
        &["run", "--help"],
        &["bench", "--help"],
        &["check", "--help"],
    ] {
        let ran = place.run(command).expect(0);
        assert!(
            ran.out.contains("Examples:") && ran.out.contains("gauntlet "),
            "{}",
            ran.out
        );
    }
    assert!(place.run(&["--help"]).out.contains("Exit codes"));
}

#[test]
fn listings_have_text_and_json() {
    let place = Place::new();
    for (command, word) in [
        ("suites", "group-gemm"),
        ("devices", "b200"),
        ("schedules", "split-k"),
        ("doctor", "SIMD"),
    ] {
        let text = place.run(&[command]).expect(0).out;
        assert!(text.contains(word), "{text}");
        let json = place.run(&[command, "--json"]).expect(0).out;
        let value: Value = serde_json::from_str(&json).unwrap();
        assert!(value.to_string().contains(word), "{json}");
    }
    assert!(
        place
            .run(&["suites", "group-gemm"])
            .expect(0)
            .out
            .contains("case-4")
    );
    assert!(
        place
            .run(&["devices", "b200"])
            .expect(0)
            .out
            .contains("microbench-blackwell")
    );
    assert!(
        place
            .run(&["completions", "bash"])
            .expect(0)
            .out
            .contains("_gauntlet")
    );
    place.run(&["man", "pages"]).expect(0);
    let page = std::fs::read_to_string(place.path("pages/gauntlet-compare.1")).unwrap();
    assert!(page.contains("BASELINE"), "{page}");
}

#[test]
fn schedules_are_held_against_devices() {
    let place = Place::new();
    let refused = place
        .run(&["schedules", "tile = [64, 64, 256]", "--device", "b200"])
        .expect(1);
    assert!(
        refused.out.contains("mxf4nvf4 on sm_100a needs M = 128"),
        "{}",
        refused.out
    );
    place
        .run(&["schedules", "stages = 2", "--device", "b200"])
        .expect(0);
    place.run(&["schedules", "stagez = 2"]).expect(2);
}

#[test]
fn a_suite_is_checked_on_every_path() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place
        .run(&["check", "suite.toml", "--json", "out.json"])
        .expect(0);
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let suite = &report["suites"][0];
    assert_eq!(suite["compared"], suite["right"]);
    assert!(suite["compared"].as_u64().unwrap() > 50, "{suite}");
    let workers: std::collections::BTreeSet<_> = suite["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["worker"].as_str().unwrap())
        .collect();
    assert!(workers.contains("portable"));
}

/// A suite has lists of cases under the same names as the tables of a round.
#[test]
fn a_round_that_says_what_counts_as_right_is_no_suite() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let round = tiny_round(&pitch("deeper", "stages = 2", ""));
    place.write("round.toml", &(round + "\n[correctness]\nnrmse = 1e-3\n"));
    place.run(&["check", "round.toml"]).expect(0);
}

#[test]
fn a_round_is_checked_without_measuring() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    let ran = place.run(&["check", "round.toml"]).expect(0);
    assert!(ran.out.contains("two-stages"), "{}", ran.out);
    assert!(
        ran.out.contains("? inconclusive"),
        "a check measures nothing, so it adopts nothing:\n{}",
        ran.out
    );
}

#[test]
fn two_schedules_are_compared() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place
        .run(&[
            "bench",
            "baseline",
            "stages = 2",
            "--suite",
            "suite.toml",
            "--budget",
            "1s",
            "--warm",
            "--json",
            "out.json",
        ])
        .expect(0);
    let result: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let cases = result["comparison"]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    // One pair gives times, and no interval.
    assert!(
        cases.iter().all(|case| case["baseline"].as_f64() > Some(0.0)),
        "{result}"
    );
    place
        .run(&["bench", "baseline", "cluster = [2, 1]", "--suite", "suite.toml"])
        .expect(2);
}

#[test]
fn the_ledger_is_listed_shown_and_exported() {
    let place = Place::new();
    assert!(
        place
            .run(&["ledger", "list"])
            .expect(2)
            .folded()
            .contains("there is no ledger")
    );
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    place.run(&["run", "round.toml"]).expect(0);
    let listed = place.run(&["ledger", "list", "--json"]).expect(0).out;
    let runs: Value = serde_json::from_str(&listed).unwrap();
    let run = runs[0]["id"].as_str().unwrap().to_owned();
    for name in [run.as_str(), &run[..18], "latest"] {
        let shown = place.run(&["ledger", "show", name]).expect(0).out;
        for said in [
            "verdict",
            "faster",
            &run,
            "round.toml",
            "processors: ",
            "gauntlet report",
        ] {
            assert!(shown.contains(said), "no {said} in {shown}");
        }
    }
    let whole = place.run(&["ledger", "show", "latest", "--json"]).expect(0).out;
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["schema"], "gauntlet/ledger-run/1");
    assert_eq!(whole["run"], runs[0]);
    let exported = place.run(&["ledger", "export", "--run", &run]).expect(0).out;
    // Nothing that was recorded is left out: the shown records are the exported ones.
    let lines: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(whole["records"], Value::from(lines));
    let number = whole["records"][0]["sequence"].to_string();
    let one = place
        .run(&["ledger", "show", &number, "--json", "record.json"])
        .expect(0)
        .out;
    assert_eq!(one, "");
    let one: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("record.json")).unwrap()).unwrap();
    assert_eq!(
        (&one["schema"], &one["body"]),
        (&"gauntlet/ledger-record/1".into(), &whole["records"][0]["body"])
    );
    let kinds: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(kinds.first().unwrap()["kind"], "run-started");
    assert_eq!(kinds.last().unwrap()["kind"], "run-ended");
    let criteria = kinds
        .iter()
        .find(|entry| entry["kind"] == "round-started")
        .unwrap();
    assert!(
        criteria["body"]["digest"].is_string() && criteria["body"]["file"]["criteria"]["target"].is_number()
    );
    place.run(&["ledger", "show", "no-such-run"]).expect(2);
}

#[test]
fn pages_and_files_are_written() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    let ran = place
        .run(&["run", "round.toml", "--json", "-", "--html", "page.html"])
        .expect(0);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["rounds"][0]["judged"].as_array().unwrap().len(), 1);
    assert!(
        std::fs::read_to_string(place.path("page.html"))
            .unwrap()
            .contains("<svg")
    );
    // A target that is not a regular file is written to and not replaced.
    let pipe = place.path("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    // What is written there is not what is tested, so nothing is measured again.
    place.write("round.toml", &tiny_round(""));
    place.run(&["run", "round.toml", "--json", "pipe"]).expect(0);
    serde_json::from_slice::<Value>(&reader.join().unwrap()).unwrap();
    assert!(!std::fs::metadata(&pipe).unwrap().is_file());
}

#[test]
fn a_reader_that_closes_the_pipe_early_is_no_error() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    place.write("round.toml", &tiny_round(""));
    place.run(&["run", "round.toml"]).expect(0);
    for arguments in [
        &["devices", "b200"][..],
        &["devices", "b200", "--json"],
        &["schedules"],
        &["completions", "bash"],
        &["ledger", "export"],
        &["run", "round.toml", "--json", "out.json", "--html", "page.html"],
    ] {
        let mut command = place.command(arguments);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains('×'), "{arguments:?}: {said}");
    }
    assert!(place.path("out.json").exists() && place.path("page.html").exists());
}

#[test]
fn operands_from_a_file_are_examined_and_timed() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let suite = gauntlet_families::load_suite(&place.path("suite.toml"));
    let case = &suite.unwrap().benchmark[1];
    case.sizes
        .generate(gauntlet_task::InputKind::Wide, 1)
        .unwrap()
        .save(&place.path("operands.safetensors"))
        .unwrap();
    place.write(
        "suite.toml",
        "[[benchmark]]\nname = \"real\"\ndata = \"operands.safetensors\"\n\
         grouped-gemm = { groups = [{ m = 8, n = 96, k = 256 }] }\n",
    );
    place.write("round.toml", &tiny_round(&pitch("two-stages", "stages = 2", "")));
    // Like a user's, the workers of this test have a thread for each processor.
    let mut command = place.command(&["run", "round.toml"]);
    let ran = Ran::of(command.env_remove("GAUNTLET_THREADS").output().unwrap()).expect(0);
    assert!(ran.out.contains("pairs of processes"), "{}\n{}", ran.out, ran.err);
}

#[test]
fn a_comparison_that_a_wrong_kernel_stops_says_which_and_why() {
    let place = Place::new();
    // Products of queries and keys exceed f32, in which kernels accumulate; the reference's f64 holds them.
    let tensor = |value: fn(usize) -> f32| HeadTensor {
        format: AttentionFormat::Bf16,
        bytes: (0..256)
            .flat_map(|i| value(i).to_le_bytes()[2..].to_vec())
            .collect(),
        scales: vec![1.0],
    };
    Inputs::Attention(AttentionInputs {
        query: tensor(|_| 1e20),
        key: tensor(|i| if i % 2 == 0 { 1e20 } else { -1e20 }),
        value: tensor(|_| 1.0),
    })
    .save(&place.path("operands.safetensors"))
    .unwrap();
    place.write(
        "suite.toml",
        "[[benchmark]]\nname = \"huge\"\ndata = \"operands.safetensors\"\n\
         attention = { batch = 1, heads = 1, length = 4, head-size = 64, format = \"bf16\" }\n",
    );
    let mut command = place.command(&[
        "bench",
        "tile = [64, 64, 64]",
        "stages = 2",
        "--suite",
        "suite.toml",
        "--json",
        "out.json",
    ]);
    Ran::of(command.env("GAUNTLET_SIMD", "portable").output().unwrap()).expect(1);
    let found: Value = serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    assert_eq!(
        (&found["side"], &found["verdict"]),
        (&"baseline".into(), &"incorrect".into())
    );
    assert!(found["reason"].as_str().unwrap().contains("NaN"), "{found}");
    assert!(found["comparison"].is_null());
}

/// The guide's round, without measurements: it can be read, and no gate and no rule stops its pitch.
#[test]
fn the_round_of_the_guide_can_be_played() {
    let guide = std::fs::read_to_string(repository("docs/guide/rounds.md")).unwrap();
    let (_, sample) = guide.split_once("```toml\n").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    let place = Place::new();
    place.write("round.toml", sample);
    place
        .run(&["check", "round.toml", "--json", "out.json"])
        .expect(0);
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    let round = &report["tournaments"][0]["rounds"][0];
    assert!(round["baseline"]["fault"].is_null(), "{round}");
    let judged = &round["judged"][0];
    assert_eq!(judged["name"], "two-stages");
    let findings = judged["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["gate"] == "race-free"),
        "{judged}"
    );
    for finding in findings {
        assert!(
            finding["outcome"] == "pass" || finding["outcome"] == "skip",
            "{finding}"
        );
    }
}
