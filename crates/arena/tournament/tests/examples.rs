//! The example tournament can be read, and contains everything that its README mentions.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_entrants::EntrantError;
use gauntlet_judge::{Candidate, ExecutorKind, Verdict};
use gauntlet_parameters::Value;
use gauntlet_tournament::forecast::TrackRecord;
use gauntlet_tournament::panel::{Dossier, Flag, Panel};
use gauntlet_tournament::{Overrides, Round, Tournament};
use gauntlet_worker::CandidateRecord;

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../examples/shark-tank")
        .join(file)
}

fn load(file: &str) -> Tournament {
    Tournament::load(&example(file), &Overrides::default()).unwrap()
}

fn round<'a>(tournament: &'a Tournament, name: &str) -> &'a Round {
    tournament
        .rounds
        .iter()
        .find(|round| round.file().name == name)
        .unwrap()
}

fn pitches(round: &Round) -> Vec<&str> {
    round.pitches.iter().map(|pitch| pitch.name.as_str()).collect()
}

#[test]
fn the_folder_is_the_replay_and_then_the_cpu() {
    let names = |file| {
        load(file)
            .rounds
            .iter()
            .map(|round| round.file().name.clone())
            .collect::<Vec<_>>()
    };
    let whole = names("");
    assert_eq!(whole, [names("replay.toml"), names("cpu.toml")].concat());
    assert!(whole.iter().any(|name| name == "b200-gemm-1") && whole.iter().any(|name| name == "cpu-gemm-1"));
}

#[test]
fn replay_and_cpu_read_the_same_pitches() {
    let (replay, cpu) = (load("replay.toml"), load("cpu.toml"));
    for number in 1..=3 {
        let recorded = round(&replay, &format!("b200-gemm-{number}"));
        let live = round(&cpu, &format!("cpu-gemm-{number}"));
        assert_eq!(recorded.pitches, live.pitches, "round {number}");
        assert_eq!(
            (recorded.file().executor, live.file().executor),
            (ExecutorKind::Replay, ExecutorKind::Cpu)
        );
    }
    assert_eq!(
        pitches(round(&replay, "b200-gemm-1")),
        [
            "pipeline-stages",
            "tile-size",
            "tma-epilogue",
            "warp-specialisation"
        ]
    );
    let missed = round(&cpu, "cpu-gemm-4-missed");
    assert!(missed.file().research);
    assert!(
        missed
            .pitches
            .iter()
            .any(|pitch| pitch.fallback.schedule.is_some())
    );
    assert!(missed.pitches.iter().all(|pitch| pitch.author == "Gauntlet"));
}

#[test]
fn every_recorded_time_belongs_to_a_case() {
    for round in &load("replay.toml").rounds {
        let record = round.record.as_ref().unwrap();
        let cases: Vec<_> = round
            .setting
            .benchmark_cases
            .iter()
            .map(|case| case.name.as_str())
            .collect();
        let name = &round.file().name;
        for times in record.candidates.values().map(|candidate| &candidate.times) {
            assert!(
                times.keys().all(|case| cases.contains(&case.as_str())),
                "{name}: {times:?}, {cases:?}"
            );
        }
        let baseline: Vec<_> = record.candidates["baseline"]
            .times
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(baseline.len(), cases.len(), "{name}: {baseline:?} for {cases:?}");
        assert!(
            record
                .peers
                .values()
                .flat_map(BTreeMap::keys)
                .all(|case| cases.contains(&case.as_str()))
        );
    }
}

#[test]
fn what_was_never_measured_has_no_figures() {
    let replay = load("replay.toml");
    for number in 1..=3 {
        let record = round(&replay, &format!("b200-gemm-{number}"))
            .record
            .as_ref()
            .unwrap();
        for name in ["tma-epilogue", "warp-specialisation"] {
            let note = record.candidates[name].note.clone();
            assert_eq!(
                record.candidates[name],
                CandidateRecord {
                    note,
                    ..CandidateRecord::default()
                },
                "{name}"
            );
        }
        assert!(
            record
                .candidates
                .values()
                .all(|candidate| candidate.phase_shares.is_empty())
        );
    }
}

