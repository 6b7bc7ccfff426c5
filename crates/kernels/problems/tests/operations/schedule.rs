//! The parameters of a schedule as files write them, and the messages about mistakes.

use gauntlet_parameters::{Parameters, Table};
use gauntlet_problems::{
    Arithmetic, Choice, Cluster, Epilogue, Exponential, Layout, Lookup, Maps, Order, Packing, Roles,
    Schedule, Scores, Setup, Tile, Values,
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
        any_of::<Maps>(),
        any_of::<Scores>(),
        any_of::<Values>(),
        any_of::<Layout>(),
        any_of::<Exponential>(),
        any_of::<Arithmetic>(),
    );
    (numbers, choices, any::<bool>(), later).prop_map(
        |(numbers, (epilogue, roles, order, lookup, setup), swap_ab, later)| {
            let (m, n, k, stages, split_k, rows, columns) = numbers;
            let (packing, maps, scores, values, layout, exponential, arithmetic) = later;
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
                maps,
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
        prop_assert_eq!(&toml::from_str::<Schedule>(&text).unwrap(), &schedule);
        let json = serde_json::to_string(&schedule).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Schedule>(&json).unwrap(), &schedule);
        // As command lines give it.
        let line = schedule.parameters().to_string();
        prop_assert_eq!(Schedule::of(&Parameters::parse(&line).unwrap()).unwrap(), schedule);
    }

    #[test]
    fn a_schedule_and_its_parameters_stand_for_one_another(schedule in any_schedule()) {
        let all = schedule.parameters();
        prop_assert_eq!(all.iter().count(), Schedule::table().parameters().len());
        prop_assert_eq!(Schedule::table().check(&all), Ok(()));
        prop_assert_eq!(&Schedule::of(&all).unwrap(), &schedule);
        prop_assert_eq!(&Schedule::try_from(all.clone()).unwrap(), &schedule);
        // Fewer parameters are written; those left out have their defaults.
        let written = Parameters::from(schedule.clone());
        prop_assert_eq!(&Schedule::table().complete(&written), &all);
        prop_assert_eq!(&Schedule::of(&written).unwrap(), &schedule);
        prop_assert_eq!(Schedule::table().describe(&written), schedule.to_string());
    }

    #[test]
    fn a_change_lists_exactly_the_parameters_it_changes(before in any_schedule(), after in any_schedule()) {
        // Parameters that a file leaves out keep their values.
        let before = Schedule {
            packing: Packing::default(),
            maps: Maps::default(),
            scores: Scores::default(),
            values: Values::default(),
            layout: Layout::default(),
            exponential: Exponential::default(),
            arithmetic: Arithmetic::default(),
            ..before
        };
        let text = toml::to_string(&after).unwrap();
        let change: Parameters = toml::from_str(&text).unwrap();
        prop_assert_eq!(before.changed(&change).unwrap(), after.clone());
        let listed = Schedule::table().changes(&before.parameters(), &after.parameters());
        prop_assert_eq!(listed.is_empty(), before == after);
        prop_assert_eq!(listed.iter().any(|change| change.name == "stages"), before.stages != after.stages);
        for change in &listed {
            let (old, new) = (before.parameters(), after.parameters());
            prop_assert_eq!(old.get(&change.name), Some(&change.before));
            prop_assert_eq!(new.get(&change.name), Some(&change.after));
        }
        prop_assert!(Schedule::table().changes(&after.parameters(), &change).is_empty());
    }
}

#[test]
fn a_schedule_needs_no_parameter_and_starts_from_the_baseline() {
    let schedule: Schedule = toml::from_str("").unwrap();
    assert_eq!(schedule, Schedule::baseline());
    assert_eq!(
        schedule.to_string(),
        "tile 128×128×256 · stages 1 · direct · unified · per-tile · linear · per-call"
    );
}

#[test]
fn a_change_replaces_only_its_parameters() {
    let change: Parameters = toml::from_str("stages = 3\nepilogue = \"direct\"\n").unwrap();
    let base = Schedule {
        split_k: 4,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let changed = base.changed(&change).unwrap();
    assert_eq!(
        changed,
        Schedule {
            stages: 3,
            ..base.clone()
        }
    );
    let listed: Vec<_> = Schedule::table()
        .changes(&base.parameters(), &changed.parameters())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(listed, ["stages: 1 → 3"]);
    let all = Schedule {
        cluster: Cluster { m: 2, n: 1 },
        ..changed
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
fn later_parameters_are_written_only_where_they_differ_from_the_baseline() {
    let lines = |schedule: &Schedule| -> Vec<String> {
        let text = toml::to_string(schedule).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let plain = lines(&Schedule::baseline());
    let names: Vec<_> = plain
        .iter()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            "cluster", "epilogue", "lookup", "order", "roles", "setup", "split-k", "stages", "swap-ab",
            "tile"
        ]
    );
    let added = |schedule: &Schedule| -> Vec<String> {
        let all = lines(schedule);
        assert!(plain.iter().all(|line| all.contains(line)), "{all:?}");
        all.into_iter().filter(|line| !plain.contains(line)).collect()
    };
    let scalar = Schedule {
        values: Values::Scalar,
        ..Schedule::baseline()
    };
    assert_eq!(added(&scalar), ["values = \"scalar\""]);
    let repacked = Schedule {
        packing: Packing::Fragments,
        ..Schedule::baseline()
    };
    assert_eq!(added(&repacked), ["packing = \"fragments\""]);
    assert!(
        repacked.to_string().ends_with(" · packing fragments"),
        "{repacked}"
    );
}

#[test]
fn each_family_takes_its_own_parameters() {
    let names = |table: &Table| -> Vec<String> {
        table
            .parameters()
            .iter()
            .map(|parameter| parameter.name.to_string())
            .collect()
    };
    let all = names(Schedule::table());
    let (gemm, attention) = (
        names(Schedule::table_of_gemm()),
        names(Schedule::table_of_attention()),
    );
    let missing = |from: &[String]| -> Vec<String> {
        all.iter().filter(|name| !from.contains(name)).cloned().collect()
    };
    assert_eq!(
        missing(&gemm),
        ["scores", "values", "layout", "exponential", "arithmetic"]
    );
    assert_eq!(missing(&attention), ["packing", "maps"]);
    let joined = Schedule::table_of_gemm()
        .clone()
        .with(Schedule::table_of_attention());
    assert_eq!(joined.parameters(), Schedule::table().parameters());
    let packed = Parameters::new().with("packing", "fragments");
    let message = Schedule::table_of_attention().check(&packed).unwrap_err().message;
    assert!(
        message.starts_with("attention has no parameter `packing`"),
        "{message}"
    );
}

#[test]
fn messages_name_the_parameter_what_it_accepts_and_what_was_meant() {
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
        let (message, at) = match toml::from_str::<Parameters>(text) {
            // Errors of the text have a place in it, those of the table the name of the parameter.
            Err(error) => {
                let at = error.span().map_or("nowhere", |span| &text[span]);
                (error.message().to_owned(), at.to_owned())
            }
            Ok(given) => {
                let error = Schedule::of(&given).unwrap_err();
                (error.message, error.name)
            }
        };
        format!("{text:?}\n    {message}\n    at: {at}")
    });
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn the_table() {
    let table: Vec<_> = Schedule::table()
        .parameters()
        .iter()
        .map(|parameter| {
            format!(
                "{}: {}\n    default: {}\n    GPU: {}\n    CPU: {}",
                parameter.name,
                parameter.domain,
                parameter.default,
                parameter.meaning,
                parameter.on_cpu.as_deref().unwrap_or_default()
            )
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"));
}
