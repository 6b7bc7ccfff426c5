//! Comparisons in the sustained regime, in which a load comes before each slot.

use crate::common::{ONE_CASE, Place, TINY_SUITE, pitch, schemas, tiny_round};
use serde_json::Value;

/// A text without line breaks and indents.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_comparison_under_load_says_its_regime_everywhere() {
    let place = Place::new();
    place.write("suite.toml", TINY_SUITE);
    // The first pair is measured whatever the time, and one is enough here: a second of load comes before each slot.
    let ran = place
        .run(&[
            "compare",
            "baseline",
            "stages = 2",
            "--suite",
            "suite.toml",
            "--case",
            "one",
            "--regime",
            "sustained",
            "--budget",
            "1s",
            "--json",
            "out.json",
            "--html",
            "out.html",
            "--markdown",
            "out.md",
        ])
        .expect(0);
    let said = "calls in the sustained regime; each slot followed on at least 0.5 s of load";
    let file = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    for text in [ran.out.clone(), file("out.html"), file("out.md")] {
        assert!(one_line(&text).contains(said), "{text}");
    }
    let result: Value = serde_json::from_str(&file("out.json")).unwrap();
    let faults = schemas::faults("comparison", &result);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let comparison = &result["comparison"];
    assert_eq!(comparison["regime"], "sustained");
    let heated = &comparison["conduct"]["heating"]["cases"][0];
    for side in ["baseline", "candidate"] {
        let figure = |name: &str| heated[side][name].as_f64().unwrap();
        assert!(figure("start") > 0.0 && figure("end") > 0.0, "{heated}");
        assert!(figure("share") > 0.0 && figure("share") <= 1.0, "{heated}");
    }
    // Twelve slots of half a second or more.
    assert!(
        comparison["spent"]["heating"].as_f64().unwrap() >= 6.0,
        "{result}"
    );
}

#[test]
fn a_round_under_load_keeps_its_regime_in_the_ledger() {
    let place = Place::new();
    place.write("suite.toml", ONE_CASE);
    let round = tiny_round(&pitch("two-stages", "stages = 2", ""));
    let under_load = round.replace(
        "warm = true",
        "warm = true\nregime = \"sustained\"\nheating = \"30ms\"",
    );
    place.write("round.toml", &under_load);
    let ran = place.run(&["run", "round.toml"]).expect(0);
    assert!(
        one_line(&ran.out).contains("calls in the sustained regime"),
        "{}",
        ran.out
    );
    let kept = place.run(&["ledger", "show", "latest", "--json"]).expect(0).out;
    assert!(kept.contains("\"regime\":\"sustained\"") || kept.contains("\"regime\": \"sustained\""));
    // A run in another regime is another run, so that no times of two regimes are put together.
    let digest = |shown: &str| -> String {
        let whole: Value = serde_json::from_str(shown).unwrap();
        whole["run"]["digest"].as_str().unwrap().to_owned()
    };
    place.write("round.toml", &round);
    place.run(&["run", "round.toml"]).expect(0);
    let other = place.run(&["ledger", "show", "latest", "--json"]).expect(0).out;
    assert_ne!(digest(&kept), digest(&other));
}
