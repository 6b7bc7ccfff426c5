//! The vocabulary as files write it, and what is said about mistakes.

use std::path::Path;

use gauntlet_schedule::{
    Arithmetic, Choice, Cluster, Epilogue, Exponential, Layout, Lookup, Order, Packing, Roles, Schedule,
    ScheduleChange, Scores, Setup, Tile, Values, words,
};
use proptest::prelude::*;

fn any_of<T: Choice + std::fmt::Debug>() -> impl Strategy<Value = T> {
    proptest::sample::select(T::ALL.iter().map(|(value, _)| *value).collect::<Vec<_>>())
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let numbers = (
        1..512_usize,
        1..512_usize,
        1..512_usize,
        1..9_usize,
        1..9_usize,
        1..9_usize,
        1..9_usize,
    );
    let choices = (
        any_of::<Epilogue>(),
        any_of::<Roles>(),
        any_of::<Order>(),
        any_of::<Lookup>(),
        any_of::<Setup>(),
    );
    let later = (
        any_of::<Packing>(),
        any_of::<Scores>(),
        any_of::<Values>(),
        any_of::<Layout>(),
        any_of::<Exponential>(),
        any_of::<Arithmetic>(),
    );
    (numbers, choices, any::<bool>(), later).prop_map(
        |(numbers, (epilogue, roles, order, lookup, setup), swap_ab, later)| {
            let (m, n, k, stages, split_k, rows, columns) = numbers;
            let (packing, scores, values, layout, exponential, arithmetic) = later;
            Schedule {
                tile: Tile { m, n, k },
                stages,
                epilogue,
                roles,
                order,
                lookup,
                setup,
                swap_ab,
                split_k,
                cluster: Cluster { m: rows, n: columns },
                packing,
                scores,
                values,
                layout,
                exponential,
                arithmetic,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_schedule_survives_writing_and_reading(schedule in any_schedule()) {
        let text = toml::to_string(&schedule).unwrap();
        prop_assert_eq!(Schedule::from_toml(&text, Path::new("s.toml")).unwrap(), schedule);
    }

    #[test]
    fn a_change_lists_exactly_the_words_it_changes(before in any_schedule(), after in any_schedule()) {
        // What is left out of a file changes nothing.
        let before = Schedule {
            packing: Packing::default(),
            scores: Scores::default(),
            values: Values::default(),
            layout: Layout::default(),
            exponential: Exponential::default(),
            arithmetic: Arithmetic::default(),
            ..before
        };
        let text = toml::to_string(&after).unwrap();
        let change = ScheduleChange::from_toml(&text, Path::new("s.toml")).unwrap();
        prop_assert_eq!(change.apply(&before), after.clone());
        let listed = change.words(&before);
        prop_assert_eq!(listed.is_empty(), before == after);
        prop_assert_eq!(listed.iter().any(|change| change.word.name() == "stages"), before.stages != after.stages);
        prop_assert!(change.words(&after).is_empty());
    }
}

#[test]
fn a_schedule_needs_no_word_and_starts_from_the_baseline() {
    let schedule = Schedule::from_toml("", Path::new("s.toml")).unwrap();
    assert_eq!(schedule, Schedule::baseline());
    assert_eq!(
        schedule.to_string(),
        "tile 128×128×256 · stages 1 · direct · unified · per-tile · linear · per-call"
    );
}

#[test]
fn a_change_replaces_only_its_words() {
    let change =
        ScheduleChange::from_toml("stages = 3\nepilogue = \"direct\"\n", Path::new("s.toml")).unwrap();
    let base = Schedule {
        split_k: 4,
        swap_ab: true,
        ..Schedule::baseline()
    };
    assert_eq!(
        change.apply(&base),
        Schedule {
            stages: 3,
            ..base.clone()
        }
    );
    let listed: Vec<_> = change.words(&base).iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["stages: 1 → 3"]);
    let all = Schedule {
        cluster: Cluster { m: 2, n: 1 },
        ..change.apply(&base)
    };
    assert!(
        all.to_string()
            .ends_with("per-call · swap-ab · split-k 4 · cluster 2×1"),
        "{all}"
    );
    let attention = Schedule {
        scores: Scores::InPlace,
        values: Values::Scalar,
        layout: Layout::Plain,
        exponential: Exponential::Table,
        arithmetic: Arithmetic::Fp8,
        ..Schedule::baseline()
    };
    assert!(
        attention.to_string().ends_with(
            "per-call · scores in-place · values scalar · layout plain · exponential table · arithmetic fp8"
        ),
        "{attention}"
    );
}

#[test]
fn later_words_are_written_only_where_they_differ_from_the_baseline() {
    let text = |schedule: &Schedule| toml::to_string(schedule).unwrap();
    let plain = text(&Schedule::baseline());
    assert!(plain.contains("split-k") && !plain.contains("scores"), "{plain}");
    let scalar = text(&Schedule {
        values: Values::Scalar,
        ..Schedule::baseline()
    });
    assert_eq!(scalar, format!("{plain}values = \"scalar\"\n"));
    let repacked = Schedule {
        packing: Packing::Fragments,
        ..Schedule::baseline()
    };
    assert_eq!(text(&repacked), format!("{plain}packing = \"fragments\"\n"));
    assert!(
        repacked.to_string().ends_with(" · packing fragments"),
        "{repacked}"
    );
}

#[test]
fn a_change_is_called_what_ledgers_call_it() {
    let called = |text| {
        format!(
            "{:?}",
            ScheduleChange::from_toml(text, Path::new("s.toml")).unwrap()
        )
    };
    assert_eq!(
        called("stages = 6"),
        "ScheduleChange { tile: None, stages: Some(6), epilogue: None, roles: None, order: None, lookup: None, \
         setup: None, swap_ab: None, split_k: None, cluster: None }",
        "as in results/2026-11-21-b200-predicted.json"
    );
    assert_ne!(called("values = \"scalar\""), called("values = \"matrix\""));
    assert!(called("arithmetic = \"fp8\"").ends_with("cluster: None, arithmetic: Fp8 }"));
}

#[test]
fn messages_name_the_word_what_it_accepts_and_what_was_meant() {
    let messages = [
        "stage = 3",
        "swap_ab = true",
        "colour = \"red\"",
        "epilogue = \"stagd\"",
        "epilogue = \"bulk\"",
        "order = \"Per_Tile\"",
        "order = 3",
        "roles = [\"unified\"]",
        "stages = 0",
        "stages = -1",
        "stages = 100_000",
        "stages = \"3\"",
        "stages = 1.5",
        "tile = [128, 128]",
        "tile = [128, 0, 256]",
        "tile = 128",
        "cluster = [1, 1, 1]",
        "swap-ab = \"yes\"",
        "split-k = true",
        "stages = 1\nstages = 2",
        "stages = ",
    ]
    .map(|text| {
        let error = ScheduleChange::from_toml(text, Path::new("round.toml")).unwrap_err();
        let at = error.span.clone().map_or("nowhere", |span| &text[span]);
        format!("{text:?}\n    {error}\n    at: {at}")
    });
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn the_vocabulary() {
    let table: Vec<_> = words()
        .iter()
        .map(|row| {
            format!(
                "{}: {}\n    GPU: {}\n    CPU: {}",
                row.word, row.accepts, row.on_gpu, row.on_cpu
            )
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"));
}
