//! `gauntlet queue`: tickets from the command line.

use serde_json::Value;

use crate::common::{NORM_SUITE, Place, names};

fn place() -> Place {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    place
}

/// Runs a command that ends with this code and prints these words.
#[track_caller]
fn shows(place: &Place, arguments: &[&str], code: i32, words: &[&str]) {
    let ran = place.run(arguments).expect(code);
    assert!(words.iter().all(|word| ran.out.contains(word)), "{}", ran.out);
}

const COMPARE: [&str; 9] = [
    "queue",
    "submit",
    "compare",
    "builtin",
    "rows-per-task=8",
    "--task",
    "suite.toml",
    "--budget",
    "1s",
];

#[test]
fn a_ticket_is_queued_run_and_shown() {
    let place = place();
    let ticket = place.run(&COMPARE).expect(0).out.trim().to_owned();
    let again = place.run(&COMPARE).expect(0).out.trim().to_owned();
    assert_eq!(again, ticket, "the same while it waits");
    shows(&place, &["queue", "show", &ticket], 4, &["queued"]);

    let ran = place.run(&["queue", "work", "--until-empty"]).expect(0);
    assert!(ran.err.contains(&format!("{ticket}: ")), "{}", ran.err);
    let list = place.run(&["queue", "list", "--json", "-"]).expect(0).out;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["id"], ticket.as_str());
    let attempts = list[0]["attempts"].as_array().unwrap();
    assert!(
        attempts.len() == 1 && attempts[0]["reason"].is_null(),
        "{attempts:?}"
    );
    let shown = place.run(&["queue", "show", &ticket, "--json", "ticket.json"]);
    assert!(
        matches!(shown.code, Some(0 | 4)),
        "as its command ended: {}",
        shown.err
    );
    let words = ["attempt 1 by", "its result counts", "rows-per-task=8"];
    let shown = place.run(&["queue", "show", &ticket]);
    assert!(words.iter().all(|word| shown.out.contains(word)), "{}", shown.out);
}

#[test]
fn a_ticket_takes_the_file_of_its_device_along() {
    let place = place();
    place.write("k.cu", "extern \"C\" __global__ void k() {}");
    place.write("mine.toml", "name = \"mine\"");
    let words = "queue submit check k.cu:k --task suite.toml --device mine.toml --queue q";
    let words: Vec<&str> = words.split(' ').collect();
    let ticket = place.run(&words).expect(0).out.trim().to_owned();
    let text = std::fs::read_to_string(place.path(&format!("q/tickets/{ticket}.json"))).unwrap();
    let ticket: Value = serde_json::from_str(&text).unwrap();
    let files: Vec<_> = ticket["files"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["k.cu", "mine.toml", "suite.toml"]);
}

#[test]
fn what_no_ticket_may_name_is_refused_before_it_is_queued() {
    let place = place();
    let outside = tempfile::Builder::new().suffix(".py").tempfile().unwrap();
    let refused = |words: &[&str], phrases: &[&str]| {
        let ran = place.run(&[&["queue"], words].concat()).expect(2);
        names(&ran, phrases);
    };
    refused(&["list"], &["there is no queue in"]);
    refused(
        &["submit", "compare", "builtin", "--task", "suite.toml"],
        &["takes 2 kernels, and 1 are given"],
    );
    refused(
        &[
            "submit",
            "check",
            &format!("{}:f", outside.path().display()),
            "--task",
            "suite.toml",
        ],
        &["outside"],
    );
    refused(
        &[
            "submit",
            "compare",
            "builtin",
            "rows-per-tsk=8",
            "--task",
            "suite.toml",
        ],
        &["rows-per-tsk"],
    );
    place.run(&COMPARE).expect(0);
    refused(&["show", "nothing"], &["there is no ticket `nothing`"]);
    shows(&place, &["queue", "list"], 0, &["queued"]);
}

#[test]
fn a_ticket_that_was_given_up_is_not_run() {
    let place = place();
    let ticket = place.run(&COMPARE).expect(0).out.trim().to_owned();
    shows(&place, &["queue", "cancel", &ticket], 0, &["given up"]);
    place.run(&["queue", "work", "--until-empty"]).expect(0);
    shows(&place, &["queue", "show", &ticket], 4, &["cancelled"]);
    shows(&place, &["queue", "cancel", &ticket], 1, &["cancelled already"]);
}

#[test]
fn without_slurm_the_message_says_what_is_missing() {
    let place = place();
    let mut command = place.command(&["queue", "work", "--farm", "slurm", "--until-empty"]);
    let ran = crate::common::Ran::of(command.env("PATH", place.path("")).output().unwrap());
    names(
        &ran.expect(3),
        &["`sbatch` does not start", "install Slurm's client commands"],
    );
}

#[test]
fn what_a_job_by_hand_published_counts_for_whoever_looks() {
    let place = place();
    let ticket = place.run(&COMPARE).expect(0).out.trim().to_owned();
    let file = format!("queue/tickets/{ticket}.json");
    let ran = place.run(&["job", &file, "--out", "queue/results"]);
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.err);
    assert!(ran.err.contains("published as"), "{}", ran.err);
    let shown = place.run(&["queue", "show", &ticket]);
    assert!(!shown.out.contains("queued"), "{}", shown.out);
    assert!(
        shown.out.lines().count() > 5,
        "a report of several lines: {}",
        shown.out
    );
}
