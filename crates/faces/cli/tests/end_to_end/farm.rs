//! Rounds whose candidates are examined by a farm, on a Slurm that is three scripts.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use gauntlet_judge::ledger::RecordKind;
use serde_json::Value;

use crate::common::{Place, Ran, TINY_SUITE, names, pitch, tiny_round};

/// Runs the elements of an array one after another, and has run them when it says the array's number.
const SBATCH: &str = r#"#!/bin/sh
[ "$1" = --version ] && exit
[ -e refuses ] && { echo "no partition" >&2; exit 1; }
for word; do
    case $word in --array=0-*) last=${word#--array=0-} ;; esac
    script=$word
done
for index in $(seq 0 "$last"); do
    SLURM_ARRAY_TASK_ID=$index SLURMD_NODENAME=n1 sh "$script" 2>> jobs.log
done
echo 17
"#;

/// A round of two pitches.
fn place() -> Place {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    let pitches = [
        pitch("narrow", "tile = [16, 16, 64]", ""),
        pitch("short", "tile = [16, 32, 48]", ""),
    ];
    place.write("round.toml", &tiny_round(&pitches.concat()));
    for (name, script) in [
        ("sbatch", SBATCH),
        ("squeue", "#!/bin/sh\n"),
        ("scancel", "#!/bin/sh\n"),
    ] {
        let file = place.write(&format!("slurm/{name}"), script);
        let ran = Command::new("chmod").arg("+x").arg(file).status();
        assert!(ran.unwrap().success());
    }
    place
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(&[&["run", "round.toml", "--farm", "slurm"], arguments].concat());
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path("slurm").display()));
    command
}

/// The places of findings and verdicts in the newest run.
fn records(place: &Place) -> Vec<String> {
    let wanted = place
        .records()
        .into_iter()
        .filter(|one| matches!(one.kind, RecordKind::Finding | RecordKind::Verdict));
    let mut places: Vec<String> = wanted
        .map(|one| format!("{:?} {:?} {:?}", one.kind, one.pitch, one.gate))
        .collect();
    places.sort();
    places
}

fn tickets(place: &Place) -> Vec<Value> {
    let ran = place.run(&["queue", "list", "--json", "-"]);
    serde_json::from_str::<Value>(&ran.out)
        .map_or_else(|_| Vec::new(), |list| list.as_array().unwrap().clone())
}

#[test]
fn a_round_over_a_farm_leaves_the_records_of_a_local_one() {
    let here = place();
    here.run(&["run", "round.toml"]).expect(0);
    let farm = place();
    Ran::of(command(&farm, &[]).output().unwrap()).expect(0);
    assert_eq!(records(&farm), records(&here));
    // The baseline and both pitches, each once, though nothing is known to be queued by anyone.
    let tickets = tickets(&farm);
    assert_eq!(tickets.len(), 3);
    for ticket in &tickets {
        assert_eq!(
            (&ticket["state"], &ticket["attempts"][0]["reason"]),
            (&"decided".into(), &Value::Null)
        );
        assert_eq!(ticket["attempts"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_round_over_a_farm_that_is_killed_goes_on_with_its_tickets() {
    let place = place();
    place.write("refuses", "");
    let mut first = command(&place, &[]).stderr(Stdio::null()).spawn().unwrap();
    while tickets(&place).is_empty() {
        sleep(Duration::from_millis(100));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    std::fs::remove_file(place.path("refuses")).unwrap();
    let ran = Ran::of(command(&place, &["--resume"]).output().unwrap()).expect(0);
    names(&ran, &["Going on with run"]);
    assert_eq!(tickets(&place).len(), 3, "none is queued twice");
}

#[test]
fn files_that_changed_while_a_round_is_played_are_no_evidence() {
    let place = place();
    // The node sees another round than the one that is played.
    let changed = SBATCH.replace(
        "for index",
        "sed -i 's/title = .*/title = \"another\"/' round.toml\nfor index",
    );
    place.write("slurm/sbatch", &changed);
    let json = ["--json", "result.json"];
    let ran = Ran::of(command(&place, &json).output().unwrap()).expect(0);
    names(
        &ran,
        &["says something else of the round tiny than when the run began"],
    );
    let result = std::fs::read_to_string(place.path("result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let judged = result["rounds"][0]["judged"].as_array().unwrap();
    assert_eq!(judged.len(), 2);
    assert!(judged.iter().all(|one| one["verdict"] == "blocked"), "{judged:?}");
}
