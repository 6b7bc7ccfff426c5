//! `gauntlet report`: what was found is shown again from the ledger and from files, whole.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, names, repository};
use gauntlet_judge::ledger::{Ledger, RecordKind};
use gauntlet_tournament::TournamentReport;
use serde_json::{Value, json};

/// A replayed tournament, and its result as JSON.
fn played(place: &Place) -> Value {
    let file = repository("examples/shark-tank/replay.toml");
    let ran = place.run(&["run", file.to_str().unwrap(), "--json", "out.json"]);
    ran.expect(0);
    read(place, "out.json")
}

fn read(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(place.path(name)).unwrap()).unwrap()
}

#[test]
fn a_run_of_the_ledger_is_the_result_that_was_written_when_it_was_played() {
    let place = Place::new();
    let whole = played(&place);
    assert_eq!(whole["schema"], "gauntlet/run/2");
    let run = whole["run"].as_str().unwrap();
    for name in ["latest", run, &run[..run.len() - 2], "out.json"] {
        let again = place.run(&["report", name, "--json", "-"]).expect(0);
        let again: Value = serde_json::from_str(&again.out).unwrap();
        assert_eq!(again, whole, "{name}");
    }
    let told = place
        .run(&["report", "latest", "--html", "page.html", "--samples"])
        .expect(0);
    assert!(
        told.out.contains("Round b200-gemm-1") && told.out.contains("Gates: tile-size"),
        "{}",
        told.out
    );
    assert!(
        std::fs::read_to_string(place.path("page.html"))
            .unwrap()
            .contains("pipeline-stages")
    );
}

#[test]
fn markdown_and_junit_hold_every_verdict() {
    let place = Place::new();
    let whole = played(&place);
    let markdown = place
        .run(&["report", "out.json", "--markdown", "-", "--junit", "tests.xml"])
        .expect(0)
        .out;
    let xml = std::fs::read_to_string(place.path("tests.xml")).unwrap();
    for round in whole["rounds"].as_array().unwrap() {
        for judged in round["judged"].as_array().unwrap() {
            let name = judged["name"].as_str().unwrap();
            assert!(
                markdown.contains(&format!("<summary>{name}: ")),
                "{name}\n{markdown}"
            );
            assert!(xml.contains(&format!("classname=\"{name}\"")), "{name}\n{xml}");
        }
    }
    let count = |part: &str| xml.matches(part).count();
    assert!(
        count("type=\"regression\"/>") > 0 && count("type=\"blocked\"/>") > 0,
        "{xml}"
    );
    assert_eq!(
        count("<failure"),
        ["regression", "infeasible", "incorrect"]
            .map(|kind| count(&format!("type=\"{kind}\"/>")))
            .iter()
            .sum::<usize>(),
        "{xml}"
    );
}

#[test]
fn a_run_that_was_cut_short_and_one_of_an_older_version_can_be_shown() {
    let place = Place::new();
    let whole = played(&place);
    let ledger = Ledger::open_read_only(place.path("ledger.sqlite")).unwrap();
    let run = &ledger.runs().unwrap()[0];
    let mut records = ledger.records(&run.id).unwrap();
    let verdicts = ledger.verdicts().unwrap();

    // Killed after the second verdict.
    let mut fallen = 0;
    let until = records.iter().position(|entry| {
        fallen += usize::from(entry.record.kind == RecordKind::Verdict);
        fallen == 2
    });
    let cut = TournamentReport::of_run(run, &records[..=until.unwrap()], &verdicts).unwrap();
    assert_eq!((cut.rounds.len(), cut.rounds[0].judged.len()), (1, 2));
    assert!(
        cut.rounds[0]
            .notices
            .iter()
            .any(|notice| notice.contains("cut short"))
    );

    // Before this version, records used other words and held less.
    for entry in &mut records {
        let body = entry.record.body.as_object_mut().unwrap();
        match entry.record.kind {
            RecordKind::RoundStarted => {
                for name in ["tournament", "title", "described", "device"] {
                    body.remove(name);
                }
                body["file"]["host"] = serde_json::Value::Null;
            }
            RecordKind::Verdict => {
                body.remove("change");
                for (new, old) in [("author", "contestant"), ("baseline", "control")] {
                    let value = body.remove(new).unwrap();
                    body.insert(old.to_owned(), value);
                }
                if let Some(forecast) = body["forecast"].as_object_mut() {
                    let author = forecast.remove("author").unwrap();
                    forecast.insert("contestant".to_owned(), author);
                }
            }
            RecordKind::RoundEnded => {
                body.insert("predicted".to_owned(), false.into());
            }
            _ => {}
        }
    }
    let old = serde_json::to_value(TournamentReport::of_run(run, &records, &verdicts).unwrap()).unwrap();
    let mut predicted = records.clone();
    for entry in &mut predicted {
        if entry.record.kind == RecordKind::RoundStarted {
            entry.record.body["file"]["executor"] = "model".into();
        }
    }
    let refused = TournamentReport::of_run(run, &predicted, &verdicts).unwrap_err();
    assert!(refused.to_string().contains("nothing was measured"), "{refused}");
    assert_eq!(old["name"], "replay");
    for (round, before) in old["rounds"]
        .as_array()
        .unwrap()
        .iter()
        .zip(whole["rounds"].as_array().unwrap())
    {
        for (one, other) in round["judged"]
            .as_array()
            .unwrap()
            .iter()
            .zip(before["judged"].as_array().unwrap())
        {
            for field in [
                "name", "author", "baseline", "verdict", "findings", "forecast", "claim",
            ] {
                assert_eq!(one[field], other[field], "{field}");
            }
        }
    }
}

#[test]
fn what_cannot_be_shown_is_named_with_its_remedy() {
    let place = Place::new();
    names(
        &place.run(&["report", "latest"]).expect(2),
        &["ledger.sqlite", "every command that judges"],
    );
    let whole = played(&place);
    names(
        &place.run(&["report", "1999"]).expect(2),
        &["no run `1999`", "gauntlet ledger list"],
    );
    names(
        &place.run(&["report", "absent.json"]).expect(2),
        &["absent.json", "--json"],
    );
    place.write("cut.json", "{\n \"schema\": \"gauntlet/run/2\",");
    names(
        &place.run(&["report", "cut.json"]).expect(2),
        &["cut.json:2", "not JSON"],
    );
    place.write("other.json", "{\"times\": []}");
    names(
        &place.run(&["report", "other.json"]).expect(2),
        &["`schema` is missing", "gauntlet/comparison/"],
    );
    let mut future = whole.clone();
    future["schema"] = json!("gauntlet/run/9");
    place.write("future.json", &future.to_string());
    names(
        &place.run(&["report", "future.json"]).expect(2),
        &["gauntlet/run/9", "gauntlet/run/2"],
    );
    let mut part = whole;
    part.as_object_mut().unwrap().remove("rounds");
    place.write("part.json", &part.to_string());
    names(
        &place.run(&["report", "part.json"]).expect(2),
        &["part.json", "rounds"],
    );
    let both = place
        .run(&["report", "latest", "--json", "-", "--junit", "-"])
        .expect(2);
    names(&both, &["--json -", "--junit -", "standard output"]);
}