#[test]
fn the_last_forecast_covers_all_seven_outcomes() {
    let replay = load("replay.toml");
    let odds = &round(&replay, "b200-gemm-3").pitches[0].odds;
    for (verdict, chance) in [
        (Verdict::Adopt, 0.15),
        (Verdict::Marginal, 0.20),
        (Verdict::ValidNegative, 0.30),
        (Verdict::Regression, 0.25),
        (Verdict::DoesNotCompile, 0.05),
        (Verdict::Incorrect, 0.05),
    ] {
        assert!((odds.of(verdict) - chance).abs() < 1e-12, "{verdict}");
    }
}

#[test]
fn two_of_the_judges_four_sums_are_wrong() {
    let replay = load("replay.toml");
    let first = round(&replay, "b200-gemm-1");
    let dossiers: Vec<_> = first
        .pitches
        .iter()
        .map(|pitch| Dossier {
            pitch,
            violations: Vec::new(),
            predicted: None,
            record: TrackRecord::default(),
        })
        .collect();
    let ranking = Panel::new(&first.file().judge).rank(&dossiers);
    let sums: Vec<_> = ranking
        .flags
        .iter()
        .filter_map(|flag| match flag {
            Flag::Arithmetic { pitch, printed, .. } => Some((pitch.as_str(), *printed)),
            _ => None,
        })
        .collect();
    assert_eq!(sums, [("pipeline-stages", 8.4), ("warp-specialisation", 5.6)]);
    assert!(
        ranking
            .flags
            .iter()
            .any(|flag| matches!(flag, Flag::Overconfident { pitch } if pitch == "pipeline-stages"))
    );
}

#[test]
fn the_tournament_on_the_h200_is_measured_there() {
    for file in [
        "../h200",
        "../h200/staircase.toml",
        "../h200/host-setup.toml",
        "../attention/staircase.toml",
    ] {
        for round in &load(file).rounds {
            let file = round.file();
            assert_eq!(
                (file.executor, file.device.as_str()),
                (ExecutorKind::Cuda, "h200"),
                "{}",
                file.name
            );
        }
    }
    let first = load("../h200/tournament.toml");
    let recorded = load("replay.toml");
    let claims = |round: &Round| -> Vec<_> {
        let pitches = round.pitches.iter();
        pitches
            .map(|pitch| (pitch.name.clone(), pitch.claim.clone(), pitch.odds.clone()))
            .collect()
    };
    assert_eq!(
        claims(round(&first, "h200-gemm-1")),
        claims(round(&recorded, "b200-gemm-1")),
        "the claims of the recorded pitches"
    );
}

#[test]
fn each_step_of_the_staircase_keeps_the_rules_on_top_of_the_one_before() {
    for file in [
        "../h200/staircase.toml",
        "../attention/staircase.toml",
        "../l4/tournament.toml",
        "../b200/staircase.toml",
    ] {
        for round in &load(file).rounds {
            keeps_the_rules(round);
        }
    }
}

#[test]
fn the_last_step_on_its_own_begins_where_the_staircase_has_come_to() {
    let (whole, last) = (load("../h200/staircase.toml"), load("../h200/host-setup.toml"));
    for (staircase, alone) in whole.rounds.iter().zip(&last.rounds) {
        let [pitch] = alone.pitches.as_slice() else {
            panic!("{}", alone.file().name);
        };
        let named = |name: &str| staircase.pitches.iter().find(|one| one.name == name);
        let step = named(&pitch.name).unwrap();
        assert_eq!(pitch.schedule, step.schedule);
        let mut below = Vec::new();
        let mut after = step.after.as_deref();
        while let Some(one) = after.and_then(named) {
            below.push(one);
            after = one.after.as_deref();
        }
        let mut schedule = staircase.baseline_schedule().unwrap();
        for one in below.into_iter().rev() {
            schedule = schedule.changed(&one.schedule);
        }
        assert_eq!(alone.baseline_schedule().unwrap(), schedule);
        keeps_the_rules(alone);
    }
}

