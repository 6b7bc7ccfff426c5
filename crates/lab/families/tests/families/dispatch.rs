#![expect(clippy::unwrap_used, reason = "tests")]
//! Tables of the parameters of each problem: their files, and the entries found for other sizes.

use std::path::Path;

use gauntlet_families::TASKS;
use gauntlet_parameters::{Parameters, Value};
use gauntlet_problems::Operation;
use gauntlet_problems::{Attention, AttentionFormat, Form, GroupedGemm};
use gauntlet_task::dispatch::VERSION;
use gauntlet_task::{
    DispatchEntry, DispatchEvidence, DispatchTable, Match, ModelChoice, Sizes, SpeedupRange,
};

use super::sizes;

fn gemm_of(groups: &[(usize, usize, usize)], form: Form) -> Sizes {
    sizes(Operation::GroupedGemm(GroupedGemm::new(
        form,
        groups.iter().map(|&(m, n, k)| [m, n, k]),
    )))
}

fn gemm(groups: &[(usize, usize, usize)]) -> Sizes {
    gemm_of(groups, Form::Plain)
}

fn attention(length: usize, causal: bool) -> Sizes {
    sizes(Operation::Attention(Attention {
        causal,
        ..Attention::new(AttentionFormat::F16, [[length, length]], [8, 8], 64)
    }))
}

fn entry(case: &str, sizes: &Sizes, stages: usize) -> DispatchEntry {
    DispatchEntry {
        case: case.to_owned(),
        problem: sizes.to_record(),
        schedule: Parameters::new()
            .with("stages", stages)
            .with("tile", [64, 64, 256]),
        evidence: DispatchEvidence::Measured,
        speedup: Some(SpeedupRange {
            estimate: 1.4,
            low: 1.3,
            high: 1.5,
            confidence: 0.95,
        }),
        model_choice: Some(ModelChoice {
            schedule: Parameters::new(),
            regret: Some(0.02),
            low: Some(-0.01),
            high: Some(0.05),
        }),
    }
}

fn stages(found: &Match) -> u64 {
    found.schedule().get("stages").and_then(Value::number).unwrap()
}

fn table(entries: Vec<DispatchEntry>) -> DispatchTable {
    DispatchTable {
        version: VERSION,
        device: "host".to_owned(),
        executor: "cpu".to_owned(),
        gauntlet: "0.1.0".to_owned(),
        made: "2026-11-21T03:00:00Z".to_owned(),
        entries,
    }
}

#[test]
fn a_table_survives_its_file() {
    let mut bare = entry("two", &gemm(&[(8, 96, 256)]), 1);
    bare.speedup = None;
    bare.model_choice = None;
    let whole = table(vec![entry("one", &gemm(&[(16, 64, 128), (5, 48, 64)]), 2), bare]);
    let text = whole.to_toml().unwrap();
    let again = DispatchTable::parse(&text, Path::new("table.toml")).unwrap();
    assert_eq!(again, whole);
    assert_eq!(
        DispatchTable::parse(&table(vec![]).to_toml().unwrap(), Path::new("x"))
            .unwrap()
            .entries,
        []
    );
}

#[test]
fn the_same_problem_comes_before_near_ones_and_far_ones_never() {
    let table = table(vec![
        entry("half", &gemm(&[(64, 1024, 512)]), 2),
        entry("same", &gemm(&[(128, 1024, 512)]), 3),
        entry("deep", &gemm(&[(128, 1024, 8192)]), 4),
    ]);
    let stages_for = |sizes: &Sizes| {
        table
            .find(sizes, |_| true)
            .map(|found| (stages(&found), matches!(found, Match::Exact(_))))
    };
    assert_eq!(stages_for(&gemm(&[(128, 1024, 512)])), Some((3, true)));
    assert_eq!(stages_for(&gemm(&[(70, 1024, 512)])), Some((2, false)));
    assert_eq!(stages_for(&gemm(&[(128, 1024, 5008)])), Some((4, false)));
    assert_eq!(
        stages_for(&gemm(&[(128, 1024 * 5, 512)])),
        None,
        "five times as wide"
    );

    let allowed = |parameters: &Parameters| parameters.get("stages") != Some(&Value::Number(3));
    let found = table.find(&gemm(&[(128, 1024, 512)]), allowed).unwrap();
    assert!(
        matches!(found, Match::Nearest { entry, factor } if entry.case == "half" && (factor - 2.0).abs() < 1e-12)
    );
}

