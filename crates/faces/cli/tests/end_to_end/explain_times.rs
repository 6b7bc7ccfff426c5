//! `explain --times`: diagnoses of recorded times, and tables that cannot be diagnosed.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, Ran, repository};
use insta::assert_snapshot;
use serde_json::Value;

fn explained(example: &str) -> Value {
    let file = repository(&format!("examples/diagnose/{example}"));
    let ran = Place::new().run(&["explain", "--times", file.to_str().unwrap(), "--json"]);
    serde_json::from_str(&ran.expect(0).out).unwrap()
}

/// The message about a table that cannot be read.
fn refusal(table: &str) -> String {
    let place = Place::new();
    place.write("times.csv", table);
    place.run(&["explain", "--times", "times.csv"]).expect(2).err
}

#[test]
fn the_recorded_times_are_spent_outside_the_main_loop() {
    let explained = explained("times.csv");
    let diagnosis = &explained["variants"][0]["diagnosis"];
    let drivers = |explanation: &Value| -> Vec<String> {
        let costs = explanation["costs"].as_array().unwrap();
        costs
            .iter()
            .map(|cost| cost["driver"].as_str().unwrap().to_owned())
            .collect()
    };
    let explanations = diagnosis["explanations"].as_array().unwrap();
    assert_eq!(drivers(&explanations[0]), ["constant", "groups"]);
    assert!(
        explanations
            .iter()
            .any(|one| drivers(one) == ["constant", "tiles", "flops"])
    );
    let next = &diagnosis["experiments"][0];
    assert_eq!(next["predictions"].as_array().unwrap().len(), explanations.len());
    assert!(next["information"].as_f64().unwrap() > 1.0, "{next}");
    assert_eq!(explained["changes"].as_array().unwrap().len(), 0);
}

#[test]
fn the_terminal_says_it_in_words() {
    let file = repository("examples/diagnose/times.csv");
    let ran = Place::new()
        .run(&["explain", "--times", file.to_str().unwrap()])
        .expect(0);
    for phrase in [
        "likeliest: constant + groups",
        "constant + tiles or waves + steps or FLOPs or padded FLOPs",
        "What to measure next",
        "N shrunk to one tile",
        "device events beside the wall clock",
        "host code",
    ] {
        assert!(ran.out.contains(phrase), "no {phrase:?} in:\n{}", ran.out);
    }
}

#[test]
fn variants_are_diagnosed_apart_and_compared() {
    let explained = explained("stages.csv");
    assert_eq!(explained["variants"].as_array().unwrap().len(), 2);
    assert_eq!(explained["variants"][1]["name"], "three stages");
    let change = &explained["changes"][0];
    assert_eq!(
        (&change["from"], &change["problems"]),
        (&"one stage".into(), &4.into())
    );
    assert!(
        (change["speedup"].as_f64().unwrap() - 0.74).abs() < 0.01,
        "{change}"
    );
}

#[test]
fn tiles_are_counted_with_the_schedule_and_spread_over_the_device() {
    let place = Place::new();
    place.write(
        "times.csv",
        "m,n,k,time\n100,4096,4096,1 ms\n400,4096,4096,3 ms\n",
    );
    let run = |arguments: &[&str]| {
        let arguments = [&["explain", "--times", "times.csv", "--json"], arguments].concat();
        let value: Value = serde_json::from_str(&place.run(&arguments).expect(0).out).unwrap();
        value["variants"][0]["diagnosis"].clone()
    };
    let usual = run(&[]);
    assert_eq!(
        (&usual["device"], &usual["schedule"]["tile"]),
        (&"b200".into(), &serde_json::json!([128, 128, 256]))
    );
    let other = run(&["--device", "l4", "--schedule", "tile = [64, 64, 256]"]);
    assert_eq!(
        (&other["device"], &other["schedule"]["tile"]),
        (&"l4".into(), &serde_json::json!([64, 64, 256]))
    );
    // 1 : 4 tiles of 128 rows, 2 : 7 of 64.
    assert_ne!(usual["explanations"], other["explanations"]);
}

#[test]
fn one_of_two_sources_is_needed_and_both_are_too_many() {
    let place = Place::new();
    let none = place.run(&["explain"]).expect(2).err;
    assert!(none.contains("--times") && none.contains("--problem"), "{none}");
    let both = place
        .run(&[
            "explain",
            "--times",
            "times.csv",
            "--problem",
            "group-gemm/case-1",
        ])
        .expect(2)
        .err;
    assert!(both.contains("--times") && both.contains("--problem"), "{both}");
}

#[test]
fn a_table_that_is_not_there() {
    let ran: Ran = Place::new().run(&["explain", "--times", "no-such.csv"]).expect(2);
    assert!(
        ran.folded()
            .contains("no-such.csv: the table of times cannot be read"),
        "{}",
        ran.err
    );
}

#[test]
fn a_column_that_is_missing() {
    assert_snapshot!(refusal("g,m,n,time\n8,128,4096,373 us\n"));
}

#[test]
fn a_time_without_a_unit() {
    assert_snapshot!(refusal("g,m,n,k,time\n8,128,4096,7168,373\n"));
}

#[test]
fn a_time_that_is_left_out() {
    assert_snapshot!(refusal("g,m,n,k,time_us\n8,128,4096,7168,373\n8,80,4096,7168,\n"));
}

#[test]
fn a_time_longer_than_anyone_waits() {
    assert_snapshot!(refusal("g,m,n,k,time_us\n8,128,4096,7168,1e300\n"));
}

#[test]
fn a_list_that_is_too_short() {
    assert_snapshot!(refusal(
        "g,m,n,k,time_us\n8,128,4096,7168,373\n2,128 64 32,4096,7168,173\n"
    ));
}

#[test]
fn a_time_under_the_roofline() {
    assert_snapshot!(refusal(
        "g,m,n,k,time_us\n8,128,4096,7168,373\n\n8,128,4096,7168,3.73\n"
    ));
}

#[test]
fn a_row_of_another_length() {
    assert_snapshot!(refusal("g,m,n,k,time_us\n8,80,176,4096,7168,373\n"));
}