fn keeps_the_rules(round: &Round) {
    let baseline = round.baseline_schedule().unwrap();
    let mut steps = BTreeMap::new();
    for pitch in &round.pitches {
        let below = pitch.after.as_ref().map_or(&baseline, |after| &steps[after]);
        assert_eq!(pitch.after.is_some(), pitch.regardless, "{}", pitch.name);
        let step = Candidate {
            dispatch: round.dispatch(&pitch.dispatch),
            ..Candidate::new(&pitch.name, below.changed(&pitch.schedule))
        };
        let same = Candidate {
            schedule: below.clone(),
            dispatch: None,
            ..step.clone()
        };
        assert!(step.differs_from(&same), "{}", pitch.name);
        for case in &round.setting.benchmark_cases {
            let schedule = step.schedule_for(&case.sizes, &round.setting.device);
            assert_eq!(
                case.sizes.violations(schedule, &round.setting.device),
                [],
                "{}",
                pitch.name
            );
        }
        steps.insert(pitch.name.clone(), step.schedule);
    }
}

#[test]
fn a_table_of_the_staircase_of_attention_says_something_of_every_case_and_changes_one() {
    for round in &load("../attention/staircase.toml").rounds {
        let mut tables = 0;
        for pitch in round.pitches.iter().filter(|pitch| pitch.dispatch.is_some()) {
            let table = round.dispatch(&pitch.dispatch).unwrap();
            let below = round
                .pitches
                .iter()
                .find(|other| Some(&other.name) == pitch.after.as_ref());
            let split: Vec<_> = table
                .entries
                .iter()
                .map(|entry| entry.schedule.get("split-k"))
                .collect();
            assert_eq!(split, [Some(&Value::Number(2)), Some(&Value::Number(1))]);
            let named = table.entries.iter().zip(&round.setting.benchmark_cases);
            for (entry, case) in named {
                assert_eq!(gauntlet_families::open(&entry.problem).unwrap(), case.sizes);
            }
            // Long is computed as one step below computes it.
            let long = &table.entries[1].schedule;
            for (name, value) in below.unwrap().schedule.iter() {
                assert_eq!(long.get(name), Some(value), "{name}");
            }
            tables += 1;
        }
        assert_eq!(tables, 1, "{}", round.file().name);
    }
}

/// Every finding within a report.
fn findings(report: &serde_json::Value) -> Vec<&serde_json::Value> {
    let is_finding = report.get("gate").is_some() && report.get("evidence").is_some();
    let own = is_finding.then_some(report);
    let within: Vec<_> = match report {
        serde_json::Value::Array(parts) => parts.iter().flat_map(findings).collect(),
        serde_json::Value::Object(parts) => parts.values().flat_map(findings).collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(within).collect()
}

/// The JSON files below a folder.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => json_files(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect()
}

#[test]
fn findings_that_earlier_versions_recorded_are_read() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results");
    let mut read = 0;
    for path in json_files(&results) {
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for finding in findings(&report) {
            let parsed = serde_json::from_value::<gauntlet_judge::Finding>(finding.clone());
            assert!(parsed.is_ok(), "{}: {parsed:?}", path.display());
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn an_unknown_parameter_is_named_with_its_place_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("round.toml");
    let text = r#"
name = "mistyped"
title = "A parameter is mistyped"
executor = "cpu"
device = "host"
suite = "group-gemm"

[baseline]
schedule = { stagse = 3 }
"#;
    std::fs::write(&path, text).unwrap();
    let error = Round::load(&path, &Overrides::default()).unwrap_err();
    let EntrantError::File(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.path, path);
    assert!(
        error.message.contains("`stagse`; did you mean `stages`?"),
        "{}",
        error.message
    );
    assert!(error.remedy.contains("gauntlet schedules"), "{}", error.remedy);
    let span = error.span.clone().unwrap();
    assert!(text[span].contains("stagse"), "{error}");
}