#[test]
fn another_form_is_another_problem() {
    let table = table(vec![entry("plain", &gemm(&[(64, 1024, 512)]), 2)]);
    let dual = gemm_of(&[(64, 1024, 512)], Form::Swiglu);
    assert_eq!(table.find(&dual, |_| true), None);
}

#[test]
fn each_task_finds_its_own_entries() {
    let table = table(vec![
        entry("gemm", &gemm(&[(64, 1024, 512)]), 2),
        entry("attention", &attention(512, false), 3),
    ]);
    let found = |sizes: &Sizes| table.find(sizes, |_| true).map(|found| stages(&found));
    assert_eq!(found(&attention(512, false)), Some(3));
    assert_eq!(found(&attention(1024, false)), Some(3));
    assert_eq!(
        found(&attention(512, true)),
        None,
        "causal attention is another problem"
    );
    assert_eq!(found(&gemm(&[(64, 1024, 512)])), Some(2));
}

#[test]
fn an_entry_that_its_task_refuses_is_passed_over() {
    let mut odd = entry("odd", &gemm(&[(64, 1024, 512)]), 2);
    odd.problem["groups"][0]["k"] = 17.into();
    let mut foreign = entry("foreign", &gemm(&[(64, 1024, 512)]), 3);
    foreign.problem["family"] = "convolution".into();
    let table = table(vec![odd, foreign, entry("right", &gemm(&[(64, 1024, 512)]), 4)]);
    let found = table.find(&gemm(&[(64, 1024, 512)]), |_| true).unwrap();
    assert_eq!(stages(&found), 4);
}

#[test]
fn tables_of_the_first_edition_are_read() {
    let text = r#"
        version = 1
        device = "host"
        executor = "cpu"
        gauntlet = "0.1.0"
        made = "2026-11-21T03:00:00Z"

        [[entry]]
        case = "case-1"
        problem = { family = "grouped-gemm", groups = [{ m = 80, n = 4096, k = 7168 }] }
        schedule = { tile = [64, 64, 256], stages = 2, swap-ab = true }
        evidence = "measured"
        speedup = { estimate = 1.4, low = 1.3, high = 1.5, confidence = 0.95 }
        model-choice = { schedule = { stages = 2 }, regret = 0.02, low = 0.0, high = 0.04 }
    "#;
    let table = DispatchTable::parse(text, Path::new("table.toml")).unwrap();
    let found = table.find(&gemm(&[(80, 4096, 7168)]), |_| true).unwrap();
    assert!(matches!(found, Match::Exact(entry) if entry.case == "case-1"));
    assert_eq!(
        found.schedule().to_string(),
        "stages=2, swap-ab=true, tile=64×64×256"
    );
    assert_eq!(TASKS[0].parameters().check(found.schedule()), Ok(()));
}

#[test]
fn bad_files_say_what_is_wrong() {
    let wrong = |text: &str| {
        DispatchTable::parse(text, Path::new("table.toml"))
            .unwrap_err()
            .to_string()
    };
    let later = table(vec![])
        .to_toml()
        .unwrap()
        .replace("version = 1", "version = 2")
        + "novelty = true\n";
    assert!(wrong(&later).contains("is of version 2"), "{}", wrong(&later));
    assert!(
        wrong("stages = 2").contains("missing field `version`"),
        "{}",
        wrong("stages = 2")
    );
    let misspelt = table(vec![entry("one", &gemm(&[(8, 96, 256)]), 2)])
        .to_toml()
        .unwrap()
        .replace("evidence", "evidnce");
    assert!(wrong(&misspelt).contains("evidence"), "{}", wrong(&misspelt));
    let missing = DispatchTable::load(Path::new("/nowhere/table.toml")).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}
