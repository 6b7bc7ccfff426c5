use gauntlet_problem::{Form, GemmShape, GroupedGemm, OutputFormat};

use super::*;

fn gemm(groups: &[(usize, usize, usize)]) -> Problem {
    Problem::GroupedGemm(GroupedGemm {
        groups: groups.iter().map(|&(m, n, k)| GemmShape { m, n, k }).collect(),
        form: Form::Plain,
        output: OutputFormat::F16,
    })
}

fn entry(case: &str, problem: Problem, stages: usize) -> DispatchEntry {
    DispatchEntry {
        case: case.to_owned(),
        problem,
        schedule: Schedule {
            stages,
            ..Schedule::baseline()
        },
        evidence: DispatchEvidence::Measured,
        speedup: Some(SpeedupRange {
            estimate: 1.4,
            low: 1.3,
            high: 1.5,
            confidence: 0.95,
        }),
        model_choice: Some(ModelChoice {
            schedule: Schedule::baseline(),
            regret: Some(0.02),
            low: Some(-0.01),
            high: Some(0.05),
        }),
    }
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
    let mut bare = entry("two", gemm(&[(8, 96, 256)]), 1);
    bare.speedup = None;
    bare.model_choice = None;
    let whole = table(vec![entry("one", gemm(&[(16, 64, 128), (5, 48, 64)]), 2), bare]);
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
        entry("half", gemm(&[(64, 1024, 512)]), 2),
        entry("same", gemm(&[(128, 1024, 512)]), 3),
        entry("deep", gemm(&[(128, 1024, 8192)]), 4),
    ]);
    let stages = |problem: &Problem| {
        table
            .find(problem, |_| true)
            .map(|found| (found.schedule().stages, matches!(found, Match::Exact(_))))
    };
    assert_eq!(stages(&gemm(&[(128, 1024, 512)])), Some((3, true)));
    assert_eq!(stages(&gemm(&[(70, 1024, 512)])), Some((2, false)));
    assert_eq!(stages(&gemm(&[(128, 1024, 5000)])), Some((4, false)));
    assert_eq!(stages(&gemm(&[(128, 1024 * 5, 512)])), None, "five times as wide");

    let allowed = |schedule: &Schedule| schedule.stages != 3;
    let found = table.find(&gemm(&[(128, 1024, 512)]), allowed).unwrap();
    assert!(
        matches!(found, Match::Nearest { entry, factor } if entry.case == "half" && (factor - 2.0).abs() < 1e-12)
    );
}

#[test]
fn another_form_is_another_problem() {
    let table = table(vec![entry("plain", gemm(&[(64, 1024, 512)]), 2)]);
    let Problem::GroupedGemm(mut dual) = gemm(&[(64, 1024, 512)]) else {
        unreachable!()
    };
    dual.form = Form::Swiglu;
    assert_eq!(table.find(&Problem::GroupedGemm(dual), |_| true), None);
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
    let misspelt = table(vec![entry("one", gemm(&[(8, 96, 256)]), 2)])
        .to_toml()
        .unwrap()
        .replace("stages", "stagse");
    assert!(wrong(&misspelt).contains("stages"), "{}", wrong(&misspelt));
    let missing = DispatchTable::load(Path::new("/nowhere/table.toml")).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}
