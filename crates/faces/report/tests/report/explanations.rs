//! The text of explanations and timelines made by hand. The snapshots have no colours.

use std::collections::BTreeMap;

use anstream::adapter::strip_str;
use gauntlet_report::{Explanation, compared, timeline_picture, trace};
use gauntlet_simulate::{Part, Timeline};
use insta::assert_snapshot;
use serde_json::Value;

use crate::explained;

fn plain(text: &str) -> String {
    strip_str(text).to_string()
}

fn table(explanations: &[Explanation], width: usize) -> String {
    plain(&gauntlet_report::explained(explanations, width))
}

fn both(width: usize) -> String {
    plain(&compared(
        &[(explained::on_the_host(), explained::in_the_kernel())],
        width,
    ))
}

fn pairs() -> Vec<(Explanation, Explanation)> {
    let mut after = explained::suite();
    for one in &mut after {
        one.seconds -= one.breakdown.part(Part::FillAndDrain);
        one.breakdown.parts.retain(|part| part.part != Part::FillAndDrain);
    }
    explained::suite().into_iter().zip(after).collect()
}

#[test]
fn parts_at_80_columns() {
    assert_snapshot!(table(&[explained::on_the_host()], 80));
}

#[test]
fn parts_at_120_columns() {
    assert_snapshot!(table(&[explained::in_the_kernel()], 120));
}

#[test]
fn near_the_roofline_there_is_little_to_say() {
    let text = table(
        &[explained::explanation("given", 100.0, &[(Part::Launch, 2.0)])],
        120,
    );
    assert!(text.contains("within 2.0 % of the roofline."), "{text}");
}

#[test]
fn a_suite_at_80_columns() {
    assert_snapshot!(table(&explained::suite(), 80));
}

#[test]
fn two_schedules_at_80_columns() {
    assert_snapshot!(both(80));
}

#[test]
fn two_schedules_on_a_suite_at_80_columns() {
    assert_snapshot!(plain(&compared(&pairs(), 80)));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in 70..160 {
        let texts = [
            table(&[explained::on_the_host()], width),
            table(&[explained::in_the_kernel()], width),
            table(&explained::suite(), width),
            both(width),
            plain(&compared(&pairs(), width)),
        ];
        for text in texts {
            let longest = text.lines().map(textwrap::core::display_width).max().unwrap();
            assert!(longest <= width, "{width}:\n{text}");
        }
    }
}

#[test]
fn a_picture_of_a_call() {
    let picture = timeline_picture(&explained::timeline(1, 2, 4), "A call", "made by hand & small");
    assert_snapshot!(picture);
}

#[test]
fn pictures_stay_small_whatever_they_show() {
    for timeline in [
        explained::timeline(1, 3, 28),
        explained::timeline(4, 40, 28),
        explained::timeline(148, 20, 28),
        Timeline {
            seconds: 0.0,
            tracks: Vec::new(),
        },
    ] {
        let picture = timeline_picture(&timeline, "A call", "");
        assert!(picture.len() < 500_000, "{} bytes", picture.len());
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}

#[test]
fn traces_hold_every_span_in_order() {
    let timeline = explained::timeline(3, 5, 28);
    let trace: Value = serde_json::to_value(trace(&timeline, "A call")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let mut tracks: BTreeMap<(u64, u64), (f64, f64)> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for event in events {
        let track = ["pid", "tid"].map(|key| event[key].as_u64().unwrap());
        match event["ph"].as_str().unwrap() {
            "M" => {
                let key = (event["name"].as_str().unwrap(), track);
                assert!(
                    names.insert(key, event["args"].clone()).is_none(),
                    "named twice: {event}"
                );
            }
            "X" => {
                let [from, length] = ["ts", "dur"].map(|key| event[key].as_f64().unwrap());
                let (end, sum) = tracks.entry((track[0], track[1])).or_default();
                assert!(from >= *end - 1e-9 && length > 0.0, "{event} begins before {end}");
                (*end, *sum) = (from + length, *sum + length);
            }
            other => panic!("{other}: {event}"),
        }
    }
    assert_eq!(tracks.len(), timeline.tracks.len());
    for (track, (_, sum)) in timeline.tracks.iter().zip(tracks.values()) {
        let whole: f64 = track.spans.iter().map(|span| (span.end - span.start) * 1e6).sum();
        assert!(
            (sum - whole).abs() < 1e-3 * whole,
            "{sum} and not {whole}: {}",
            track.name
        );
    }
    let last = tracks.values().map(|(end, _)| *end).fold(0.0, f64::max);
    assert!((last - timeline.seconds * 1e6).abs() < 1e-3);
    assert_eq!(
        names[&("process_name", [2, 2])]["name"],
        "processor 0 and 130 alike"
    );
    assert_eq!(names[&("thread_name", [2, 3])]["name"], "multiply");
    assert_eq!(names[&("thread_sort_index", [2, 3])]["sort_index"], 3);
    let step = events.iter().find(|event| event["args"]["step"] == 7).unwrap();
    assert_eq!(
        (&step["name"], &step["args"]["tile"]),
        (&"load".into(), &0.into())
    );
}
